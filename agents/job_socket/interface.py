"""Interface of this host's jobs to their agent: notices, progress, time left, and the socket that answers for them."""

from collections.abc import Collection, Iterable
from pathlib import Path

from agents.attempts.ledger import Ledger
from agents.job_setup.host_context import HostContext
from agents.job_socket.answers import Answers
from agents.job_socket.news import Bell, NoticeBoard
from agents.job_socket.place import directory_of, make_directory
from agents.job_socket.progress import ProgressBook
from agents.job_socket.server import JobSocket
from agents.shepherd import messages
from agents.shepherd.messages import Key, Message, Notice, fields_of
from agents.shepherd_pool.pool import Pool


class JobInterface:
    """All of it, for the attempts of one ledger."""

    def __init__(self, context: HostContext, state: Path, ledger: Ledger, pool: Pool) -> None:
        self._directory = directory_of(context.socket)
        self._bell = Bell()
        self._board = NoticeBoard(self._directory, self._bell)
        self.progress = ProgressBook(state / "progress", context.host, lambda _: None)
        self.answers = Answers(context, pool, self._board, self._bell, self.progress)
        self.socket = JobSocket(context.job_socket, ledger, pool, self.answers)

    def adopt(self, held: Collection[Key]) -> None:
        """Take over what is on disk of attempts held here after a restart; blocks for a moment.

        Raises:
            OSError: a directory cannot be made.
        """
        if self._directory:
            make_directory(self._directory)
            self._board.adopt(held)
        self.progress.adopt(held)

    def on_message(self, key: Key, kind: int, fields: Message) -> None:
        """Take a message of a shepherd about its attempt."""
        if kind == messages.NOTICE:
            self._board.add(key, fields_of(Notice, fields))
        elif kind == messages.TIME_LEFT:
            self.answers.clock_said(key, tuple(fields))

    def ring(self, keys: Iterable[Key]) -> None:
        """Let callers that wait look at these attempts again."""
        for key in keys:
            self._bell.ring(key)

    def forget(self, key: Key) -> None:
        """Drop an attempt of which nothing is left here."""
        self._board.forget(key)
        self.progress.forget(key)
        self.socket.forget(key)
