"""Reads of the database: restore at start, history, accounting."""
