"""Settings of lava's own, from lava.conf in the configuration directory; the cluster's policy is in core's Policy."""

import shlex
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lavad.core.language.numbers import number_text
from lavad.core.model.policy import Policy
from protos import conffile
from protos.wire import DEBUGGER, REVOCATION_INTERVAL, REVOCATION_NOTICE, UNUSED_HOST

# All settings; any other name has no effect. Each has its row in docs/reference/ports-and-files.md.
NAMES = frozenset(
    {
        "LAVA_CLUSTER_NAME",
        "LAVA_MASTER",
        "LAVA_LISTEN",
        "LAVA_ENROL_LISTEN",
        "LAVA_LSF_DIR",
        "LAVA_DATABASE",
        "LAVA_DATABASE_FILE",
        "LAVA_STATE_DIR",
        "LAVA_ADMINISTRATORS",
        "LAVA_ADMIN_HOSTS",
        "LAVA_LOGIN_HOSTS",
        "LAVA_SOCKET",
        "LAVA_HEARTBEAT",
        "LAVA_SILENT_AFTER",
        "LAVA_FENCE_AFTER",
        "LAVA_STAGING_TIMEOUT",
        "LAVA_AVOID_HOST",
        "LAVA_PREEMPTION",
        "LAVA_CLAIM_TIMEOUT",
        "LAVA_TERMINATE_INTERVAL",
        "LAVA_USAGE_INTERVAL",
        "LAVA_TASK_PATIENCE",
        "LAVA_JOB_PROCESSES",
        "LAVA_TASK_PORTS",
        "LAVA_KEPT_OUTPUT",
        "LAVA_UNUSED_HOST",
        "LAVA_PY_SPY",
        "LAVA_GPU_CLEAR_TIME",
        "LAVA_GPU_CLEAR_MEMORY",
        "LAVA_HEALTH_CHECK",
        "LAVA_HEALTH_CHECK_INTERVAL",
        "LAVA_HEALTH_CHECK_LIMIT",
        "LAVA_REVOCATION_NOTICE",
        "LAVA_REVOCATION_INTERVAL",
        "LAVA_HEALTH_CHECK_SHARE",
        "LAVA_CONTAINERS",
        "LAVA_IMAGE_DIR",
        "LAVA_IMAGE_TRUST",
        "LAVA_IMAGE_SPACE",
        "LAVA_CONTAINER_BINDS",
        "LAVA_PODMAN_OPTIONS",
        "LAVA_CLEAN_PERIOD",
        "LAVA_RETENTION",
        "LAVA_LSF_LOGS",
        "LAVA_SWEEP_INTERVAL",
    }
)
# Whole numbers that are sent to every agent.
OF_AGENTS = ("LAVA_JOB_PROCESSES", "LAVA_KEPT_OUTPUT", "LAVA_GPU_CLEAR_TIME", "LAVA_GPU_CLEAR_MEMORY")
TASK_PORTS = "LAVA_TASK_PORTS"  # FIRST-LAST, likewise
PORT_MAX = 65535
# Of containers, likewise: the runtimes that tasks with an image may use, in order, and what they need.
RUNTIMES = ("apptainer", "podman", "bubblewrap")
CONTAINERS, IMAGE_DIR = "LAVA_CONTAINERS", "LAVA_IMAGE_DIR"
IMAGE_TRUST, IMAGE_SPACE = "LAVA_IMAGE_TRUST", "LAVA_IMAGE_SPACE"
CONTAINER_BINDS, PODMAN_OPTIONS = "LAVA_CONTAINER_BINDS", "LAVA_PODMAN_OPTIONS"


class WrongSetting(conffile.ConfError):
    """Setting whose value cannot be used; ``name`` is the setting's."""

    def __init__(self, path: Path, name: str, sentence: str) -> None:
        super().__init__(f"{path}: {sentence}.")
        self.name = name


