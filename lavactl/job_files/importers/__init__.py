"""Importers of other systems' job files: one module for each kind, all with the job of ``model`` as their result.

A module declares the fields of its kind as tables (``tables``), reads a document by them, and fills in roles and rules.
The tables are what the pages in docs/reference/kinds are written from.
"""
