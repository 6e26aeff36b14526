"""Application of events to the cluster's state, one function for each event."""
