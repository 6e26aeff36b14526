"""Served commands: a resident process without privileges runs the commands of stubs, and the stubs themselves."""
