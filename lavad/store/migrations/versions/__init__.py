"""Steps of the schema in order, one module each."""
