"""What can go wrong with the database, by what the reader of the message can do about it."""


class StoreRefused(Exception):
    """The database can't be used as it is; the message is one sentence for the administrator."""
