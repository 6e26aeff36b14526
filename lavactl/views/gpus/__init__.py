"""GPUs in commands: those of a host, those of a job, and their use by a job."""
