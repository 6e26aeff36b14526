"""Ledger of the attempts on this host: actions from each order and each fact. Pure, and so easy to test.

An order or a fact goes in, actions come out; the caller journals what must be durable before it acts. Invariants: an
attempt is placed at most once, however often and in whatever order its orders arrive; an order older than the ledger's
state changes nothing; the newest report of an attempt is kept until the master says `forget`; an order for an unknown
attempt is answered so that the master can continue.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from agents.attempts import released_hosts
from agents.attempts.actions import (
    Action,
    Adapt,
    Complete,
    Launch,
    Limit,
    Note,
    Notify,
    Place,
    Release,
    Renew,
    Say,
    Signal,
    Tasks,
)
from agents.attempts.ledger_entry import Entry, State, held_message, version_of
from agents.attempts.task_book import TaskBook
from agents.master.report_messages import finished_message, refused, released, released_with, report_for
from agents.shepherd.messages import Finish, Key, NotStarted, RunState, Used
from protos import endings
from protos.agents_pb2 import (
    POST_AWAITED,
    POST_DONE,
    POST_ERR,
    CommitMark,
    Finished,
    Held,
    JobSpecBlob,
    LaunchOrder,
    LimitReached,
    Limits,
    Notice,
    Order,
    Refused,
    Released,
    Report,
    Resize,
    SignalOrder,
    Stage,
    Staged,
    Started,
)
from protos.agents_pb2 import Release as ReleaseOrder
from protos.common_pb2 import AttemptKey, TaskState

SPECS_KEPT = 1024
ENDED_KEPT = 1024
ENDED_BYTES = 16 << 20  # of all ended ones together: each host of a job on a thousand hosts has all their names
NOT_BEGUN = "the process that was to keep the job on its host was killed before it had started anything"
SUPERVISOR_LOST = "supervisor lost: the process that kept the job on its host was killed, and the job with it"
HOST_REBOOTED = "host rebooted: the host went down while the job ran there"
TOO_OLD = "order too old"
KILLED = 9
# Status of a job that is ended before its start: as a shell reports SIGINT.
ENDED_BEFORE_START = 130 << 8


def key_of(message: AttemptKey) -> Key:
    """Return the key as a tuple."""
    return (message.job, message.index, message.attempt)


class Ledger:
    """Attempts and job specs of one host."""

    def __init__(self) -> None:
        self.term = 0
        self.entries: dict[Key, Entry] = {}
        # The master sends a spec once and relies on it for a while, also between two elements of an array.
        self.specs: OrderedDict[tuple[int, int], JobSpecBlob] = OrderedDict()
        self._attempts_of_job: dict[int, int] = {}
        self.mark = CommitMark()  # newest commit mark from a master
        self.ended: OrderedDict[Key, Held] = OrderedDict()  # lately forgotten ones, for a master with an older database
        self._ended_bytes = 0

    # -- from the master

    def accept_term(self, term: int) -> bool:
        """Return True if orders of this term may be obeyed, and remember the highest term."""
        if term < self.term:
            return False
        self.term = term
        return True

    def learn(self, blob: JobSpecBlob) -> bool:
        """Keep a job's spec for attempts to be staged; return True if it was new or changed."""
        key = (blob.job, blob.version)
        known = self.specs.get(key)
        if known == blob:
            self.specs.move_to_end(key)
            return False
        kept = JobSpecBlob()
        kept.CopyFrom(blob)  # a submessage would keep its whole parent in memory
        self.specs[key] = kept
        self.specs.move_to_end(key)
        if len(self.specs) > SPECS_KEPT:
            self.specs.popitem(last=False)
        return True

    def holds(self, job: int) -> bool:
        """Return True if any attempt of this job is here."""
        return job in self._attempts_of_job

    def order(self, order: Order, too_old: bool = False) -> list[Action]:
        """Return the actions for an order; with ``too_old``, none that starts anything."""
        key = key_of(order.key)
        entry = self.entries.get(key)
        match order.WhichOneof("what"):
            case "stage":
                return self._stage(key, entry, order, too_old)
            case "launch":
                return self._launch(key, entry, order, too_old)
            case "signal":
                return self._signal(entry, order)
            case "release":
                return self._release(key, entry, order)
            case "resize":
                return self._resize(entry, order)
            case "limits":
                return self._limit(entry, order)
            case "tasks":
                return self._tasks(key, entry, order, too_old)
            case "notice":
                return self._notify(entry, order.notice)
        return []

    def _stage(self, key: Key, entry: Entry | None, order: Order, too_old: bool) -> list[Action]:
        if entry is not None and not entry.version:
            return self._complete(entry, order)
        if entry is not None and order.allocation_version <= entry.version:
            return [] if order.allocation_version < entry.version else self._repeat(entry)
        if entry is not None and entry.state is not State.OVER:
            why = "what is left of the attempt is still being ended on this host"
            return [Say(refused(key, order.allocation_version, why, False))]
        if too_old:
            return [Say(refused(key, order.allocation_version, TOO_OLD, False))]
        spec_key = (key[0], order.stage.spec_version)
        blob = self.specs.get(spec_key)
        if blob is None:
            return [Say(refused(key, order.allocation_version, "the order came without the job's description", True))]
        stage = Stage()
        stage.CopyFrom(order.stage)
        self.specs.move_to_end(spec_key)
        is_back = self.drop(key)
        version = order.allocation_version
        self.entries[key] = Entry(
            key, version, stage, blob, launched=stage.launch_now, joined=version, tasks=_book(blob)
        )
        self._attempts_of_job[key[0]] = self._attempts_of_job.get(key[0], 0) + 1
        return [Note(order, sync=True), *([Renew(key)] if is_back else []), Place(key)]

    def found(self, key: Key, launched: bool) -> None:
        """Add an attempt whose order the journal has lost; a shepherd or a log still has it, the master its order."""
        self.entries[key] = Entry(key, 0, Stage(), JobSpecBlob(job=key[0]), launched=launched, joined=0)
        self._attempts_of_job[key[0]] = self._attempts_of_job.get(key[0], 0) + 1

    def _complete(self, entry: Entry, order: Order) -> list[Action]:
        blob = self.specs.get((entry.key[0], order.stage.spec_version))
        if blob is None or entry.state is not State.HELD:
            return self._repeat(entry)
        entry.blob, entry.version, entry.joined = blob, order.allocation_version, order.allocation_version
        entry.stage = Stage()
        entry.stage.CopyFrom(order.stage)
        entry.tasks = entry.tasks or _book(blob)
        return [Note(order, sync=True), Complete(entry.key)]

    def _resize(self, entry: Entry | None, order: Order) -> list[Action]:
        if entry is None or entry.releasing or entry.state in (State.ENDED, State.OVER):
            return []
        if order.allocation_version <= entry.version:
            return [] if entry.resized is None else [Say(entry.resized)]
        self._change(entry, order)
        return [Note(order, sync=True), Adapt(entry.key)]

    @staticmethod
    def _limit(entry: Entry | None, order: Order) -> list[Action]:
        if entry is None or entry.state in (State.ENDED, State.OVER):
            return []
        if order.limits.version <= version_of(entry.limits):
            return []
        entry.limits = Limits()
        entry.limits.CopyFrom(order.limits)
        return [Note(order, sync=True), Limit(entry.key)]

    @staticmethod
    def _change(entry: Entry, order: Order) -> None:
        entry.given_up = released_hosts.without(entry, order.resize)
        if entry.is_told:
            entry.before = list(entry.stage.allocation)
        stage = Stage()  # a new one: other references to the old allocation stay valid
        stage.CopyFrom(entry.stage)
        del stage.allocation[:]
        stage.allocation.extend(order.resize.allocation)
        stage.allocation_seal = order.resize.allocation_seal
        if entry.tasks is not None:
            del stage.tasks[:]
            stage.tasks.extend(order.resize.tasks)
        entry.stage, entry.version, entry.notify = stage, order.allocation_version, order.resize.notify

    def _launch(self, key: Key, entry: Entry | None, order: Order, too_old: bool) -> list[Action]:
        if entry is None:
            return [Say(refused(key, order.allocation_version, "the attempt is not staged on this host", False))]
        over = entry.releasing or entry.state in (State.ENDED, State.OVER)
        if entry.launched or over or order.allocation_version < entry.version:
            return self._repeat(entry)
        if too_old:  # other hosts may have started: this one is still ready, and a master that wants it launches again
            if entry.state is not State.HELD:
                return []
            return [Say(self._keep(entry, Report(staged=Staged(again=True))))]
        entry.launched = True
        if entry.last is not None and entry.last.staged.again:
            self._keep(entry, Report(staged=Staged()))
        return [Note(order, sync=True), *([Launch(key)] if entry.state is State.HELD else [])]

    def _tasks(self, key: Key, entry: Entry | None, order: Order, too_old: bool) -> list[Action]:
        if entry is None:
            return [Say(refused(key, order.allocation_version, "the attempt is not staged on this host", False))]
        if entry.tasks is None or entry.releasing or entry.state in (State.ENDED, State.OVER):
            return self._repeat(entry)
        tasks, known = order.tasks, entry.tasks.version
        decision = entry.tasks.order(tasks, too_old or entry.state is not State.HELD)
        entry.launched = entry.launched or bool(decision.start or decision.hold)
        is_moved = known < entry.tasks.version and entry.state is State.HELD  # the lists here are to be written anew
        actions: list[Action] = [Note(order, sync=True)] if decision.is_news or is_moved else []
        if decision.start or decision.hold or decision.stop or decision.signalled or is_moved:
            ends = (key, decision.stop, tasks.reason, decision.signalled, tasks.signal)
            actions.append(Tasks(*ends, decision.start, decision.hold))
        if decision.say:
            actions.append(Say(_tasks_report(entry, decision.say)))
        return actions

    def _signal(self, entry: Entry | None, order: Order) -> list[Action]:
        signal = order.signal
        if entry is None or entry.state is State.OVER or signal.serial in entry.serials:
            return []
        if signal.serial:
            entry.serials.add(signal.serial)
        if entry.state in (State.HELD, State.ENDED):  # after its end its own post-execution command may run
            if signal.signal in (0, KILLED):
                entry.ending = entry.ending or signal.reason
            said = (signal.event, signal.notice or signal.reason, signal.notice_s)
            return [Note(order, sync=False), Signal(entry.key, signal.signal, signal.reason, signal.causes, *said)]
        if signal.signal in (0, KILLED):
            return [Note(order, sync=False), *self._end_before_start(entry, signal.reason)]
        return []

    @staticmethod
    def _notify(entry: Entry | None, notice: Notice) -> list[Action]:
        if entry is None or entry.state is not State.HELD or notice.serial in entry.serials:
            return []
        entry.serials.add(notice.serial)
        return [Notify(entry.key, notice.event, notice.reason, notice.at)]

    def _end_before_start(self, entry: Entry, reason: str) -> list[Action]:
        finished = Finished(status=ENDED_BEFORE_START, reason=reason, detail="The job was ended before it started.")
        return [Say(self._over(entry, Report(finished=finished, also_released=True)))]

    def _release(self, key: Key, entry: Entry | None, order: Order) -> list[Action]:
        if entry is None:
            return [Say(released(key, order.allocation_version))]
        if entry.state in (State.ACCEPTED, State.OVER):
            return [Say(self._over(entry, Report(released=Released())))]
        if entry.releasing:
            return []
        entry.releasing = True
        return [Note(order, sync=False), Release(key)]

    def _repeat(self, entry: Entry) -> list[Action]:
        """Repeat the last report, to answer a known order."""
        return [] if entry.last is None else [Say(entry.last)]

    def forget(self, key: Key) -> bool:
        """Forget an attempt that is over, since the master has all it needs; return True if it was here."""
        entry = self.entries.get(key)
        if entry is None or entry.state is not State.OVER:
            return False
        if entry.last is not None and entry.last.HasField("finished"):
            self.remember(held_message(entry, detailed=True))
        return self.drop(key)

    def remember(self, ended: Held) -> None:
        """Keep the end of a forgotten attempt; beyond a number or size only the newest ends stay."""
        older = self.ended.pop(key_of(ended.key), None)
        self._ended_bytes += ended.ByteSize() - (older.ByteSize() if older is not None else 0)
        self.ended[key_of(ended.key)] = ended
        while len(self.ended) > ENDED_KEPT or (self._ended_bytes > ENDED_BYTES and len(self.ended) > 1):
            self._ended_bytes -= self.ended.popitem(last=False)[1].ByteSize()

    def note_mark(self, mark: CommitMark) -> None:
        """Keep the commit mark from a master whose orders are obeyed."""
        self.mark.CopyFrom(mark)

    def drop(self, key: Key) -> bool:
        """Remove an attempt; return True if it was here."""
        if self.entries.pop(key, None) is None:
            return False
        self._attempts_of_job[key[0]] -= 1
        if not self._attempts_of_job[key[0]]:
            del self._attempts_of_job[key[0]]
        return True

    @staticmethod
    def is_over(entry: Entry) -> bool:
        """Return True if nothing of an attempt is left here but its report."""
        return entry.state is State.OVER

    # -- facts of this host

    def refuse(self, key: Key, reason: str, host_fault: bool) -> list[Report]:
        """Report that an order could not be carried out and nothing runs."""
        return self._refuse(key, Refused(reason=reason, host_fault=host_fault))

    def refuse_for(self, key: Key, why: NotStarted, user_unknown: bool = False) -> list[Report]:
        """Report that this host could not carry out an order, though others may.

        A job that is started in the directory where it was submitted, which was there then, never ends for want of it.
        """
        refused = Refused(reason=why.reason, host_fault=True, user_unknown=user_unknown)
        refused.pre_exec, refused.pre_exec_code = why.pre_exec, why.pre_exec_code
        refused.lacking, entry = why.lacking, self.entries.get(key)
        if why.lacking and entry is not None and not _is_where_submitted(entry, why):
            refused.lacking_status, refused.lacking_term = why.status, why.term
        return self._refuse(key, refused)

    def _refuse(self, key: Key, refused: Refused) -> list[Report]:
        entry = self.entries.get(key)
        if entry is None or entry.state is State.OVER:
            return []
        return [self._over(entry, Report(refused=refused))]

    def placed(self, key: Key) -> None:
        """Note that a shepherd has the attempt."""
        self.entries[key].state = State.HELD

    def staged(self, key: Key) -> list[Report]:
        """Report that a shepherd is ready for the attempt."""
        entry = self.entries.get(key)
        if entry is None or entry.tasks is None:
            return self._say(key, Report(staged=Staged()))
        return self._say(key, Report(staged=Staged(tasks=entry.tasks.reserved, address=entry.tasks.address)))

    def reserve(self, key: Key, staged: Staged) -> Report:
        """Keep the ports of the attempt's tasks; return a report for the journal."""
        entry = self.entries[key]
        report = report_for(key, entry.version)
        report.staged.CopyFrom(staged)
        self.restore_ports(report)
        return report

    def restore_ports(self, report: Report) -> None:
        """Replay the ports of an attempt's tasks from the journal."""
        entry = self.entries.get(key_of(report.key))
        if entry is not None and entry.tasks is not None:
            entry.tasks.reserved, entry.tasks.address = list(report.staged.tasks), report.staged.address

    def ports(self) -> set[int]:
        """Return the ports of all attempts that are not over."""
        books = (entry.tasks for entry in self.entries.values() if entry.state is not State.OVER)
        return {port for book in books if book is not None for port in book.ports()}

    def ran(self, key: Key, states: Iterable[RunState]) -> list[Report]:
        """Report what its shepherd says of the attempt's tasks, as far as it is news."""
        entry = self.entries.get(key)
        if entry is None or entry.tasks is None:
            return []
        news = entry.tasks.take(states)
        return [_tasks_report(entry, news)] if news else []

    def adopt_tasks(self, key: Key, states: Collection[RunState]) -> None:
        """Take the states of the attempt's tasks from a shepherd that outlived the last agent."""
        entry = self.entries[key]
        if entry.tasks is None and states:
            entry.tasks = TaskBook()
        if entry.tasks is not None:
            entry.tasks.adopt(states)

    def started(self, key: Key, started: Started) -> list[Report]:
        """Report that the command runs."""
        return self._say(key, Report(started=started))

    def resized(self, key: Key, version: int, failed: bool, detail: str) -> list[Report]:
        """Report that the job was notified of the allocation of that version, unless there is a newer one by now."""
        entry = self.entries.get(key)
        if entry is None or entry.state is not State.HELD or entry.version != version:
            return []
        report = report_for(key, version)
        report.resized.failed, report.resized.detail = failed, detail
        if entry.tasks is not None:
            report.resized.tasks.extend(entry.tasks.reserved)
        entry.resized = report
        return [report]

    def limit_reached(self, key: Key, reason: str) -> list[Report]:
        """Report that a per-host limit was reached here, where the job's command does not run."""
        entry = self.entries.get(key)
        if entry is None or entry.state is not State.HELD or entry.limit_reached is not None:
            return []
        entry.limit_reached = report_for(key, entry.version)
        entry.limit_reached.limit_reached.CopyFrom(LimitReached(reason=reason))
        return [entry.limit_reached]

    def finished(self, finish: Finish, home: str, cwd: str) -> list[Report]:
        """Report that the command has ended."""
        entry = self.entries.get(finish.key)
        if entry is None or entry.state in (State.ENDED, State.OVER):
            return []
        if entry.releasing and finish.released:
            return [self._over(entry, released_with(finish.used))]
        report = Report(finished=finished_message(finish, home, cwd), also_released=finish.released)
        if finish.released:
            return [self._over(entry, report)]
        entry.state = State.ENDED
        return [self._keep(entry, report)]

    def posted(self, key: Key, status: int, at: float) -> list[Report]:
        """Report the end of the post-execution commands of an attempt that has been reported as finished."""
        entry = self.entries.get(key)
        if entry is None or entry.state is not State.ENDED or entry.last is None:
            return []
        report = Report()
        report.CopyFrom(entry.last)
        report.finished.post, report.finished.posted_at = (POST_ERR if status else POST_DONE), at
        return [self._keep(entry, report)]

    def released(self, key: Key, used: Used | None = None) -> list[Report]:
        """Report that nothing of the attempt is left; ``used`` is its total usage as far as known."""
        entry = self.entries.get(key)
        if entry is None or entry.state is State.OVER or entry.held_back is not None:
            return []
        is_whole = entry.last is not None and (not entry.releasing or entry.last.finished.post)
        if entry.state is State.ENDED and entry.last is not None and is_whole:
            # The master may lack the end: one report with both can be repeated alone.
            report = Report()
            report.CopyFrom(entry.last)
            report.also_released = True
            if report.finished.post == POST_AWAITED:  # they ended with their shepherd
                report.finished.post = POST_ERR
            return [self._over(entry, report)]
        return [self._over(entry, released_with(used))]

    def lost(
        self, key: Key, finish: Finish | None, now: float, rebooted: bool = False, why: str = "", begun: bool = True
    ) -> list[Report]:
        """Report the death of the shepherd, and so of its processes; ``finish`` is the end it recorded before.

        One that had not begun to start anything has lost nothing: the order was not carried out.
        """
        entry = self.entries.get(key)
        if entry is None or entry.state is State.OVER or entry.held_back is not None:
            return []
        if entry.state is State.ENDED or entry.releasing:
            return self.released(key, None if finish is None else finish.used)
        if finish is not None:
            return self.finished(finish.with_post(None)._replace(released=True), "", "")
        if not (begun or rebooted):
            return self.refuse(key, NOT_BEGUN, host_fault=False)
        reason = HOST_REBOOTED if rebooted else why or SUPERVISOR_LOST
        finished = Finished(status=KILLED, time=now, reason=entry.ending or reason, lost=not entry.ending)
        if entry.last is not None and entry.last.HasField("started"):
            finished.pid, finished.started = entry.last.started.pid, entry.last.started.time
        return [self._over(entry, Report(finished=finished, also_released=True))]

    def _say(self, key: Key, report: Report) -> list[Report]:
        entry = self.entries.get(key)
        return [] if entry is None or entry.state is not State.HELD else [self._keep(entry, report)]

    def _keep(self, entry: Entry, report: Report) -> Report:
        job, index, attempt = entry.key
        report.key.job, report.key.index, report.key.attempt = job, index, attempt
        report.allocation_version = entry.version
        entry.last = report
        return report

    def _over(self, entry: Entry, report: Report) -> Report:
        entry.state = State.OVER
        return self._keep(entry, report)

    # -- restart and reconnection

    def held(self, detailed: bool = False) -> list[Held]:
        """Return every attempt, for the hello of a session."""
        return [held_message(entry, detailed) for entry in self.entries.values()]

    def unacknowledged(self) -> Iterable[Report]:
        """Yield reports that the master must acknowledge.

        The last ones of attempts that are over, or staged and not yet launched.
        """
        for entry in self.entries.values():
            if entry.last is not None and (entry.state is not State.HELD or not entry.launched):
                yield entry.last

    def restore(self, order: Order) -> None:
        """Replay an order from the journal without acting on it."""
        key = key_of(order.key)
        entry = self.entries.get(key)
        match order.WhichOneof("what"):
            case "stage":
                if entry is not None and order.allocation_version > entry.version:
                    self.drop(key)  # the shepherds' logs have the end of its earlier stay
                self._stage(key, self.entries.get(key), order, False)
            case "resize" if entry is not None:
                self._change(entry, order)
            case "limits" if entry is not None:
                entry.limits = order.limits
            case "launch" if entry is not None:
                entry.launched = True
            case "signal" if entry is not None:
                entry.serials.add(order.signal.serial)
            case "release" if entry is not None:
                entry.releasing = True
            case "tasks" if entry is not None and entry.tasks is not None:
                entry.tasks.restore(order.tasks)
                entry.launched = entry.launched or bool(order.tasks.start or order.tasks.hold)

    def orders_of(self, entry: Entry) -> list[Order]:
        """Return the orders from which `restore` would rebuild this entry."""
        staged = Order(stage=entry.stage)
        orders = [staged]
        if entry.version > entry.joined:
            if not entry.is_told:
                del staged.stage.allocation[:]
                staged.stage.allocation.extend(entry.before)
            resize = Resize(allocation=entry.stage.allocation, notify=entry.notify, given_up=entry.given_up)
            resize.allocation_seal = entry.stage.allocation_seal
            resize.tasks.extend(entry.stage.tasks)
            orders.append(Order(resize=resize))
        if entry.launched and not entry.stage.launch_now:
            orders.append(Order(launch=LaunchOrder()))
        orders += [Order(signal=SignalOrder(serial=serial)) for serial in sorted(entry.serials)]
        if entry.limits is not None:
            orders.append(Order(limits=entry.limits))
        if entry.tasks is not None and entry.tasks.known:
            orders.append(Order(tasks=entry.tasks.content()))
        if entry.releasing:
            orders.append(Order(release=ReleaseOrder()))
        job, index, attempt = entry.key
        for order in orders:
            order.key.job, order.key.index, order.key.attempt = job, index, attempt
            order.allocation_version = entry.version
        staged.allocation_version = entry.joined
        return orders

    def restore_resized(self, report: Report) -> None:
        """Replay a notification of another allocation from the journal."""
        entry = self.entries.get(key_of(report.key))
        if entry is not None:
            entry.resized = report

    def restore_end(self, report: Report) -> None:
        """Replay a last report from the journal."""
        entry = self.entries.get(key_of(report.key))
        if entry is not None:
            self._over(entry, report)

    def reconcile(
        self,
        alive: Mapping[Key, bool],
        started: set[Key],
        finished: Mapping[Key, Finish],
        refusals: Mapping[Key, NotStarted],
        releases: Mapping[Key, Used],
        rebooted: bool,
        now: float,
        posts: Mapping[Key, tuple[int, float]] = MappingProxyType({}),
    ) -> None:
        """Settle every attempt after a restart, from the surviving shepherds and the logs.

        ``alive`` maps attempts with a shepherd to True if launched. An attempt that no shepherd holds, and of which no
        log says that a process was to be started, was provably never started, unless the machine went down meanwhile.
        """
        for key, entry in self.entries.items():
            if entry.state is State.OVER:
                continue
            is_back = entry.joined > 1  # logs are about an earlier stay: nothing is launched on a host that rejoins
            finish = None if is_back else finished.get(key)
            used = releases.get(key)
            if key in alive:
                entry.state, entry.launched = State.HELD, entry.launched or alive[key]
                if finish is not None:
                    self.finished(finish, "", "")
                if key in posts:
                    self.posted(key, *posts[key])
            elif key in refusals and not is_back:
                self.refuse_for(key, refusals[key])
            elif entry.releasing and used is not None:
                self._over(entry, released_with(used))
            elif finish is not None or (key in started and not is_back) or (rebooted and entry.launched):
                entry.state = State.HELD
                known = finish.with_post(posts.get(key)) if finish is not None else None
                self.lost(key, known, now, rebooted)
            elif entry.releasing:
                self._over(entry, Report(released=Released()))
            else:
                self.refuse(key, "this host's agent was restarted before the job was started", host_fault=False)


def _is_where_submitted(entry: Entry, why: NotStarted) -> bool:
    spec = entry.blob.spec
    return why.term == endings.CWD_NOTEXIST and spec.cwd == spec.submit_cwd


def _book(blob: JobSpecBlob) -> TaskBook | None:
    return TaskBook() if blob.spec.HasField("tasks") else None


def _tasks_report(entry: Entry, states: Iterable[TaskState]) -> Report:
    report = report_for(entry.key, entry.version)
    report.tasks.tasks.extend(states)
    return report
