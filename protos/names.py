"""Names that mean the same everywhere: of jobs without one of their own, of hosts with or without domain, lock IDs, and
the action CHKPNT, which queues, profiles and notices may have in place of a signal or a command."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

CHECKPOINT = "CHKPNT"


def of_command(command: str) -> str:
    """The command itself; for a script its first line that is a command, or its first line."""
    if command.isprintable():  # a single line
        return command.strip()
    lines = [line.strip() for line in command.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")


def is_checkpoint(action: str) -> bool:
    """True if an action is a checkpoint of the job."""
    return action.strip().upper() == CHECKPOINT


def is_lock_id(text: str) -> bool:
    """True for 1 to 128 letters, digits and underscores."""
    return len(text) <= 128 and text.isascii() and text.replace("_", "0").isalnum()


def host_meant(name: str, hosts: "Iterable[str]") -> str | None:
    """The host of this name, with or without its domain; None if there is none, or several would do."""
    wanted = name.lower().rstrip(".")
    by_name = {host.lower(): host for host in hosts}
    if wanted in by_name:
        return by_name[wanted]
    short = wanted.partition(".")[0]
    found = [host for known, host in by_name.items() if short and known.partition(".")[0] == short]
    return found[0] if len(found) == 1 else None
