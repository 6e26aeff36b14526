"""Histories of jobs from lsb.events files (lsf.md 7.3), of lava and OpenLava as well as of LSF, as bhist shows them.

Records of other types are passed over, and those of jobs whose submission is not in the file; a record that is cut
short at the end of the file is still being written; any other that cannot be read ends the command with its line.
"""

from itertools import islice

from lavactl.accounting.acct_file import DONE_STATE, REASONS, RUSAGE_FIELDS, WITH_POST_EXEC, read_lines
from lavactl.accounting.event_fields import EventFields
from lavactl.accounting.lives import ENDED, Life, Submission
from lavactl.accounting.selection import FileSelection
from lavactl.text.exits import exit_sentence
from lavactl.wire import messages
from protos import jobs_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from protos import common_pb2

PAGE = 500
_JOB_PLACE, _USER_PLACE = 3, 13  # in JOB_NEW; that of the job in all but a few others
_JOB_LATER = {"JOB_SWITCH", "JOB_MOVE", "JOB_MODIFY2"}
NAMED = 0x1  # of a job's options: it was given a name
EXIT_STATE = 32
SLOTS_MAX, STATUS_MAX = 1 << 20, 1 << 31
POST_DONE, POST_ERR = 0x80, 0x100
STATES = {
    0x01: messages.PEND,
    0x02: messages.PSUSP,
    0x04: messages.RUN,
    0x08: messages.SSUSP,
    0x10: messages.USUSP,
    0x10000: messages.UNKWN,
}
WORDS = {
    messages.PSUSP: "Suspended by the user or administrator",
    messages.RUN: "Running",
    messages.SSUSP: "Suspended: by the system",
    messages.USUSP: "Suspended by the user or administrator",
    messages.UNKWN: "Unknown; unable to reach the execution host",
}
REQUEUED = "Pending: Job has been requeued"
RESUMED = "Pending: Waiting for scheduling after resumed by user"
# The limits of JOB_NEW by their place, with what their numbers are to be multiplied by.
RLIMITS = {0: ("cpu", 1), 1: ("fsize", 1024), 2: ("data", 1024), 3: ("stack", 1024), 4: ("core", 1024),
           8: ("swap", 1024), 10: ("nproc", 1)}  # fmt: skip
RSS_PLACE, RUN_PLACE = 5, 9


def histories(
    path: str, lines: "Iterable[str]", request: messages.HistoryRequest, user: str, now: float
) -> "Iterator[jobs_pb2.HistoryPage]":
    """Yield the histories that a request selects, in the order of the submissions.

    Args:
        user: the caller.

    Raises:
        CommandError: a line is no record.
    """
    log = _Log(request, user)
    for _ in read_lines(path, lines, log.read, "lsb.events"):
        pass
    found = log.selected(now)
    while page := list(islice(found, PAGE)):
        yield jobs_pb2.HistoryPage(jobs=page)


