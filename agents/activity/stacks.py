"""Collection of the stacks of an attempt's processes on this host, before anything is done about a hang.

A program of ours writes them, as the job's user and within the job's own control group and limits, to a file beside the
job's output: it can do nothing that the user could not do. What the kernel tells to root alone, the stack in the kernel
of each thread, is read here and given to it.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from agents.activity import stack_writer
from agents.attempts.attempts import Attempts, HeldAttempt
from agents.ranks.interfaces import TaskHandle, TaskRefused, TaskRequest
from agents.shepherd.messages import Key
from agents.shepherd.process.start import place
from protos.agents_pb2 import StacksRequest

PROC = Path("/proc")
# The agent's own may be in a directory that users may not enter; so may the program, which is given as a text.
INTERPRETERS = (sys.executable, "/usr/bin/python3")
SOURCE = Path(stack_writer.__file__).read_text(encoding="utf-8")
LIMIT_S, LIMIT_MAX_S = 60.0, 600.0
MARGIN_S = 5.0  # for the writer to end by itself
FILE_BYTES = 8 << 20
PROCESSES_MAX = 512
THREADS_MAX = 64  # of one process
KERNEL_BYTES = 4 << 20
ANSWER_BYTES = 4096


class Saved(NamedTuple):
    """File with the stacks; ``error`` says why there is none, or what it lacks."""

    path: str
    error: str = ""


class Collector(NamedTuple):
    """Collector of stacks. ``debugger``: name or path of py-spy."""

    attempts: Attempts
    host: str
    debugger: str

    async def save(self, key: Key, pids: Sequence[int], request: StacksRequest) -> Saved:
        """Save the stacks of these processes within the time that the request names."""
        held = self.attempts.find(*key)
        if held is None or not pids:
            return Saved("", "no process of the job runs here" if held is not None else "the job has ended here")
        limit_s = min(max(request.limit_s, 1.0), LIMIT_MAX_S) if request.limit_s else LIMIT_S
        chosen = sorted(pids)[:PROCESSES_MAX]
        kernel = await asyncio.to_thread(kernel_stacks, chosen)
        words = self._words(key, held, chosen, limit_s, request.number)
        why = ""
        for interpreter in INTERPRETERS:
            argv = tuple(map(os.fsencode, (interpreter, "-IS", "-c", SOURCE, *words)))
            try:
                return await self._run(key, argv, kernel, limit_s + MARGIN_S)
            except (TaskRefused, OSError) as error:
                why = why or str(error)
        return Saved("", why)

    def _words(self, key: Key, held: HeldAttempt, pids: Sequence[int], limit_s: float, number: int) -> list[str]:
        job, index, attempt = key
        element = f"{job}.{index}" if index else f"{job}"
        name = f"stacks.{element}.{attempt}.{number}.{self.host}"
        directories = [self._beside_output(key), held.cwd, held.home, "/tmp"]
        settings = (self.debugger, f"{limit_s:g}", str(FILE_BYTES), name, *[one for one in directories if one])
        return [*settings, "--", *map(str, pids)]

    def _beside_output(self, key: Key) -> str:
        """Return the directory of the job's output file; empty if it has none, or each task its own."""
        job = self.attempts.prepared(key)
        path = place(job, job.output, key) if job is not None else ""
        return os.path.dirname(path) if "%" not in path else ""

    async def _run(self, key: Key, argv: tuple[bytes, ...], text: bytes, limit_s: float) -> Saved:
        """Run the writer; its answer is one line, the path, and perhaps another, what the file lacks."""
        with _pipes() as (into, out_of):
            request = TaskRequest(argv, "", (), into[0], out_of[1], out_of[1])
            handle = await self.attempts.run_task(key, request)
            os.close(into.pop(0))
            os.close(out_of.pop(1))
            feeding = asyncio.create_task(asyncio.to_thread(_feed, into.pop(0), text))
            try:
                async with asyncio.timeout(limit_s):
                    await feeding
                    answer = await asyncio.to_thread(_answer, os.dup(out_of[0]))
                    await handle.wait()
            except TimeoutError:
                _kill(handle)
                return Saved("", f"they were not saved within {limit_s:g} seconds")
        path, _, rest = answer.decode(errors="replace").strip().partition("\n")
        return (
            Saved(path, rest) if path.startswith("/") else Saved("", (path + " " + rest).strip() or "nothing was said")
        )


def _kill(handle: TaskHandle) -> None:
    handle.signal(9)


@contextlib.contextmanager
def _pipes() -> Iterator[tuple[list[int], list[int]]]:
    """Make two pipes; what is left in the lists at the end is closed."""
    into, out_of = list(os.pipe2(os.O_CLOEXEC)), list(os.pipe2(os.O_CLOEXEC))
    try:
        yield into, out_of
    finally:
        for descriptor in (*into, *out_of):
            os.close(descriptor)


def _feed(descriptor: int, text: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(descriptor, "wb") as pipe:
        pipe.write(text)


def _answer(descriptor: int) -> bytes:
    with open(descriptor, "rb") as pipe:
        return pipe.read(ANSWER_BYTES)


def kernel_stacks(pids: Sequence[int]) -> bytes:
    """Return what the kernel says of each thread of these processes: a line ``PID TID`` before each.

    Without root the stack itself is left out.
    """
    parts: list[str] = []
    size = 0
    for pid in pids:
        for thread in _threads(pid):
            text = _kernel_stack(thread)
            size += len(text)
            if text and size < KERNEL_BYTES:
                parts.append(f"{pid} {thread.name}\n{text}")
    return "".join(parts).encode()


def _threads(pid: int) -> list[Path]:
    try:
        return sorted((PROC / str(pid) / "task").iterdir(), key=lambda path: int(path.name))[:THREADS_MAX]
    except OSError:
        return []


def _kernel_stack(thread: Path) -> str:
    try:
        lines = (thread / "stack").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return ""
    return "".join(f" {line}\n" for line in lines)
