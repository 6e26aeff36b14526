"""Shepherd: the small process that keeps one attempt on one host, from its first process to its exit record.

It outlives agent and launcher. Only the standard library is imported here, and little of that.
"""
