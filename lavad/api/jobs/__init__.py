"""JobService, one file for each kind of call."""
