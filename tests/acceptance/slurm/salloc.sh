#!/bin/bash
# An allocation of two nodes for a command that starts steps.
salloc --nodes=2 --ntasks-per-node=1 --time=5 bash -c 'srun hostname | sort; echo "on $SLURM_JOB_NODELIST"'
