"""Screen of lsmon: a head line, the table of lsload, and a line for what is typed and what went wrong.

Invariant: the terminal is as it was before whenever the command ends.
"""

import contextlib
import os
import select
import signal
import socket
import termios
import tty
from typing import cast

from lavactl.commands import lsload
from lavactl.errors import CommandError
from lavactl.options import Options
from lavactl.tasks.keyboard import window
from lavactl.text.render import clean, long_time
from lavactl.text.units import is_digits
from lavactl.views.hosts import fetch_hosts
from lavactl.views.load import adjust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.wire.client import Client

ENTER, LEAVE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"
HOME, END_OF_LINE, BELOW = b"\x1b[H", b"\x1b[K", b"\x1b[J"
LINES, COLUMNS = 24, 80  # of a terminal that does not say its size
ASKED = {"n": "Number of hosts", "R": "Resource requirement", "I": "Load indices", "i": "Seconds between two looks"}
ERASE = ("\x7f", "\x08")
INTERVAL_MAX_S = 86_400


class _Page:
    """Stand-in for ``Io`` that keeps the lines that lsload prints."""

    def __init__(self, io: "Io") -> None:
        self._io = io
        self.lines: list[str] = []
        self.errors: list[str] = []

    def print(self, text: str = "", end: str = "\n") -> None:
        """Keep a line."""
        self.lines += (text + end).rstrip("\n").split("\n")

    def error(self, text: str) -> None:
        """Keep a complaint."""
        self.errors.append(text)

    def client(self) -> "Client":
        """Client of the command."""
        return self._io.client()


class LoadScreen:
    """Screen of one command; ``options`` are lsmon's."""

    def __init__(self, options: Options, interval_s: int, io: "Io") -> None:
        self._io = io
        self._interval_s = interval_s
        self._hosts = options.words
        self._log = options.last("L")
        self._values = {letter: options.last(letter) or "" for letter in "nRI"}
        self._mode = "N" if "N" in options else "E" if "E" in options else ""
        self._asked = ""  # option that a value is being typed for
        self._typed = ""
        self._said = ""
        self._is_over = False

    # -- what is shown

    def look(self) -> list[str]:
        """Lines of the table as of now.

        Raises:
            CommandError: the master can't be asked, or an option is wrong.
        """
        options, page = Options(), _Page(self._io)
        options.items += [(letter, value) for letter, value in self._values.items() if value]
        requirement = self._values["R"]
        surroundings = cast("Io", page)  # all that lsload's functions need of it
        hosts, _ = fetch_hosts(
            self._hosts, surroundings, clients_too=True, unknown="Unknown host name", requirement=requirement
        )
        hosts = lsload.best(hosts, options)
        for host in hosts if self._mode else ():
            adjust(host, by_speed=self._mode == "N")
        lsload.show_table(hosts, surroundings, options)
        self._said = "; ".join(page.errors) or ("" if hosts else "No hosts found")
        return page.lines

    def head(self) -> str:
        """First line: this host, the interval, the form of the run queue lengths."""
        mode = {"N": "   Normalized", "E": "   Effective", "": ""}[self._mode]
        return f"Hostname: {socket.gethostname()}   Refresh rate: {self._interval_s:>3} secs{mode}"

    def frame(self, table: list[str], lines: int, columns: int) -> bytes:
        """Bytes that show the table on a terminal of this size."""
        prompt = f"{ASKED[self._asked]}: {self._typed}" if self._asked else self._said
        body = [self.head(), *table][: max(1, lines - 1)]
        body += [""] * (lines - 1 - len(body))
        shown = [clean(line)[:columns].encode("utf-8", "replace") + END_OF_LINE for line in [*body, prompt]]
        return HOME + b"\r\n".join(shown) + BELOW

    # -- keys

    def press(self, key: str) -> None:
        """Take one key."""
        if self._asked:
            self._type(key)
        elif key == "q":
            self._is_over = True
        elif key in ("N", "E"):
            self._mode = "" if self._mode == key else key
        elif key in ASKED:
            self._asked, self._typed = key, ""

    def _type(self, key: str) -> None:
        if key in ("\r", "\n"):
            self._take(self._asked, self._typed.strip())
            self._asked = ""
        elif key in ERASE:
            self._typed = self._typed[:-1]
        elif key == "\x1b":
            self._asked = ""
        elif key.isprintable():
            self._typed += key

    def _take(self, letter: str, value: str) -> None:
        """Put a typed value into force; an empty one takes the option back, except -i."""
        if letter in "ni" and value and not (is_digits(value) and int(value[:9]) <= INTERVAL_MAX_S):
            self._said = f"{ASKED[letter]}: {value} is no number that can be"
        elif letter == "i":
            self._interval_s = int(value or 0) or self._interval_s
        else:
            self._values[letter] = value

    # -- the loop

    def run(self) -> int:
        """Show the load until q or Ctrl-C; 0.

        Raises:
            CommandError: the first look failed, or the file can't be written.
        """
        table = self.look()
        descriptor = self._io.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        handlers = {
            number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)
        }
        try:
            tty.setcbreak(descriptor)
            self._write(ENTER)
            self._loop(descriptor, table)
        except KeyboardInterrupt:
            pass  # a way to leave
        finally:
            with contextlib.suppress(termios.error):  # the terminal may be gone
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
            self._write(LEAVE)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return 0

    def _loop(self, descriptor: int, table: list[str]) -> None:
        self._append(table)
        due_at = self._io.monotonic() + self._interval_s
        while not self._is_over:
            lines, columns = window()
            self._write(self.frame(table, lines or LINES, columns or COLUMNS))
            readable, _, _ = select.select([descriptor], [], [], max(0.0, due_at - self._io.monotonic()))
            if readable:
                typed = os.read(descriptor, 1024).decode(errors="replace")
                for key in typed:
                    self.press(key)
                if not typed:
                    return  # the terminal is gone
                if self._asked or self._is_over:
                    continue
            elif self._asked:
                due_at = self._io.monotonic() + self._interval_s
                continue
            table = self._look_again(table)
            due_at = self._io.monotonic() + self._interval_s

    def _look_again(self, table: list[str]) -> list[str]:
        """Table as of now; the one before if the master can't be asked, with the reason in the last line."""
        try:
            table = self.look()
        except CommandError as error:
            self._said = str(error).partition("\n")[0]
            return table
        self._append(table)
        return table

    def _append(self, table: list[str]) -> None:
        if self._log is None:
            return
        path = self._io.path(self._log)
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write("\n".join([long_time(self._io.now()), *map(clean, table), "", ""]))
        except OSError as error:
            raise CommandError(f"{clean(path)}: {error.strerror}.") from None

    def _write(self, data: bytes) -> None:
        self._io.write(data)
        self._io.flush()
