"""Processes of an attempt: identity, descriptors, start."""
