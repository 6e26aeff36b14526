"""Elims: programs of the site that report its dynamic resources for as long as the agent runs.

An elim is an executable named elim or elim.NAME in the agent's directory for them. It is started with the names of the
resources that this host has in LSF_RESOURCES, and prints lines for ever: the number of pairs, then name and value of
each. One that ends, or writes malformed lines, is started again, later each time. Its output is read by a thread of its
own and never held beyond one line. When the agent ends its elims are killed.
"""

import contextlib
import logging
import math
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

LINE_MAX = 4096
BACKOFF_FIRST_S, BACKOFF_MAX_S = 1.0, 300.0
_log = logging.getLogger("lava.elim")


class ElimError(Exception):
    """Malformed output of an elim; the text says why."""


def parse(line: bytes) -> dict[str, float]:
    """Parse ``2 scratch 12.5 licenses 3``.

    Raises:
        ElimError: the line has another form.
    """
    words = line.decode(errors="replace").split()
    if not words or not words[0].isdigit() or len(words) != 1 + 2 * int(words[0]):
        raise ElimError(f"expected a count and so many names with values, found {line[:60]!r}")
    found = {}
    for name, text in zip(words[1::2], words[2::2], strict=True):
        try:
            value = float(text)
        except ValueError:
            raise ElimError(f"{name}: expected a number, found {text[:20]!r}") from None
        if not math.isfinite(value) or abs(value) > 1e12:
            raise ElimError(f"{name}: {text[:20]} is no amount")
        found[name] = value
    return found


class Elims:
    """All elims of a host. ``values`` are the last reported ones."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._site_directory = ""
        self._of_site: list[Path] | None = None
        self._refused: set[Path] = set()
        self._names: tuple[str, ...] = ()
        self._known: list[Path] = []
        self._running: list[_Elim] = []
        self._values: dict[str, float] = {}
        self._lock = threading.Lock()

    def expect(self, names: tuple[str, ...]) -> None:
        """Set the resources to report from now on, by the elims present now."""
        programs = self._programs() if names else []
        if (names, programs) == (self._names, self._known):
            return
        self.close()
        self._names, self._known = names, programs
        with self._lock:
            self._values = {}
        for path in programs:
            elim = _Elim(path, names, self._take)
            self._running.append(elim)
            elim.start()

    def look_in(self, site_directory: str) -> None:
        """Start the elims of this directory, too: LSF_SERVERDIR, where LSF has them, or empty for none.

        It is read once for each call, since it may lie on a file system that does not always answer.
        """
        self._site_directory, self._of_site = site_directory, None

    def _programs(self) -> list[Path]:
        """Programs of the host's own directory, and those of the site's that have other names."""
        if self._of_site is None:
            self._of_site = self._safe_in(Path(self._site_directory)) if self._site_directory else []
        found = {path.name: path for path in (*self._of_site, *self._safe_in(self._directory))}
        return [found[name] for name in sorted(found)]

    def _safe_in(self, directory: Path) -> list[Path]:
        try:
            found = sorted(directory.iterdir())
        except OSError:
            return []
        named = [path for path in found if path.name == "elim" or path.name.startswith("elim.")]
        programs = [path for path in named if path.is_file() and os.access(path, os.X_OK)]
        refused = {path for path in programs if not is_safe(path)}
        for path in sorted(refused - self._refused):
            _log.warning("event=elim_refused path=%s reason='another user owns it, or may write it'", path)
        self._refused |= refused
        return [path for path in programs if path not in refused]

    def _take(self, said: Mapping[str, float]) -> None:
        with self._lock:
            self._values.update({name: value for name, value in said.items() if name in self._names})

    def values(self) -> dict[str, float]:
        """Last reported values, by resource."""
        with self._lock:
            return dict(self._values)

    def close(self) -> None:
        """Kill the elims."""
        for elim in self._running:
            elim.stop()
        self._running.clear()


def is_safe(path: Path) -> bool:
    """Return True if only root and the agent's user may write the program, which runs with the agent's rights."""
    facts = path.stat()
    return facts.st_uid in (0, os.geteuid()) and not facts.st_mode & 0o022


class _Elim(threading.Thread):
    """One elim, started again and again."""

    def __init__(self, path: Path, names: tuple[str, ...], take: Callable[[Mapping[str, float]], None]) -> None:
        super().__init__(name=path.name, daemon=True)
        self._path = path
        self._names = names
        self._take = take
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(self) -> None:
        """Run until stopped."""
        backoff_s = BACKOFF_FIRST_S
        while not self._stopped.is_set():
            lines = self._run_once()
            backoff_s = BACKOFF_FIRST_S if lines else min(backoff_s * 2, BACKOFF_MAX_S)
            self._stopped.wait(backoff_s)

    def _run_once(self) -> int:
        """Run the program once; return the number of valid lines."""
        environment = {**os.environ, "LSF_RESOURCES": " ".join(self._names)}
        with self._lock:
            if self._stopped.is_set():
                return 0
            try:
                process = self._process = subprocess.Popen(
                    [str(self._path)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                _log.warning("event=elim_not_started path=%s reason=%r", self._path, str(error))
                return 0
        lines = 0
        assert process.stdout is not None
        try:
            while line := process.stdout.readline(LINE_MAX):
                if not line.endswith(b"\n"):
                    raise ElimError(f"a line of {LINE_MAX} characters or more, or without an end")
                self._take(parse(line))
                lines += 1
            why = "it ended"
        except ElimError as error:
            why = str(error)
        self._kill()
        process.stdout.close()
        if not self._stopped.is_set():
            _log.warning("event=elim_ended path=%s lines=%d reason=%r", self._path, lines, why)
        return lines

    def stop(self) -> None:
        """Stop for good."""
        self._stopped.set()
        self._kill()

    def _kill(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
