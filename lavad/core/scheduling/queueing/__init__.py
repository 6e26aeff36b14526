"""Order of pending jobs, and the buckets that wait for hosts or limits."""
