"""Links to agents: one outbox for each connected agent, whose orders wait there for the next message of its stream.

Orders for hosts without a session are dropped: when the agent reconnects, master and agent compare what they hold, and
orders still wanted are given again. Sent at once when idle; messages to a busy host keep a few milliseconds' distance,
because the cost is per message.
"""

import asyncio
import contextlib
import logging
import os
import shlex
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Any

from lavad.agent_links.seals import Seals
from lavad.agent_links.spec_cache import CAUSE_BITS, SpecShelf, as_admitted, blob_of, control_of
from lavad.agent_links.task_orders import TaskMessages, part_message
from lavad.commit_mark import Mark
from lavad.core.cluster import Cluster
from lavad.core.model import PARTS, Allocation, HostShare, Key, Shared
from lavad.core.model.reasons import NotNow
from lavad.core.model.rules.queues import Queue
from lavad.core.notices import NoticeOrder, RevokeOrder
from lavad.core.orders import (
    UNKNOWN,
    AttemptSetup,
    CheckpointOrder,
    ForgetOrder,
    GpuSetup,
    HostDetails,
    LaunchOrder,
    LimitsOrder,
    Order,
    ReleaseOrder,
    ResizeOrder,
    SignalOrder,
    StacksOrder,
    StageOrder,
    TasksOrder,
    spec_defaults,
)
from lavad.core.state.records import numbered
from protos import agents_pb2 as pb
from protos import common_pb2
from protos.jobs_pb2 import JobSpec
from protos.wire import AGENT_MESSAGE_MAX

log = logging.getLogger(__name__)

WINDOW_S = 0.003  # between two messages to a busy host
RETRY_S = 0.5  # before an order is retried whose spec could not be read
BUSY_ATTEMPTS = 8  # on one host: above it orders share messages
MESSAGE_ORDERS_MAX = 256
# Above this size the rest waits for the next message. The last order added may carry a script of several MiB, and a
# message larger than an agent accepts would end its session, again and again.
MESSAGE_BYTES = AGENT_MESSAGE_MAX // 4
# An attempt takes about six orders in its life, and a host has no more attempts than slots: an agent with more orders
# waiting does not read. Its link is cut; when it reconnects, both sides compare what they hold.
WAITING_PER_SLOT_MAX = 8
WAITING_MAX = 1000  # in addition, on a host of any size
SPECS_REMEMBERED = 64  # agents keep at least four times as many


