"""Tracer of product functions, imported first by every traced process; it notes each function's first call of a period.

Copied beside the product packages into a scratch directory, so that a program without any environment, such as the
launcher, finds it too. The first byte of the file ``period`` is the period under way; 0 is not traced. Beside it, each
process writes a file ``calls-PID`` with lines: time, period, program, file, function, first line of the function.
"""

import mmap
import os
import sys
import threading
import time
from types import FrameType

ROOT = os.path.dirname(os.path.abspath(__file__)) + os.sep
NOTES = ROOT + "notes" + os.sep
_UNWRITTEN = ("_pb2.py", "_pb2_grpc.py")  # generated, not written by hand
_FUNCTION = 0x1  # CO_OPTIMIZED: set for functions, not for modules and class bodies

_noted: dict[int, int] = {}  # last period in which a code object was noted, by its id
_first_pid = os.getpid()
with open(NOTES + "period", "rb") as _file:
    _period = mmap.mmap(_file.fileno(), 1, access=mmap.ACCESS_READ)


def _program() -> str:
    with open("/proc/self/comm", encoding="utf-8") as file:
        name = file.read().strip()
    if name.startswith("lavad-"):
        return name
    words = [word for word in sys.orig_argv if not word.startswith("-")]
    return ("fork of " if os.getpid() != _first_pid else "") + " ".join(words[1:2])


def _is_import(frame: FrameType | None) -> bool:
    """Return True for a call made while a product module other than the program itself is imported."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            return code.co_filename.startswith(ROOT)
        frame = frame.f_back
    return False


def _on_event(frame: FrameType, event: str, _: object) -> None:
    period = _period[0]
    code = frame.f_code
    if event != "call" or not period or _noted.get(id(code), 0) >= period:
        return
    name = code.co_filename
    if not name.startswith(ROOT) or name == __file__ or name.endswith(_UNWRITTEN) or not code.co_flags & _FUNCTION:
        _noted[id(code)] = 255
        return
    if _is_import(frame):
        return
    _noted[id(code)] = period
    called = (time.monotonic_ns(), period, _program(), name.removeprefix(ROOT), code.co_qualname, code.co_firstlineno)
    line = "\t".join(map(str, called)) + "\n"
    descriptor = os.open(f"{NOTES}calls-{os.getpid()}", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


threading.setprofile(_on_event)
sys.setprofile(_on_event)
