"""Records of lsb.events besides JOB_NEW: one or more for each row of the history."""

import pwd
import signal
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from lavad.core.model.reasons import is_done
from lavad.store.lsf_logs import fields as f
from lavad.store.lsf_logs.fields import quoted
from lavad.store.lsf_logs.job_records import Submission
from lavad.store.rows import values as v

PEND, PSUSP, RUN, SSUSP, USUSP, UNKWN = 0x01, 0x02, 0x04, 0x08, 0x10, 0x10000
POST_DONE, POST_ERR = 0x80, 0x100
STATES = {"PEND": PEND, "PSUSP": PSUSP, "STAGING": RUN, "RUN": RUN, "SSUSP": SSUSP, "USUSP": USUSP, "UNKWN": UNKWN}
INDICES = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem")


class Told:
    """A row of the history with what its records need."""

    __slots__ = ("at", "detail", "factor_of", "is_short", "job", "kind", "one")

    def __init__(
        self,
        one: Submission,
        at: float,
        kind: str,
        detail: str,
        factor_of: Callable[[str], float],
        is_short: bool,
    ) -> None:
        self.one = one
        self.at = at
        self.kind = kind
        self.detail: dict[str, Any] = v.decode_detail(detail)
        self.factor_of = factor_of
        self.is_short = is_short

    def line(self, kind: str, *parts: object) -> bytes:
        """Return a record about the job."""
        return f.line(kind, f.EVENTS_VERSION, self.at, list(map(str, parts)))

    def status(self, index: int, state: int, cpu_s: float = 0.0, ended_at: float = 0.0, status: int = 0) -> bytes:
        """Return a JOB_STATUS record; with the resource usage of a job that has ended."""
        used = ["1", *f.usage(cpu_s, 0.0)] if ended_at else ["0"]
        times = (f.seconds(cpu_s), int(ended_at), *used, status, index)
        return self.line("JOB_STATUS", self.one.job, state, 0, 0, *times)


def records(told: Told, index: int) -> Iterator[bytes]:
    """Yield the records of a row about one element, or about a plain job, with index 0."""
    maker = _MAKERS.get(told.kind)
    if maker is not None:
        yield from maker(told, index)


@lru_cache(maxsize=1000)
def uid_of(user: str) -> int:
    """Return the numeric id of a user of this machine; -1 if there is none."""
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return -1


def _by(told: Told) -> tuple[int, str]:
    user = str(told.detail.get("by", ""))
    return (told.one.shared.uid if user == told.one.shared.user else uid_of(user)), quoted(user)


def _killed(told: Told, index: int) -> Iterator[bytes]:
    uid, user = _by(told)
    yield told.line("JOB_SIGNAL", told.one.job, uid, 0, quoted("KILL"), index, user)
    yield told.status(index, f.EXIT, ended_at=told.at)


def _completed(told: Told, index: int) -> Iterator[bytes]:
    yield told.status(index, f.DONE, ended_at=told.at)


def _held(told: Told, index: int) -> Iterator[bytes]:
    yield told.status(index, PSUSP)


def _freed(told: Told, index: int) -> Iterator[bytes]:
    yield told.status(index, PEND)


def _requeued(told: Told, index: int) -> Iterator[bytes]:
    yield told.status(index, PSUSP if told.detail.get("hold") else PEND)
    yield told.line("JOB_REQUEUE", told.one.job, index)


def _switched(told: Told, index: int) -> Iterator[bytes]:
    uid, user = _by(told)
    yield told.line("JOB_SWITCH", uid, told.one.job, quoted(str(told.detail.get("queue", ""))), index, user)


def _moved(told: Told, index: int) -> Iterator[bytes]:
    uid, user = _by(told)
    place = int(told.detail.get("place", 1))
    yield told.line("JOB_MOVE", uid, told.one.job, abs(place), 1 if place > 0 else 2, index, user)


def _dispatched(told: Told, index: int) -> Iterator[bytes]:
    allocation = v.allocation_of(told.detail["hosts"])
    factor = told.factor_of(allocation[0].host) if allocation else 0.0
    hosts = f.host_list(allocation, told.is_short)
    rest = (*map(quoted, ("", "")), 0, quoted(told.one.shared.user_group), index)
    yield told.line("JOB_START", told.one.job, RUN, 0, 0, f"{factor:3.1f}", *hosts, *rest)


