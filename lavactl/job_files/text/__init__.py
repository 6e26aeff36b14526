"""Texts of job files as values that know their line and column."""