class Outbox:
    """Orders for one session of one agent."""

    def __init__(self, host: str, incarnation: int, slots: int = 0) -> None:
        self.host = host
        self._most = WAITING_MAX + WAITING_PER_SLOT_MAX * slots
        self.incarnation = incarnation
        self.orders: deque[Order] = deque()
        self._staging: set[Key] = set()  # attempts with a stage order in ``orders``
        self._postponed: dict[Key, StageOrder] = {}
        self.echo_monotonic = 0.0
        self.echo_sequence = 0
        self.certificate = ""  # serial number of the agent's certificate
        self.mark_sent = Mark()
        self.is_closed = False
        self._heard = asyncio.Event()
        self._ready = asyncio.Event()
        self._closed = asyncio.Event()
        self._taken_at = 0.0
        self._specs_sent: OrderedDict[int, None] = OrderedDict()
        self._check: pb.HealthCheck | None = None

    def put(self, order: Order) -> None:
        """Add an order for the next message; if too many wait, end the session instead.

        A release replaces a stage order of the attempt that has not been sent, and so does the order to forget it.
        """
        if self.is_closed:
            return
        if isinstance(order, StageOrder):
            self._staging.add(order.key)
        elif isinstance(order, ReleaseOrder | ForgetOrder):
            self._drop_stage(order.key)
        if len(self.orders) >= self._most:
            log.warning("session=cut host=%s reason='%d orders wait and the agent takes none'", self.host, self._most)
            self.close()
            return
        self.orders.append(order)
        self._ready.set()

    def _drop_stage(self, key: Key) -> None:
        self._postponed.pop(key, None)
        if key in self._staging:
            self._staging.discard(key)
            self.orders = deque(one for one in self.orders if not (isinstance(one, StageOrder) and one.key == key))

    def postpone(self, order: StageOrder, delay_s: float) -> None:
        """Add a stage order later, unless the attempt is released until then."""
        self._postponed[order.key] = order
        asyncio.get_running_loop().call_later(delay_s, self._resume, order)

    def _resume(self, order: StageOrder) -> None:
        if self._postponed.get(order.key) is order:
            del self._postponed[order.key]
            self.put(order)

    def check(self, check: pb.HealthCheck) -> None:
        """Ask for a health check with the next message."""
        self._check = check
        self._ready.set()

    def take_check(self) -> pb.HealthCheck | None:
        """Take the health check that is to be asked for, if there is one."""
        check, self._check = self._check, None
        return check

    def nudge(self) -> None:
        """Send a message even without orders: a heartbeat's echo, or the end."""
        self._ready.set()

    def close(self) -> None:
        """End the session."""
        self.is_closed = True
        self.orders.clear()
        self._staging.clear()
        self._postponed.clear()
        self._ready.set()
        self._heard.set()
        self._closed.set()

    def hear(self, sent_monotonic: float, sequence: int) -> None:
        """Note the newest message of the agent, for the echo."""
        self.echo_monotonic, self.echo_sequence = sent_monotonic, sequence
        self._heard.set()

    async def ended_or_heard(self, sequence: int, timeout_s: float) -> bool:
        """Wait for a message after that one, the end of the session or the timeout; return True only for a message."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self.is_closed and self.echo_sequence <= sequence:
                    self._heard.clear()
                    await self._heard.wait()
        return not self.is_closed and self.echo_sequence > sequence

    async def closed(self) -> None:
        """Wait until the session is over."""
        await self._closed.wait()

    async def wait(self, timeout_s: float) -> None:
        """Wait for something to send, or for the timeout."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()

    async def keep_distance(self) -> None:
        """Wait until ``WINDOW_S`` after the last message."""
        left_s = self._taken_at + WINDOW_S - time.monotonic()
        if left_s > 0 and not self.is_closed:
            await asyncio.sleep(left_s)

    def begin_message(self) -> None:
        """Note that a message is made of the orders that wait."""
        self._taken_at = time.monotonic()
        if not self.orders:
            self._ready.clear()

    def take(self) -> Order | None:
        """Take the next order; None if there is none."""
        if not self.orders:
            return None
        order = self.orders.popleft()
        if isinstance(order, StageOrder):
            self._staging.discard(order.key)
        if not self.orders:
            self._ready.clear()
        return order

    def needs_spec(self, number: int) -> bool:
        """Return True unless this session sent the spec of that number lately; note that it is sent now."""
        known = number in self._specs_sent
        self._specs_sent[number] = None
        self._specs_sent.move_to_end(number)
        if len(self._specs_sent) > SPECS_REMEMBERED:
            self._specs_sent.popitem(last=False)
        return not known

    def forget_spec(self, number: int) -> None:
        """Send the spec again with its next order, since it was changed."""
        self._specs_sent.pop(number, None)


