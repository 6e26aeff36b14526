"""This process's own ends while it stays with tasks: output as its readers let it be written, signals as they come."""

import os
import signal

from lavactl.errors import CommandError, OutputClosedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import BinaryIO

# What a task gets when this process gets it. STOP, TSTP and CONT reach a job's tasks through their own agents.
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
# A pipe that poll calls writable takes so much without blocking.
PIPE_WRITE = 4096


class Outlet:
    """Standard output or error: takes bytes at once and writes them as the reader lets it."""

    def __init__(self, stream: "BinaryIO | None") -> None:
        self._stream = stream
        self._waiting = bytearray()
        self.descriptor = -1
        self._chunk = PIPE_WRITE
        if stream is not None and (descriptor := descriptor_of(stream)) is not None:
            import stat

            stream.flush()
            self.descriptor = descriptor
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                self._chunk = 1 << 20

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, data: bytes) -> None:
        """Take bytes; those for a stream with no descriptor are written now, those for none at all are dropped."""
        if self.descriptor >= 0:
            self._waiting += data
        elif self._stream is not None:
            self._stream.write(data)

    def push(self) -> None:
        """Write one piece; the descriptor is ready.

        Raises:
            OutputClosedError: the reader has gone.
            CommandError: it cannot be written.
        """
        try:
            del self._waiting[: os.write(self.descriptor, memoryview(self._waiting)[: self._chunk])]
        except BlockingIOError:
            return
        except BrokenPipeError:
            raise OutputClosedError from None
        except OSError as error:
            raise CommandError(f"Cannot write the output: {error.strerror}.") from None


class Signals:
    """Turns the forwarded signals into something poll can wait for, while it is entered."""

    def __enter__(self) -> "Signals":
        self.descriptor, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before = {number: signal.signal(number, self._nothing) for number in FORWARDED if self._wanted(number)}
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.descriptor)
        os.close(self._write)

    def taken(self) -> list[int]:
        """Signals that came since the last time."""
        try:
            return [number for number in os.read(self.descriptor, 512) if number in self._before]
        except BlockingIOError:
            return []

    @staticmethod
    def _wanted(number: int) -> bool:
        """What our starter made us ignore (nohup, a shell's background) stays ignored."""
        return signal.getsignal(number) is not signal.SIG_IGN

    @staticmethod
    def _nothing(number: int, frame: "FrameType | None") -> None:
        """Only the wake-up matters."""


def descriptor_of(stream: "BinaryIO") -> int | None:
    """The descriptor behind a stream; None for one that lives in memory."""
    import io

    try:
        return stream.fileno()
    except io.UnsupportedOperation:
        return None
