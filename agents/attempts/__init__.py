"""Attempts of this host: ledger, journal, and the execution of orders."""
