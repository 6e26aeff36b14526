"""Pool of shepherds: forks them, finds those that outlived the last agent, gives each one attempt at a time.

Invariants: a shepherd is connected to its own listening socket, so the next agent finds it the same way; an attempt is
handed to an idle shepherd, once; the end of a connection is the end of a shepherd, and then everything in its slot is
killed before the slot is used again. Nothing here blocks the event loop: blocking work runs in a thread.
"""

import asyncio
import contextlib
import functools
import logging
import marshal
import os
import socket
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import NamedTuple

from agents.launcher_process import LauncherProcess, Spool
from agents.shepherd import messages
from agents.shepherd.confinement import hierarchy
from agents.shepherd.confinement.hierarchy import Base
from agents.shepherd.messages import Finish, JobSetup, Key, Message, Receiver, Status, fields_of, pack
from agents.shepherd.process import processes
from agents.shepherd.spool import LOG_SUFFIX, SOCKET_SUFFIX, Traces
from agents.shepherd_pool.poll import Ears

LOG = logging.getLogger("lava.shepherds")

SPARE = 2  # idle shepherds kept beyond the demand
SHRINK_EVERY_S = 60.0
STATUS_PATIENCE_S = 10.0
KILL_AGAIN_S = 0.02
KILL_WARN_S = 5.0
LAUNCHER_PAUSE_S = 0.5  # between two launchers, when they die
SETUPS_REMEMBERED = 16
ROTATE_AFTER = 2000  # ends in one exit log
ASK_AT = 3  # looks of the watchdog without a message after which a shepherd is sent a PING


class Setup(NamedTuple):
    """A packed JobSetup; the number identifies the bytes."""

    number: int
    data: bytes


class Waiting(NamedTuple):
    """An attempt that needs a shepherd; ``echo`` dates its order."""

    key: Key
    echo: float
    setup: Setup
    job: JobSetup


class Handle:
    """Connected shepherd."""

    def __init__(self, slot: int, sock: socket.socket) -> None:
        self.slot = slot
        self.sock = sock
        self.key: Key | None = None
        self.pid = 0
        self.output = -1
        self.error = -1
        self.status = Status(None, 0, 0)  # its status when it was connected
        self.is_adopted = False  # forked for an earlier agent, maybe of another version
        self.silent_looks = 0  # of the watchdog, since its last message
        self.why_lost = ""
        self._known: set[int] = set()
        self._outbox: deque[tuple[bytes, tuple[int, ...]]] = deque()

    def hold(self, key: Key, setup: Setup, launch: bool, rotate: bool) -> None:
        """Send an attempt to hold."""
        self.key, self.output, self.error = key, -1, -1
        forget = len(self._known) >= SETUPS_REMEMBERED
        if forget:
            self._known.clear()
        data = None if setup.number in self._known else setup.data
        self._known.add(setup.number)
        self.send(pack(messages.HOLD, *key, setup.number, data, forget, launch, rotate))

    @property
    def can_answer(self) -> bool:
        """True if its version knows PING."""
        return self.status.protocol >= messages.ANSWERS

    def ask(self) -> None:
        """Make it answer soon, since its last order matters."""
        if self.key is not None and self.can_answer:
            self.silent_looks = max(self.silent_looks, ASK_AT)
            self.send(pack(messages.PING, *self.key))

    def send(self, message: bytes, descriptors: tuple[int, ...] = ()) -> None:
        """Send, later if its socket is full (it may be stopped); a dead shepherd is noticed at the next read."""
        if not self._outbox:
            try:
                messages.send(self.sock, message, descriptors)
                return
            except BlockingIOError:
                asyncio.get_running_loop().add_writer(self.sock, self._flush)
            except OSError:
                return
        self._outbox.append((message, tuple(os.dup(one) for one in descriptors)))

    def _flush(self) -> None:
        while self._outbox:
            message, descriptors = self._outbox[0]
            try:
                messages.send(self.sock, message, descriptors)
            except BlockingIOError:
                return
            except OSError:
                self._drop_outbox()
                break
            self._outbox.popleft()
            _close_all(descriptors)
        asyncio.get_running_loop().remove_writer(self.sock)

    def _drop_outbox(self) -> None:
        for _, descriptors in self._outbox:
            _close_all(descriptors)
        self._outbox.clear()

    def close(self) -> None:
        """Close the connection."""
        asyncio.get_running_loop().remove_writer(self.sock)
        self._drop_outbox()
        self.sock.close()


