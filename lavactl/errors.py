"""Exceptions of commands: each is one sentence for the user and an exit code.

``lavactl.main.run`` turns them into text on standard error, so no command prints its own failures.
"""

FAILURE = 255  # exit code of LSF's commands for any failure


class CommandError(Exception):
    """Failure that the user can act on: one sentence."""

    def __init__(self, sentence: str, code: int = FAILURE) -> None:
        super().__init__(sentence)
        self.code = code


class UsageError(CommandError):
    """Malformed command line: the sentence is followed by the usage text."""

    def __init__(self, sentence: str, usage: str = "") -> None:
        super().__init__(sentence)
        self.usage = usage


class OutputClosedError(Exception):
    """Closed standard output (``bjobs | head``): end quietly."""
