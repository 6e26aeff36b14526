"""The resource requirement language (-R): lexer, vocabulary, parser, and one file for each section."""
