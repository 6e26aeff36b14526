"""Raw wait statuses as exit codes and sentences."""

import os

SIGNALLED = 128  # a shell's exit code for a command killed by signal n is this plus n


def exit_code(wait_status: int) -> int:
    """The exit code a shell would show: the program's own, or 128 plus the signal that killed it."""
    if os.WIFSIGNALED(wait_status):
        return SIGNALLED + os.WTERMSIG(wait_status)
    return os.WEXITSTATUS(wait_status)


def exit_sentence(wait_status: int) -> str:
    """``Exited with exit code 3.``, ``Exited by signal 9.``, ``Done successfully.``"""
    if os.WIFSIGNALED(wait_status):
        return f"Exited by signal {os.WTERMSIG(wait_status)}."
    code = os.WEXITSTATUS(wait_status)
    return f"Exited with exit code {code}." if code else "Done successfully."