class HealthSettings(NamedTuple):
    """The program of the health checks and its pace; no program: no checks."""

    argv: tuple[str, ...] = ()
    interval_s: float = 300.0
    limit_s: float = 60.0
    share: float = 0.1  # of all hosts at once


ANY_HOST = "all"  # of LAVA_ADMIN_HOSTS


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that the master needs to start."""

    directory: Path
    cluster: str
    listen: str
    enrol_listen: str
    database: str
    state_dir: Path
    administrators: frozenset[str]
    administration_hosts: frozenset[str]  # named ones
    master_host: str = field(default_factory=socket.gethostname)
    heartbeat_s: float = 5.0
    usage_interval_s: float = 5.0
    sweep_interval_s: float = 3600.0
    task_patience_s: float = 300.0
    lsf_directory: str = ""  # LAVA_LSF_DIR: directory of LSF's files, if not that of lava.conf
    administers_anywhere: bool = False  # LAVA_ADMIN_HOSTS names all
    extra: dict[str, str] = field(default_factory=dict)

    def policy(self) -> Policy:
        """Build the default policy, which applies where LSF's files set nothing."""
        silent_after_s = self._seconds("LAVA_SILENT_AFTER", 15.0)
        # To refuse a wrong one at start.
        self.of_agents(), self.health_checks(), self.host_notice(), self.writes_lsf_logs(False), self.retention_s
        fence_after_s = self._seconds("LAVA_FENCE_AFTER", 0.0)
        if 0 < fence_after_s < 2 * silent_after_s:
            least = f"LAVA_FENCE_AFTER must be at least twice LAVA_SILENT_AFTER ({number_text(silent_after_s)} s)"
            raise self._wrong("LAVA_FENCE_AFTER", f"{least}, not {number_text(fence_after_s)} s")
        return Policy(
            administrators=self.administrators,
            silent_after_s=silent_after_s,
            order_validity_s=silent_after_s / 2,
            terminate_interval_s=self._seconds("LAVA_TERMINATE_INTERVAL", 10.0),
            fence_after_s=fence_after_s,
            staging_timeout_s=self._seconds("LAVA_STAGING_TIMEOUT", 12.0),
            clean_period_s=self._seconds("LAVA_CLEAN_PERIOD", 3600.0),
            avoid_host_s=self._seconds("LAVA_AVOID_HOST", 60.0),
            preempts_by_requeue=self._word("LAVA_PREEMPTION", "suspend", "requeue") == "requeue",
            claim_timeout_s=self._seconds("LAVA_CLAIM_TIMEOUT", 300.0),
        )

    def writes_lsf_logs(self, has_lsf_files: bool) -> bool:
        """Return True if lsb.acct and lsb.events are written: by default where LSF's files configure the cluster."""
        return self._word("LAVA_LSF_LOGS", "yes" if has_lsf_files else "no", "no" if has_lsf_files else "yes") == "yes"

    @property
    def retention_s(self) -> float:
        """Seconds that the database keeps records of ended jobs; 0: for ever."""
        return 86400.0 * self._seconds("LAVA_RETENTION", 0.0)

    def of_agents(self) -> dict[str, str]:
        """Return the settings for agents, as in their welcome; agents have their own defaults for unset ones."""
        found = {name: str(self._number(name)) for name in OF_AGENTS if self.extra.get(name)}
        found |= {TASK_PORTS: self._ports(TASK_PORTS)} if self.extra.get(TASK_PORTS) else {}
        found |= {UNUSED_HOST: str(self._number(UNUSED_HOST))} if self.extra.get(UNUSED_HOST) else {}
        found |= {DEBUGGER: self._program(DEBUGGER)[0]} if self.extra.get(DEBUGGER) else {}
        return found | self._of_containers()

    def _of_containers(self) -> dict[str, str]:
        found = {
            CONTAINERS: " ".join(self._runtimes()),
            IMAGE_DIR: self._path(IMAGE_DIR),
            IMAGE_TRUST: self._word(IMAGE_TRUST, "owner", "all") if self.extra.get(IMAGE_TRUST) else "",
            IMAGE_SPACE: str(self._number(IMAGE_SPACE)) if self.extra.get(IMAGE_SPACE) else "",
            CONTAINER_BINDS: " ".join(self._binds()),
            PODMAN_OPTIONS: self.extra.get(PODMAN_OPTIONS, ""),
        }
        return {name: value for name, value in found.items() if value}

    def _runtimes(self) -> list[str]:
        names = self.extra.get(CONTAINERS, "").split()
        if names == ["none"]:
            return []
        for name in names:
            if name not in RUNTIMES:
                raise self._wrong(CONTAINERS, f"{CONTAINERS} must list {', '.join(RUNTIMES)}, or none, not {name!r}")
        return names

    def _path(self, name: str) -> str:
        path = self.extra.get(name, "")
        if path and not path.startswith("/"):
            raise self._wrong(name, f"{name} must be a full path, not {path!r}")
        return path.rstrip("/") or path

    def _binds(self) -> list[str]:
        binds = self.extra.get(CONTAINER_BINDS, "").split()
        for bind in binds:
            source, _, rest = bind.partition(":")
            place, _, mode = rest.partition(":")
            if not source.startswith("/") or (rest and not place.startswith("/")) or mode not in ("", "ro", "rw"):
                form = "SOURCE, SOURCE:DESTINATION or SOURCE:DESTINATION:ro, with full paths"
                raise self._wrong(CONTAINER_BINDS, f"{CONTAINER_BINDS} must list {form}, not {bind!r}")
        return binds

    def _wrong(self, name: str, sentence: str) -> WrongSetting:
        return WrongSetting(self.directory / conffile.FILE_NAME, name, sentence)

    def health_checks(self) -> HealthSettings:
        """Return the settings of health checks."""
        return HealthSettings(
            self._program("LAVA_HEALTH_CHECK"),
            self._seconds("LAVA_HEALTH_CHECK_INTERVAL", 300.0),
            self._seconds("LAVA_HEALTH_CHECK_LIMIT", 60.0),
            self._percent("LAVA_HEALTH_CHECK_SHARE", 10) / 100,
        )

    def host_notice(self) -> dict[str, str]:
        """Return the settings for revocable hosts: the program that knows when they are taken away, and its pace."""
        if not self._program(REVOCATION_NOTICE):
            return {}
        interval_s = self._seconds(REVOCATION_INTERVAL, 5.0)
        return {REVOCATION_NOTICE: self.extra[REVOCATION_NOTICE], REVOCATION_INTERVAL: str(interval_s)}

    def _program(self, name: str) -> tuple[str, ...]:
        text = self.extra.get(name, "")
        try:
            words = tuple(shlex.split(text))
        except ValueError:
            words = ("",)
        if words and not words[0].startswith("/"):
            raise self._wrong(name, f"{name} must be the full path of a program, not {text!r}")
        return words

    def _percent(self, name: str, default: int) -> int:
        text = self.extra.get(name) or str(default)
        if not text.isdecimal() or not 1 <= int(text[:9]) <= 100:
            raise self._wrong(name, f"{name} must be a percentage from 1 to 100, not {text!r}")
        return int(text)

    def _ports(self, name: str) -> str:
        text = self.extra[name]
        first, _, last = text.partition("-")
        if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) <= PORT_MAX):
            raise self._wrong(name, f"{name} must be a range of ports, as 20000-29999, not {text!r}")
        return text

    def _number(self, name: str) -> int:
        text = self.extra[name]
        if not text.isdecimal() or len(text) > 9:
            raise self._wrong(name, f"{name} must be a whole number, 0 or more, not {text!r}")
        return int(text)

    def _word(self, name: str, *known: str) -> str:
        """Return one of the known words; the first if unset."""
        word = self.extra.get(name) or known[0]
        if word not in known:
            raise self._wrong(name, f"{name} must be {' or '.join(known)}, not {word!r}")
        return word

    def _seconds(self, name: str, default: float) -> float:
        return _seconds(self.directory / conffile.FILE_NAME, self.extra, name, default)


