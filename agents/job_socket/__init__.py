"""Job socket of the host: what a job asks about itself, is told, and reports."""
