"""gRPC services of the master: translate calls into core commands; decide nothing."""
