"""Told: variables, files and names by which the tasks of a job of several roles find each other. Pure."""
