"""Tables and paragraphs that commands print."""
