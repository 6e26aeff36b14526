"""The database itself: connections, URL, file checks, schema upgrade."""
