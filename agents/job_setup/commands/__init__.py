"""What the site and lava add to a job's own commands: eexec, copies of its files."""
