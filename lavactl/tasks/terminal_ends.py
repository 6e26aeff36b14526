"""Standard streams and signals of a process that runs tasks: non-blocking output, signals as poll events."""

import os
import signal

from lavactl.errors import CommandError, OutputClosedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import BinaryIO

# Signals passed on to the tasks. STOP, TSTP and CONT reach them through their own agents.
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
# Bytes that a pipe reported writable by poll accepts without blocking.
PIPE_WRITE = 4096


class Outlet:
    """Standard output or error: buffers bytes at once and writes them as the reader accepts them."""

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
        """Buffer bytes; without a descriptor they are written at once, without a stream dropped."""
        if self.descriptor >= 0:
            self._waiting += data
        elif self._stream is not None:
            self._stream.write(data)

    def push(self) -> None:
        """Write one piece; the descriptor must be ready.

        Raises:
            OutputClosedError: the reader has closed it.
            CommandError: a write error.
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
    """Context manager that turns these signals into a descriptor for poll."""

    def __init__(self, numbers: "Sequence[int]" = FORWARDED) -> None:
        self._numbers = numbers

    def __enter__(self) -> "Signals":
        self.descriptor, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before = {number: signal.signal(number, self._nothing) for number in self._numbers if is_wanted(number)}
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.descriptor)
        os.close(self._write)

    def taken(self) -> list[int]:
        """Signals received since the last call."""
        try:
            return [number for number in os.read(self.descriptor, 512) if number in self._before]
        except BlockingIOError:
            return []

    @staticmethod
    def _nothing(number: int, frame: "FrameType | None") -> None:
        """Empty handler: only the wake-up descriptor matters."""


def is_wanted(number: int) -> bool:
    """True unless the parent made us ignore the signal (nohup, a shell's background): it stays ignored."""
    return signal.getsignal(number) is not signal.SIG_IGN


def descriptor_of(stream: "BinaryIO") -> int | None:
    """Descriptor behind a stream; None for one in memory."""
    import io

    try:
        return stream.fileno()
    except io.UnsupportedOperation:
        return None
