"""Writer of the database: batches, statements, and the writer process as the master sees it."""
