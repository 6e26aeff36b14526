"""Files of this host for jobs that were submitted here and run elsewhere (bsub -f), read and written as their users.

Invariants: no file is touched without the master's ticket for this file, user and attempt, which the caller checks; the
agent itself opens none: a program does, as the user; one that stands still is ended.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

from agents.job_setup.users import Owner, UnknownUser, look_up, words_of_user
from protos.agents_pb2 import FilePart, FileState
from protos.jobs_pb2 import CopyTicketReply

CHUNK = 256 << 10
STANDSTILL_S = 300.0  # without a byte
END_S = 5.0  # for the program to remove what it began
AT_ONCE = 16
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAM = "lavactl.tasks.file_copying"

Send = Callable[[FilePart], Awaitable[None]]


class CopyFailed(Exception):
    """Failure of a copy; the text is one sentence for the user."""


class FileCopies:
    """Copies for other hosts, so many at a time."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def serve(self, leave: CopyTicketReply, parts: AsyncIterator[FilePart], send: Send) -> None:
        """Send the file that the ticket is for, or write what comes into it."""
        async with self._slots:
            try:
                owner = await asyncio.to_thread(look_up, leave.user, leave.uid, leave.gid)
                await _copy(owner, leave, parts, send)
            except (UnknownUser, CopyFailed) as failure:
                await send(FilePart(error=str(failure)))


async def _copy(owner: Owner, leave: CopyTicketReply, parts: AsyncIterator[FilePart], send: Send) -> None:
    process = await asyncio.create_subprocess_exec(
        *words_of_user(owner.uid, owner.gid, owner.groups),
        *(sys.executable, "-P", "-m", PROGRAM, leave.mode, leave.path),
        stdin=asyncio.subprocess.DEVNULL if leave.mode == "read" else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd="/",
        env={"PATH": PATH, "HOME": owner.home, "USER": owner.name, "LOGNAME": owner.name},
        start_new_session=True,
    )
    try:
        if await _tell_state(process, send):
            is_whole = await (_read(process, send) if leave.mode == "read" else _write(process, parts))
            if not is_whole:
                return
        await _ended_well(process, leave)
    except TimeoutError:
        raise CopyFailed(f"{leave.path}: no byte of it came or went for {STANDSTILL_S:.0f} seconds") from None
    finally:
        await _end(process)
    await send(FilePart(is_whole=True))


async def _tell_state(process: asyncio.subprocess.Process, send: Send) -> bool:
    """Send the state of the file; return False if the program has failed before that."""
    assert process.stdout is not None
    async with asyncio.timeout(STANDSTILL_S):
        line = await process.stdout.readline()
    if not line:
        return False
    permissions, inode, size, modified_ns = map(int, line.split())
    await send(FilePart(state=FileState(permissions=permissions, inode=inode, size=size, modified_ns=modified_ns)))
    return True


async def _read(process: asyncio.subprocess.Process, send: Send) -> bool:
    assert process.stdout is not None
    while True:
        async with asyncio.timeout(STANDSTILL_S):
            data = await process.stdout.read(CHUNK)
        if not data:
            return True
        await send(FilePart(data=data))


async def _write(process: asyncio.subprocess.Process, parts: AsyncIterator[FilePart]) -> bool:
    """Write what comes; return False if the caller has left before the end: it needs no copy, or is lost."""
    assert process.stdin is not None
    is_whole = False
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the program says why it has ended
        while not is_whole:
            async with asyncio.timeout(STANDSTILL_S):
                part = await anext(parts, None)
                if part is None:
                    return False
                is_whole = part.is_whole
                if part.HasField("state"):
                    process.stdin.write(b"%d %d\n" % (part.state.permissions & 0o777, part.state.size))
                process.stdin.write(part.data)
                await process.stdin.drain()
    process.stdin.close()
    return True


async def _ended_well(process: asyncio.subprocess.Process, leave: CopyTicketReply) -> None:
    assert process.stderr is not None
    async with asyncio.timeout(STANDSTILL_S):
        said = (await process.stderr.read(4096)).decode(errors="replace").strip()
        status = await process.wait()
    if status:
        last = said.splitlines()[-1] if said else f"exit code {status}"
        raise CopyFailed(f"{os.path.basename(leave.path)} on its submission host: {last}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a program that has not ended: first so that it can remove what it began."""
    with contextlib.suppress(ProcessLookupError, TimeoutError):
        process.terminate()
        async with asyncio.timeout(END_S):
            await process.wait()
    with contextlib.suppress(ProcessLookupError):
        process.kill()
