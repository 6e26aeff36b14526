"""The cluster directory: authority, master's identity, lava.conf and join ticket, made once and never overwritten.

Public files are readable whatever the user's umask; private ones have mode 0600 from the first instant. The directory
is complete or the command reports what is missing: lava.conf is written last.
"""

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lavactl.errors import CommandError
from protos import conffile
from protos.trust import tickets
from protos.trust.private import give_to_owner, write_file, write_private
from protos.trust.roles import Kind, Role, TrustError, check_host_name, join_address, split_address

MASTER_PORT = 6920
WILDCARDS = ("0.0.0.0", "::")
TICKET_DAYS = 30
_DAY_S = 86400
_DATABASES = ("sqlite", "postgresql", "postgres")
# Any of these files marks an existing cluster, and overwriting a key would lock its hosts out.
LSF_CONF = "lsf.conf"
_LSF_CONF_TEXT = """\
# Settings that LSF's clients look up themselves, so units mean the same to them and to lava.
LSF_UNIT_FOR_LIMITS=MB
LSB_BSUB_PARSE_SCRIPT=Y
"""
OWN_FILES = ("lava.conf", "lsf.conf", "ca", "master.key", "master.pem", "ticket", "tickets", "certificates", "database")

_COMMENTS = {
    "LAVA_CLUSTER_NAME": "The name users see in lsid.",
    "LAVA_MASTER": "Where agents reach the master; it goes into every ticket.",
    "LAVA_LISTEN": "Where the master listens: mutual TLS.",
    "LAVA_ENROL_LISTEN": "Where hosts with a ticket ask for their certificate.",
    "LAVA_DATABASE": "sqlite:///PATH or postgresql+psycopg://USER@HOST/NAME; with a password: LAVA_DATABASE_FILE.",
    "LAVA_DATABASE_FILE": "A file of mode 0600 that holds the database URL.",
    "LAVA_STATE_DIR": "What the master keeps besides the database.",
    "LAVA_ADMINISTRATORS": "User names, separated by blanks.",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Parameters of a new cluster; addresses are HOST:PORT, `database` empty for SQLite in the directory."""

    cluster: str
    master: str
    listen: str
    enrol_listen: str
    administrators: str
    database: str = ""
    state: str = ""  # empty: beside the SQLite file, else in the directory
    more: dict[str, str] = field(default_factory=dict)


def settings_for(
    cluster: str, listen: str, administrators: str, database: str | None, state: str | None = None
) -> Settings:
    """Settings of a real cluster from the options of `lavactl init`; CommandError for invalid ones."""
    check_cluster_name(cluster)
    check_database(database)
    try:
        address, port = split_address(listen)
    except TrustError as error:
        raise CommandError(f"--listen: {error}") from error
    if port == 65535:
        raise CommandError("--listen: the port after it is for enrolment, so it can be 65534 at most.")
    reached_at = _own_name() if address in WILDCARDS else address
    return Settings(
        cluster=cluster,
        master=join_address(reached_at, port),
        listen=listen,
        enrol_listen=join_address(address, port + 1),
        administrators=administrators,
        database=database or "",
        state=state or "",
    )


def _own_name() -> str:
    """Name of this machine for other machines, as far as it knows it."""
    full = socket.getfqdn()
    return socket.gethostname() if full.partition(".")[0] == "localhost" else full


def check_cluster_name(name: str) -> None:
    """CommandError unless the name is valid for display and storage."""
    if not conffile.CLUSTER_NAME.fullmatch(name):
        raise CommandError(
            f"{name!r} cannot name a cluster: expected up to 39 letters, digits, dots, dashes and underscores."
        )


def check_database(url: str | None) -> None:
    """CommandError for a URL of an unknown database kind; None means the default."""
    if url is None:
        return
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        scheme = ""
    if scheme.partition("+")[0] not in _DATABASES:
        raise CommandError("--db: expected sqlite:///PATH or postgresql://[USER[:PASSWORD]@]HOST[:PORT]/NAME.")


def has_password(url: str) -> bool:
    """True if the URL contains a secret, in its authority or as a parameter."""
    parts = urlsplit(url)
    return ("@" in parts.netloc and ":" in parts.netloc.rpartition("@")[0]) or "password" in parts.query.lower()


def create(directory: Path, settings: Settings, ticket_days: float = TICKET_DAYS) -> None:
    """Create the cluster directory; CommandError if it is one already or cannot be written."""
    present = [name for name in OWN_FILES if os.path.lexists(directory / name)]
    if present:
        raise CommandError(f"{directory} holds a cluster already ({present[0]}); nothing was changed.")
    try:
        make_directory(directory, 0o755)
        _write_authority(directory, settings.cluster)
        values = _values(directory, settings)
        if has_password(settings.database):
            write_private(directory / "database", settings.database.encode() + b"\n")
        make_directory(Path(values["LAVA_STATE_DIR"]), 0o700)
        text = conffile.render(values, _COMMENTS)
        new_tickets(directory, {"ticket": tickets.Entry(0.0)} | _for_own_agent(), ticket_days, values)
        write_public(directory / LSF_CONF, _LSF_CONF_TEXT)
        write_public(directory / conffile.FILE_NAME, text)
    except OSError as error:
        raise CommandError(f"The cluster directory {directory} cannot be made: {error.strerror}.") from error


def _write_authority(directory: Path, cluster: str) -> None:
    # Imports cryptography, which only a new cluster needs.
    from protos.trust.authority import key_pem, make_authority, make_key

    authority = make_authority(cluster)
    make_directory(directory / "ca", 0o755)
    write_private(directory / "ca" / "ca.key", key_pem(authority.key))
    write_public(directory / "ca" / "ca.pem", authority.certificate_pem.decode())
    key = make_key()
    write_private(directory / "master.key", key_pem(key))
    write_public(directory / "master.pem", authority.certify(key.public_key(), Role(Kind.MASTER)).decode())


def _values(directory: Path, settings: Settings) -> dict[str, str]:
    state = settings.state or str(_sqlite_directory(settings.database) or directory / "state")
    values = {
        "LAVA_CLUSTER_NAME": settings.cluster,
        "LAVA_MASTER": settings.master,
        "LAVA_LISTEN": settings.listen,
        "LAVA_ENROL_LISTEN": settings.enrol_listen,
    }
    if has_password(settings.database):
        values["LAVA_DATABASE_FILE"] = "database"
    else:
        values["LAVA_DATABASE"] = settings.database or f"sqlite:///{state}/lava.db"
    values["LAVA_STATE_DIR"] = str(state)
    values["LAVA_ADMINISTRATORS"] = settings.administrators
    return values | settings.more


def _sqlite_directory(url: str) -> Path | None:
    """Directory of a SQLite file named by its full path, which also becomes the master's state directory."""
    path = url.partition("sqlite:///")[2].partition("?")[0]
    return Path(path).parent if path.startswith("/") else None


def _for_own_agent() -> dict[str, tickets.Entry]:
    """Join ticket for an agent on the master's own host, which a ticket for any host does not admit."""
    try:
        host = check_host_name(socket.gethostname())
    except TrustError:
        return {}
    return {f"ticket.{host}": tickets.Entry(0.0, host)}


def make_directory(path: Path, mode: int) -> None:
    """Make a directory of exactly this mode, whatever the umask; an existing one keeps its own."""
    if not path.is_dir():
        path.mkdir(parents=True)
        # Its parent may belong to another user than root, who may have put a link in its place meanwhile.
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            give_to_owner(descriptor, path.parent)
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)


