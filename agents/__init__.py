"""Agent of one host: starts, watches and accounts for the processes of jobs on its host, and nothing else."""
