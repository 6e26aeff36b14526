"""Events of hosts and their sessions; ``events`` has them all."""

from dataclasses import dataclass

from lavad.core.model import HostFacts
from lavad.core.model.rules.names import MemberChange


@dataclass(frozen=True, slots=True)
class HostJoined:
    """An agent began a session. A changed boot id or incarnation is in ``facts`` and ``incarnation``."""

    at: float
    facts: HostFacts
    incarnation: int


@dataclass(frozen=True, slots=True)
class HostSilenced:
    at: float
    host: str


@dataclass(frozen=True, slots=True)
class HostHeard:
    at: float
    host: str


@dataclass(frozen=True, slots=True)
class HostDisconnected:
    """A session ended; the host is silent only after the silence timeout."""

    at: float
    host: str


@dataclass(frozen=True, slots=True)
class HostTrusted:
    """A host that was avoided after a failed start may be used again."""

    at: float
    host: str


@dataclass(frozen=True, slots=True)
class UserKeptOff:
    """The host has no account for this user, or lacks what his job needs: his jobs avoid it for a while. Not stored."""

    at: float
    user: str
    host: str
    until: float
    lacking: str = ""


@dataclass(frozen=True, slots=True)
class HostClosed:
    at: float
    host: str
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class HostOpened:
    """A host was opened: by an administrator, whatever had closed it; by itself, as far as its own notice had."""

    at: float
    host: str
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class LockIdAttached:
    """An administrator closed a host with a lock ID, or gave one that it has another comment."""

    at: float
    host: str
    by: str
    lock_id: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class LockIdsRemoved:
    """An administrator removed lock IDs of a host; it is open when nothing else has closed it."""

    at: float
    host: str
    by: str
    lock_ids: tuple[str, ...]
    comment: str = ""


@dataclass(frozen=True, slots=True)
class HostRevoked:
    """A host was closed because it will be taken away at ``until``: what runs there then is killed.

    Its own notice leaves it to those who had closed it before.
    """

    at: float
    host: str
    by: str
    until: float
    comment: str = ""


@dataclass(frozen=True, slots=True)
class HostToldEnd:
    """A host will end at ``until`` what is left on it, in contact or not; 0: it will not. Not stored: a host says so
    again in each session."""

    at: float
    host: str
    until: float


@dataclass(frozen=True, slots=True)
class HostRemoved:
    """A host left the cluster, until it joins again. Nothing is held on it."""

    at: float
    host: str
    by: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class HostGroupChanged:
    """An administrator added hosts to a host group, or deleted them from it; ``change`` are all changes since.

    Without ``hosts`` the group left the configuration, and its changes with it.
    """

    at: float
    group: str
    change: MemberChange
    hosts: tuple[str, ...] = ()
    is_added: bool = False
    by: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class HostLocked:
    """An administrator locked a host until ``until`` (0: until it is unlocked): it takes no jobs, and its own are
    suspended."""

    at: float
    host: str
    by: str
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class HostUnlocked:
    """A host was unlocked, by an administrator or because its time is over."""

    at: float
    host: str
    by: str
