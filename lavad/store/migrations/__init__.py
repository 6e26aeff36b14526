"""Migrations of the schema, run at start by whoever may write."""

HEAD = "0007"  # the newest revision: where the database already is there, Alembic is not even imported
