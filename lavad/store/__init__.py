"""The store: rows in SQLite or PostgreSQL. It writes what it is handed and never decides.

Entry: ``store.Store``. Rows are the truth (start-up reads them), events are history (bhist reads them).
"""
