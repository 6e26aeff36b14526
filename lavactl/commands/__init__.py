"""One module for each command; each has ``main(argv, io) -> exit code`` and is imported only when it is called."""
