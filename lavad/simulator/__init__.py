"""Simulation of the same core in virtual time: replayed traces, and whole clusters with faults."""
