"""Stand-ins for hardware that the machine under test does not have."""