class _Log:
    """The jobs of a file that may be selected."""

    def __init__(self, request: messages.HistoryRequest, user: str) -> None:
        self._filter = wanted = request.filter
        self._refs = {ref.job for ref in wanted.refs}
        self._hosts = set(wanted.host.split())
        users = wanted.user or ("all" if self._refs else user)
        self._users = None if users == "all" else {users}
        times = {name: getattr(request, name) for name in ("submitted", "dispatched", "completed")
                 if request.HasField(name)}  # fmt: skip
        self._selection = FileSelection(
            messages.AccountsRequest(
                refs=wanted.refs,
                users=[wanted.user] if wanted.user else [],
                queues=[wanted.queue] if wanted.queue else [],
                projects=[wanted.project] if wanted.project else [],
                name=wanted.name,
                states=wanted.states,
                **times,
            ),
            user,
        )
        self._jobs: dict[int, Submission] = {}

    def read(self, line: str) -> None:
        """Take in a line.

        Raises:
            ValueError, IndexError: it is damaged.
        """
        if not line.startswith('"'):
            raise ValueError(line)
        kind = line[1 : line.find('"', 1)]
        make = _MAKERS.get(kind)
        if make is None or not self._concerns(kind, line):
            return
        fields = EventFields(line.rstrip("\n"))
        fields.skip(1)
        is_lsf = int(fields.text().partition(".")[0]) < 20  # version 10.1; OpenLava counts from 20 on
        make(self, fields.number(), fields, is_lsf)

    def _concerns(self, kind: str, line: str) -> bool:
        """False if the first fields tell that the record is about a job that cannot be selected."""
        if kind in _JOB_LATER:
            return True
        first = line.split(None, _USER_PLACE + 1)
        job = int(first[_JOB_PLACE])
        if kind != "JOB_NEW":
            return job in self._jobs
        is_named = not self._refs or job in self._refs
        return is_named and (self._users is None or first[_USER_PLACE].strip('"') in self._users)

    def add(self, record: "jobs_pb2.JobRecord") -> Submission | None:
        """Add a submission, unless a new file tells of it once more."""
        if record.job in self._jobs:
            return None
        return self._jobs.setdefault(record.job, Submission(record))

    def about(self, job: int, index: int) -> list[Life]:
        """Lives that a record is about."""
        known = self._jobs.get(job)
        return known.about(index) if known is not None else []

    def selected(self, now: float) -> "Iterator[jobs_pb2.JobHistory]":
        """Yield the selected histories; of those of one submission the first has its spec."""
        for one in sorted(self._jobs.values(), key=lambda one: (one.record.submit_time, one.record.job)):
            is_first = True
            for index, life in one.lives():
                record = _record(one, index, life)
                if self._admits(record, life):
                    if is_first:
                        record.spec.CopyFrom(one.record.spec)
                        record.spec.user_group = life.group
                        is_first = False
                    yield _history(one, record, life, now)

    def _admits(self, record: "jobs_pb2.JobRecord", life: Life) -> bool:
        wanted = self._filter
        if life.state in ENDED and not (wanted.finished_too or wanted.states):
            return False
        if self._hosts and not self._hosts & life.places:
            return False
        return self._selection.admits(record)


def _record(one: Submission, index: int, life: Life) -> "jobs_pb2.JobRecord":
    """A job or element with all but its spec."""
    record = jobs_pb2.JobRecord()
    for name in ("job", "user", "from_host", "project", "submit_time", "slots_min", "slots_max"):
        setattr(record, name, getattr(one.record, name))
    record.index, record.queue, record.state = index, life.queue, life.state
    record.name = f"{one.base}[{index}]" if index else one.record.name
    record.start_time, record.end_time, record.exit_status = life.start_time, life.end_time, life.exit_status
    record.exit_reason, record.exec_home, record.exec_cwd = life.exit_reason, life.home, life.cwd
    for host, slots in life.hosts:
        record.hosts.add(host=host, slots=slots)
    return record


def _history(one: Submission, record: "jobs_pb2.JobRecord", life: Life, now: float) -> "jobs_pb2.JobHistory":
    notes = [jobs_pb2.JobNote(time=at, text=text) for at, text in life.notes]
    return jobs_pb2.JobHistory(
        job=record.job,
        index=record.index,
        user=record.user,
        name=one.base,
        record=record,
        notes=notes,
        seconds_by_state=life.spent(now),
    )


# -- records ---------------------------------------------------------------------------------------------------------


def _new(log: _Log, at: float, fields: EventFields, is_lsf: bool) -> None:
    job, spec = jobs_pb2.JobRecord(), jobs_pb2.JobSpec()
    numbers = list(map(int, fields.numbers()))
    job.job, options, job.slots_min = numbers[0], numbers[2], numbers[3]
    job.submit_time, spec.begin_time, spec.terminate_time = numbers[4], max(0, numbers[5]), max(0, numbers[6])
    job.user = fields.text()
    _add_limits(spec, fields.numbers())
    fields.skip(1)  # host of which the limits of time are
    fields.numbers()  # its CPU factor, the mask of file modes
    job.queue, spec.requirement_text, job.from_host, spec.cwd, _, spec.input, spec.output, spec.error = fields.texts()[
        :8
    ]
    asked = fields.whole()
    texts = fields.texts()
    spec.hosts.extend(texts[:asked])
    spec.dependency, spec.pre_exec, *posts = texts[asked:-2]
    if posts and options & WITH_POST_EXEC:
        spec.post_exec = posts[0]
    job.name, spec.command = texts[-2:]
    for _ in range(fields.whole()):  # files to copy
        fields.skip(3)
    _add_rest(job, spec, fields, is_lsf)
    job.name = job.name or spec.command
    spec.name = job.name if options & NAMED else ""
    job.spec.CopyFrom(spec)
    if (added := log.add(job)) is not None:
        places = f"Submitted from host <{job.from_host}>, to Queue <{job.queue}>, CWD <{spec.cwd}>"
        slots = f", {job.slots_min} Processors Requested" if job.slots_min > 1 else ""
        added.life.tell(at, places + slots)


