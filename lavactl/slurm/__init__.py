"""Slurm's commands on lava's own calls: one file a command, and what they share in the folders below."""
