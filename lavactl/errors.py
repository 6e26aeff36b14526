"""What a command may raise: each error is one sentence for the user and an exit code.

``lavactl.main.run`` turns them into text on standard error, so no command prints its own failures.
"""

FAILURE = 255  # what LSF's commands return for any failure


class CommandError(Exception):
    """The command failed for a reason the user can act on: one sentence."""

    def __init__(self, sentence: str, code: int = FAILURE) -> None:
        super().__init__(sentence)
        self.code = code


class UsageError(CommandError):
    """The command line makes no sense: the sentence is followed by the usage text."""

    def __init__(self, sentence: str, usage: str = "") -> None:
        super().__init__(sentence)
        self.usage = usage


class OutputClosedError(Exception):
    """Whoever read our standard output has gone (``bjobs | head``): end quietly."""