def _add_limits(spec: "jobs_pb2.JobSpec", numbers: list[str]) -> None:
    for place, number in enumerate(map(int, numbers)):
        if number < 0:
            continue
        if place == RSS_PLACE:
            spec.memory_limit_mib = number >> 10
        elif place == RUN_PLACE:
            spec.run_limit_s = number
        elif place in RLIMITS:
            name, factor = RLIMITS[place]
            spec.rlimits.add(name=name, soft=number * factor, hard=number * factor)


def _add_rest(job: "jobs_pb2.JobRecord", spec: "jobs_pb2.JobSpec", fields: EventFields, is_lsf: bool) -> None:
    """Read what follows the files to copy; of LSF's records as far as OpenLava's order holds."""
    spec.mail_user, job.project = fields.texts()[:2]
    job.slots_max = int(fields.numbers()[-1])  # the port of an interactive job may precede it
    _, spec.shell = fields.texts()[:2]
    if is_lsf:
        return
    fields.numbers()  # further options, index
    fields.texts()  # spool files
    fields.numbers()  # priority
    described = fields.texts()
    spec.description = described[0] if described else ""


def _start(log: _Log, at: float, fields: EventFields, _: bool) -> None:
    numbers, hosts = fields.numbers(), fields.texts()
    count = int(numbers[-1])
    slots = dict[str, int]()
    for word in hosts[:count]:
        several, star, host = word.partition("*")
        name, number = (host, int(several)) if star else (word, 1)
        if not 0 < number <= SLOTS_MAX:
            raise ValueError(word)
        slots[name] = slots.get(name, 0) + number
    fields.numbers()  # flags
    group, index = fields.text(), fields.whole()
    names = " ".join(f"<{name}>" for name, number in slots.items() for _ in range(number))
    total = sum(slots.values())
    for life in log.about(int(numbers[0]), index):
        life.enter(at, messages.RUN)
        life.start_time, life.hosts, life.group = at, list(slots.items()), group
        life.places.update(slots)
        life.tell(at, f"Dispatched to {f'{total} Hosts/Processors ' if total > 1 else ''}{names}")


def _start_accept(log: _Log, at: float, fields: EventFields, _: bool) -> None:
    job, pid, _group, index = (fields.whole() for _ in range(4))
    for life in log.about(job, index):
        life.tell(at, f"Starting (Pid {pid})")


def _execute(log: _Log, at: float, fields: EventFields, _: bool) -> None:
    job = fields.whole()
    fields.skip(2)  # user, process group
    cwd, home, _user = fields.text(), fields.text(), fields.text()
    pid, index = fields.whole(), fields.whole()
    for life in log.about(job, index):
        life.home, life.cwd = home, cwd
        life.tell(at, f"Running with execution home <{home}>, Execution CWD <{cwd}>, Execution Pid <{pid}>")


def _status(log: _Log, at: float, fields: EventFields, is_lsf: bool) -> None:
    job, bits = fields.whole(), fields.whole()
    fields.skip(2)  # reasons
    cpu_s = fields.number()
    fields.skip(1)  # end
    used = [fields.number() for _ in range(RUSAGE_FIELDS)] if fields.whole() else []
    if cpu_s <= 0 and used:
        cpu_s = max(0.0, used[0]) + max(0.0, used[1])
    status, index = fields.whole(), fields.whole()
    if abs(status) >= STATUS_MAX:
        raise ValueError(status)
    reason = REASONS.get(fields.whole(), "") if is_lsf and not fields.is_over else ""
    for life in log.about(job, index):
        if bits & (DONE_STATE | EXIT_STATE) and life.state not in ENDED:
            _end(life, at, bits & DONE_STATE != 0, cpu_s, status, reason)
        if bits & (POST_DONE | POST_ERR):
            life.tell(at, "Post job process " + ("done successfully" if bits & POST_DONE else "failed"))
        state = next((state for bit, state in STATES.items() if bits == bit), None)
        if state is not None:
            _change(life, at, state)


