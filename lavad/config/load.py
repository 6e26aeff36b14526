"""Reader of a directory of LSF's files: a ``Policy``, with all complaints about it at once.

Location of the files: LAVA_LSF_DIR of lava.conf, else lava.conf's own directory if it holds any of them, else
$LSF_ENVDIR. lsf.conf there may name other directories by LSF_CONFDIR and LSB_CONFDIR. Without any file the default
policy applies.
"""

import os
import time
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import cache, partial
from pathlib import Path

from lavad.config import applications, cluster, conf, hosts, params, queues, resources, users
from lavad.config.accounts import Accounts
from lavad.config.grammar import Cell, Complaint, Document, read
from lavad.config.guarantees.service_classes import read_service_classes
from lavad.config.lines import Clock, Condition
from lavad.config.names import NO_CHANGES
from lavad.config.priorities.host_partitions import with_factors
from lavad.config.site import Entry, Fields, Site
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import MemberChange
from lavad.core.model.rules.queues import Queue, commands_over
from lavad.core.model.windows import NEVER, next_change

MADE = "For jobs without -q."  # description of the default queue that no file configures
WEEK_S, VARIANTS_MAX = 8 * 86400.0, 64  # conditions repeat by the week; more variants than these are not prepared
LSB_FILES = (
    "lsb.params", "lsb.users", "lsb.hosts", "lsb.queues", "lsb.applications", "lsb.serviceclasses", "lsb.resources",
)  # fmt: skip
# Files of LSF without a counterpart here: named if present, so that their lack of effect is known.
UNREAD_FILES = {
    "lsb.modules": "no plug-ins",
    "lsf.task": "no requirements by command name",
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """Result of reading a directory; ``policy`` is only to be used without fatal complaints."""

    policy: Policy
    complaints: tuple[Complaint, ...] = ()
    entries: tuple[Entry, ...] = ()
    files: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)  # of lsf.conf, as written
    confdir: Path = Path()  # LSF_CONFDIR
    conditions: tuple[Condition, ...] = ()  # `#if time(...)` in the files
    held: tuple[bool, ...] = ()  # which of them held when the files were read
    moved: tuple[Complaint, ...] = ()  # directories of lsf.conf that were read elsewhere, in a copy
    follows_hosts: bool = False  # other hosts in ``joined`` would make another policy, by patterns of names
    # The files as they count at other times, by which of the conditions hold; its own state is among them.
    variants: "Mapping[tuple[bool, ...], Loaded]" = field(default_factory=dict)

    def state(self, at: float) -> tuple[bool, ...]:
        """Return which of the conditions hold at that time."""
        return tuple(condition.holds(self.policy.zone, at) for condition in self.conditions)

    def next_change(self, at: float) -> float:
        """Return the next time at which a condition may change; NEVER without one."""
        spans = (spans for condition in self.conditions for spans in condition.windows)
        return min((next_change(one, self.policy.zone, at) for one in spans), default=NEVER)

    @property
    def errors(self) -> tuple[Complaint, ...]:
        """Complaints with which the configuration can't be used."""
        return tuple(complaint for complaint in self.complaints if complaint.is_fatal)

    @property
    def warnings(self) -> tuple[Complaint, ...]:
        return tuple(complaint for complaint in self.complaints if not complaint.is_fatal)


def find_directory(own: Path, named: str, environment: Mapping[str, str]) -> Path:
    """Return the directory of LSF's files: as ``named``, else lava.conf's ``own``, else of $LSF_ENVDIR."""
    if named:
        return own / named
    if any(own.glob("lsb.*")) or any(own.glob("lsf.cluster.*")) or (own / "lsf.shared").exists():
        return own
    elsewhere = environment.get("LSF_ENVDIR", "")
    return Path(elsewhere) if elsewhere and (Path(elsewhere) / "lsf.conf").exists() else own