def _seconds(path: Path, values: dict[str, str], name: str, default: float) -> float:
    text = values.get(name, "")
    try:
        seconds = float(text) if text else default
    except ValueError:
        raise WrongSetting(path, name, f"{name} must be a number of seconds, not {text!r}") from None
    if not text:
        return default
    if not 0 < seconds < 1e9:
        raise WrongSetting(path, name, f"{name} must be a positive number of seconds, not {text!r}")
    return seconds


def _cluster_name(path: Path, values: dict[str, str]) -> str:
    name = values.get("LAVA_CLUSTER_NAME") or "lava"
    if not conffile.CLUSTER_NAME.fullmatch(name):
        expected = "up to 39 letters, digits, dots, dashes and underscores"
        raise WrongSetting(path, "LAVA_CLUSTER_NAME", f"LAVA_CLUSTER_NAME must be {expected}, not {name!r}")
    return name


def read_settings(directory: Path) -> Settings:
    """Read the settings of the cluster in that directory.

    Raises:
        ConfError: the file is missing, has a wrong line or lacks a setting; every complaint names the file.
    """
    return _settings(directory, conffile.read(directory / conffile.FILE_NAME))


def examine(directory: Path, otherwise: Mapping[str, str] | None = None) -> tuple[Settings, list[str]]:
    """Read all settings, each value as it will be used; return what is good, and all complaints of the others.

    Args:
        otherwise: settings that count in the place of those that can't be used; without it these are left out.

    Raises:
        ConfError: the file is missing, or without what is wrong in it lacks a setting.
    """
    path, good = directory / conffile.FILE_NAME, otherwise or {}
    values, wrong = conffile.scan(conffile.text_of(path), str(path))
    values = {**good, **values} if wrong else values
    while True:
        try:
            settings = _settings(directory, values)
            settings.policy()
        except WrongSetting as error:
            wrong.append(str(error))
            bad, before = values.pop(error.name), good.get(error.name)
            if before not in (None, bad):
                values[error.name] = before
        else:
            return settings, wrong


