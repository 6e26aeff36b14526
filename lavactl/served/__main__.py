"""Resident process that runs the commands of stubs: ``python -m lavactl.served``, started by a host's agent.

Its arguments are the number of a descriptor, a socket of the agent's, and the path of the agent's own socket. The agent
sends descriptors, as many as there are commands at a time: connections on which a command's words come, its calls are
made in its caller's name and its output goes; then come the next one's. Started as root it becomes a user without any
rights, once all modules are loaded; it has no other way to the cluster than these connections.
"""

import ctypes
import gc
import importlib
import os
import pkgutil
import socket
import sys
import threading

import lavactl
from lavactl.errors import OutputClosedError
from lavactl.main import COMMANDS, SLURM, SUBCOMMANDS, run
from lavactl.served.bounds import Load, Part, bound_process
from lavactl.served.caller import Caller, CallerNeeded, CommandLost
from lavactl.served.io import Request, ServedIo, has_own_way
from lavactl.served.stubs import UNSERVED
from lavactl.settings import copy_beside
from lavactl.wire.connection import Connection, LostError
from protos import served

NOBODY = 65534
PR_SET_DUMPABLE = 4
SERVED = frozenset((*COMMANDS, *SLURM)) - UNSERVED
LOAD = Load()
WORDS_MAX = 128 << 10  # characters of all words of a command
SWITCH_S = 0.0005  # between threads: a short command waits for so long for each that is at work
APART = ("lavactl.personal", "lavactl.__main__", "lavactl.served")
# Options that name files of jobs.
OF_FILES = ("-json", "-yaml", "-jsdl", "-jsdl_strict", "-pack")


def main() -> int:
    """Serve until the agent has ended."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    bound_process()
    sys.setswitchinterval(SWITCH_S)
    ServedIo.own_copy = copy_beside(sys.argv[2])
    gc.disable()  # imported objects stay: collections meanwhile would find nothing
    _load_all()
    gc.freeze()
    gc.enable()
    _become_nobody()
    control.send(served.READY)
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(control, 16, 1)
        except InterruptedError:
            continue
        if not data:
            return 0
        for descriptor in descriptors:
            threading.Thread(target=serve, args=(descriptor,), daemon=True).start()


def _load_all() -> None:
    """Import every module of served commands: later their files may be out of reach.

    Other commands, which bring cryptography and gRPC with them, would double the time.
    """
    others = {f"lavactl.commands.{name.replace('-', '_')}" for name in (*SUBCOMMANDS, *UNSERVED)}
    for module in pkgutil.walk_packages(lavactl.__path__, "lavactl."):
        if module.name not in others and not module.name.startswith(APART):
            importlib.import_module(module.name)


def _become_nobody() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def serve(descriptor: int) -> None:
    """Run one command after the other on a connection."""
    connection = Connection("", socket.socket(fileno=descriptor))
    try:
        while _serve(Caller(connection)):
            continue
    except (LostError, OutputClosedError, CommandLost):  # the caller has gone, or hears of it from the agent
        return
    finally:
        connection.close()


def _serve(caller: Caller) -> bool:
    """Run a command; False if its end has not arrived. One that is malformed is its caller's, without a word here."""
    try:
        request = Request(caller.request)
        if not _is_served(request):
            raise CallerNeeded
        code = _run(caller, request)
    except (CallerNeeded, ImportError, ValueError, IndexError, MemoryError):
        return caller.become()
    return caller.done(code)


def _run(caller: Caller, request: Request) -> int:
    """Run a command within its part of this process's means; return its exit code."""
    part = caller.part = Part(LOAD, request.uid)
    try:
        return run(request.name, request.words, ServedIo(caller, request, part))
    finally:
        part.close()


def _is_served(request: Request) -> bool:
    if sum(map(len, request.words)) > WORDS_MAX:
        return False
    if request.name not in SERVED or b"LAVA_DEBUG=1" in request.environment:
        return False
    if any(word in OF_FILES for word in request.words):
        return False
    return not has_own_way(request.environment, os.environb.get(b"TZ"))


if __name__ == "__main__":
    sys.exit(main())
