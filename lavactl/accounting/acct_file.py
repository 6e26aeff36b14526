"""lsb.acct files: JOB_FINISH records as accounting records, of lava and LSF 10 as well as of OpenLava and volclava.

A record of another type is passed over, and so is one that is cut short at the end of the file, which is still being
written; any other that cannot be read ends the command with its line number.
"""

import re

from lavactl.errors import CommandError
from lavactl.options import printable
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar

    from protos import jobs_pb2

    Found = TypeVar("Found")

WITH_POST_EXEC = 0x40000000  # of the options, in OpenLava's records
DONE_STATE = 64
RUSAGE_FIELDS = 19
NUMBER_MAX = 1 << 53  # larger ones, and what is no number, stand in damaged lines only
_FIELD = re.compile(r'"[^"]*(?:""[^"]*)*"|[^\s"][^ \t]*')


class Fields:
    """Fields of a record, one after the other."""

    def __init__(self, values: "list[str]") -> None:
        self._values = values
        self._at = 0

    def text(self) -> str:
        """Next field."""
        self._at += 1
        return self._values[self._at - 1]

    def number(self) -> float:
        """Next field as a number.

        Raises:
            ValueError: it is none, or none that a log can have.
        """
        found = float(self.text())
        if not abs(found) < NUMBER_MAX:
            raise ValueError(found)
        return found

    def whole(self) -> int:
        """Next field as a whole number."""
        return int(self.text())

    def skip(self, count: int) -> None:
        """Pass over some fields."""
        self._at += count

    def several(self) -> "list[str]":
        """A list: its count, then its items."""
        return [self.text() for _ in range(self.whole())]

    @property
    def is_over(self) -> bool:
        """True if no field is left."""
        return self._at >= len(self._values)


def split(line: str, string: "Callable[[str], str]" = str) -> "list[str]":
    """Fields of a line: words between blanks, strings in double quotes with inner quotes doubled.

    Args:
        string: what to make of a string, where a field's kind must be known.

    Raises:
        ValueError: a string has no end.
    """
    if line.count('"') % 2:
        raise ValueError("a string has no end")
    return [string(word[1:-1].replace('""', '"')) if word[0] == '"' else word for word in _FIELD.findall(line)]


def records(path: str, lines: "Iterable[str]") -> "Iterator[jobs_pb2.JobRecord]":
    """Yield the ended jobs of a file.

    Raises:
        CommandError: a line is no record.
    """
    return read_lines(path, lines, lambda line: record(split(line.rstrip("\n"))), "lsb.acct")


