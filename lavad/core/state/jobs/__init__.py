"""State about many jobs together: their names, and job groups."""
