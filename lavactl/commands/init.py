"""lavactl init: the directory of a cluster on real hosts: private authority, keys, lava.conf, join ticket."""

from lavactl.errors import UsageError
from lavactl.io import Io
from lavactl.options import FLAG, VALUE, answer_standard
from lavactl.personal import directory as files
from lavactl.personal.options import directory, number, parse, value

USAGE = """\
Usage: lavactl init DIR [--cluster NAME] [--listen ADDR:PORT] [--db URL] [--ticket-days N]
       lavactl init DIR --new-ticket [--host NAME] [--ticket-days N]
Makes a cluster directory; then: lavad --conf DIR, and on each host: lava-agent --master HOST:PORT --ticket DIR/ticket
  --cluster NAME      name of the cluster (lava)
  --listen ADDR:PORT  where the master listens (0.0.0.0:6920); enrolment uses the port after it
  --db URL            sqlite:///PATH or postgresql+psycopg://USER@HOST/NAME (SQLite in DIR/state)
  --new-ticket        only write a new join ticket in an existing directory
  --host NAME         the new ticket, DIR/ticket.NAME, admits this host and no other
  --ticket-days N     how long hosts may join with the ticket (30)
"""
KINDS = {"cluster": VALUE, "listen": VALUE, "db": VALUE, "ticket-days": VALUE, "new-ticket": FLAG, "host": VALUE}
TICKET_DAYS_MAX = 3650


def main(argv: list[str], io: Io) -> int:
    """Make the directory, or a new ticket in it."""
    answer = answer_standard(argv, USAGE)
    if answer is not None:
        io.print(answer)
        return 0
    options = parse(argv, USAGE, "init", KINDS)
    if len(options.words) != 1:
        raise UsageError("lavactl init: expected one directory", USAGE)
    target = directory(options.words[0], io)
    days = number(options, "ticket-days", 1, TICKET_DAYS_MAX) or files.TICKET_DAYS
    host = value(options, "host")
    if host is not None and "-new-ticket" not in options:
        raise UsageError("lavactl init: --host goes with --new-ticket", USAGE)
    if "-new-ticket" in options:
        whom = "hosts" if host is None else f"host {host} and no other"
        io.print(f"{files.new_ticket(target, days, host)} admits {whom} for {days} days.")
        return 0

    def given(name: str, default: str) -> str:
        found = value(options, name)
        return default if found is None else found

    settings = files.settings_for(
        cluster=given("cluster", "lava"),
        listen=given("listen", f"0.0.0.0:{files.MASTER_PORT}"),
        administrator=io.user_name(),
        database=value(options, "db"),
    )
    files.create(target, settings, days)
    io.print(f"Cluster {settings.cluster} is set up in {target}. Start its master:  lavad --conf {target}")
    io.print(
        f"On each host, with a copy of the ticket:  lava-agent --master {settings.master} --ticket {target}/ticket"
    )
    return 0
