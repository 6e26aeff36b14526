"""gRPC in, commands out: the services of the master; nothing here decides."""
