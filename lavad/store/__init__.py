"""Store of the master: rows in SQLite or PostgreSQL. Writes the rows it is given; decides nothing.

Entry: ``store.Store``. Rows are the state (read at start), events are history (read by bhist).
"""
