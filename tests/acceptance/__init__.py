"""Acceptance tests with real daemons, real hosts and real jobs, judged by the jobs' own output."""
