"""Packs of jobs: a file with the options and the command of one job a line, submitted in portions (bsub -pack).

Invariants: each line is read as bsub reads its own command line, and its result is printed behind its number; the jobs
of a portion are submitted in the order of their lines; a lost answer is asked for again and makes no second job.
"""

from threading import Thread

from lavactl.errors import FAILURE, CommandError
from lavactl.options import Options, printable
from lavactl.settings import tries_of
from lavactl.submit import esub
from lavactl.submit.submission import (
    GRAMMAR,
    INTERACTIVE,
    JOB_FILE_OPTIONS,
    JSDL_OPTIONS,
    Submission,
    name_programs,
    submission_of,
)
from lavactl.submit.words import split_words
from lavactl.text.render import clean
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from lavactl.io import Io

PORTION, PORTION_MAX = 300, 1000  # jobs of one request; the master takes no more
PORTION_BYTES = 4 << 20  # the most for one job, too
FILE_MAX = 256 << 20
RETRY_S = 60.0
TRIES = 12
NOT_IN_PACKS = (*INTERACTIVE, "tty", "K", *JOB_FILE_OPTIONS, *JSDL_OPTIONS, "pack")


class Line:
    """One job of the file: the number of its line, and what is sent.

    Attributes:
        by_default: the environment named its queue.
        result: the master's answer; None before it.
    """

    def __init__(self, number: int, submission: Submission, io: "Io", environments: "Environments") -> None:
        self.number = number
        self.by_default = submission.by_default
        self.esub = submission.esub
        self.name = io.request_id()[0]
        self.notes = submission.notes
        self.result: messages.SubmitResult | None = None
        self.packed = environments.packed(submission.spec)
        self._environ = io.environ

    def item(self, is_repeated: bool) -> messages.SubmitItem:
        """Return the message that is sent."""
        item = messages.SubmitItem(request_id=self.name, spec=_as_spec(self.packed), retry=is_repeated)
        name_programs(item, self._environ)
        return item


