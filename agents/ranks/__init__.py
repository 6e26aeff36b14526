"""Processes of a job beside its first one: launch agents of an MPI, ranks, helpers that read a job's output."""
