"""Free capacity of hosts: now, later, and for one job."""
