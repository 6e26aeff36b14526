"""Adoption: detection of a database that is older than the cluster, and recovery of master and hosts from it.

If commits were lost, an older backup was restored, or another database is in place, the mark file beside the database
or the marks that agents remember show it. The master then gives no orders and takes no jobs, because both would reuse
numbers. Only an administrator can know that no other lavad runs on the right database: `lavactl adopt` raises the term,
the commit number and the next job above all marks seen, durably; then hosts report what they hold.
"""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lavad.commit_mark import ANSWER, REQUEST, Mark, is_behind
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.store.errors import StoreRefused
from lavad.store.rows import values
from lavad.store.store import Store
from lavad.store.writer.batch import Batch

if TYPE_CHECKING:
    from lavad.core.model import Key

log = logging.getLogger("lavad.adoption")

COMMAND = "If no other lavad serves this cluster, run on the master:  lavactl adopt"
# Margin above all marks seen: unreachable hosts may have seen more.
TERMS_AHEAD, COMMITS_AHEAD, JOBS_AHEAD = 10, 1_000_000, 1000
SETTLE_S = 6.0  # time for reachable hosts to reconnect, above their longest pause; nothing is scheduled before
REQUEST_KEPT_S = 30.0  # after the start, while hosts have not yet reported that the database is behind
YOUNG_S = 60.0  # a single host that reports a newer mark later than this is refused and stops no other host
FIGURE_MAX = 10**9  # a larger number is shown by its magnitude
HOLD_S = 45.0  # a refused host that knows the reason waits this long for its answer, instead of retrying every second

DOUBTED = (
    "Host {0} says that it has seen {1} of another or a newer database than this one, which is at {2}, and no master's "
    "seal bears it out: it is kept out until the state directory of its agent is emptied."
)


