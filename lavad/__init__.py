"""The master: pure core, engine, store and gRPC services."""
