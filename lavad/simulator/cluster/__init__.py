"""A simulated cluster with random users, administrators and faults, checked at each step."""
