"""Languages of job options: resource requirements, dependencies, names, exit values."""
