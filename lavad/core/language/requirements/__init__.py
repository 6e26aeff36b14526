"""The -R language: lexer, vocabulary, parser, and one file for each section."""
