"""Process surroundings of a command, as values.

Commands read streams, environment, directory, terminal and clock only through an ``Io``, so the same code runs as a
program, in a test, and later in a resident process. Invariants:

* ``raw_environ`` is the environment as the process was given it, byte for byte, from /proc/self/environ: Python itself
  adds LC_CTYPE to os.environ, and a job must not inherit that.
* Text is written in the file system encoding with surrogateescape, so bytes of argv are written back unchanged. *
Costly look-ups (directory, umask, user, terminal) are made on first use.
"""

import os
import sys
import time

from lavactl.errors import CommandError, OutputClosedError
from lavactl.files import look_at, read_file, read_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

    from lavactl.wire.client import Client

DEFAULT_WIDTH = 80
# Names the request of a command that was begun elsewhere and is begun anew here; no job inherits it.
REQUEST_ID = b"LAVA_REQUEST_ID="
# Control characters of a terminal, as they are shown. Ends of lines, tabs and separators (28 to 31) do nothing to it.
VISIBLE = {code: f"\\u{code:04x}" for code in (*range(28), *range(127, 160)) if code not in (9, 10)}
VISIBLE |= {13: "\\r", 27: "\\e"}


def own_environment() -> list[bytes]:
    """NAME=VALUE entries this process was started with; os.environb where /proc is not mounted."""
    try:
        with open("/proc/self/environ", "rb") as file:
            return [entry for entry in file.read().split(b"\0") if b"=" in entry]
    except OSError:
        return [name + b"=" + value for name, value in os.environb.items()]


def decode_environment(entries: "Sequence[bytes]") -> dict[str, str]:
    """Name to value; of a name given twice the first counts, as in the C library."""
    decoded: dict[str, str] = {}
    encoding, errors = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
    for entry in entries:
        name, _, value = entry.decode(encoding, errors).partition("=")
        decoded.setdefault(name, value)
    return decoded


