"""Changes of a job while it runs: its CPU limit, its output files."""