def load(
    directory: Path,
    base: Policy,
    name: str = "",
    accounts: Accounts | None = None,
    joined: frozenset[str] = frozenset(),
    at: float | None = None,
    group_changes: Mapping[str, MemberChange] = NO_CHANGES,
    is_copy: bool = False,
) -> Loaded:
    """Read all files of a directory, and if they depend on the time, what they say at each time of a week.

    Args:
        base: the policy where the files set nothing: settings of lava.conf.
        name: the cluster's name; if no file has it, that of the only lsf.cluster file is taken.
        joined: the cluster's hosts, as far as they are known.
        at: time for which they are read; now.
        group_changes: of the members of host groups, by group (badmin hghostadd and hghostdel).
        is_copy: the files are a copy of a cluster's, made to be changed: none is read outside of the directory.
    """
    began = time.time() if at is None else at
    site = partial(Site, accounts or Accounts(), joined=joined, group_changes=group_changes)
    first = _load(directory, base, name, site(), began, is_copy)
    if not first.conditions:
        return first
    variants, complaints = {first.held: first}, list(first.complaints)
    moment = began
    while (moment := first.next_change(moment)) < began + WEEK_S and len(variants) < VARIANTS_MAX:
        state = first.state(moment)
        if state not in variants:
            found = _load(directory, base, name, site(), moment, is_copy)
            variants[state] = replace(found, conditions=first.conditions, held=state)
            complaints += [one for one in found.complaints if one not in complaints]
    complaints.sort(key=lambda one: (one.file, one.line))
    follows_hosts = any(one.follows_hosts for one in variants.values())
    return replace(first, complaints=tuple(complaints), variants=variants, follows_hosts=follows_hosts)


def _load(directory: Path, base: Policy, name: str, site: Site, at: float, is_copy: bool) -> Loaded:
    clock = Clock(local_zone(), at)
    reader = _Reader(directory, site, clock, is_copy)
    reader.open_conf()
    if not directory.is_dir():
        site.wrong(Cell("", 0, str(directory)), "expected a directory with LSF's files")
    fields = reader.read_cluster(name)
    fields |= reader.read_batch()
    fields["gpu_requirement"] = reader.gpu_requirement
    if reader.commands_user:
        fields["around.user"] = reader.commands_user
    fields["administrators"] = base.administrators | reader.administrators()
    reader.tell_unread()
    policy = _policy(replace(base, zone=local_zone()), fields, site)
    complaints = tuple(sorted(site.complaints, key=lambda one: (one.file, one.line)))
    return Loaded(
        policy, complaints, tuple(site.entries), tuple(reader.files), dict(site.settings), reader.confdir.absolute(),
        tuple(clock.conditions), tuple(one.holds(clock.zone, at) for one in clock.conditions), tuple(reader.moved),
        site.follows_hosts,
    )  # fmt: skip