class AgentLinks:
    """All outboxes, by host."""

    def __init__(self, cluster: Cluster, shelf: SpecShelf, seals: Seals | None = None) -> None:
        self.cluster = cluster
        self.shelf = shelf
        self.seals = seals or Seals(os.urandom(32))  # of this master alone
        self.outboxes: dict[str, Outbox] = {}
        self.on_lost_spec: Callable[[Key], None] = lambda key: None
        self.mark: Callable[[], Mark] = Mark
        self._last_stage: tuple[object, pb.Stage] = (None, pb.Stage())  # with the values it was made from
        self._tasks = TaskMessages()

    def open(self, host: str, incarnation: int, slots: int = 0) -> Outbox:
        """Open a session for a host with this many slots; an older one of the same host is closed."""
        older = self.outboxes.get(host)
        if older is not None:
            older.close()
        outbox = self.outboxes[host] = Outbox(host, incarnation, slots)
        return outbox

    def close_all(self) -> None:
        """End all sessions."""
        for outbox in self.outboxes.values():
            outbox.close()

    def close(self, outbox: Outbox) -> bool:
        """End a session; return False if a newer one has taken its place."""
        outbox.close()
        if self.outboxes.get(outbox.host) is not outbox:
            return False
        del self.outboxes[outbox.host]
        return True

    def send(self, orders: Iterable[Order]) -> None:
        """Put each order into its host's outbox, if that host is connected."""
        for order in orders:
            outbox = self.outboxes.get(order.host)
            if outbox is not None:
                outbox.put(order)

    def spec_changed(self, job: int) -> None:
        """Drop the cached spec of a job after bmod: agents get it anew."""
        self.shelf.drop(job)
        for outbox in self.outboxes.values():
            outbox.forget_spec(job)

    def is_busy(self, host: str) -> bool:
        """Return True if so many attempts run there that orders should share messages."""
        known = self.cluster.hosts.get(host)
        return known is not None and len(known.attempts) > BUSY_ATTEMPTS

    async def message(self, outbox: Outbox) -> pb.Orders:
        """Build the next message: orders, the specs they need, the echo of the agent's last message."""
        message = pb.Orders(term=self.cluster.term)
        mark = self.mark()
        if mark != outbox.mark_sent:
            outbox.mark_sent = mark
            message.mark.database, message.mark.term, message.mark.batch, message.mark.next_job = mark
            message.mark.seal = self.seals.of_mark(mark)
        await self._add_orders(message, outbox)
        if (check := outbox.take_check()) is not None:
            message.health_check.CopyFrom(check)
        message.echo_monotonic = outbox.echo_monotonic
        message.echo_sequence = outbox.echo_sequence
        return message

    async def _add_orders(self, message: pb.Orders, outbox: Outbox) -> None:
        """Add waiting orders while the message stays well below the size that an agent accepts."""
        outbox.begin_message()
        size = 0
        for _ in range(MESSAGE_ORDERS_MAX):
            order = outbox.take() if size < MESSAGE_BYTES else None
            if order is None:
                return
            if isinstance(order, StageOrder):
                size += await self._add_stage(message, outbox, order)
            elif isinstance(order, ResizeOrder):
                size += self._add_resize(message, order)
            elif isinstance(order, TasksOrder):
                size += self._tasks.add(message, order)
            else:
                _ADDERS[type(order)](message, order)

    async def _add_stage(self, message: pb.Orders, outbox: Outbox, order: StageOrder) -> int:
        """Add a stage order, with the job's spec if needed; return their size in bytes."""
        size = 0
        if outbox.needs_spec(_spec_number(order)):
            spec = await self._spec_for(outbox, order)
            if spec is None:
                return 0
            setup, shared = order.setup, order.setup.shared
            blob = blob_of(
                as_admitted(spec, spec_defaults(shared, setup.queue)),
                order.key.job,
                shared.user,
                shared.uid,
                shared.gid,
                shared.queue,
                self.cluster.name,
                setup.submitted_at,
                setup.part,
            )
            self.seals.seal_spec(blob)
            message.specs.append(blob)
            size = blob.ByteSize()
        added = message.orders.add(allocation_version=order.version)
        added.key.job, added.key.index, added.key.attempt = order.key
        added.stage.CopyFrom(self._stage(order))
        self.seals.seal_stage(order.key, added.stage)
        return size + added.ByteSize()

    def _add_resize(self, message: pb.Orders, order: ResizeOrder) -> int:
        added = message.orders.add(allocation_version=order.version)
        added.key.job, added.key.index, added.key.attempt = order.key
        added.resize.allocation.extend(_shares(order.allocation, order.hosts))
        added.resize.notify = order.notify
        added.resize.tasks.extend([part_message(one) for one in order.tasks])
        added.resize.allocation_seal = self.seals.of_allocation(order.key, added.resize.allocation)
        return added.ByteSize()

    def _stage(self, order: StageOrder) -> pb.Stage:
        """Build the stage order; neighbouring elements of an array mostly have equal ones and share the message."""
        setup = order.setup
        same = (order.allocation, order.launch_now, order.lease_s, order.tasks, setup)
        if self._last_stage[0] != same:
            shared, queue = setup.shared, setup.queue
            stage = pb.Stage(
                allocation=_shares(order.allocation, setup.hosts),
                launch_now=order.launch_now,
                spec_version=setup.part,
                run_limit_s=shared.run_limit_s,
                deadline=shared.terminate_at,
                queue=shared.queue,
                nice=queue.nice,
                job_starter=queue.defaults.job_starter,
                controls=[control_of(*one) for one in queue.job_controls],
                environment=_environment(shared, queue),
                gpu=_gpu_message(setup.gpu) if setup.gpu is not None else None,
                lease_s=order.lease_s,
                check_before=_check(queue.checks.before, queue.checks.limit_s),
                check_after=_check(queue.checks.after, queue.checks.limit_s),
                tasks=[part_message(one) for one in order.tasks],
                warning_time_s=setup.warning_time_s,
                warning_action=queue.warning_action,
                around=_around(setup),
            )
            self._last_stage = (same, stage)
        return self._last_stage[1]

    async def _spec_for(self, outbox: Outbox, order: StageOrder) -> JobSpec | None:
        """Return the job's spec; None if the store fails (the order is retried) or has lost it (the job is killed)."""
        try:
            return await self.shelf.spec(_spec_number(order))
        except NotNow as error:
            log.warning("order=postponed job=%s host=%s reason=%r", order.key, order.host, str(error))
            outbox.forget_spec(_spec_number(order))
            outbox.postpone(order, RETRY_S)
        except KeyError:
            log.error("order=impossible job=%s reason='the store has no spec of it'", order.key)
            self.on_lost_spec(order.key)
        return None


