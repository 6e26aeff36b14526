"""Launcher, the agent's fork server: a small process with one thread and no gRPC, which forks shepherds and reaps them.

Executed by the agent before that imports gRPC (a process with gRPC's threads must never fork), as ``python -I -S
launcher.py``, with a socket to the agent as descriptor 3. It knows nothing of jobs. It ends with the agent; shepherds
stay.
"""

import gc
import marshal
import os
import select
import signal
import socket
import sys
import traceback

if __name__ == "__main__":  # -I and -S leave only the standard library on the path
    gc.disable()  # for good, as below: nothing of what is imported is ever released
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from agents.shepherd.confinement.hierarchy import Base
from agents.shepherd.main import Place, run
from agents.shepherd.spool import SOCKET_SUFFIX
from protos.failpoints import reach

CONTROL_FD = 3

# Requests: (slot, ...) asks for a shepherd in each of these slots.
# Answers: (slot, process id, error); process id 0 with the reason if the fork failed.


def main(argv: list[str]) -> int:
    """Serve requests until the agent is gone.

    Arguments: directory of sockets and logs, of outputs, the groups' base.
    """
    directory, outputs, encoded = argv[1:4]
    version, paths = marshal.loads(bytes.fromhex(encoded))
    os.closerange(CONTROL_FD + 1, os.sysconf("SC_OPEN_MAX"))
    os.set_inheritable(CONTROL_FD, False)
    os.setsid()  # protects from a terminal's signals
    os.chdir(directory)
    _be_ordinary_for_oom()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    control = socket.socket(fileno=CONTROL_FD)
    gc.collect()
    gc.freeze()  # keeps the forked pages shared
    gc.disable()
    Launcher(control, directory, outputs, Base(version, paths)).run()
    return 0


def _be_ordinary_for_oom() -> None:
    """Reset the OOM score, which jobs inherit: the agent's own protection does not apply to them."""
    try:
        with open("/proc/self/oom_score_adj", "r+", encoding="ascii") as file:
            if int(file.read()) < 0:
                file.seek(0)
                file.write("0")
    except OSError as error:
        print(f"event=oom_score_kept error={error!r}", file=sys.stderr)


class Launcher:
    """Forks shepherds on request."""

    def __init__(self, control: socket.socket, directory: str, outputs: str, base: Base) -> None:
        self._control = control
        self._directory = directory
        self._outputs = outputs
        self._base = base

    def run(self) -> None:
        """Serve until the agent closes its end."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(reader, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == reader.fileno():
                    reader.recv(4096)
                    self._reap()
                    continue
                request = self._receive()
                if not request:
                    signal.set_wakeup_fd(-1)
                    return
                for slot in marshal.loads(request):
                    self._answer(slot, *self._start(slot, (reader, writer)))

    def _receive(self) -> bytes:
        """Receive a request; empty if the agent is gone (a reset: it left without reading the last answer)."""
        try:
            return self._control.recv(65536)
        except ConnectionResetError:
            return b""

    def _reap(self) -> None:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return

    def _answer(self, slot: int, pid: int, error: str) -> None:
        try:
            self._control.send(marshal.dumps((slot, pid, error), 4))
        except OSError:
            return  # the agent is gone, as the next `recv` shows

    def _start(self, slot: int, closing: tuple[socket.socket, ...]) -> tuple[int, str]:
        name = f"{slot}{SOCKET_SUFFIX}"  # relative: a socket's path may not be longer than 107 bytes
        try:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with listener:
                if os.path.exists(name):
                    os.unlink(name)
                listener.bind(name)
                listener.listen(4)
                reach("launcher.before_fork")
                pid = os.fork()
                if pid == 0:
                    self._become_shepherd(slot, listener, closing)
                reach("launcher.after_fork")
        except OSError as error:
            return 0, error.strerror or "unknown error"
        return pid, ""

    def _become_shepherd(self, slot: int, listener: socket.socket, closing: tuple[socket.socket, ...]) -> None:
        """Run the forked child as a shepherd."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for one in (*closing, self._control):
                one.close()
            os.chdir("/")
            run(Place(slot, self._base, self._directory, self._outputs), listener)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
