"""Master of a cluster: pure core, engine, store and gRPC services."""
