"""Slurm's notations: options, times, sizes, job ids, states, formats."""
