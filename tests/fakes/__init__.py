"""Fakes for hardware that the machine under test lacks."""