def _spec_number(order: StageOrder) -> int:
    return numbered(order.key.job, order.setup.part)


def _environment(shared: Shared, queue: Queue) -> dict[str, str]:
    own = {"LSB_EFFECTIVE_RSRCREQ": shared.requirement} if shared.requirement else {}
    return {**dict(queue.environment), **own}


def _check(command: str, limit_s: float) -> pb.HealthCheck | None:
    return pb.HealthCheck(argv=shlex.split(command), limit_s=limit_s) if command else None


def _around(setup: AttemptSetup) -> pb.AroundJob | None:
    """Build the queue's commands around a job, and what holds for its own; None where there is nothing to say."""
    rule, limit, defaults = setup.around, setup.queue.requeue_limit, setup.queue.defaults
    of_hosts = (rule.host_pre, rule.host_post, rule.profile_host_pre, rule.profile_host_post)
    has_commands = bool(defaults.pre_exec or defaults.post_exec or any(of_hosts))
    message = pb.AroundJob(
        pre_exec=defaults.pre_exec,
        post_exec=defaults.post_exec,
        host_pre_exec=rule.host_pre,
        host_post_exec=rule.host_post,
        profile_host_pre_exec=rule.profile_host_pre,
        profile_host_post_exec=rule.profile_host_post,
        job_pre_exec=rule.job_pre,
        job_post_exec=rule.job_post,
        user=rule.user or "" if has_commands else "",
        pre_limit_s=rule.pre_limit_s or 0.0,
        post_limit_s=rule.post_limit_s or 0.0,
        includes_post=bool(rule.includes_post),
        requeued_codes=setup.requeued_codes,
        success_codes=setup.success_codes,
        requeues_max_plus_one=limit + 1 if limit is not None and setup.requeued_codes else 0,
    )
    return message if message.ByteSize() else None


def _shares(allocation: Allocation, hosts: tuple[HostDetails, ...]) -> list[common_pb2.HostShare]:
    return [_share(*two) for two in zip(allocation, hosts, strict=True)]


def _share(share: HostShare, details: HostDetails) -> common_pb2.HostShare:
    message = common_pb2.HostShare(
        host=share.host,
        slots=share.slots,
        gpus=share.gpus,
        memory_mib=share.memory_mib,
        address=details.address,
        tasks_by_role=share.tasks_by_role,
        gpu_memory_mib=share.gpu_memory_mib,
        gpu_roles=share.gpu_roles,
    )
    for one in share.resources:
        message.resources.add(
            name=one.name, amount=one.amount / PARTS, devices=one.devices, device_roles=one.device_roles
        )
    for binding in details.bindings:
        message.cpus.add(cpus=binding.cpus, nodes=binding.nodes, memory=binding.memory)
    return message


