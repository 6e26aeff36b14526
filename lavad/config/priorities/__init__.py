"""Settings of the order of jobs that have a language of their own."""
