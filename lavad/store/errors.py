"""Errors of the database, one class for each remedy."""


class StoreRefused(Exception):
    """Refusal to use the database as it is; the message is one sentence for the administrator."""
