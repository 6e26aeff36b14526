"""Tickets of the master for agents: leave to attach to a job, or to copy its files."""
