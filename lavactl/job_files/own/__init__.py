"""Lava's own job file: its keys, how it is read and written, its schema, and the file of a job that exists."""
