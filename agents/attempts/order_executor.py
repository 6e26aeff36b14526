"""Execution of orders: journal first, then the shepherds; and the shepherds' messages as reports.

Invariants: nothing is started before its order is durable here; the age of an order is checked at the last moment, on
this host's own clock, so that an agent that was stopped for a while starts nothing stale; an order that cannot be
carried out is answered, not dropped.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

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
from agents.attempts.attempts import Attempts
from agents.attempts.journal import (
    Journal,
    end_record,
    forget_record,
    mark_record,
    order_record,
    resized_record,
    spec_record,
    term_record,
)
from agents.attempts.ledger import Ledger, key_of
from agents.attempts.ledger_entry import Entry, State, limits_for
from agents.attempts.resizes import Resizes, name_of
from agents.attempts.task_orders import TaskOrders
from agents.attempts.task_ports import NoPort
from agents.attempts.usage_exchange import Counting
from agents.gpu_use.job_gpus import JobGpus
from agents.job_setup.environment import is_resizable
from agents.job_setup.gpu_setup import Devices, NotReady
from agents.job_setup.preparation import Preparation, Prepared
from agents.job_setup.programs import absent_starter
from agents.job_setup.users import Owner, UnknownUser, Users
from agents.master.report_messages import job_usage
from agents.sensors.health import BAD
from agents.sensors.host_checks import Check, unchecked
from agents.shepherd import messages
from agents.shepherd.lease import Lease, own_clock
from agents.shepherd.messages import Finish, Key, Message, NotStarted, RunState, Used, fields_of, pack
from agents.shepherd_pool.pool import Handle, Pool, Waiting
from protos.agents_pb2 import CommitMark, JobProgress, JobUsage, Orders, Report, Started
from protos.failpoints import reach

if TYPE_CHECKING:
    from agents.job_socket.interface import JobInterface

LOG = logging.getLogger("lava.orders")

DEFAULT_VALIDITY_S = 60.0
MARK_EVERY_S = 1.0  # interval in the journal: a few bytes, never waited for


class Keeper:
    """Holder of this host's attempts, and executor of orders about them.

    ``say`` takes reports for the master, ``use`` takes usages. ``failed`` is called when the journal can no longer be
    trusted: the agent must end.
    """

    def __init__(
        self,
        ledger: Ledger,
        journal: Journal,
        boot_id: str,
        preparation: Preparation,
        users: Users,
        devices: Devices,
        gpus: JobGpus,
        lease: Lease,
        clock: Callable[[], float] = own_clock,
    ) -> None:
        self.ledger = ledger
        self.preparation = preparation
        self.order_validity_s = DEFAULT_VALIDITY_S
        self.say: Callable[[Report], None] = lambda _: None
        self.use: Callable[[JobUsage], None] = lambda _: None
        self.interface: JobInterface | None = None  # what jobs hear and say by their socket
        self.check: Check = unchecked
        self.heard: dict[int, Callable[[Key, Message], None]] = {}  # what others do with a shepherd's message, by kind
        self.signalled: Callable[[Key, int], None] = lambda key, number: None
        self._journal = journal
        self._boot_id = boot_id
        self._users = users
        self._devices = devices
        self.gpus = gpus
        self._lease = lease
        self._clock = clock
        self._marked_at = float("-inf")
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._usages: dict[Key, JobUsage] = {}

    def connect(self, pool: Pool, attempts: Attempts, counting: Counting) -> None:
        """Connect the shepherds, which report to this object and get work from it."""
        self.pool = pool
        self.attempts = attempts
        self.counting = counting
        self.task_orders = TaskOrders(
            self.ledger, pool, attempts, self.preparation, self._journal, lambda report: self.say(report)
        )
        more = self.task_orders.make_more_ready
        self.resizes = Resizes(self.ledger, attempts, self.preparation, self._told_of_size, more, self._notify)
        self.gpus.say = lambda report: self.say(report)
        attempts.in_place_of = self.task_orders.in_place_of

    async def close(self) -> None:
        """End background work."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- from the master

    async def take(self, orders: Orders) -> bool:
        """Carry out one message of the master; return False, with nothing done, if its term is over.

        Raises:
            JournalError: the agent must end.
        """
        async with self._turn:  # one of a lost session may still be in progress
            before = self.ledger.term
            if not self.ledger.accept_term(orders.term):
                return False
            self._renew_lease(orders.echo_monotonic)
            records, sync, actions = self._decide(orders, self.ledger.term != before)
            if not await self._record(records, sync, actions):
                actions = self._without_starts(actions)
            if actions:
                reach("agent.after_journal", actions)
                for action in actions:
                    self._act(action, orders.echo_monotonic)
                if self.interface is not None:
                    self.interface.ring({key_of(one.key) for one in orders.orders})
                reach("agent.after_handover", actions)
            return True

    def _decide(self, orders: Orders, is_new_term: bool) -> tuple[list[bytes], bool, list[Action]]:
        """Return records for the journal, if the disk is waited for, and what is to be done then."""
        ledger = self.ledger
        records = [term_record(ledger.term)] if is_new_term else []
        records += [spec_record(blob) for blob in orders.specs if ledger.learn(blob)]
        too_old = self._too_old(orders.echo_monotonic)
        actions: list[Action] = []
        sync = bool(records)
        for order in orders.orders:
            for action in ledger.order(order, too_old):
                if isinstance(action, Note):
                    records.append(order_record(action.order))
                    sync = sync or action.sync
                else:
                    actions.append(action)
        records += self._forget(orders.forget)
        if orders.HasField("mark"):
            records += self._mark(orders.mark)
        return records, sync, actions

    def _mark(self, mark: CommitMark) -> list[bytes]:
        """Keep the mark: in memory at once, in the journal at intervals."""
        self.ledger.note_mark(mark)
        now = self._clock()
        if now - self._marked_at < MARK_EVERY_S:
            return []
        self._marked_at = now
        return [mark_record(mark)]

    def _renew_lease(self, heard_at: float) -> None:
        """Renew the lease before anything of the message is done, so that attempts it starts find it at full length."""
        try:
            self._lease.renew(heard_at)
        except OSError as error:  # attempts under the lease end with it, as if nothing had been heard
            LOG.error("event=lease_not_renewed error=%s", error.strerror)

    def _too_old(self, echo: float) -> bool:
        return self._clock() - echo > self.order_validity_s

    async def _record(self, records: list[bytes], sync: bool, actions: list[Action]) -> bool:
        """Append to the journal and meanwhile prepare attempts to place; return False if the disk is full."""
        if not records:
            return True
        try:
            self._journal.append(records)
        except OSError as error:
            LOG.error("event=journal_full error=%s", error.strerror)
            return False
        if sync:
            synced = asyncio.get_running_loop().run_in_executor(None, self._journal.sync)
            self._prepare_ahead(actions)
            await synced
        if self._journal.wants_compaction:
            self.compact()
        return True

    def _prepare_ahead(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Place):
                entry = self.ledger.entries[action.key]
                blob = entry.blob
                owner = self._users.cached(blob.user, blob.uid, blob.gid, entry.stage.around.user)
                if owner is not None:
                    with contextlib.suppress(Exception):  # it fails again, and is reported, when the attempt is placed
                        self.prepare(entry, owner)

    def compact(self) -> None:
        """Rewrite the journal."""
        try:
            self._journal.rewrite(self.ledger, self._boot_id)
        except OSError as error:
            LOG.error("event=journal_not_compacted error=%s", error.strerror)

    def _without_starts(self, actions: list[Action]) -> list[Action]:
        """Refuse all starts, since the journal cannot record them."""
        left: list[Action] = []
        for action in actions:
            if isinstance(action, Place | Launch):
                if isinstance(action, Launch):
                    left.append(Release(action.key))
                reports = self.ledger.refuse(action.key, "this host's spool takes no more data", host_fault=True)
                left += [Say(report) for report in reports]
            elif isinstance(action, Tasks):
                begun = (*action.start, *action.hold)
                self.task_orders.fail(action.key, begun, "This host's spool takes no more data.")
                left.append(action._replace(start=(), hold=()))
            else:
                left.append(action)
        return left

    def _forget(self, keys: Iterable[Any]) -> list[bytes]:
        records = []
        for message in keys:
            key = key_of(message)
            if self.ledger.forget(key):
                reach("agent.before_forget")
                records.append(forget_record(key))
                self.pool.forget(key)
                self.gpus.watch.forget(key)
                if not self.ledger.holds(key[0]):
                    self.preparation.forget(key[0])
        return records

    def _act(self, action: Action, echo: float) -> None:
        match action:
            case Place(key):
                self._place(key, echo)
            case Launch(key):
                self._to_shepherd(key, messages.LAUNCH)
            case Signal():
                self.signalled(action.key, action.number)
                self._signal(action)
            case Notify(key, event, reason, at):
                self._notify(key, event, reason, at)
            case Release(key):
                self._to_shepherd(key, messages.RELEASE, "")
            case Complete(key):
                self._spawn(self.note_owner(self.ledger.entries[key]))
            case Renew(key):
                self.pool.forget(key)
                self.resizes.forget(key)
            case Adapt(key):
                self._spawn(self.resizes.adapt(key))
            case Limit(key):
                self._limit(key)
            case Tasks():
                self.task_orders.carry_out(action)
            case Say(report):
                self.say(report)

    def _to_shepherd(self, key: Key, kind: int, *fields: object) -> None:
        shepherd = self.pool.holder(key)
        if shepherd is not None:
            shepherd.send(pack(kind, *key, *fields))
            if kind in (messages.SIGNAL, messages.RELEASE):
                shepherd.ask()

    def _signal(self, order: Signal) -> None:
        """Forward a signal, with its notice if the attempt's shepherd gives any."""
        gives = order.event and self._gives_notice(order.key)
        said = (order.event, order.notice_s, order.notice) if gives else ()
        self._to_shepherd(order.key, messages.SIGNAL, order.number, order.reason, 0, order.causes, *said)

    def _notify(self, key: Key, event: str, reason: str, at: float) -> None:
        if self._gives_notice(key):
            self._to_shepherd(key, messages.NOTIFY, event, reason, at)

    def _gives_notice(self, key: Key) -> bool:
        shepherd = self.pool.holder(key)
        return shepherd is not None and shepherd.status.protocol >= messages.GIVES_NOTICE

    def _limit(self, key: Key) -> None:
        """Send changed limits, if there are any, to the attempt's shepherd; a repetition has no effect."""
        entry, shepherd = self.ledger.entries.get(key), self.pool.holder(key)
        if entry is not None and entry.limits is not None and shepherd is not None:
            shepherd.send(pack(messages.LIMITS, *key, *limits_for(entry.limits, shepherd.status.protocol)))

    # -- placing

    def _place(self, key: Key, echo: float) -> None:
        entry = self.ledger.entries[key]
        owner = self._users.cached(entry.blob.user, entry.blob.uid, entry.blob.gid, entry.stage.around.user)
        if owner is not None:
            self._hold(key, owner, echo)
        else:
            self._spawn(self._find_owner_and_hold(key, echo))

    def _spawn(self, coroutine: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _find_owner_and_hold(self, key: Key, echo: float) -> None:
        blob, other = self.ledger.entries[key].blob, self.ledger.entries[key].stage.around.user
        try:
            owner = self._users.cached(blob.user, blob.uid, blob.gid, other)
            owner = owner or await self._users.find(blob.user, blob.uid, blob.gid, other)
        except UnknownUser as error:
            # Other hosts may know the user: the master avoids this one for the user for a while; an older master, for
            # all.
            known = error.is_queues
            pre_exec = messages.OF_QUEUE if known else ""
            self._settle(self.ledger.refuse_for(key, NotStarted(str(error), pre_exec), user_unknown=not known))
        except OSError as error:
            self._refuse(key, f"user {blob.user} cannot be looked up: {error.strerror}")
        except Exception:
            self._refuse_for_a_defect(key)
        else:
            self._hold(key, owner, echo)

    def _hold(self, key: Key, owner: Owner, echo: float) -> None:
        entry = self.ledger.entries.get(key)
        if entry is None or entry.state is not State.ACCEPTED:
            return  # released or ended meanwhile
        if entry.stage.job_starter and (path := absent_starter(entry.stage.job_starter)):
            why = NotStarted(f"The job starter {path} is not on this host.", lacking=f"job starter {path}")
            self._settle(self.ledger.refuse_for(key, why))
            return
        try:
            prepared = self.prepare(entry, owner)
            self.task_orders.make_ready(entry)
        except NoPort as error:
            self._refuse(key, str(error), host_fault=False)
            return
        except OSError as error:
            self._refuse(key, f"the job cannot be prepared: {error.strerror}")
            return
        except Exception:
            self._refuse_for_a_defect(key)
            return
        waiting = Waiting(key, echo, prepared.setup, prepared.job)
        if entry.stage.HasField("check_before"):
            self._spawn(self._check_and_hold(entry, owner, waiting))
        else:
            self._make_ready(entry, owner, waiting)

    def _make_ready(self, entry: Entry, owner: Owner, waiting: Waiting) -> None:
        if self._devices.concern(entry):
            self._spawn(self._make_ready_and_hold(entry, owner, waiting))
        else:
            self._give(waiting)

    async def _check_and_hold(self, entry: Entry, owner: Owner, waiting: Waiting) -> None:
        """Check the host's health first. The time that takes does not make the order older: what has become of the
        attempt meanwhile, its entry says.
        """
        began = self._clock()
        if self._too_old(waiting.echo):
            self._refuse(entry.key, "order too old", host_fault=False)
            return
        found = await self.check(entry.stage.check_before, True)
        if entry.state is not State.ACCEPTED:
            return
        if found.verdict == BAD:
            self._refuse(entry.key, f"health check before the job: {found.text or 'it failed without a word'}")
        else:
            self._make_ready(entry, owner, waiting._replace(echo=waiting.echo + self._clock() - began))

    async def _make_ready_and_hold(self, entry: Entry, owner: Owner, waiting: Waiting) -> None:
        try:
            await self._devices.make_ready(entry, owner)
        except NotReady as error:
            self._refuse(entry.key, str(error))
        except Exception:
            self._refuse_for_a_defect(entry.key)
        if entry.state is State.ACCEPTED:
            self._give(waiting)
        else:  # refused, or released meanwhile
            self._devices.put_back(entry)

    async def note_owner(self, entry: Entry) -> None:
        """Prepare tasks beside an adopted attempt; if that fails the job itself runs on, and tasks are refused."""
        blob = entry.blob
        try:
            owner = await self._users.find(blob.user, blob.uid, blob.gid)
            self.attempts.note(entry.key, self.prepare(entry, owner).job)
        except (UnknownUser, OSError) as error:
            LOG.warning("event=adopted_without_owner job=%d index=%d attempt=%d reason=%r", *entry.key, str(error))

    def prepare(self, entry: Entry, owner: Owner) -> Prepared:
        """Prepare an attempt's setup; raises OSError like `Preparation.prepare`."""
        name = name_of(entry.key) if is_resizable(entry.blob.spec) else ""
        return self.preparation.prepare(entry.blob, entry.stage, owner, name)

    def _give(self, waiting: Waiting) -> None:
        """Give an attempt to an idle shepherd, now or as soon as there is one."""
        if self._is_wanted(waiting):
            shepherd = self.pool.take_idle(waiting)
            if shepherd is not None:
                self._give_to(shepherd, waiting)

    def on_idle(self, shepherd: Handle, waiting: Waiting) -> bool:
        """Give an attempt that has waited to this shepherd; return False if it is not wanted any more."""
        is_wanted = self._is_wanted(waiting)
        if is_wanted:
            self._give_to(shepherd, waiting)
        return is_wanted

    def _is_wanted(self, waiting: Waiting) -> bool:
        """Return True if the attempt is still to be placed; refuse it if its order has become too old."""
        entry = self.ledger.entries.get(waiting.key)
        is_accepted = entry is not None and entry.state is State.ACCEPTED
        if is_accepted and not self._too_old(waiting.echo):
            return True
        if is_accepted:
            self._refuse(waiting.key, "order too old", host_fault=False)
        self._put_devices_back(waiting.key)
        return False

    def _give_to(self, shepherd: Handle, waiting: Waiting) -> None:
        key = waiting.key
        self.ledger.placed(key)
        self.attempts.note(key, waiting.job)
        self.pool.hold(shepherd, key, waiting.setup, self.ledger.entries[key].launched)

    # -- decisions of this host

    def _refuse(self, key: Key, reason: str, host_fault: bool = True) -> None:
        self._settle(self.ledger.refuse(key, reason, host_fault))

    def _refuse_for_a_defect(self, key: Key) -> None:
        """Refuse an attempt after an unforeseen exception, so that its job does not wait for ever."""
        LOG.exception("event=not_placed key=%s", key)
        self._refuse(key, "this host's agent met an error of its own; its log has the details")

    def _settle(self, reports: list[Report]) -> None:
        """Journal and send ends that no shepherd's log has.

        They can be found out again, so the disk is not waited for.
        """
        for report in reports:
            try:
                self._journal.append([end_record(report)])
            except OSError as error:
                LOG.error("event=journal_full error=%s", error.strerror)
            self.say(report)

    def _told_of_size(self, report: Report) -> None:
        """Record that the job knows its newest allocation, so that it is not notified again after a restart."""
        try:
            self._journal.append([resized_record(report)])
        except OSError as error:
            LOG.error("event=journal_full error=%s", error.strerror)
        if report.HasField("resized"):
            self.say(report)

    # -- from the shepherds

    def adopted(self, handle: Handle, key: Key) -> None:
        """Restore the state of an attempt from its shepherd, after a restart, for the next hello."""
        status = handle.status
        self.ledger.adopt_tasks(key, [fields_of(RunState, one) for one in status.tasks])
        if status.job_pid:
            home, cwd = self.attempts.places(key)
            started = Started(pid=status.job_pid, time=status.job_started, exec_home=home, exec_cwd=cwd)
            self.ledger.started(key, started)
        elif not status.launched:
            self.ledger.staged(key)
        self._limit(key)
        entry = self.ledger.entries.get(key)
        if entry is not None and not entry.is_told:
            self._spawn(self.resizes.adapt(key))

    def on_message(self, handle: Handle, message: Message) -> None:
        """Handle a message of a shepherd about the attempt it holds."""
        kind = message[0]
        key: Key = message[1:4]
        if kind == messages.FINISHED:
            self._finished(handle, fields_of(Finish, message[1:]))
        elif kind == messages.STARTED:
            reach("agent.after_start")
            _, _, _, _, pid, moment, handle.output, handle.error = message
            home, cwd = self.attempts.places(key)
            self._tell(self.ledger.started(key, Started(pid=pid, time=moment, exec_home=home, exec_cwd=cwd)))
            self._limit(key)  # they may have changed before it had a shepherd
        elif kind == messages.TASKS:
            self.task_orders.ran(key, [fields_of(RunState, one) for one in message[4]])
        elif kind == messages.STAGED:
            self._tell(self.ledger.staged(key))
            self._limit(key)
        elif kind == messages.USAGE:
            self._use(key, message[4:])
        elif kind in (messages.TASK_STARTED, messages.TASK_ENDED):
            self.attempts.on_message(message)
        elif kind == messages.REFUSED:
            self._tell(self.ledger.refuse_for(key, NotStarted(*message[4:])))
            self.pool.ended(handle, key)
            self._gone(handle, key)
        elif kind == messages.POSTED:
            self._tell(self.ledger.posted(key, *message[4:6]))
        elif kind == messages.RELEASED:
            reports = self.ledger.released(key, Used(*message[4:]) if message[4:] else None)
            self._tell(self.gpus.ended(key, reports))
            self._gone(handle, key)
        elif kind in self.heard:
            self.heard[kind](key, message[4:])
        elif kind == messages.USED:
            self.counting.answered(key, Used(*message[4]), message[5])
        elif kind == messages.COUNT_OTHERS:
            self._spawn(self.counting.gather(handle, key))
        elif kind == messages.LIMIT_REACHED:
            self._tell(self.ledger.limit_reached(key, message[4]))
        elif self.interface is not None:
            self.interface.on_message(key, kind, message[4:])

    def _finished(self, handle: Handle, finish: Finish) -> None:
        reports = self.gpus.ended(finish.key, self.ledger.finished(finish, *self.attempts.places(finish.key)))
        self.pool.ended(handle, finish.key)
        if finish.released:
            self._gone(handle, finish.key)
        reach("agent.before_report")
        self._tell(reports)

    def _gone(self, handle: Handle, key: Key) -> None:
        self._leave(key)
        if handle.key == key:
            self.pool.done(handle)

    def _leave(self, key: Key) -> None:
        """Release all resources of an attempt of which nothing is left here."""
        entry = self.ledger.entries.get(key)
        if entry is not None and entry.stage.HasField("check_after"):
            self._spawn(self.check(entry.stage.check_after, False))
        self._usages.pop(key, None)
        self.counting.forget(key)
        self.attempts.forget(key)
        if self.interface is not None:
            self.interface.forget(key)
        self._drop_lists(key)
        self.task_orders.forget(key)
        self._put_devices_back(key)

    def _put_devices_back(self, key: Key) -> None:
        entry = self.ledger.entries.get(key)
        if entry is not None:
            self._devices.put_back(entry)

    def _drop_lists(self, key: Key) -> None:
        entry = self.ledger.entries.get(key)
        if entry is not None and is_resizable(entry.blob.spec):
            self.resizes.forget(key)

    def _tell(self, reports: list[Report]) -> None:
        for report in reports:
            self.say(report)

    def _use(self, key: Key, fields: Message) -> None:
        usage = job_usage(key, fields, self.preparation.host.host)
        usage.usage.gpus.extend(self.gpus.watch.usage(key))
        self._usages[key] = usage
        self.use(usage)

    def newest_usages(self) -> list[JobUsage]:
        """Return the newest usage of running jobs, for a master that may have restarted without it."""
        return list(self._usages.values())

    def newest_progress(self) -> list[JobProgress]:
        """Return the newest progress of running jobs, for a master that may have restarted without it."""
        return self.interface.progress.all() if self.interface is not None else []

    def on_lost(self, key: Key, finish: Finish | None, why: str, begun: bool) -> None:
        """Report an attempt whose shepherd died; all its processes are gone by now.

        ``finish`` is the end it recorded before; ``why`` a sentence if more is known than its death; ``begun`` is False
        if no process of it had been started.
        """
        self._leave(key)
        self._settle(self.gpus.ended(key, self.ledger.lost(key, finish, time.time(), why=why, begun=begun)))
