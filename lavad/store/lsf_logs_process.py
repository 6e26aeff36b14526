"""Process that writes lsb.acct and lsb.events: tells what the database has, until the master is gone.

Started as a program by ``lsf_logs.keeper``, with its end of a socket pair. It only reads the database, at a lower
priority than the master's, and never holds the master up: what it has not told yet is in the database.
"""

import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from lavad.store import child_process
from lavad.store.database import database, url
from lavad.store.lsf_logs import event_records, keeper
from lavad.store.lsf_logs.log_files import CannotWrite, LogFiles, Position, Rules
from lavad.store.lsf_logs.recorder import Recorder
from lavad.store.writer.batch import SEQ_BITS
from lavad.store.writer.protocol import Unframer, frame
from protos import logs

if TYPE_CHECKING:
    from sqlalchemy import Engine

NICE = 10
POLL_S = 0.25
RETRY_S = 5.0
UNREADABLE = "The logs for LSF's tools wait: the database can't be read at the moment."


class MasterGone(Exception):
    """End of the master."""


class Service:
    """Follower of the database on behalf of one master."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._unframer = Unframer()
        self._rules: dict[str, Any] = {}
        self._engine: Engine | None = None
        self._files: LogFiles | None = None
        self._recorder: Recorder | None = None
        self._reached: Position | None = None  # in the directory that was written to last
        self._problem = ""
        self._is_told = False  # the master's start
        self._is_stopped = False

    def run(self) -> None:
        """Tell the database until told to stop; then what is left of it, and the master's end."""
        pause_s = 0.0
        while not self._is_stopped:
            self._hear(pause_s)
            if self._rules:  # told to stop before there were any, it has no file to open
                pause_s = POLL_S if self._turn() else RETRY_S
        try:
            if self._files is not None:
                self._files.append(b"", event_records.master_end(time.time(), self._rules["master"]))
                self._files.save()
                self._files.close()
        except CannotWrite as error:
            self._say(str(error))
        if self._engine is not None:
            self._engine.dispose()  # the last to close a SQLite database empties its log

    def _hear(self, pause_s: float) -> None:
        """Wait for messages of the master, a while at most."""
        readable, _, _ = select.select([self._link], [], [], None if not self._rules else pause_s)
        if not readable:
            return
        data = self._link.recv(1 << 16)
        if not data:
            raise MasterGone
        for payload in self._unframer.feed(data):
            word, content = json.loads(payload)
            if word == keeper.STOP:
                self._is_stopped = True
            else:
                self._take(content)

    def _take(self, rules: dict[str, Any]) -> None:
        """Put rules into force; those of a running process change nothing but how the files are kept."""
        directory = self._rules.get("directory")
        self._rules |= rules
        if self._files is None:
            return
        if rules["directory"] != directory:
            self._close()
            return
        self._files.rules = self._kept()
        self._recorder = self._made(self._files)
        try:
            self._files.apply_mode()
        except CannotWrite as error:
            self._give_up(str(error))

    def _kept(self) -> Rules:
        return Rules(**{name: self._rules[name] for name in Rules.__dataclass_fields__})

    def _made(self, files: LogFiles) -> Recorder:
        if self._engine is None:
            self._engine = database.reading_engine(url.parse(self._rules["database"]))
        return Recorder(self._engine, files, self._rules["is_short"], self._rules["factors"])

    def _turn(self) -> bool:
        """Tell all that the database has; return False if that is not possible now."""
        try:
            while self._tell():
                self._hear(0.0)
        except CannotWrite as error:
            self._give_up(str(error))
            return False
        except SQLAlchemyError:
            self._say(UNREADABLE)
            return False
        self._say("")
        return True

    def _tell(self) -> bool:
        """Tell the next page; return True if there may be more. New rules may have closed the files before it."""
        if self._files is None:
            self._open()
        assert self._recorder is not None
        return self._recorder.turn()

    def _open(self) -> None:
        files = LogFiles(Path(self._rules["directory"]), self._kept())
        try:
            files.open(self._begin())
        except CannotWrite:
            files.close()
            raise
        self._files, self._recorder = files, self._made(files)
        if not self._is_told:
            names = (self._rules["master"], self._rules["cluster"], self._rules["hosts"], self._rules["queues"])
            files.append(b"", event_records.master_start(time.time(), *names))
            files.save()
            self._is_told = True

    def _begin(self) -> Position:
        """Return where a directory begins that has nothing of this cluster: where the one before it ends."""
        cluster_id, reached = self._rules["cluster_id"], self._reached
        if reached is None:
            return Position(cluster_id, (int(self._rules["begin"]) + 1 << SEQ_BITS) - 1)
        return Position(cluster_id, reached.seq, reached.within, reached.held)

    def _give_up(self, sentence: str) -> None:
        """Close the files, to be opened at their recorded length, and tell the master why."""
        self._close()
        self._say(sentence)

    def _close(self) -> None:
        if self._files is not None:
            self._reached = self._files.position
            self._files.close()
            self._files = None

    def _say(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self._link.sendall(frame(json.dumps([keeper.PROBLEM, problem]).encode()))


def main(descriptor: int) -> None:
    """Serve the master at the other end of this socket."""
    child_process.take_name("lavad-lsf-logs")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends when the master does, never before
    logs.start_logging()
    child_process.give_way(NICE)
    with socket.socket(fileno=descriptor) as link:
        try:
            Service(link).run()
        except (MasterGone, ConnectionError):
            os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