class Io:
    """The surroundings of one command.

    Args:
        stdin, stdout, stderr: binary streams; ``print`` and ``error`` write text to the last two.
        raw_environ: NAME=VALUE entries; the process's own if not given.
        cwd: absolute path; the process's own, with $PWD preferred where it names the same directory, if not given.
        client: an object with the methods of ``lavactl.wire.client.Client``; made on the first use if not given.
    """

    def __init__(
        self,
        stdin: "BinaryIO | None" = None,
        stdout: "BinaryIO | None" = None,
        stderr: "BinaryIO | None" = None,
        raw_environ: "Sequence[bytes] | None" = None,
        cwd: str | None = None,
        umask: int | None = None,
        width: int | None = None,
        client: "Client | None" = None,
    ) -> None:
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr
        entries = own_environment() if raw_environ is None else raw_environ
        self.raw_environ = [entry for entry in entries if not entry.startswith(REQUEST_ID)]
        self._begun = next((entry.removeprefix(REQUEST_ID) for entry in entries if entry.startswith(REQUEST_ID)), b"")
        self.environ: Mapping[str, str] = decode_environment(self.raw_environ)
        self._cwd, self._umask, self._width, self._client = cwd, umask, width, client
        self._settings: dict[str, str | None] = {}
        self._files: dict[str, bytes | None] = {}  # of settings
        self._job_environments: dict[tuple[str, ...], list[bytes]] = {}

    # Streams.

    @property
    def stdin(self) -> "BinaryIO":
        """Binary standard input.

        Raises:
            CommandError: standard input is closed.
        """
        if self._stdin is None:
            if sys.stdin is None:
                raise CommandError("Standard input is closed.")
            self._stdin = sys.stdin.buffer
        return self._stdin

    @property
    def stdout(self) -> "BinaryIO | None":
        """Binary standard output; None if closed."""
        if self._stdout is None and sys.stdout is not None:
            self._stdout = sys.stdout.buffer
        return self._stdout

    @property
    def stderr(self) -> "BinaryIO | None":
        """Binary standard error; None if closed."""
        if self._stderr is None and sys.stderr is not None:
            self._stderr = sys.stderr.buffer
        return self._stderr

    def print(self, text: str = "", end: str = "\n") -> None:
        """Write text to standard output (buffered until the command ends, or ``flush``).

        Control characters other than ends of lines, tabs and separators are made visible: no text moves the cursor.
        What must stay as it is goes through ``write``.
        """
        self.write(encode((text + end).translate(VISIBLE)))

    def show(self, data: bytes) -> None:
        """Write what was submitted as it is; to a terminal as by ``print``. Errors are those of ``write``."""
        if self.is_terminal(self.stdout):
            self.print(data.decode("utf-8", "surrogateescape"), end="")
        else:
            self.write(data)

    def write(self, data: bytes) -> None:
        """Write bytes to standard output.

        Raises:
            OutputClosedError: the reader has closed it.
            CommandError: the output cannot be written, for example a full disk.
        """
        stream = self.stdout
        if stream is None:
            return
        try:
            stream.write(data)
        except BrokenPipeError:
            raise OutputClosedError from None
        except OSError as error:
            raise CommandError(f"Cannot write the output: {error.strerror}.") from None

    def flush(self) -> None:
        """Write the text buffered by ``print`` and ``write``; same errors as ``write``."""
        stream = self.stdout
        if stream is None:
            return
        try:
            stream.flush()
        except BrokenPipeError:
            raise OutputClosedError from None
        except OSError as error:
            raise CommandError(f"Cannot write the output: {error.strerror}.") from None

    flush_last = flush  # at the command's end: a served command sends its last output with that

    def error(self, text: str) -> None:
        """Write one line to standard error at once; lost if standard error is closed: there is no other channel."""
        stream = self.stderr
        if stream is None:
            return
        try:
            stream.write(encode((text + "\n").translate(VISIBLE)))
            stream.flush()
        except OSError:
            self._stderr = None

    def is_terminal(self, stream: "BinaryIO | None") -> bool:
        """True if that stream (``io.stdin`` ...) is a terminal."""
        return stream is not None and stream.isatty()

    # The process.

    @property
    def cwd(self) -> str:
        """Absolute path of the current directory, as the user's shell names it.

        Raises:
            CommandError: it has been removed.
        """
        if self._cwd is None:
            self._cwd = self._find_cwd()
        return self._cwd

    def _find_cwd(self) -> str:
        try:
            physical = os.getcwd()
            logical = self.environ.get("PWD", "")
            if logical.startswith("/") and logical != physical and os.path.samefile(logical, physical):
                return logical
        except FileNotFoundError:
            raise CommandError("The current directory does not exist any more.") from None
        except OSError as error:
            raise CommandError(f"The current directory cannot be read: {error.strerror}.") from None
        return physical

    def path(self, name: str) -> str:
        """Absolute form of a path relative to the caller's directory."""
        return name if name.startswith("/") else os.path.join(self.cwd, name)

    def kind_of(self, path: str) -> str:
        """Kind of the file at an absolute path, as of `lavactl.files.kind_of`."""
        return self.look_at(path, 0)[0]

    # Files at absolute paths, as `lavactl.files` reads them; a served command has its caller read them.
    look_at = staticmethod(look_at)
    read_file = staticmethod(read_file)
    read_whole = staticmethod(read_whole)

    def is_binary(self, path: str) -> bool:
        """True if the file at an absolute path is known to be a program in ELF's format; it need not be known."""
        return False

    @property
    def umask(self) -> int:
        """The caller's file mode creation mask."""
        if self._umask is None:
            self._umask = os.umask(0o077)
            os.umask(self._umask)
        return self._umask

    @property
    def process_limits(self) -> list[tuple[str, int]]:
        """The caller's soft limits that bsub has options for, those that are unlimited left out."""
        import resource

        names = ("cpu", "fsize", "data", "stack", "core", "nproc")
        found = [(name, resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[0]) for name in names]
        return [(name, soft) for name, soft in found if soft != resource.RLIM_INFINITY]

    @property
    def width(self) -> int:
        """Terminal width in columns; 80 without a terminal."""
        if self._width is None:
            columns = self.environ.get("COLUMNS", "")
            self._width = int(columns) if columns.isdigit() and int(columns) > 0 else terminal_width()
        return self._width

    def stay(self) -> None:
        """Announce that the command lives as long as something else, or follows it: a served one ends here."""

    def check_row(self, names: "Sequence[str]", width: int) -> None:
        """Announce the fields of a row and the characters that they take at least: a served command may end here."""

    def give_up(self) -> None:
        """Announce that there is no memory for the command: a served one ends here."""

    def request_id(self) -> tuple[bytes, bool]:
        """(16 bytes that name the next submission, True if it may have been sent before)."""
        begun, self._begun = self._begun, b""
        begun = bytes.fromhex(begun.decode("ascii", "replace")) if begun.isalnum() else b""
        return (begun, True) if len(begun) == 16 else (os.urandom(16), False)

    # The user.

    @property
    def uid(self) -> int:
        """Numeric id of the caller."""
        return os.getuid()

    def user_name(self) -> str:
        """Login name of the caller; the uid where the account has no name."""
        import pwd

        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            return str(os.getuid())

    def home_of(self, user: str) -> str | None:
        """Home directory of an account; None if the account is unknown on this host."""
        import pwd

        try:
            return pwd.getpwnam(user).pw_dir
        except (KeyError, UnicodeEncodeError, ValueError):
            return None

    # The clock.

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    # The cluster.

    def job_environment(self, options: "Sequence[str]") -> "list[bytes]":
        """Environment of a job, by the values of -env; made once for all jobs of one command."""
        key = tuple(options)
        if key not in self._job_environments:
            from lavactl.submit.job_options import job_environment

            self._job_environments[key] = job_environment(self.raw_environ, options)
        return self._job_environments[key]

    def setting(self, name: str) -> str | None:
        """Parameter from the environment, otherwise from lsf.conf, otherwise None."""
        value = self.environ.get(name)
        if value is not None:
            return value
        if name not in self._settings:
            from lavactl.settings import setting

            self._settings[name] = setting(self.environ, name, self._read_once)
        return self._settings[name]

    def site_setting(self, name: str) -> str | None:
        """Parameter of the master's lsf.conf, whatever the caller's environment and files say; None without it."""
        from lavactl.settings import read_master_conf

        return (read_master_conf(self.environ, self._read_once) or {}).get(name)

    def _read_once(self, path: str) -> bytes | None:
        if path not in self._files:
            self._files[path] = self.read_whole(path)
        return self._files[path]

    def client(self) -> "Client":
        """Connection to this host's agent, made on the first call."""
        if self._client is None:
            from lavactl.wire.client import Client

            self._client = Client(self)
        return self._client


def encode(text: str) -> bytes:
    """Text in this system's encoding; characters that it lacks are escaped."""
    encoding = sys.getfilesystemencoding()
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace")


def terminal_width() -> int:
    """Width in columns of the terminal behind standard output or error; 80 where neither is a terminal."""
    for descriptor in (1, 2):
        try:
            return os.get_terminal_size(descriptor).columns or DEFAULT_WIDTH
        except OSError:
            continue
    return DEFAULT_WIDTH
