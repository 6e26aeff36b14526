"""ClusterService, one file for each kind of call."""
