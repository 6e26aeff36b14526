"""Changes of the cluster's state by events, each event's in one function."""
