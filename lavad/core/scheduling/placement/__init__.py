"""Placement of a job's tasks on hosts, CPUs and GPUs."""
