"""Name of a job submitted without one: the same in listings, environment and job report."""


def of_command(command: str) -> str:
    """The command itself; for a script its first line that is a command, or its first line."""
    lines = [line.strip() for line in command.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")
