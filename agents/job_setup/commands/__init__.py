"""Programs beside a job's own commands: eexec, copies of its files, checkpoints."""
