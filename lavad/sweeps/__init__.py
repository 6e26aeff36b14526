"""Periodic removal of records from the database that nothing refers to any more."""
