"""Importers of other systems' job files: one module for each kind, all with the job of ``model`` as their result."""