class Adoption:
    """Commit marks seen, and the state of an adoption by the administrator.

    ``on_behind`` is called when the database turns out to be behind, ``on_settled`` when after an adoption jobs may be
    scheduled again.
    """

    def __init__(self, cluster: Cluster, store: Store, directory: Path, clock: Callable[[], float]) -> None:
        self.on_behind: Callable[[], None] = lambda: None
        self.on_settled: Callable[[], None] = lambda: None
        self.adopted = asyncio.Event()
        self._all_back = asyncio.Event()
        self.is_settling = False
        self.late: list[Any] = []  # commands about ends, until all hosts have reported what they hold
        self.lacking: dict[str, tuple[Key, ...]] = {}  # known attempts that hosts did not report, until then
        self.unproven: list[tuple[str, Key]] = []  # attempts known from hosts' logs alone
        self._cluster = cluster
        self._store = store
        self._directory = directory
        self._clock = clock
        self._began_at = clock()
        self._databases: frozenset[str] = frozenset()  # replaced by this one
        self._before = Mark()  # mark of this database before the last adoption
        self._adopted_in = 0  # term that the last adoption began
        self._lost: list[int] = []  # job ids between the marks, as in the last adoption's row
        self._seen: dict[str, Mark] = {}  # by host; the empty name stands for the mark file
        self._doubted: dict[str, Mark] = {}  # hosts that report newer marks without a seal: only they are refused
        self._blocks = False
        self._awaited: set[str] = set()
        self._told: set[str] = set()  # hosts that know why they are refused
        self._found: list[str] = []
        self._asked: set[str] = set()  # hosts asked for a detailed hello
        self._heard: set[str] = set()  # hosts reconnected since the last adoption, also before a restart

    # -- detection

    def recall(self, rows: list[tuple[int, str]]) -> None:
        """Restore past adoptions from their rows: term and content."""
        for term, content in sorted(rows):
            kept = json.loads(content)
            self._databases |= set(kept["databases"])
            self._before, self._lost, self._adopted_in = Mark(*kept["before"]), kept["lost"], term
            self._heard = set(kept.get("heard", ()))

    @property
    def mine(self) -> Mark:
        """Commit mark of this database."""
        return self._store.mark._replace(next_job=self._cluster.next_job)

    def witness(self, mark: Mark | None) -> None:
        """Take the mark of the mark file; None if it is not ahead of the database."""
        if mark is not None:
            self._seen[""] = mark
            self._blocks = True

    async def admit(self, host: str, mark: Mark, said: Mark) -> str:
        """Take the mark of a host; return why its session is refused, or "". A host refused before waits here.

        Args:
            mark: the newest mark a master of this cluster sent it, verified by the seal.
            said: the mark it claims. One ahead of the database without a seal gets this host refused, and no other.
        """
        is_more = is_behind(self.mine, mark, self._databases)
        if is_more:
            self._seen[host] = mark
            if not self._blocks and self._is_young():
                self._blocks = True
                self.on_behind()
        is_doubted = not is_more and is_behind(self.mine, said, self._databases)
        if is_doubted:
            self._doubt(host, said)
        elif not is_more and not self._blocks:
            self._doubted.pop(host, None)
            return ""
        else:
            self._awaited.add(host)
        why = DOUBTED.format(host, _shortened(said), self.mine) if is_doubted else self.reason
        if host in self._told:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HOLD_S):
                    await self.adopted.wait()
                    return why if is_doubted else ""
        self._told.add(host)
        return why

    def _doubt(self, host: str, said: Mark) -> None:
        if self._doubted.get(host) != said:
            self._doubted[host] = said
            log.warning("host=doubted name=%s reason=%r", host, DOUBTED.format(host, _shortened(said), self.mine))

    def _is_young(self) -> bool:
        return self._clock() - self._began_at < YOUNG_S or not self._has_come_back()

    def asks(self, host: str, mark: Mark, is_detailed: bool) -> bool:
        """Return True if the host must send a detailed hello: it saw lost commits and has not reported since.

        Each host is asked once, whatever it reports and however often this master is restarted.
        """
        has_lost = self._before.term > 0 and mark.has_jobs and is_behind(self._before, mark)
        has_lost = has_lost and mark.term < self._adopted_in  # a host that knows that term has reported then
        if not has_lost or host in self._heard or (is_detailed and host in self._asked):
            return False
        self._asked.add(host)
        return True

    def was_asked(self, host: str) -> bool:
        """Return True if a detailed hello is accepted; unasked, a host could restore any job."""
        return host in self._asked

    def notify(self, events: Iterable[e.Event]) -> None:
        """Forget removed hosts, on durable events."""
        for event in events:
            if isinstance(event, e.HostRemoved):
                self._forget(event.host)

    def _forget(self, host: str) -> None:
        for names in (self._awaited, self._told, self._asked, self._heard):
            names.discard(host)
        self._doubted.pop(host, None)
        if not self._blocks:  # otherwise its mark shows that the database is behind
            self._seen.pop(host, None)

    @property
    def is_behind(self) -> bool:
        """True if no orders may be given and no jobs taken."""
        return self._blocks

    @property
    def reason(self) -> str:
        """Reason in one sentence, with the remedy; empty if the database is not behind."""
        if not self._seen:
            return ""
        host, mark = max(self._seen.items(), key=lambda item: (item[1].term, item[1].batch))
        who = f"host {host} has" if host else "its commit-mark file has"
        same = mark.database in (self.mine.database, "")
        what = "older than the cluster" if same else "not the cluster's own"
        return (
            f"The database is {what}: it is at {self.mine}, {who} seen {mark}. A backup was restored, commits were "
            f"lost, or LAVA_DATABASE names another database. {COMMAND}"
        )

    # -- adoption by the administrator

    async def look(self) -> None:
        """Carry out an adoption request in the state directory, if there is one."""
        request = self._directory / REQUEST
        if not request.exists():
            return
        if self._seen:
            await self._adopt(request)
        elif self._clock() - self._began_at > REQUEST_KEPT_S or self._cluster_is_connected():
            doubted = [
                DOUBTED.format(host, _shortened(said), self.mine) for host, said in sorted(self._doubted.items())
            ]
            self._answer(request, [f"Nothing to adopt: database and hosts agree ({self.mine}).", *doubted])

    def _cluster_is_connected(self) -> bool:
        hosts = self._cluster.hosts.values()
        return any(host.is_connected for host in hosts) and all(host.is_connected for host in hosts)

    async def _adopt(self, request: Path) -> None:
        before = self.mine
        seen = [before, *self._seen.values()]
        ahead = 0 if "" in self._seen else JOBS_AHEAD
        mark = Mark(
            before.database,
            max(one.term for one in seen) + TERMS_AHEAD,
            max(one.batch for one in seen) + COMMITS_AHEAD,
            max(one.next_job for one in seen) + ahead,
        )
        try:
            await self._store.raise_mark(mark)
        except StoreRefused as error:
            log.error("adoption=failed reason=%r", str(error))
            self._answer(request, [str(error)], failed=True)
            return
        self._take(before, mark)
        log.warning(
            "adoption=done term=%d commit=%d next_job=%d lost_jobs=%d-%d hosts=%d",
            mark.term, mark.batch, mark.next_job, before.next_job, mark.next_job - 1, len(self._awaited),
        )  # fmt: skip
        asyncio.get_running_loop().create_task(self._settle(request, before, mark))

    def _take(self, before: Mark, mark: Mark) -> None:
        """Raise the core's numbers and append the adoption's row, before any host is told."""
        cluster = self._cluster
        self._databases |= {one.database for one in self._seen.values()} - {before.database}
        cluster.term, cluster.next_job = mark.term, mark.next_job
        cluster.lost_jobs.append(range(before.next_job, mark.next_job))
        self._before, self._lost, self._adopted_in = before, [before.next_job, mark.next_job], mark.term
        self._heard.clear()
        self._found = []
        self._note(self._adopted)

    def _note(self, durable: Callable[[], None]) -> None:
        """Store the last adoption, and the hosts that have reported since, for the next master."""
        content = {
            "lost": self._lost,
            "databases": sorted(self._databases),
            "before": list(self._before),
            "heard": sorted(self._heard),
        }
        batch = Batch()
        row = values.adopted_row(self._adopted_in, content)
        batch.standing[str(row[0]), str(row[1])] = row
        self._store.append(batch, durable)

    def _adopted(self) -> None:
        self._seen.clear()
        self._told.clear()
        self._blocks = False
        # Also hosts that have not been refused yet: one may hold what another one has told that it does not know.
        hosts = self._cluster.hosts.items()
        self._awaited |= {name for name, host in hosts if host.facts.server and not host.is_connected}
        self._cluster.begin(self._clock())
        self._all_back = asyncio.Event()
        self.is_settling = True
        self.adopted.set()

    # -- hosts reconnect

    def back(self, host: str, found: list[str]) -> None:
        """Note that a host has reported what it holds; ``found`` lists what the database lacked."""
        self.note_found(found)
        self._asked.discard(host)
        if self._adopted_in and host not in self._heard:
            self._heard.add(host)
            if not self.is_settling:  # until then the ends it reported are not stored
                self._note(lambda: None)
        self._awaited.discard(host)
        if not self._awaited:
            self._all_back.set()

    def note_found(self, found: list[str]) -> None:
        """Add lines about attempts that the database lacked; of a host that comes late, only the log has them."""
        for line in found:
            log.warning("adoption=found %s", line)
        self._found += found

    async def _settle(self, request: Path, before: Mark, mark: Mark) -> None:
        await self.adopted.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_S):
                await self._all_back.wait()
        self.adopted = asyncio.Event()
        self.is_settling = False
        self.on_settled()
        self._note(lambda: None)
        self._answer(request, self._lines(before, mark))

    def _has_come_back(self) -> bool:
        return any(host.is_connected for host in self._cluster.hosts.values())

    def _lines(self, before: Mark, mark: Mark) -> list[str]:
        lost = f"{before.next_job} to {mark.next_job - 1}"
        lines = [
            f"The database was at {before}. Master and hosts go on in term {mark.term}.",
            f"The next job is {mark.next_job}.",
            f"Jobs {lost} may have existed: those that hosts know are in the books again, the others are lost.",
            f"Found on hosts: {len(self._found)}.",
            *self._found,
        ]
        return lines + [f"Host {host} has not come back yet." for host in sorted(self._awaited)]

    def _answer(self, request: Path, lines: list[str], failed: bool = False) -> None:
        """Answer the program that wrote the request; it waits for the file."""
        with contextlib.suppress(OSError):
            token = request.read_text().strip()
            text = json.dumps({"token": token, "failed": failed, "lines": lines})
            temporary = self._directory / f"{ANSWER}.new"
            temporary.write_text(text)
            os.replace(temporary, self._directory / ANSWER)
        with contextlib.suppress(FileNotFoundError):
            request.unlink()


def _shortened(said: Mark) -> str:
    """Format a claimed mark for messages, with numbers of any size."""
    return f"commit {said.batch:.6g} of term {said.term:.6g}" if max(said.batch, said.term) > FIGURE_MAX else str(said)
