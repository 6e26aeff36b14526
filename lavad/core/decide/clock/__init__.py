"""Decisions of the clock: timers, windows, load thresholds, advance reservations."""
