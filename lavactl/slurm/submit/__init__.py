"""From Slurm's options and #SBATCH lines to the job that is submitted."""
