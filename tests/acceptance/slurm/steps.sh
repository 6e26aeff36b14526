#!/bin/bash
#SBATCH -N 2 -n 4
#SBATCH -o steps.out

srun --label hostname
srun -n 4 -o step-%t.out bash -c 'echo "$SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME $SLURM_STEP_ID"'
for i in 1 2 3 4 5 6; do
  srun -N1 -n1 --exact bash -c "echo packed $i; sleep 0.2" &
done
wait
srun -n 2 bash -c 'exit $((SLURM_PROCID * 5))'
echo "code $?"
