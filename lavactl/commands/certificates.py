"""lavactl certificates: list or revoke the host certificates of a cluster directory."""

from pathlib import Path

from lavactl.errors import FAILURE, CommandError, UsageError
from lavactl.io import Io
from lavactl.options import VALUE, answer_standard, printable
from lavactl.personal import directory as files
from lavactl.personal.hosts.wait_hosts import ask
from lavactl.personal.options import directory, parse, value
from lavactl.settings import socket_path
from lavactl.text.columns import minute, table
from lavactl.wire.connection import CallError, LostError
from protos.trust import tickets
from protos.trust.certificates import Certificate, Register
from protos.trust.roles import TrustError, check_host_name

USAGE = """\
Usage: lavactl certificates DIR [HOST ...]
       lavactl certificates DIR --revoke HOST | SERIAL
Lists the certificates of hosts; run it on the master, as root or as the owner of DIR.
  --revoke  all certificates of that host and the tickets for it, or the one certificate, are refused from now on;
            badmin hremove does so too, and takes the host out of the cluster
"""
KINDS = {"revoke": VALUE}
HEADER = ("HOST", "STATE", "ISSUED", "EXPIRES", "SERIAL")


def main(argv: list[str], io: Io) -> int:
    """List the certificates, or revoke some."""
    answer = answer_standard(argv, USAGE)
    if answer is not None:
        io.print(answer)
        return 0
    options = parse(argv, USAGE, "certificates", KINDS)
    word = value(options, "revoke")
    if not options.words or (word is not None and len(options.words) > 1):
        raise UsageError("lavactl certificates: expected one directory", USAGE)
    target = directory(options.words[0], io)
    files.read_settings(target)
    try:
        register = Register(target)
        return _list(register, options.words[1:], io) if word is None else _revoke(target, register, word, io)
    except TrustError as error:
        raise CommandError(f"The certificates in {target} cannot be used: {error}") from error


def _list(register: Register, hosts: list[str], io: Io) -> int:
    unknown = [host for host in hosts if not register.of_host(host)]
    for host in unknown:
        io.error(f"{printable(host)}: no host of that name has a certificate in the register.")
    rows = [
        (one.host, _state(one, io.now()), minute(one.issued_at), minute(one.expires_at), one.serial)
        for one in register.all()
        if not hosts or one.host in hosts
    ]
    if rows:
        io.print(table(HEADER, rows))
    elif not unknown:
        io.error("No certificates are registered.")
    return FAILURE if unknown else 0


def _state(one: Certificate, now: float) -> str:
    if one.revoked_at:
        return "revoked"
    return "expired" if now >= one.expires_at else "valid" if one.used_at else "not used"


def _revoke(target: Path, register: Register, word: str, io: Io) -> int:
    one = register.find(word)
    if one is not None:
        register.revoke(one, io.user_name())
        io.print(f"Certificate {one.serial} of host {one.host} is revoked.")
        return 0
    host = check_host_name(word)
    if not register.of_host(host):
        problem = _unknown(target, register, host)
        if problem:
            io.error(problem)
            return FAILURE
        io.error(f"{host}: not in the register; certificates of that name that are older than it are revoked.")
    register.revoke_host(host, io.user_name())
    io.print(f"The certificates of host {host} and the tickets for it are revoked.")
    return 0


def _unknown(target: Path, register: Register, host: str) -> str:
    """Sentence about a host without a certificate in the register; empty if a ticket or the master knows its name."""
    made = tickets.read_entries(target / "tickets").values()
    if register.host_revoked_at(host) or any(entry.host == host for entry in made):
        return ""
    sentence = f"{host}: no certificate, ticket or host of that name is known; nothing is revoked."
    try:
        return "" if host in ask(Path(socket_path({"LAVA_ENVDIR": str(target)}))) else sentence
    except (OSError, LostError, CallError) as error:
        return f"{sentence} The master cannot be asked for its hosts: {error}"
