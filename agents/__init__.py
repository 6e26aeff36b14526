"""The per-host agent: starts, watches and counts the processes of jobs on its own host, and nothing else."""