def _started(told: Told, index: int) -> Iterator[bytes]:
    pid, home, cwd = told.detail["pid"], told.detail.get("home", ""), told.detail.get("cwd", "")
    shared = told.one.shared
    yield told.line("JOB_START_ACCEPT", told.one.job, pid, pid, index)
    where = (shared.uid, pid, quoted(cwd), quoted(home), quoted(shared.user), pid, index)
    yield told.line("JOB_EXECUTE", told.one.job, *where)


def _finished(told: Told, index: int) -> Iterator[bytes]:
    detail = told.detail
    state = f.DONE if is_done(detail.get("status") or 0, detail.get("reason") or "") else f.EXIT
    yield told.status(index, state, float(detail.get("cpu_s", 0.0)), told.at, int(detail.get("status", 0)))


def _posted(told: Told, index: int) -> Iterator[bytes]:
    """Yield the state of the post-execution commands, which LSF adds to that of the ended job."""
    yield told.status(index, POST_DONE if told.detail.get("state") == "DONE" else POST_ERR)


def _suspended(told: Told, index: int) -> Iterator[bytes]:
    state = STATES.get(str(told.detail.get("state", "RUN")))
    if state is not None:
        yield told.status(index, state)


def _signalled(told: Told, index: int) -> Iterator[bytes]:
    uid, user = _by(told)
    yield told.line("JOB_SIGNAL", told.one.job, uid, 0, quoted(signal_name(int(told.detail["signal"]))), index, user)


def signal_name(number: int) -> str:
    """Return the name of a signal as LSF writes it; 0 is the sequence by which a job is ended."""
    try:
        return signal.Signals(number or signal.SIGKILL).name.removeprefix("SIG")
    except ValueError:
        return str(number)


def _lost(told: Told, index: int) -> Iterator[bytes]:
    yield told.status(index, UNKWN)


def _found(told: Told, index: int) -> Iterator[bytes]:
    yield told.status(index, RUN)


_MAKERS: dict[str, Callable[[Told, int], Iterator[bytes]]] = {
    "killed": _killed,
    "completed": _completed,
    "held": _held,
    "freed": _freed,
    "revived": _requeued,
    "requeued": _requeued,
    "switched": _switched,
    "moved": _moved,
    "dispatched": _dispatched,
    "started": _started,
    "finished": _finished,
    "posted": _posted,
    "suspended": _suspended,
    "resumed": _suspended,
    "signalled": _signalled,
    "lost": _lost,
    "found": _found,
}
OF_ELEMENTS = frozenset({"killed", "completed", "held", "freed", "revived"})  # rows about several elements of an array

QUEUE_CODES = {"open": 1, "closed": 2, "active": 3, "inactive": 4}
HOST_CODES = {"open": 1, "closed": 2, "revoked": 2}


def control(kind: str, at: float, text: str) -> bytes | None:
    """Return the record of a row about a queue or a host; None for other rows, and for what LSF has no code of."""
    detail = v.decode_detail(text)
    code = {"queue": QUEUE_CODES, "host": HOST_CODES}.get(kind, {}).get(detail.get("to", ""))
    if code is None:
        return None
    by = str(detail.get("by", ""))
    parts = [str(code), quoted(detail["name"]), str(uid_of(by)), quoted(by)]
    return f.line(f"{kind.upper()}_CTRL", f.EVENTS_VERSION, at, [*parts, quoted(str(detail.get("comment", "")))])


def master_start(at: float, master: str, cluster: str, hosts: int, queues: int) -> bytes:
    """Return the records of a master's start: MBD_START, and LOAD_INDEX with the names of the indices."""
    start = [quoted(master), quoted(cluster), str(hosts), str(queues)]
    indices = f.line("LOAD_INDEX", f.EVENTS_VERSION, at, f.listed(INDICES))
    return f.line("MBD_START", f.EVENTS_VERSION, at, start) + indices


def master_end(at: float, master: str) -> bytes:
    """Return the MBD_DIE record of a master that is told to end."""
    return f.line("MBD_DIE", f.EVENTS_VERSION, at, [quoted(master), "0", "0"])
