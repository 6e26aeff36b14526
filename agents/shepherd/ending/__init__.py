"""The end of an attempt: reasons, usage of other hosts, the job report."""
