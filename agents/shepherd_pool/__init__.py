"""Pool of shepherds, and polling of their sockets."""
