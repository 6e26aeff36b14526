"""lavactl tickets: list or revoke the join tickets of a cluster directory."""

from pathlib import Path

from lavactl.errors import FAILURE, CommandError, UsageError
from lavactl.io import Io
from lavactl.options import VALUE, answer_standard, printable
from lavactl.personal import directory as files
from lavactl.personal.options import directory, parse, value
from lavactl.text.columns import minute, table
from protos.trust import tickets
from protos.trust.certificates import Register
from protos.trust.roles import TrustError

USAGE = """\
Usage: lavactl tickets DIR [--revoke TICKET | HOST | all]
Lists the join tickets that the master in DIR still takes; run it on the master, as root or as the owner of DIR.
  --revoke  the ticket with that number, those of a host, or all of them admit no host any more
"""
KINDS = {"revoke": VALUE}
HEADER = ("TICKET", "ADMITS", "REPLACES", "EXPIRES", "USED_BY")
USERS_SHOWN = 3


def main(argv: list[str], io: Io) -> int:
    """List the tickets, or revoke some."""
    answer = answer_standard(argv, USAGE)
    if answer is not None:
        io.print(answer)
        return 0
    options = parse(argv, USAGE, "tickets", KINDS)
    if len(options.words) != 1:
        raise UsageError("lavactl tickets: expected one directory", USAGE)
    target, word = directory(options.words[0], io), value(options, "revoke")
    files.read_settings(target)
    try:
        return _list(target, io) if word is None else _revoke(target, word, io)
    except (TrustError, OSError) as error:
        raise CommandError(f"The tickets in {target} cannot be used: {error}") from error


def _list(target: Path, io: Io) -> int:
    register = Register(target)
    rows = []
    for mark, entry in tickets.read_entries(target / "tickets").items():
        is_revoked = bool(entry.host) and entry.made < register.host_revoked_at(entry.host)
        if entry.expires > io.now() and not is_revoked:
            admits = entry.host or f"{entry.uses} new host{'s' if entry.uses > 1 else ''}"
            used = sorted(register.hosts_of_ticket(mark))
            shown = " ".join(used[:USERS_SHOWN]) + (
                f" and {len(used) - USERS_SHOWN} more" if used[USERS_SHOWN:] else ""
            )
            replaces = "yes" if entry.replaces else "no"
            rows.append((mark[: tickets.MARK_SHOWN], admits, replaces, minute(entry.expires), shown or "-"))
    if not rows:
        io.error("No tickets are valid.")
        return 0
    io.print(table(HEADER, rows))
    return 0


def _revoke(target: Path, word: str, io: Io) -> int:
    gone = tickets.revoke(target / "tickets", word)
    if not gone:
        io.error(f"{printable(word)}: no valid ticket has that number or is for that host.")
        return FAILURE
    io.print(f"{len(gone)} ticket{'s are' if len(gone) > 1 else ' is'} revoked.")
    return 0
