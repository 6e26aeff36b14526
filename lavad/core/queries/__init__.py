"""Answers about the cluster: pending reasons, estimates, suggestions, usage."""
