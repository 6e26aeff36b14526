"""Queries of the stored jobs, answered by a process of their own: the master passes on its messages unread."""
