"""lavactl init: create the directory of a cluster on real hosts: private authority, keys, lava.conf, join ticket."""

import os
from pathlib import Path

from lavactl.errors import CommandError, UsageError
from lavactl.io import Io
from lavactl.options import FLAG, VALUE, Options, answer_standard
from lavactl.personal import directory as files
from lavactl.personal.options import directory, number, parse, value
from lavactl.personal.trust import cannot_log_in, check_directory
from protos.trust.roles import TrustError, check_host_name
from protos.trust.tickets import Entry

USAGE = """\
Usage: lavactl init DIR [--cluster NAME] [--listen ADDR:PORT] [--db URL] [--state DIR] [--administrators NAMES]
                    [--ticket-days N]
       lavactl init DIR --new-ticket [--host NAME [--replace] | --uses N] [--ticket-days N]
Makes a cluster directory; then: lavad --conf DIR, and on each host: lava-agent --master HOST:PORT --ticket FILE
DIR/ticket admits one host, DIR/ticket.NAME the agent on the master itself. What root makes belongs to DIR's owner.
  --cluster NAME          name of the cluster (lava)
  --listen ADDR:PORT      where the master listens (0.0.0.0:6920); enrolment uses the port after it
  --db URL                sqlite:///PATH or postgresql+psycopg://USER@HOST/NAME (SQLite in the state directory)
  --state DIR             what the master keeps besides (where the SQLite file is, else DIR/state)
  --administrators NAMES  user names with blanks between them (you; root, if you are a user without a login shell)
  --new-ticket            only write a new join ticket in an existing directory
  --host NAME             the new ticket, DIR/ticket.NAME, admits this host and no other
  --replace               it does so although the host has a valid certificate, which is revoked then
  --uses N                the new ticket admits that many new hosts (1), but no master, login or administration host
  --ticket-days N         how long hosts may join with the ticket (30)
lavactl tickets DIR and lavactl certificates DIR list them and revoke them.
"""
KINDS = {"cluster": VALUE, "listen": VALUE, "db": VALUE, "state": VALUE, "administrators": VALUE, "ticket-days": VALUE,
         "new-ticket": FLAG, "host": VALUE, "replace": FLAG, "uses": VALUE}  # fmt: skip
ONLY_NEW_TICKET = ("host", "replace", "uses")
TICKET_DAYS_MAX = 3650
USES_MAX = 100_000


def main(argv: list[str], io: Io) -> int:
    """Create the directory, or a new ticket in it."""
    answer = answer_standard(argv, USAGE)
    if answer is not None:
        io.print(answer)
        return 0
    options = parse(argv, USAGE, "init", KINDS)
    if len(options.words) != 1:
        raise UsageError("lavactl init: expected one directory", USAGE)
    target = directory(options.words[0], io)
    check_directory(target, of_service=True)
    days = number(options, "ticket-days", 1, TICKET_DAYS_MAX) or files.TICKET_DAYS
    if "-new-ticket" in options:
        return _new_ticket(target, options, days, io)
    for name in ONLY_NEW_TICKET:
        if f"-{name}" in options:
            raise UsageError(f"lavactl init: --{name} goes with --new-ticket", USAGE)
    return _new_cluster(target, options, days, io)


def _new_ticket(target: Path, options: Options, days: int, io: Io) -> int:
    host, uses = value(options, "host"), number(options, "uses", 1, USES_MAX)
    replaces = "-replace" in options
    if host is not None and uses is not None:
        raise UsageError("lavactl init: --host and --uses exclude each other", USAGE)
    if replaces and host is None:
        raise UsageError("lavactl init: --replace goes with --host", USAGE)
    try:
        if host is not None:
            check_host_name(host)
    except TrustError as error:
        raise CommandError(f"No ticket can be made in {target}: {error}") from error
    whom = f"host {host} and no other" if host is not None else "one new host" if not uses else f"{uses} new hosts"
    path = files.new_ticket(target, days, Entry(0.0, host or "", uses or 1, replaces))
    io.print(f"{path} admits {whom} for {days} days.")
    return 0


def _new_cluster(target: Path, options: Options, days: int, io: Io) -> int:
    def given(name: str, default: str) -> str:
        found = value(options, name)
        return default if found is None else found

    state = value(options, "state")
    settings = files.settings_for(
        cluster=given("cluster", "lava"),
        listen=given("listen", f"0.0.0.0:{files.MASTER_PORT}"),
        administrators=" ".join(given("administrators", _administrator(io)).replace(",", " ").split()),
        database=value(options, "db"),
        state=None if state is None else str(directory(state, io)),
    )
    if not settings.administrators:
        raise UsageError("lavactl init: --administrators: expected user names", USAGE)
    files.create(target, settings, days)
    io.print(f"Cluster {settings.cluster} is set up in {target}. Start its master:  lavad --conf {target}")
    io.print(
        f"On each host, with a ticket of its own:  lava-agent --master {settings.master} --ticket FILE\n"
        f"Make the ticket for host n001:  lavactl init {target} --new-ticket --host n001"
    )
    return 0


def _administrator(io: Io) -> str:
    """Administrator to enter: the caller, or root if the caller is a service account that cannot log in."""
    return "root" if cannot_log_in(os.geteuid()) else io.user_name()
