"""Decisions about jobs of tasks: lifecycle policies, restarts, and the end of the job."""