def _close_all(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


class _Log:
    """State of a shepherd's exit log.

    Holds the ends that the master has not acknowledged, in this file and the old one.
    """

    def __init__(self) -> None:
        self.current: set[Key] = set()
        self.old: set[Key] = set()
        self.written = 0
        self.unsynced = False

    def add(self, key: Key) -> None:
        """Add a recorded end."""
        self.current.add(key)
        self.written += 1
        self.unsynced = True

    def forget(self, key: Key) -> None:
        """Drop an acknowledged end."""
        self.current.discard(key)
        self.old.discard(key)

    def rotate_now(self) -> bool:
        """Return True if the shepherd should begin a new file: this one is long and the old one is no longer needed."""
        if self.written < ROTATE_AFTER or self.old:
            return False
        self.old, self.current, self.written = self.current, set(), 0
        return True


class Pool:
    """All shepherds of this host.

    ``on_idle(handle, waiting)`` gets a shepherd for an attempt that found none idle; it returns False if the attempt is
    not wanted any more.
    ``on_message(handle, message)`` gets all messages of shepherds but STATUS, with ``handle.key`` still set.
    ``on_lost(key, finish, why, begun)`` is called when a shepherd died with an attempt, after all of the attempt's
    processes are gone; ``finish`` is the end it had recorded, if any, ``why`` a sentence if more is known, and
    ``begun`` is False if it had not recorded the start of any process. ``marks`` returns the
    environment entries of all of an attempt's processes, by which they are found without control groups.
    """

    def __init__(
        self,
        spool: Spool,
        base: Base,
        capacity: int,
        launcher: LauncherProcess,
        on_idle: Callable[[Handle, Waiting], bool],
        on_message: Callable[[Handle, Message], None],
        on_lost: Callable[[Key, Finish | None, str, bool], None],
        marks: Callable[[Key], tuple[bytes, ...]],
    ) -> None:
        self.base = base
        self._spool = spool
        self._capacity = capacity
        self._launcher = launcher
        self._on_idle = on_idle
        self._on_message = on_message
        self._on_lost = on_lost
        self._marks = marks
        self._receiver = Receiver()
        self._ears = Ears(lambda: self.busy)
        self._handles: dict[int, Handle] = {}
        self._by_key: dict[Key, Handle] = {}
        self._idle: list[Handle] = []
        self._requested: set[int] = set()
        self._cleaning: set[int] = set()
        self._waiting: deque[Waiting] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._logs: defaultdict[int, _Log] = defaultdict(_Log)
        self._slot_of: dict[Key, int] = {}
        self._watchers: list[asyncio.Future[None]] = []
        self._idle_least = 0
        self._closed = False
        self._directory = -1

    # -- start and end

    async def start(self) -> dict[Key, Handle]:
        """Connect to the shepherds that outlived the last agent, and empty the slots of those that did not.

        Returns the shepherd of each held attempt.
        """
        self._ears.open()
        self._directory = os.open(self._spool.shepherds, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        sockets = self._spool.shepherds.glob(f"*{SOCKET_SUFFIX}")
        slots = [int(path.stem) for path in sockets if path.stem.isdigit()]
        answers = await asyncio.gather(*(self._adopt(slot) for slot in slots))
        await self._empty_other_places({handle.slot for handle in answers if handle is not None})
        for handle in answers:
            if handle is not None:
                self._enrol(handle)
        self._watch_launcher()
        self._grow(SPARE)
        self._spawn(self._shrink_now_and_then())
        return dict(self._by_key)

    async def close(self) -> None:
        """Close all connections; shepherds with work live on, idle ones end by themselves."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        asyncio.get_running_loop().remove_reader(self._launcher.control)
        self._launcher.close()
        self._ears.close()
        for handle in self._handles.values():
            handle.close()
        self._handles.clear()
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1

    def _spawn(self, coroutine: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _adopt(self, slot: int) -> Handle | None:
        """Connect to a shepherd found on disk; None if its socket has no process."""
        handle = self._connect(slot)
        if handle is None:
            with contextlib.suppress(FileNotFoundError):
                (self._spool.shepherds / f"{slot}{SOCKET_SUFFIX}").unlink()
            return None
        try:
            async with asyncio.timeout(STATUS_PATIENCE_S):
                message = await _first_message(handle.sock)
        except (TimeoutError, OSError, ValueError, EOFError, TypeError) as error:
            LOG.warning("event=shepherd_silent slot=%d error=%r", slot, error)
            message = None
        if message is None:
            handle.sock.close()
            return None
        self._take_status(handle, message)
        handle.is_adopted = True
        return handle

    def _connect(self, slot: int) -> Handle | None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.setblocking(False)
        try:
            sock.connect(f"/proc/self/fd/{self._directory}/{slot}{SOCKET_SUFFIX}")
        except OSError:
            sock.close()
            return None
        return Handle(slot, sock)

    def _take_status(self, handle: Handle, message: Message) -> None:
        handle.status = status = fields_of(Status, message[1:])
        handle.key, handle.pid, handle.output, handle.error = status.key, status.pid, status.output, status.error

    def _enrol(self, handle: Handle) -> None:
        self._listen_to(handle)
        if handle.key is None:
            self._now_idle(handle)
        else:
            self._by_key[handle.key] = handle

    def _listen_to(self, handle: Handle) -> None:
        self._handles[handle.slot] = handle
        self._ears.add(handle.sock, functools.partial(self._read, handle))

    async def _empty_other_places(self, alive: set[int]) -> None:
        found = self.logged_slots()
        for _, path in self.base.paths:
            with contextlib.suppress(FileNotFoundError):
                found |= {int(name) for name in os.listdir(path) if name.isdigit()}
        await asyncio.gather(*(self._empty(slot, ()) for slot in found - alive))

    # -- work

    def handles(self) -> list[Handle]:
        """Return all connected shepherds."""
        return list(self._handles.values())

    def tell_all(self, kind: int, *fields: object) -> None:
        """Send a message about its attempt to each shepherd that holds one."""
        for handle in self.handles():
            if handle.key is not None:
                handle.send(pack(kind, *handle.key, *fields))

    def holder(self, key: Key) -> Handle | None:
        """Return the shepherd that holds an attempt."""
        return self._by_key.get(key)

    @property
    def busy(self) -> int:
        """Number of attempts held, or waiting for a shepherd."""
        return len(self._by_key) + len(self._waiting)

    def take_idle(self, waiting: Waiting) -> Handle | None:
        """Take an idle shepherd for an attempt; if there is none, the attempt waits for ``on_idle``."""
        handle = self._idle.pop() if self._idle and not self._waiting else None
        if handle is None:
            self._waiting.append(waiting)
        self._idle_least = min(self._idle_least, len(self._idle))
        if len(self._idle) < SPARE:
            self._grow(len(self._waiting) + SPARE - len(self._idle))
        return handle

    def hold(self, handle: Handle, key: Key, setup: Setup, launch: bool) -> None:
        """Give an attempt to a shepherd that was idle."""
        self._by_key[key] = handle
        handle.hold(key, setup, launch, self._logs[handle.slot].rotate_now())

    def done(self, handle: Handle) -> None:
        """Note that nothing is left of this shepherd's attempt."""
        if handle.key is not None:
            self._by_key.pop(handle.key, None)
            handle.key = None
            self._now_idle(handle)
            if self._watchers:
                self._tell_watchers()

    async def drained(self) -> None:
        """Wait until no shepherd holds an attempt."""
        await self._until(lambda: not self._by_key)

    async def deserted(self) -> None:
        """Wait until there are no shepherds."""
        await self._until(lambda: not self._handles and not self._cleaning)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._watchers.append(watcher)
            await watcher

    def _tell_watchers(self) -> None:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            _settle(watcher)

    # -- exit logs

    def ended(self, handle: Handle, key: Key) -> None:
        """Note that an attempt's end is in this shepherd's log, and needed there until `forget`."""
        self._slot_of[key] = handle.slot
        self._logs[handle.slot].add(key)

    def forget(self, key: Key) -> None:
        """Drop the end of an attempt, since the master has acknowledged it."""
        slot = self._slot_of.pop(key, None)
        if slot is not None:
            self._logs[slot].forget(key)

    def traces(self, slots: Iterable[int]) -> Traces:
        """Read the logs of these slots."""
        traces = Traces()
        for slot in slots:
            traces.read(str(self._spool.shepherds / f"{slot}{LOG_SUFFIX}"))
        return traces

    def logged_slots(self) -> set[int]:
        """Return slots that have a log."""
        names = (path.name.split(".")[0] for path in self._spool.shepherds.glob(f"*{LOG_SUFFIX}*"))
        return {int(name) for name in names if name.isdigit()}

    def drop_dead_logs(self) -> None:
        """Remove the logs of slots without a shepherd, once all their records are in the journal."""
        for slot in self.logged_slots() - self._handles.keys() - self._requested:
            for path in self._spool.shepherds.glob(f"{slot}{LOG_SUFFIX}*"):
                path.unlink()

    async def sync_logs(self) -> None:
        """Make recorded ends durable that the master has not acknowledged yet."""
        paths, logs = [], []
        for slot, log in self._logs.items():
            if log.unsynced and log.current:
                paths.append(self._spool.shepherds / f"{slot}{LOG_SUFFIX}")
                logs.append(log)
            log.unsynced = False
        try:
            if paths:
                await asyncio.to_thread(_sync_files, paths)
        except OSError:
            for log in logs:
                log.unsynced = True
            raise

    # -- idle and busy

    def _now_idle(self, handle: Handle) -> None:
        if handle.is_adopted:  # maybe of another version: new work is for this agent's own
            handle.send(pack(messages.RETIRE))
            return
        while self._waiting:
            if self._on_idle(handle, self._waiting.popleft()):
                return
        self._idle.append(handle)

    def _read(self, handle: Handle) -> None:
        try:
            received = self._receiver.receive(handle.sock)
        except BlockingIOError:
            return
        except (OSError, ValueError, EOFError, TypeError) as error:
            LOG.warning("event=shepherd_broken slot=%d error=%r", handle.slot, error)
            received = None
        handle.silent_looks = 0
        if received is None:
            self._lost(handle)
        elif received[0][0] == messages.STATUS:
            self._take_status(handle, received[0])
            self._now_idle(handle)
        else:
            self._on_message(handle, received[0])

    # -- growth and loss

    def _grow(self, wanted: int) -> None:
        """Request shepherds until ``wanted`` are on their way."""
        most = self._capacity + SPARE if self._capacity else 0
        missing = min(wanted, most - len(self._handles)) - len(self._requested)
        if missing <= 0 or self._closed:
            return
        taken = self._handles.keys() | self._requested | self._cleaning
        free = (slot for slot in range(len(taken) + missing) if slot not in taken)
        slots = [slot for slot, _ in zip(free, range(missing), strict=False)]
        self._requested.update(slots)
        with contextlib.suppress(OSError):  # a dead launcher is replaced, and its successor asked again
            self._launcher.request(slots)

    def _watch_launcher(self) -> None:
        asyncio.get_running_loop().add_reader(self._launcher.control, self._on_launcher)

    def _on_launcher(self) -> None:
        try:
            answer = self._launcher.control.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            answer = b""
        if not answer:
            self._replace_launcher()
            return
        slot, pid, error = marshal.loads(answer)
        self._requested.discard(slot)
        handle = self._connect(slot) if pid else None
        if handle is None:
            LOG.error("event=no_shepherd slot=%d error=%s", slot, error or "it has gone again")
            self._later(LAUNCHER_PAUSE_S)
            return
        handle.pid = pid
        self._listen_to(handle)

    def _replace_launcher(self) -> None:
        LOG.error("event=launcher_lost pid=%d", self._launcher.pid)
        asyncio.get_running_loop().remove_reader(self._launcher.control)
        self._launcher.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._launcher.pid, os.WNOHANG)
        self._requested.clear()
        self._launcher = LauncherProcess(self._spool, self.base)
        self._watch_launcher()
        self._later(LAUNCHER_PAUSE_S)

    def _later(self, pause_s: float) -> None:
        asyncio.get_running_loop().call_later(pause_s, lambda: self._grow(len(self._waiting) + SPARE - len(self._idle)))

    async def _shrink_now_and_then(self) -> None:
        """Retire half of the shepherds that have been idle for a while, at intervals."""
        while True:
            self._idle_least = len(self._idle)
            await asyncio.sleep(SHRINK_EVERY_S)
            for _ in range((self._idle_least - 2 * SPARE) // 2):
                self._idle.pop(0).send(pack(messages.RETIRE))

    def _lost(self, handle: Handle) -> None:
        key = handle.key
        self._ears.remove(handle.sock)
        handle.close()
        self._handles.pop(handle.slot, None)
        with contextlib.suppress(ValueError):
            self._idle.remove(handle)
        if key is None:
            LOG.info("event=shepherd_gone slot=%d pid=%d", handle.slot, handle.pid)
        else:
            LOG.error("event=shepherd_lost slot=%d pid=%d job=%d index=%d attempt=%d", handle.slot, handle.pid, *key)
        self._cleaning.add(handle.slot)
        self._spawn(self._clean(handle.slot, key, handle.why_lost))

    async def _clean(self, slot: int, key: Key | None, why: str) -> None:
        await self._empty(slot, self._marks(key) if key is not None else ())
        if key is not None:  # before another shepherd writes to the log
            traces = await asyncio.to_thread(self.traces, [slot])
            self._by_key.pop(key, None)
            self._on_lost(key, traces.finished.get(key), why, key in traces.started)
        self._cleaning.discard(slot)
        self._tell_watchers()
        self._grow(len(self._waiting) + SPARE - len(self._idle))

    async def _empty(self, slot: int, marks: tuple[bytes, ...]) -> None:
        """Kill all processes in a slot without a shepherd (or with these marks) until none are left."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        warned = False
        while found := await asyncio.to_thread(self._kill, slot, marks):
            if not warned and loop.time() > began + KILL_WARN_S:
                LOG.error("event=unkillable slot=%d pids=%s", slot, " ".join(map(str, found)))
                warned = True
            await asyncio.sleep(1.0 if warned else KILL_AGAIN_S)

    def _kill(self, slot: int, marks: tuple[bytes, ...]) -> list[int]:
        try:
            found = hierarchy.kill(self.base, slot)
        except OSError as error:
            LOG.error("event=kill_failed slot=%d error=%r", slot, error)
            return []
        if not self.base.version and marks:
            found = processes.marked(marks)
            processes.send(found, 9)
        return found


def _settle(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def _sync_files(paths: list[Path]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
            os.fdatasync(file.fileno())


async def _first_message(sock: socket.socket) -> Message | None:
    """Wait for the STATUS of a shepherd; None if it has gone."""
    readable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().add_reader(sock, _settle, readable)
    try:
        await readable
    finally:
        asyncio.get_running_loop().remove_reader(sock)
    received = Receiver().receive(sock)
    return received[0] if received else None
