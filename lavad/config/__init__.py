"""LSF's own configuration files, in their own grammar, as values of the core. All errors of all files come at once."""