class _Reader:
    """Opener of the files, each parsed by its own module; later files refer to earlier ones."""

    def __init__(self, directory: Path, site: Site, clock: Clock, is_copy: bool) -> None:
        self.site = site
        self.is_copy = is_copy
        self.moved: list[Complaint] = []
        self._clock = clock
        self.directory = directory
        self.files: list[str] = []
        self.confdir = self.lsb_confdir = directory
        self.cluster_name = ""
        self.gpu_requirement = self.commands_user = ""
        self._cluster: Document | None = None

    def open_conf(self) -> None:
        """Read lsf.conf, which names the other directories."""
        document = self._read(self.directory / "lsf.conf", has_sections=False)
        if document is None:
            return
        fields = conf.read_conf(document, self.site)
        self.confdir = self._place("LSF_CONFDIR", fields.get("confdir", ""), document)
        self.lsb_confdir = self._place("LSB_CONFDIR", fields.get("lsb_confdir", ""), document)
        self.gpu_requirement = fields.get("gpu_requirement", "")
        self.commands_user = fields.get("commands_user", "")

    def _place(self, name: str, named: str, document: Document) -> Path:
        """Return a directory named in lsf.conf; its own if that does not exist, as in a copy made elsewhere."""
        path = self.directory / named
        if self.is_copy and not within(path, self.directory):
            return self._place_in_copy(name, named, document.settings[name])
        if os.path.isdir(path) or not self.directory.is_dir():
            return path
        cell = document.settings[name]
        if _is_there(path):
            self.site.wrong(cell, f"{name} = {named}: expected a directory that lavad may enter")
        else:
            self.site.warn(cell, f"{name} = {named}: there is no such directory; files beside lsf.conf count")
        return self.directory

    def _place_in_copy(self, name: str, named: str, cell: Cell) -> Path:
        """Return the directory in a copy that stands for one of the original: that with most of its path, or the copy.

        It is wrong if the copy has none: to read the original's files would show what no change of the copy does.
        """
        parts = Path(named).parts
        tails = (self.directory.joinpath(*parts[at:]) for at in range(1, len(parts) + 1))
        pattern = "lsb.*" if name == "LSB_CONFDIR" else "ls[bf].*"
        found = next((one for one in tails if one.is_dir() and _has_files(one, pattern)), None)
        if found is None:
            text = f"{name} = {named}: expected a directory within {self.directory}, which is a copy"
            self.site.wrong(cell, f"{text}; copy that one, too, as {self.directory / Path(named).name}")
            return self.directory
        self.moved.append(Complaint(cell.file, cell.line, f"{name} = {named}: {found} is read in its place", False))
        return found

    def _read(self, path: Path, *, has_sections: bool = True) -> Document | None:
        if not _is_there(path):
            return None
        document = read(path, has_sections=has_sections, clock=self._clock)
        self.files.append(str(path))
        self.site.complaints += document.complaints
        return document

    def _find(self, name: str) -> Document | None:
        """Parse the first file of that name in LSF's directories."""
        places = [self.confdir, self.directory]
        if name.startswith("lsb."):
            under = Path(self.cluster_name, "configdir")
            places = [self.lsb_confdir / under, self.lsb_confdir, self.confdir / "lsbatch" / under, *places]
        return next((found for place in places if (found := self._read(place / name)) is not None), None)

    def read_cluster(self, name: str) -> Fields:
        """Read lsf.shared and lsf.cluster.NAME."""
        shared = self._find("lsf.shared")
        if shared is not None:
            cluster.read_shared(shared, self.site)
        else:
            cluster.add_installed(self.site)
        self.cluster_name = self._choose(name, cluster.cluster_names(shared) if shared is not None else [])
        self._cluster = self._find(f"lsf.cluster.{self.cluster_name}")
        return cluster.read_cluster(self._cluster, self.site) if self._cluster is not None else {}

    def _choose(self, name: str, listed: list[str]) -> str:
        """Return the cluster's name: ``name`` if its file exists, else the first one of lsf.shared that has a file."""
        present = sorted({path.name.removeprefix("lsf.cluster.") for path in self.confdir.glob("lsf.cluster.*")})
        if name in present or not present:
            return name
        return next((one for one in listed if one in present), present[0])

    def read_batch(self) -> Fields:
        """Read the lsb files, in the order in which they refer to one another."""
        site, fields = self.site, Fields()
        documents = {name: self._find(name) for name in LSB_FILES}
        written = documents["lsb.params"]
        rows = params.rows_of(written, site) if written is not None else []
        if (document := documents["lsb.users"]) is not None:
            fields |= users.read_users(document, site)
        document = documents["lsb.hosts"] or Document("lsb.hosts")
        fields |= hosts.read_hosts(document, site)
        found, plain, texts = params.read_params(rows, site) if written is not None else ({}, {}, {})
        fields |= found
        fields["parameters"] = texts
        if (document := documents["lsb.queues"]) is not None:
            fields["queues"] = queues.read_queues(document, site, plain)
        else:
            site.queue_names = frozenset(queue.name for queue in Policy().queues)
        partitions, known = fields["host_partitions"], fields.get("queues", Policy().queues)
        hosts_file = documents["lsb.hosts"] or Document("lsb.hosts")
        fields["host_partitions"] = with_factors(partitions, known, plain, hosts_file, site)
        if (document := documents["lsb.applications"]) is not None:
            fields["applications"] = applications.read_applications(document, site)
            site.application_names = frozenset(fields["applications"])
        classes = documents["lsb.serviceclasses"]
        if (document := documents["lsb.resources"]) is not None or classes is not None:
            guarantees = read_service_classes(classes, site) if classes is not None else {}
            fields |= resources.read_resources(document or Document("lsb.resources"), site, guarantees)
        _choose_default(fields, rows, site)
        for row in rows:
            if "DEFAULT_APPLICATION" in row:
                named = fields.get("default_application", "")
                applications.check_default(named, fields.get("applications", {}), row, site)
        return fields

    def administrators(self) -> frozenset[str]:
        """Read ClusterAdmins, now that groups are known."""
        return cluster.read_administrators(self._cluster, self.site) if self._cluster is not None else frozenset()

    def tell_unread(self) -> None:
        """Report files that exist and have no effect."""
        places = (self.lsb_confdir / self.cluster_name / "configdir", self.lsb_confdir, self.confdir, self.directory)
        for name, why in UNREAD_FILES.items():
            path = next((place / name for place in places if os.path.isfile(place / name)), None)
            if path is not None:
                self.site.warn(Cell("", 0, str(path)), f"not read: {why}")


