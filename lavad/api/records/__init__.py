"""Records of hosts, queues, users, resources and limits on the wire."""
