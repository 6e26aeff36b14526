"""Core of the master: logic and policy without I/O, clock, threads, SQL or gRPC. Read step.py first."""
