"""Local socket of the host: commands of its users."""