def read_lines(
    path: str, lines: "Iterable[str]", read: "Callable[[str], Found | None]", kind: str
) -> "Iterator[Found]":
    """Yield what ``read`` makes of the lines of one of LSF's logs, without empty ones, comments and None.

    Args:
        read: may raise ValueError or IndexError for a damaged line.
        kind: the name of the log in a sentence.

    Raises:
        CommandError: a line is no record, and not the one that is being written.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            found = read(line)
        except (ValueError, IndexError):
            if not line.endswith("\n"):
                return
            told = f"{printable(path)}, line {number}: expected a record of {kind}"
            raise CommandError(f"{told}; the line is damaged or cut short.") from None
        if found is not None:
            yield found


def record(values: "list[str]") -> "jobs_pb2.JobRecord | None":
    """Ended job of a JOB_FINISH record; None for a record of another type."""
    if values[0] != "JOB_FINISH":
        if not values[0].isupper():
            raise ValueError(values[0])
        return None
    fields = Fields(values)
    fields.skip(1)
    is_lsf = int(fields.text().partition(".")[0]) < 20  # version 10.1; OpenLava counts from 20 on
    return _job(fields, is_lsf)


def _job(fields: Fields, is_lsf: bool) -> "jobs_pb2.JobRecord":
    from protos import jobs_pb2

    job, spec = jobs_pb2.JobRecord(), jobs_pb2.JobSpec()
    job.end_time, job.job = fields.number(), fields.whole()
    fields.skip(1)  # user id
    options, job.slots_min = fields.whole(), fields.whole()
    job.submit_time, spec.begin_time, spec.terminate_time = fields.number(), fields.number(), fields.number()
    job.start_time = fields.number()
    job.user, job.queue, spec.requirement_text, spec.dependency = (fields.text() for _ in range(4))
    spec.pre_exec = fields.text()
    if not is_lsf and options & WITH_POST_EXEC:
        spec.post_exec = fields.text()
    job.from_host, spec.cwd, spec.input, spec.output, spec.error = (fields.text() for _ in range(5))
    fields.skip(1)  # job file
    spec.hosts.extend(fields.several())
    _add_hosts(job, fields.several())
    job.state = messages.DONE if fields.whole() == DONE_STATE else messages.EXIT
    fields.skip(1)  # CPU factor of the first host
    spec.name, spec.command = fields.text(), fields.text()
    used = [fields.number() for _ in range(RUSAGE_FIELDS)]
    job.usage.user_s, job.usage.system_s = max(0.0, used[0]), max(0.0, used[1])
    job.usage.cpu_s = job.usage.user_s + job.usage.system_s
    fields.skip(1)  # mail user
    job.project, job.exit_status, job.slots_max = fields.text(), fields.whole(), fields.whole()
    spec.shell = fields.text()
    _fill_rest(job, spec, fields, is_lsf)
    job.name = spec.name or spec.command
    job.spec.CopyFrom(spec)
    return job


def _fill_rest(job: "Any", spec: "Any", fields: Fields, is_lsf: bool) -> None:
    """Read what follows the login shell; records of older versions end earlier."""
    if is_lsf:
        fields.skip(1)  # time event
    job.index = fields.whole()
    job.usage.memory_mib_max = max(0, fields.whole()) >> 10
    fields.skip(3)  # swap, spool files
    if not is_lsf or fields.is_over:
        return
    spec.reservation = fields.text()
    spec.service_class = fields.text()
    fields.skip(2)  # exception mask, additional information
    job.exit_reason = REASONS.get(fields.whole(), "")
    fields.skip(4)  # warning action and time, charged account, licence project
    if not fields.is_over:
        spec.application = fields.text()


def _add_hosts(job: "Any", names: "list[str]") -> None:
    """Add the execution hosts, a name for each slot or ``4*n001``, with their slots."""
    slots: dict[str, int] = {}
    for word in names:
        count, star, host = word.partition("*")
        number, name = (int(count), host) if star else (1, word)
        slots[name] = slots.get(name, 0) + number
    for name, number in slots.items():
        job.hosts.add(host=name, slots=number)


# Termination reasons by their number (lsf.md 2.5).
REASONS = {
    1: "TERM_PREEMPT: job killed after preemption",
    2: "TERM_WINDOW: job killed after queue run window closed",
    3: "TERM_LOAD: job killed after load exceeded threshold",
    4: "TERM_OTHER: job killed for a reason of the system",
    5: "TERM_RUNLIMIT: job killed after reaching LSF run time limit",
    6: "TERM_DEADLINE: job killed after reaching LSF deadline",
    7: "TERM_PROCESSLIMIT: job killed after reaching LSF process limit",
    8: "TERM_FORCE_OWNER: job killed by owner without time for cleanup",
    9: "TERM_FORCE_ADMIN: job killed by root or LSF administrator without time for cleanup",
    10: "TERM_REQUEUE_OWNER: job killed and requeued by owner",
    11: "TERM_REQUEUE_ADMIN: job killed and requeued by root or LSF administrator",
    12: "TERM_CPULIMIT: job killed after reaching LSF CPU usage limit",
    13: "TERM_CHKPNT: job killed after checkpointing",
    14: "TERM_OWNER: job killed by owner",
    15: "TERM_ADMIN: job killed by root or LSF administrator",
    16: "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit",
    17: "TERM_EXTERNAL_SIGNAL: job killed by a signal from outside",
    18: "TERM_RMS: job ended by the resource management system",
    19: "TERM_ZOMBI: job was killed while its host was not available",
    20: "TERM_SWAP: job killed after reaching LSF swap usage limit",
    21: "TERM_THREADLIMIT: job killed after reaching LSF thread limit",
    23: "TERM_BUCKET_KILL: job killed with bkill -b",
    24: "TERM_CTRL_PID: job killed after its control process died",
    25: "TERM_CWD_NOTEXIST: current working directory is not accessible or does not exist on the execution host",
    26: "TERM_REMOVE_HUNG_JOB: job removed because it was hung",
    27: "TERM_ORPHAN_SYSTEM: orphan job was automatically terminated by LSF",
    28: "TERM_PRE_EXEC_FAIL: job killed because its pre-execution command failed",
}
