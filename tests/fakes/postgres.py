"""A real PostgreSQL server of its own, in a temporary directory, reached by a Unix socket."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from tests.conftest import postgres_binaries


class PostgresServer:
    """Use it as a context. As root the server runs as the user postgres, since it refuses root."""

    def __init__(self) -> None:
        found = postgres_binaries()
        assert found is not None, "tests that need PostgreSQL are marked"
        self._binaries = found
        self._user = "postgres" if os.geteuid() == 0 else None

    def __enter__(self) -> "PostgresServer":
        self.directory = Path(tempfile.mkdtemp(prefix="lava-postgres-"))
        if self._user:
            shutil.chown(self.directory, self._user)
        self._run("initdb", "-A", "trust", "-N", "-U", "lava")
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.directory)

    @property
    def url(self) -> str:
        """A URL for the database ``postgres``."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """A URL for one of the server's databases."""
        return f"postgresql://lava@/{database}?host={self.directory}"

    def make_database(self, name: str) -> str:
        """Make an empty database; the result is its URL."""
        socket = ["-h", str(self.directory), "-U", "lava"]
        subprocess.run([self._binaries / "createdb", *socket, name], check=True, timeout=60)
        return self.url_of(name)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = f"-k {self.directory} -c fsync=off -c listen_addresses="
        self._run("pg_ctl", "-w", "-l", str(self.directory / "log"), "-o", options, "start")

    def stop(self, mode: str) -> None:
        """Stop it: ``fast`` ends sessions in order, ``immediate`` is like a crash."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._binaries / program, "-D", self.directory / "data", *arguments],
            user=self._user,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        if done.returncode:
            log = self.directory / "log"
            raise RuntimeError(f"{program} {arguments} failed: {log.read_text() if log.exists() else 'no log'}")
