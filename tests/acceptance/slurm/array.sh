#!/bin/bash
#SBATCH -J sweep
#SBATCH -o sweep_%A_%a.out
#SBATCH --array=0-3%2
#SBATCH -t 5

VALUES=(alpha beta gamma delta)
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX ($SLURM_ARRAY_TASK_COUNT): ${VALUES[$SLURM_ARRAY_TASK_ID]}"