def write_public(path: Path, text: str) -> None:
    """Write a world-readable file atomically."""
    write_file(path, text.encode(), 0o644)


def read_settings(directory: Path) -> dict[str, str]:
    """lava.conf of a cluster directory; CommandError with file and line if it is invalid."""
    try:
        return conffile.read(directory / conffile.FILE_NAME)
    except conffile.ConfError as error:
        raise CommandError(str(error)) from error


def change_settings(directory: Path, changes: dict[str, str]) -> None:
    """Change lines of lava.conf and keep all other lines."""
    path = directory / conffile.FILE_NAME
    try:
        write_public(path, conffile.replaced(path.read_text(encoding="utf-8"), changes))
    except OSError as error:
        raise CommandError(f"{path} cannot be changed: {error.strerror}.") from error


def new_ticket(directory: Path, days: float = TICKET_DAYS, entry: tickets.Entry | None = None) -> Path:
    """Write a ticket with a new secret in place of the old one, which stays valid until it expires; returns its path.

    Args:
        entry: the only host to admit, in a file of its own; None: one host, whichever joins first.
    """
    wanted = entry or tickets.Entry(0.0)
    try:
        name = f"ticket.{check_host_name(wanted.host)}" if wanted.host else "ticket"
        new_tickets(directory, {name: wanted}, days)
    except (TrustError, OSError) as error:
        raise CommandError(f"No ticket can be made in {directory}: {error}") from error
    return directory / name


def new_tickets(
    directory: Path, entries: Mapping[str, tickets.Entry], days: float, values: Mapping[str, str] | None = None
) -> None:
    """Write tickets to files of these names, and add all to the master's list at once.

    Raises:
        TrustError: no ticket is good, since the authority's key is lost.
    """
    if lost := tickets.why_none_joins(directory):
        raise TrustError(lost)
    made = {name: _ticket(directory, values or read_settings(directory), days * _DAY_S) for name in entries}
    listed = {ticket.secret: entries[name]._replace(expires=ticket.expires) for name, ticket in made.items()}
    tickets.admit_all(directory / "tickets", listed)
    for name, ticket in made.items():
        ticket.write(directory / name)


def _ticket(directory: Path, values: Mapping[str, str], lifetime_s: float) -> tickets.Ticket:
    missing = [name for name in ("LAVA_CLUSTER_NAME", "LAVA_MASTER", "LAVA_ENROL_LISTEN") if name not in values]
    if missing:
        raise CommandError(f"{directory / conffile.FILE_NAME} does not set {missing[0]}.")
    host, _ = split_address(values["LAVA_MASTER"])
    _, port = split_address(values["LAVA_ENROL_LISTEN"])
    return tickets.Ticket(
        cluster=values["LAVA_CLUSTER_NAME"],
        masters=(values["LAVA_MASTER"],),
        enrol=join_address(host, port),
        ca_pem=(directory / "ca" / "ca.pem").read_text(encoding="ascii"),
        secret=tickets.make_secret(),
        expires=time.time() + lifetime_s,
    )
