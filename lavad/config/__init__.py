"""Reader of LSF's configuration files: their grammar, and their values for the core. Reports all errors at once."""