def _settings(directory: Path, values: dict[str, str]) -> Settings:
    path = directory / conffile.FILE_NAME
    missing = [name for name in ("LAVA_LISTEN", "LAVA_ENROL_LISTEN", "LAVA_STATE_DIR") if not values.get(name)]
    if missing:
        raise conffile.ConfError(f"{path}: {', '.join(missing)} must be set; `lavactl init` writes them.")
    login_hosts = frozenset(values.get("LAVA_LOGIN_HOSTS", "").split())
    listed = frozenset(values.get("LAVA_ADMIN_HOSTS", "").split())
    return Settings(
        directory=directory,
        cluster=_cluster_name(path, values),
        listen=values["LAVA_LISTEN"],
        enrol_listen=values["LAVA_ENROL_LISTEN"],
        database=conffile.secret(values, "LAVA_DATABASE", directory) or f"sqlite:///{values['LAVA_STATE_DIR']}/lava.db",
        state_dir=Path(values["LAVA_STATE_DIR"]),
        administrators=frozenset(values.get("LAVA_ADMINISTRATORS", "root").split()),
        administration_hosts=(listed - {ANY_HOST}) or login_hosts | {socket.gethostname()},
        administers_anywhere=ANY_HOST in listed,
        heartbeat_s=_seconds(path, values, "LAVA_HEARTBEAT", 5.0),
        usage_interval_s=_seconds(path, values, "LAVA_USAGE_INTERVAL", 5.0),
        sweep_interval_s=_seconds(path, values, "LAVA_SWEEP_INTERVAL", 3600.0),
        task_patience_s=_seconds(path, values, "LAVA_TASK_PATIENCE", 300.0),
        lsf_directory=values.get("LAVA_LSF_DIR", ""),
        extra=values,
    )
