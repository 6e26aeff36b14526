"""Migrations of the schema, run at start by the process that writes."""

HEAD = "0016"  # the newest revision; if the database already has it, Alembic is not even imported
