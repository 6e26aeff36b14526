"""The master's logic and policy: no I/O, clock, thread, SQL or gRPC. Read step.py first."""