def _end(life: Life, at: float, is_done: bool, cpu_s: float, status: int, reason: str) -> None:
    cpu = f". The CPU time used is {cpu_s:.1f} seconds"
    life.enter(at, messages.DONE if is_done else messages.EXIT)
    life.cpu_s, life.exit_status, life.exit_reason = cpu_s, status, reason
    if is_done:
        life.tell(at, "Done successfully" + cpu)
    elif life.start_time or status:
        life.tell(at, exit_sentence(status).rstrip(".") + (cpu if life.start_time else ""))
    else:
        life.tell(at, "Exited")
    if reason:
        life.tell(at, f"Completed <exit>; {reason}")


def _change(life: Life, at: float, state: "common_pb2.JobState") -> None:
    """Let a job that has not ended change its state; another record tells of a start."""
    if state == life.state:
        return
    if state in (messages.PEND, messages.PSUSP) and life.state not in (messages.PEND, messages.PSUSP):
        life.wait_again(at, state)
        life.tell(at, REQUEUED)
    else:
        life.enter(at, state)
        life.tell(at, WORDS.get(state, RESUMED))


def _requeue(log: _Log, at: float, fields: EventFields, _: bool) -> None:
    job, index = fields.whole(), fields.whole()
    for life in log.about(job, index):
        if life.state not in (messages.PEND, messages.PSUSP):
            life.wait_again(at, messages.PEND)
        if not life.notes or life.notes[-1][1] != REQUEUED:
            life.tell(at, REQUEUED)


def _switch(log: _Log, at: float, fields: EventFields, _: bool) -> None:
    fields.skip(1)  # user id
    job, queue, index = fields.whole(), fields.text(), fields.whole()
    for life in log.about(job, index):
        life.queue = queue
        life.tell(at, f"Job switched to queue <{queue}>{_by(fields)}")


def _move(log: _Log, at: float, fields: EventFields, _: bool) -> None:
    fields.skip(1)  # user id
    job, place, base, index = (fields.whole() for _ in range(4))
    end = "top" if base == 1 else "bottom"
    by = _by(fields)
    for life in log.about(job, index):
        life.tell(at, f"Job is moved to position {place} from {end}{by}")


def _signal(log: _Log, at: float, fields: EventFields, _: bool) -> None:
    job = fields.whole()
    fields.skip(2)  # user id, count
    name, index = fields.text(), fields.whole()
    by = _by(fields)
    for life in log.about(job, index):
        life.tell(at, f"Signal <{name}> requested{by}")


def _force(log: _Log, at: float, fields: EventFields, _: bool) -> None:
    numbers, texts = fields.numbers(), fields.texts()
    by = texts[int(numbers[-1]) :]
    for life in log.about(int(numbers[0]), int(numbers[2])):
        life.tell(at, "Job is forced to run" + (f" by user or administrator <{by[0]}>" if by else ""))


def _modify(log: _Log, at: float, fields: EventFields, _: bool) -> None:
    job, _bracket, index = fields.text().partition("[")
    number = index.rstrip("]")
    for life in log.about(int(job), int(number) if number.isdigit() else 0):
        life.tell(at, "Parameters of Job are changed")


def _message(log: _Log, at: float, fields: EventFields, _: bool) -> None:
    job, index, number = (fields.whole() for _ in range(3))
    fields.numbers()  # user id, size, time, state of the data
    text, user = fields.text(), fields.text()
    for life in log.about(job, index):
        life.tell(at, f'External Message "{text}" was posted from "{user}" to message box {number}')


def _by(fields: EventFields) -> str:
    """The user's name at the end of a record, which the oldest have not."""
    return "" if fields.is_over else f" by user or administrator <{fields.text()}>"


_MAKERS: "dict[str, Callable[[_Log, float, EventFields, bool], None]]" = {
    "JOB_NEW": _new,
    "JOB_START": _start,
    "JOB_START_ACCEPT": _start_accept,
    "JOB_EXECUTE": _execute,
    "JOB_STATUS": _status,
    "JOB_REQUEUE": _requeue,
    "JOB_SWITCH": _switch,
    "JOB_MOVE": _move,
    "JOB_SIGNAL": _signal,
    "JOB_FORCE": _force,
    "JOB_MODIFY2": _modify,
    "JOB_EXT_MSG": _message,
}
