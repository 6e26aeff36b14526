"""Writer of the stacks of a job's processes: a program of its own, run as the job's user.

    stack_writer.py DEBUGGER SECONDS BYTES NAME DIRECTORY... -- PID...

Standard input has the kernel's stacks, each after a line ``PID TID``. The file is made anew in the first directory in
which that works. Its path goes to standard output, and on a second line what it lacks. First comes what costs nothing,
of all processes; then the debugger's word about those of Python, as far as the time and the size allow.
"""

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import IO

DUMP_S = 20.0  # for one process
DUMP_BYTES = 256 << 10
DUMPS_AT_ONCE = 4
DESCRIPTORS_MAX = 256  # of one process
SEARCHED = "/usr/local/bin:/usr/bin:/bin"
PARTS = ("Name", "State", "PPid", "Threads", "VmRSS", "VmSwap", "SigQ", "SigPnd", "SigBlk", "Cpus_allowed_list")


def main(argv: list[str]) -> int:
    """Write the file; return 0 if there is one."""
    debugger, seconds, size, name, *rest = argv
    end = time.monotonic() + float(seconds)
    directories, pids = rest[: rest.index("--")], [int(pid) for pid in rest[rest.index("--") + 1 :]]
    kernel = _kernel_stacks(sys.stdin.buffer.read().decode(errors="replace"))
    file, path, why = _open(directories, name)
    if file is None:
        print(f"no file can be made for them: {why}", file=sys.stdout)
        return 1
    lacks = _write(file, int(size), debugger, pids, kernel, end)
    print(path, file=sys.stdout)
    if lacks:
        print("; ".join(lacks), file=sys.stdout)
    return 0


def _open(directories: list[str], name: str) -> tuple[IO[bytes] | None, str, str]:
    why = "no directory"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for directory in directories:
        for suffix in ("", f".{int(time.time())}"):
            path = f"{directory}/{name}{suffix}"
            try:
                return os.fdopen(os.open(path, flags, 0o600), "wb"), path, ""
            except OSError as error:
                why = f"{path}: {error.strerror}"
    return None, "", why


def _write(
    file: IO[bytes], size: int, debugger: str, pids: list[int], kernel: dict[int, list[str]], end: float
) -> list[str]:
    """Write everything; return what is lacking."""
    lacks, left = [], size
    sockets = _sockets()
    with file:
        try:
            for text in [_process(pid, kernel.get(pid, []), sockets) for pid in pids]:
                left -= file.write(text.encode(errors="replace")[: max(0, left)])
            snakes = [pid for pid in pids if _is_python(pid)]
            program = _found(debugger)
            if snakes and not program:
                lacks.append(
                    f"{debugger} is not there, so the stacks of {len(snakes)} Python processes are the kernel's"
                )
            for dump in _dumps(program, snakes, end) if program else ():
                left -= file.write(dump[: max(0, left)])
        except OSError as error:
            lacks.append(f"the file is not complete: {error.strerror}")
    if left <= 0:
        lacks.append(f"the file is cut at {size >> 20} MiB")
    return lacks


# -- the debugger ------------------------------------------------------------------------------------------------------


def _found(debugger: str) -> str:
    """Return the path of the debugger; empty if it is not there."""
    if "/" in debugger:
        return debugger if os.access(debugger, os.X_OK) else ""
    for directory in f"{os.environ.get('PATH', '')}:{SEARCHED}".split(":"):
        path = f"{directory}/{debugger}"
        if directory.startswith("/") and os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return ""


def _is_python(pid: int) -> bool:
    with contextlib.suppress(OSError):
        if "python" in os.path.basename(os.readlink(f"/proc/{pid}/exe")):
            return True
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
            return any("libpython" in line for line in maps)
    return False


def _dumps(program: str, pids: list[int], end: float) -> list[bytes]:
    with concurrent.futures.ThreadPoolExecutor(DUMPS_AT_ONCE) as threads:
        return list(threads.map(lambda pid: _dump(program, pid, end), pids))


def _dump(program: str, pid: int, end: float) -> bytes:
    head = f"\n===== process {pid}: {os.path.basename(program)} dump =====\n".encode()
    seconds = min(DUMP_S, end - time.monotonic())
    if seconds <= 0:
        return head + b"not taken: the time is over\n"
    argv = [program, "dump", "--pid", str(pid)]
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        return head + f"{program}: {error.strerror}\n".encode()
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output += f"not ended after {seconds:.0f} seconds\n".encode()
    return head + output[:DUMP_BYTES]


# -- what the kernel tells ---------------------------------------------------------------------------------------------


def _kernel_stacks(text: str) -> dict[int, list[str]]:
    """Return the lines about each process."""
    found: dict[int, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line[:1] == " ":
            lines.append(f"    {line.strip()}")
        else:
            pid, _, thread = line.partition(" ")
            lines = found.setdefault(int(pid), [])
            lines.append(f"  kernel stack of thread {thread}:")
    return found


def _process(pid: int, kernel: list[str], sockets: dict[str, str]) -> str:
    words = _text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
    status = _text(f"/proc/{pid}/status").splitlines()
    if not status:
        return f"\n===== process {pid}: it has ended =====\n"
    lines = [f"\n===== process {pid}: {words[:1000]} ====="]
    lines += [f"  {line}" for line in status if line.partition(":")[0] in PARTS]
    for thread in _listed(f"/proc/{pid}/task"):
        name, where = _text(f"/proc/{pid}/task/{thread}/comm").strip(), _text(f"/proc/{pid}/task/{thread}/wchan")
        state = _text(f"/proc/{pid}/task/{thread}/stat").rpartition(")")[2].strip()[:1]
        lines.append(f"  thread {thread} {name}: state {state}, waits in {where.strip() or 'user code'}")
    lines += kernel
    lines += [f"  {line}" for line in _open_sockets(pid, sockets)]
    return "\n".join(lines) + "\n"


def _open_sockets(pid: int, sockets: dict[str, str]) -> list[str]:
    found = []
    for descriptor in _listed(f"/proc/{pid}/fd")[:DESCRIPTORS_MAX]:
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
            if target.startswith("socket:["):
                found.append(f"descriptor {descriptor}: {sockets.get(target[8:-1], target)}")
    return found


STATES = ("", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT",
          "LAST_ACK", "LISTEN", "CLOSING")  # fmt: skip


def _sockets() -> dict[str, str]:
    """Return the TCP and Unix sockets of this namespace in words, by inode."""
    found = {}
    for kind in ("tcp", "tcp6"):
        for line in _text(f"/proc/net/{kind}").splitlines()[1:]:
            words = line.split()
            if len(words) > 9:
                number = int(words[3], 16)
                state = STATES[number] if number < len(STATES) else words[3]
                sent, _, received = words[4].partition(":")
                queues = f"to send {int(sent, 16)}, to read {int(received, 16)}"
                found[words[9]] = f"{kind} {_address(words[1])} -> {_address(words[2])} {state}, {queues}"
    for line in _text("/proc/net/unix").splitlines()[1:]:
        words = line.split()
        if len(words) > 6:
            found[words[6]] = f"unix {words[7] if len(words) > 7 else ''}"
    return found


def _address(text: str) -> str:
    host, _, port = text.partition(":")
    if len(host) == 8:
        host = ".".join(str(int(host[at : at + 2], 16)) for at in (6, 4, 2, 0))
    return f"{host}:{int(port, 16)}"


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _listed(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path), key=lambda name: int(name) if name.isdigit() else 0)
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
