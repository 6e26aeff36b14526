"""Decisions about checkpoints of running jobs."""
