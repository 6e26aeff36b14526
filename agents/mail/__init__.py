"""Mail about jobs of this host."""
