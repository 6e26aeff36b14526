"""What apply keeps current for the scheduler: pending jobs in buckets, hosts as columns."""
