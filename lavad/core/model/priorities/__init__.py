"""Rules by which pending jobs are ordered beyond their queues."""
