"""Rows of core values, and the encodings of their columns."""
