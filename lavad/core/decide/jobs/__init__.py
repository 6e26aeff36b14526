"""Decisions on commands about jobs."""
