"""The -R language by its parts: words, names, and one file for each section."""
