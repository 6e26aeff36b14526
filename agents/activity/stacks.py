"""Collection of the stacks of an attempt's processes on this host, before anything is done about a hang.

A program of ours writes them, as the job's user and within the job's own control group and limits, to a file beside the
job's output: it can do nothing that the user could not do. What the kernel tells to root alone, the stack in the kernel
of each thread, is read here and given to it.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from agents.activity import stack_writer
from agents.attempts.attempts import Attempts, HeldAttempt
from agents.ranks.interfaces import TaskHandle, TaskRefused, TaskRequest
from agents.ranks.pipes import ReadEnd, WriteEnd, open_pipe
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
        with open_pipe() as (its_input, text_to), open_pipe() as (answer_from, its_output):
            output = its_output.fileno()
            request = TaskRequest(argv, "", (), its_input.fileno(), output, output)
            handle = await self.attempts.run_task(key, request)
            its_input.close()
            its_output.close()
            try:
                async with asyncio.timeout(limit_s):
                    answer = await _exchange(text_to, text, answer_from)
                    await handle.wait()
            except TimeoutError:
                _kill(handle)
                return Saved("", f"they were not saved within {limit_s:g} seconds")
            except asyncio.CancelledError:
                _kill(handle)
                raise
        path, _, rest = answer.decode(errors="replace").strip().partition("\n")
        return (
            Saved(path, rest) if path.startswith("/") else Saved("", (path + " " + rest).strip() or "nothing was said")
        )


def _kill(handle: TaskHandle) -> None:
    handle.signal(9)


async def _exchange(into: IO[bytes], text: bytes, out_of: IO[bytes]) -> bytes:
    """Write a text into one pipe, then read the other until its end; the other side may be as slow as it likes."""
    reader, writer = ReadEnd(out_of.fileno()), WriteEnd(os.dup(into.fileno()))
    into.close()
    try:
        await writer.write(text)
    finally:
        writer.close()
    answer = b""
    while len(answer) < ANSWER_BYTES and (more := await reader.read()):
        answer += more
    return answer[:ANSWER_BYTES]


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
