#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=5
#SBATCH --output=mpi.out

mpirun bash -c 'echo "rank ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} of $SLURM_NTASKS on $(hostname)"'
