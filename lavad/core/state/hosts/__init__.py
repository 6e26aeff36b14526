"""State of hosts: the host table, shared resources, compute units, load thresholds."""