class Serialised:
    """A message that is on its way as bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def SerializeToString(self) -> bytes:
        """Return the bytes."""
        return self._data


def _as_spec(data: bytes) -> "Any":
    return Serialised(data)


class Environments:
    """Serialised environments: most jobs of a file have the same one."""

    def __init__(self) -> None:
        self._last: list[bytes] = []
        self._packed = b""

    def packed(self, spec: messages.JobSpec) -> bytes:
        """Serialised job; fields of a message may come in any order."""
        entries = list(spec.environment)
        if entries != self._last:
            self._last, self._packed = entries, messages.JobSpec(environment=entries).SerializeToString()
        del spec.environment[:]
        return spec.SerializeToString() + self._packed


class Pack:
    """Submission of a file, and its counts."""

    def __init__(self, path: str, io: "Io") -> None:
        self._path = path
        self._io = io
        self._environments = Environments()
        self.parsed = self.submitted = self.errors = 0
        self._goes_on = (io.setting("LSB_PACK_SKIP_ERROR") or "").strip("\"'").upper() in ("Y", "YES")
        self._size = portion_of(io.setting("LSB_MAX_PACK_JOBS"))
        self._sender: Thread | None = None
        self._sent: list[Line] = []  # by the sender
        self._failure: CommandError | None = None  # of the sender
        self._has_refused = False  # the master, one of those sent

    def run(self) -> int:
        """Submit all lines, up to the first error unless LSB_PACK_SKIP_ERROR is Y; the exit code."""
        for portion in self._portions():
            if not self._hand_over(portion):
                break
        self._await()
        self._io.print(f"{self.parsed} lines parsed, {self.submitted} jobs submitted, {self.errors} errors found.")
        self._io.flush()
        return FAILURE if self.errors else 0

    def _portions(self) -> "Iterator[list[Line]]":
        """Yield the lines of one request after the other, each as large as the master takes it."""
        portion: list[Line] = []
        size = 0
        for number, words in self._lines():
            line = self._read(number, words)
            if line is None:
                if self._goes_on:
                    continue
                break
            if portion and size + len(line.packed) > PORTION_BYTES:
                yield portion
                portion, size = [], 0
            portion.append(line)
            size += len(line.packed)
            if len(portion) == self._size:
                yield portion
                portion, size = [], 0
        if portion:
            yield portion

    def _lines(self) -> "Iterator[tuple[int, list[str] | CommandError]]":
        """Yield (number, words, or why there are none) of each line that has a job."""
        for number, text in enumerate(read(self._path, self._io).split("\n"), 1):
            try:
                words = split_words(text.removesuffix("\r"))
            except CommandError as error:
                yield number, error
                continue
            if words:
                yield number, words

    def _read(self, number: int, words: "list[str] | CommandError") -> Line | None:
        """Job of one line; None after an error, which is told."""
        try:
            if isinstance(words, CommandError):
                raise words
            options = GRAMMAR.parse(words)
            refuse_unfit(options)
            line = Line(number, submission_of(options, self._io), self._io, self._environments)
            if len(line.packed) > PORTION_BYTES:
                raise CommandError(f"The job, its files and its environment are larger than {PORTION_BYTES >> 20} MiB")
        except UnicodeEncodeError:
            self._fail(number, "A name or argument is not UTF-8 text")
            return None
        except CommandError as error:
            self._fail(number, str(error))
            return None
        for note in line.notes:
            self._io.error(f"Line#{number} {note}")
        return line

    def _hand_over(self, portion: list[Line]) -> bool:
        """Send a portion while the next lines are read; False if an error of the one before it ends the pack."""
        self._await()
        if self._has_refused and not self._goes_on:
            return False
        self._sent = portion
        self._sender = Thread(target=self._send, daemon=True)
        self._sender.start()
        return True

    def _await(self) -> None:
        """Tell the results of the portion that is being sent.

        Raises:
            CommandError: it could not be sent.
        """
        if self._sender is None:
            return
        self._sender.join()
        self._sender = None
        if self._failure is not None:
            raise self._failure
        for line in self._sent:
            self._tell(line)
        self._io.flush()

    def _send(self) -> None:
        try:
            self._submit(self._sent)
        except CommandError as error:
            self._failure = error

    def _submit(self, portion: list[Line]) -> None:
        """Submit the jobs of some lines, those refused only for now again and again."""
        left, attempt = portion, 0
        tries = tries_of(self._io.setting("LSB_NTRIES"), TRIES)
        while left:
            attempt += 1
            items = [line.item(attempt > 1) for line in left]
            for line, result in zip(left, self._io.client().submit_all(items), strict=True):
                line.result = result
            refused = [line for line in left if line.result is not None and line.result.retry_later]
            if not refused or attempt >= tries:
                break
            first = refused[0].result
            assert first is not None
            pause_s = first.retry_s or RETRY_S
            self._io.error(f"{clean(first.error).rstrip('.')}. Retrying in {pause_s:.0f} seconds...")
            self._io.sleep(pause_s)
            left = refused

    def _tell(self, line: Line) -> None:
        result = line.result
        if result is None or not result.job:
            self._has_refused = True
            self._fail(line.number, clean(result.error if result is not None else "") or "the master gave no reason")
            if line.esub is not None:
                esub.after(line.esub, 0, "", FAILURE, self._io)
            return
        self.parsed += 1
        self.submitted += 1
        if "BSUB_QUIET" not in self._io.environ:
            default = "default " if result.default_queue or line.by_default else ""
            self._io.print(f"Line#{line.number} Job <{result.job}> is submitted to {default}queue <{result.queue}>.")
        if line.esub is not None:
            esub.after(line.esub, result.job, result.queue, 0, self._io)

    def _fail(self, number: int, reason: str) -> None:
        self.parsed += 1
        self.errors += 1
        self._io.flush()
        self._io.error(f"Line#{number} {reason.rstrip('.')}. Job not submitted.")


def submit_pack(line: Options, io: "Io") -> int:
    """Submit the jobs of the file that -pack names; the exit code.

    Raises:
        CommandError: there is something beside -pack, or the file cannot be read.
    """
    others = [f"-{name}" for name, _ in line.items if name != "pack"] + line.words
    if others or len(line.items) != 1:
        found = printable(others[0]) if others else "a second -pack"
        raise CommandError(f"-pack takes a file and nothing beside it, found {found}: each line has its own options.")
    return Pack(line.items[0][1], io).run()


def portion_of(setting: str | None) -> int:
    """Jobs of one request, as LSB_MAX_PACK_JOBS says.

    Raises:
        CommandError: the site has switched packs off.
    """
    text = (setting or "").strip().strip("\"'")
    if text == "0":
        raise CommandError("Packs of jobs are switched off here: LSB_MAX_PACK_JOBS is 0.")
    return min(int(text), PORTION_MAX) if text.isascii() and text.isdigit() else PORTION


def read(path: str, io: "Io") -> str:
    """Text of the file."""
    data = io.read_file(io.path(path), FILE_MAX + 1)
    if data is None:
        raise CommandError(f"{printable(path)}: the file cannot be read.")
    if len(data) > FILE_MAX:
        raise CommandError(f"{printable(path)}: the file is larger than {FILE_MAX >> 20} MiB.")
    return data.decode("utf-8", "surrogateescape")


def refuse_unfit(options: Options) -> None:
    """Refuse options that no line of a pack can have, and a line without a command."""
    given = next((name for name, _ in options.items if name in NOT_IN_PACKS), None)
    if given is not None:
        raise CommandError(f"-{given} cannot be used in a pack.")
    if not options.words:
        raise CommandError("No command is specified.")
