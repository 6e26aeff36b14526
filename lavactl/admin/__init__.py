"""Parts of the commands for administrators, besides the control of hosts and queues."""
