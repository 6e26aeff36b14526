"""Parts of badmin and lsadmin besides the control of hosts and queues."""
