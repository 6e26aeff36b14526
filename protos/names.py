"""What a job is called when its submitter gave it no name: the same in lists, in its environment and in its report."""


def of_command(command: str) -> str:
    """The command itself; of a script its first line that does something, or its first line."""
    lines = [line.strip() for line in command.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")
