#!/bin/bash
# Submits a chain: each job only after the one before.
first=$(sbatch --parsable -o chain.out --open-mode=append --wrap 'echo one; sleep 0.5')
second=$(sbatch --parsable --dependency=afterok:$first -o chain.out --open-mode=append --wrap 'echo two; exit 3')
third=$(sbatch --parsable --dependency=afternotok:$second -o chain.out --open-mode=append --wrap 'echo three')
never=$(sbatch --parsable --dependency=afterok:$second --kill-on-invalid-dep=yes -o chain.out --wrap 'echo never')
sbatch --wait --dependency=afterany:$third:$never -o /dev/null --wrap 'true'
echo "$first $second $third $never"
