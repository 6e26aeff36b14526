"""Accounting of ended jobs: filters, lsb.acct files, and what bacct prints."""
