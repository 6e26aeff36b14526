"""Maintenance of the database beside or in place of a running master: programs of `lavactl`."""