def _gpu_message(gpu: GpuSetup) -> pb.GpuSetup:
    return pb.GpuSetup(
        mode=gpu.mode,
        mps=gpu.mps,
        no_variable=gpu.no_variable,
        per_task=gpu.per_task,
        block=gpu.block,
        roles=[pb.GpusOfRole(per_task=per_task, block=block) for per_task, block in gpu.roles],
        idle_power_w=gpu.idle_power_w,
        idle_power_fraction=gpu.idle_fraction,
    )


def key_message(key: Key) -> common_pb2.AttemptKey:
    """Convert a key to the wire."""
    return common_pb2.AttemptKey(job=key.job, index=key.index, attempt=key.attempt)


def _add_launch(message: pb.Orders, order: LaunchOrder) -> None:
    launch = pb.LaunchOrder()
    message.orders.append(pb.Order(key=key_message(order.key), allocation_version=order.version, launch=launch))


def _add_revocation(message: pb.Orders, order: RevokeOrder) -> None:
    message.host_notice.CopyFrom(pb.HostNotice(seconds=max(0.0, order.seconds), withdrawn=order.seconds < 0))


def _add_signal(message: pb.Orders, order: SignalOrder) -> None:
    causes = sum(CAUSE_BITS.get(cause, 0) for cause in order.causes)
    event, notice, notice_s = order.notice
    signal = pb.SignalOrder(
        signal=order.signal, reason=order.reason, serial=order.serial, causes=causes,
        event=event, notice="" if notice == order.reason else notice, notice_s=notice_s,
    )  # fmt: skip
    message.orders.append(pb.Order(key=key_message(order.key), signal=signal))


def _add_notice(message: pb.Orders, order: NoticeOrder) -> None:
    notice = pb.Notice(event=order.event, reason=order.reason, at=order.at, serial=order.serial)
    message.orders.append(pb.Order(key=key_message(order.key), notice=notice))


def _add_limits(message: pb.Orders, order: LimitsOrder) -> None:
    limits = pb.Limits(
        version=order.version,
        run_limit_s=order.run_limit_s,
        deadline=order.deadline,
        memory_limit_mib=order.memory_limit_mib,
        checkpoint_period_s=order.checkpoint_period_s,
        cpu_limit_s=order.run.cpu_limit_s,
        files=pb.OutputFiles(**order.run.files._asdict()) if order.run.files is not None else None,
    )
    message.orders.append(pb.Order(key=key_message(order.key), limits=limits))


def _add_release(message: pb.Orders, order: ReleaseOrder) -> None:
    if order.reason == UNKNOWN:  # processes there are killed: never without a log line
        log.warning("attempt=ended job=%d index=%d attempt=%d host=%s reason=%r", *order.key, order.host, UNKNOWN)
    message.orders.append(pb.Order(key=key_message(order.key), release=pb.Release(reason=order.reason)))


def _add_forget(message: pb.Orders, order: ForgetOrder) -> None:
    message.forget.append(key_message(order.key))


def _add_stacks(message: pb.Orders, order: StacksOrder) -> None:
    message.stacks.add(key=key_message(order.key), number=order.number, limit_s=order.limit_s)


def _add_checkpoint(message: pb.Orders, order: CheckpointOrder) -> None:
    asked = order.request
    message.checkpoints.add(key=key_message(order.key), number=asked.number, force=asked.force, ends=asked.ends)


_ADDERS: dict[type, Callable[[pb.Orders, Any], None]] = {
    LaunchOrder: _add_launch,
    SignalOrder: _add_signal,
    NoticeOrder: _add_notice,
    LimitsOrder: _add_limits,
    ReleaseOrder: _add_release,
    ForgetOrder: _add_forget,
    RevokeOrder: _add_revocation,
    StacksOrder: _add_stacks,
    CheckpointOrder: _add_checkpoint,
}
