"""Benchmarks: each module prints key=value lines; `python -m benchmarks` runs them all."""
