"""Changes of jobs by bmod that only some jobs take."""