def within(path: Path, directory: Path) -> bool:
    """Return True if a path leads into a directory, or is that."""
    return path.resolve().is_relative_to(directory.resolve())


def _has_files(directory: Path, pattern: str) -> bool:
    """Return True if files of LSF besides lsf.conf are in a directory or below it."""
    return any(path.name != "lsf.conf" for path in directory.rglob(pattern))


def _is_there(path: Path) -> bool:
    """Return True if the name exists; a file that can't be read, such as a dangling link, was meant to count, too."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # unknown; reading it says why
    return True


def has_made_default(policy: Policy) -> bool:
    """Return True if the default queue is one that no file configures, beside configured ones."""
    return any(queue.name == policy.default_queue and queue.description == MADE for queue in policy.queues)


def _choose_default(fields: Fields, rows: list[dict[str, Cell]], site: Site) -> None:
    """Set the default queue of lsb.params; without one add the queue ``default``, as LSF does."""
    named = fields.get("default_queues", ())
    cell = next((row["DEFAULT_QUEUE"] for row in rows if "DEFAULT_QUEUE" in row), Cell("", 0))
    for name in named:
        if name not in site.queue_names:
            site.wrong(cell, f"DEFAULT_QUEUE = {cell.text}: {name}: there is no such queue")
    if named:
        fields["default_queue"] = named[0]
    elif "queues" in fields:
        if queues.DEFAULT_QUEUE not in site.queue_names:
            made = Queue(queues.DEFAULT_QUEUE, description=MADE, is_exclusive_allowed=False)
            fields["queues"] = (*fields["queues"], made)
        fields["default_queue"] = queues.DEFAULT_QUEUE


def _policy(base: Policy, fields: Fields, site: Site) -> Policy:
    idle = queues.gpu_idle_rule(fields).over(base.gpu_idle)
    return replace(
        base,
        **{name: value for name, value in fields.items() if not name.startswith(("gpu_idle.", "around."))},
        gpu_idle=idle,
        around=commands_over(queues.around_rule(fields), base.around),
        user_groups=dict(site.user_groups),
        host_groups=dict(site.host_groups),
        known_hosts=frozenset(site.hosts),
        cpu_factors=dict(site.cpu_factors),
        resources=dict(site.resources),
        size_units=site.size_units,
    )


@cache
def local_zone() -> tzinfo:
    """Return the time zone of this machine: TZ, else /etc/localtime, else UTC."""
    name = os.environ.get("TZ", "").lstrip(":")
    try:
        if name:
            return zoneinfo.ZoneInfo(name)
        with open("/etc/localtime", "rb") as file:
            return zoneinfo.ZoneInfo.from_file(file, "localtime")
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        return UTC
