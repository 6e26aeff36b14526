#!/bin/bash
#SBATCH --partition=normal
#SBATCH --gres=gpu:2
#SBATCH --nodes=1
#SBATCH --time=0-00:05
#SBATCH --output=gpu.out

echo "GPUs $CUDA_VISIBLE_DEVICES, $SLURM_GPUS_ON_NODE of them"
srun -n1 bash -c 'echo "step sees $CUDA_VISIBLE_DEVICES"'
