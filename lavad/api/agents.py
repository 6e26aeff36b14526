"""Session stream of the agents: reports in, orders out; translates, decides nothing.

The host is the one named in the certificate. The outbox is opened before the hello is executed, so that the orders that
the hello leads to go to the new session; a newer session of a host closes the older one.
"""

import asyncio
import logging
import operator
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import grpc

from lavad.adoption import Adoption
from lavad.agent_links.links import AgentLinks, Outbox
from lavad.api import checks, gpu_use, identity, task_reports, translate
from lavad.api.recovery import Recovering
from lavad.api.trust import Trust
from lavad.commit_mark import Mark
from lavad.core import commands as c
from lavad.core.apply.charge import observe, observe_progress
from lavad.core.decide.recovery import waits_unheard
from lavad.core.model import Key, PostState
from lavad.core.model import reasons as r
from lavad.core.model.host_config import as_configured
from lavad.core.model.progress import NOT_SAID, Progress
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.model.usage import HostUsage
from lavad.core.state.hosts.revocable import is_revocable
from lavad.engine import Engine
from lavad.settings import Settings
from protos import agents_pb2 as pb
from protos import agents_pb2_grpc, cluster_pb2, common_pb2, endings
from protos.failpoints import reach
from protos.trust.roles import TrustError
from protos.wire import LATER_REPORTS, PROTOCOL, REPORTS_UNDERSTOOD, TASK_PATIENCE

if TYPE_CHECKING:
    from lavad.api.cluster.installation import Installation
    from lavad.health_checks import HealthChecks

log = logging.getLogger(__name__)

HELLO_TIMEOUT_S = 20.0
# An agent sends with each heartbeat; its successor waits longer than this for a welcome.
PATIENCE_HEARTBEATS = 2.0
PATIENCE_S = 11.0
ALREADY_CONNECTED = (
    "Another agent of host {0} is connected with the same name. Is this a copy of that host's disk? "
    "Remove agent.pem in the identity directory here and join with a ticket for a name of its own."
)


class AgentService(agents_pb2_grpc.AgentServiceServicer):
    """Agent service: one ``Session`` call for each connected agent.

    ``loads`` and ``facts`` keep what each host last reported, for display.
    """

    def __init__(
        self,
        engine: Engine,
        links: AgentLinks,
        settings: Settings,
        ticket_key: bytes,
        trust: Trust | None = None,
        adoption: Adoption | None = None,
    ) -> None:
        self.engine = engine
        self.adoption = adoption
        self._trust = trust
        self.installation: Installation | None = None
        self.health_checks: HealthChecks | None = None
        self._trust_version = 0
        self.links = links
        self.settings = settings
        self.ticket_key = ticket_key
        self.loads: dict[str, cluster_pb2.Load] = {}
        self.facts: dict[str, cluster_pb2.HostFacts] = {}

    async def Session(self, request_iterator: Any, context: identity.Context) -> None:
        """Serve one session until either side ends it."""
        host = await identity.agent_host(context)
        first = await asyncio.wait_for(context.read(), HELLO_TIMEOUT_S)
        refusal = self._why_refused(host, first) or await self._why_taken(host, first.hello.incarnation)
        if refusal:
            log.warning("session=refused host=%s reason=%r", host, refusal)
            await context.write(pb.Orders(welcome=pb.Welcome(error=refusal)))
            return
        if not await self._agree(host, first.hello, context):
            return
        outbox = self.links.open(host, first.hello.incarnation, first.hello.facts.slots)
        outbox.certificate = self._trust.note_session(context) if self._trust is not None else ""
        version = first.hello.facts.version
        log.info("session=open host=%s held=%d version=%r", host, len(first.hello.held), version)
        await context.write(self._welcome(first))
        try:
            self._hello(host, outbox, first)
            await self._run(host, outbox, context)
        except Refused as error:
            await context.write(pb.Orders(welcome=pb.Welcome(error=str(error))))
        finally:
            if self.links.close(outbox):
                self.engine.post([c.AgentGone(host, first.hello.incarnation)])
            log.info("session=closed host=%s", host)

    def _why_refused(self, host: str, first: Any) -> str:
        if not isinstance(first, pb.Reports) or not first.HasField("hello"):
            return "The first message of a session must be a hello."
        if first.hello.protocol != PROTOCOL:
            return (
                f"The master speaks protocol {PROTOCOL}, this agent {first.hello.protocol}: install the same version."
            )
        if first.hello.facts.name != host:
            return f"The certificate is for {host}, but the agent calls itself {first.hello.facts.name}."
        try:
            checks.check_facts(first.hello.facts)
        except Refused as error:
            return str(error)
        return ""

    async def _why_taken(self, host: str, incarnation: int) -> str:
        """Return why the host name is taken; empty if the older session is closed or silent.

        A restarted agent finds its predecessor's session closed or silent. An older agent that still sends keeps the
        name: otherwise two agents with one certificate would end each other's sessions for ever.
        """
        older = self.links.outboxes.get(host)
        if older is None or older.incarnation == incarnation:
            return ""
        heard = older.echo_sequence
        if await older.ended_or_heard(heard, min(PATIENCE_S, PATIENCE_HEARTBEATS * self.settings.heartbeat_s)):
            return ALREADY_CONNECTED.format(host)
        return ""

    def tell_settings(self) -> None:
        """Send the settings now in force to all agents at once, rather than with each one's next heartbeat."""
        for outbox in self.links.outboxes.values():
            outbox.nudge()

    def enforce_trust(self) -> None:
        """End sessions with revoked certificates, and send agents the new list of revoked certificates."""
        if self._trust is None:
            return
        try:
            self._trust.register.refresh()
        except TrustError as error:
            log.error("trust=unreadable reason=%r", str(error))
        version = self._trust.register.version
        if version == self._trust_version:
            return
        self._trust_version = version
        for host, outbox in list(self.links.outboxes.items()):
            if self._trust.is_serial_revoked(outbox.certificate):
                log.warning("session=cut host=%s reason='its certificate is revoked'", host)
                outbox.close()
            outbox.nudge()

    def remove(self, host: str, by: str) -> None:
        """Revoke the host's certificate, end its session, and drop its last facts and load."""
        if self._trust is not None:
            self._trust.revoke_host(host, by)
        outbox = self.links.outboxes.get(host)
        if outbox is not None:
            outbox.close()
        self.facts.pop(host, None)
        self.loads.pop(host, None)

    async def _agree(self, host: str, hello: pb.Hello, context: identity.Context) -> bool:
        """Return True if the session may go on: adoption admits the host's commit mark and needs no detailed hello.

        Otherwise the host gets a welcome with the reason, and the session is over.
        """
        if self.adoption is None:
            return True
        seen = hello.mark
        said = Mark(seen.database, seen.term, seen.batch, seen.next_job)
        mark = said if self.links.seals.is_own_mark(said, seen.seal) else Mark()
        why = await self.adoption.admit(host, mark, said._replace(term=max(seen.term, hello.highest_term)))
        wants_details = not why and self.adoption.asks(host, mark, hello.is_detailed)
        if wants_details:
            why = "The master has to hear in detail what this host holds."
        if why:
            log.info("session=refused host=%s held=%d reason=%r", host, len(hello.held), why)
            await context.write(pb.Orders(welcome=pb.Welcome(error=why, wants_details=wants_details)))
        return not why

    def _recover(self, adoption: Adoption, host: str, hello: pb.Hello) -> None:
        """Restore running attempts that the database lacks; ended ones once no other host can contradict the end."""
        recovering = Recovering(self.engine.cluster, self.links.shelf, self.links.seals, hello, key_of)
        cluster = self.engine.cluster
        commands = list(recovering.held())
        self.engine.post(commands)
        found = [f"job={told(one.key)} host={host} state=running" for one in commands if one.key in cluster.attempts]
        for one in commands:
            if one.key not in cluster.attempts:
                log.error("recovery=impossible job=%s host=%s: it runs on, and is in no list", told(one.key), host)
        adoption.late += [
            (host, enter, _finished(host, key_of(one.key), one.last)) for enter, one in recovering.ended()
        ]
        adoption.unproven += [(host, key) for key in recovering.unproven()]
        if not adoption.is_settling:
            self.enter_ends(adoption)
        adoption.back(host, found)

    def enter_ends(self, adoption: Adoption) -> None:
        """Restore attempts that have ended, that no host holds any more, and whose end the database lacks.

        The newest attempt of a job first: once it is known, older ones are over, also those that the database has.
        """
        late, adoption.late = adoption.late, []
        cluster = self.engine.cluster
        for host, enter, end in sorted(late, key=lambda one: one[2].key.attempt, reverse=True):
            if enter is None:
                self.engine.post([end])
                continue
            self.engine.post([enter])
            if enter.key in cluster.attempts:
                self.engine.post([end])
                status = f"status={end.status >> 8 or end.status}"
                adoption.note_found([f"job={told(enter.key)} host={host} state=ended {status}"])
        lacking, adoption.lacking = adoption.lacking, {}
        self.engine.post([c.AgentLacks(host, keys) for host, keys in lacking.items()])
        self._hold_unproven(adoption)

    def _hold_unproven(self, adoption: Adoption) -> None:
        """Hold (PSUSP) pending jobs that may already have run, for an administrator to check before they start."""
        unproven, adoption.unproven = adoption.unproven, []
        for host, key in unproven:
            if waits_unheard(self.engine.cluster, key):
                master = c.Caller("lavad", 0, is_administrator=True)
                self.engine.post([c.StopJob(c.Target(key.job, Ranges.of(key.index) if key.index else None), master)])
                log.warning("recovery=held job=%s host=%s: it may have run there, without proof", told(key), host)
                adoption.note_found([f"job={told(key)} host={host} state=held: it may have run there; see bresume"])

    def _welcome(self, first: pb.Reports) -> pb.Orders:
        return pb.Orders(
            term=self.engine.cluster.term,
            # No echo here: it would renew the host's leases, and the hello may still be refused.
            welcome=self._terms(first.hello.facts.name, first.hello.facts),
        )

    def _terms(self, host: str, facts: cluster_pb2.HostFacts | None) -> pb.Welcome:
        """Build the welcome that tells the agent the cluster's settings."""
        return pb.Welcome(
            cluster=self.engine.cluster.name,
            heartbeat_s=self.settings.heartbeat_s,
            order_validity_s=self.engine.cluster.policy.order_validity_s,
            administrators=sorted(self.settings.administrators),
            usage_interval_s=self.settings.usage_interval_s,
            terminate_interval_s=self.engine.cluster.policy.terminate_interval_s,
            ticket_key=self.ticket_key,
            lsf_conf=self.installation.shared if self.installation is not None else {},
            default_queues=self.installation.default_queues if self.installation is not None else "",
            revoked=self._trust.revoked() if self._trust is not None else (),
            settings={
                "LSF_RESOURCES": " ".join(self._dynamic(host)),
                REPORTS_UNDERSTOOD: " ".join(LATER_REPORTS),
                TASK_PATIENCE: str(self.settings.task_patience_s),
                "CLEAN_PERIOD": str(self.engine.cluster.policy.clean_period_s),
                **self.settings.of_agents(),
                **(self.settings.host_notice() if self._is_revocable(facts) else {}),
            },
        )

    def _is_revocable(self, facts: cluster_pb2.HostFacts | None) -> bool:
        """Return True if the host may be taken away: its agent says so, or the configuration does."""
        offered = translate.facts_of(facts) if facts is not None else None
        return offered is not None and is_revocable(as_configured(self.engine.cluster.policy, offered))

    def _sources(self) -> tuple[object, object, object]:
        """Return the objects the terms are made from; any change replaces one of them."""
        settings = self.installation.settings if self.installation is not None else None
        return self.engine.cluster.policy, settings, self._trust_version

    def _dynamic(self, host: str) -> list[str]:
        """Return the dynamic resources that an elim on the host reports."""
        policy = self.engine.cluster.policy
        there = {one.resource for one in policy.resource_map if host in one.hosts}
        return sorted(name for name, one in policy.resources.items() if one.interval_s > 0 and name in there)

    def _hello(self, host: str, outbox: Outbox, first: pb.Reports) -> None:
        outbox.hear(first.sent_monotonic, first.sequence)
        hello = first.hello
        held = tuple(_held(host, one) for one in hello.held)
        self.facts[host] = hello.facts
        if self.adoption is not None:
            if hello.is_detailed and self.adoption.was_asked(host):
                self._recover(self.adoption, host, hello)
            self.adoption.back(host, [])
        lacks_later = self.adoption is not None and self._put_off(self.adoption, host, held)
        self.engine.post([c.AgentHello(translate.facts_of(hello.facts), hello.incarnation, held, lacks_later)])
        self._take(host, outbox, first)

    def _put_off(self, adoption: Adoption, host: str, held: tuple[c.HeldAttempt, ...]) -> bool:
        """Put off what to do about attempts that the host does not hold, while other hosts may hold newer ones.

        Returns:
            True if it is put off; a database that is older than the cluster may have attempts that are long over.
        """
        if not adoption.is_settling:
            return False
        known, reported = self.engine.cluster.hosts.get(host), {one.key for one in held}
        adoption.lacking[host] = tuple(key for key in known.attempts if key not in reported) if known else ()
        return True

    async def _run(self, host: str, outbox: Outbox, context: identity.Context) -> None:
        """Read reports and write orders until the agent disconnects, a newer session replaces it, or a write fails."""
        tasks = [asyncio.create_task(work(host, outbox, context)) for work in (self._read, self._write)]
        try:
            await outbox.closed()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self, host: str, outbox: Outbox, context: identity.Context) -> None:
        told = self._sources()
        try:
            while not outbox.is_closed:
                await outbox.wait(self.settings.heartbeat_s)
                if self.links.is_busy(host):
                    await outbox.keep_distance()
                if not outbox.is_closed:
                    message = await self.links.message(outbox)
                    if not all(map(operator.is_, told, self._sources())):
                        told = self._sources()
                        message.welcome.CopyFrom(self._terms(host, self.facts.get(host)))
                    await context.write(message)
                    if message.orders:
                        reach("master.after_orders", message.orders)
        except Exception:
            log.exception("session=failed host=%s", host)
        finally:
            outbox.close()

    async def _read(self, host: str, outbox: Outbox, context: identity.Context) -> None:
        try:
            while True:
                message = await context.read()
                if not isinstance(message, pb.Reports):
                    return
                self._take(host, outbox, message)
        except Exception:
            log.exception("session=failed host=%s", host)
        finally:
            outbox.close()

    def _take(self, host: str, outbox: Outbox, message: pb.Reports) -> None:
        """Handle one message of an agent: heartbeat, load, usage, reports."""
        outbox.hear(message.sent_monotonic, message.sequence)
        cluster = self.engine.cluster
        if host not in cluster.hosts and not message.HasField("hello"):
            outbox.close()  # the host was removed
            return
        if cluster.heard(host, self.engine.clock()):
            self.engine.post([c.AgentHeard(host)])
        if message.HasField("load"):
            checks.tidy_load(message.load)
            self.loads[host] = message.load
            cluster.observe_load(host, translate.load_of(message.load))
            if cluster.observe_gpus(host, translate.unfit_gpus_of(message.load.gpus)):
                self.engine.on_change()  # a pending job may wait for a GPU that is fit again
            if message.load.external:
                cluster.table.set_external(cluster.hosts[host].row, translate.external_of(message.load))
            if cluster.table.changed_values:
                self.engine.on_change()  # a pending job may wait for this load
        if message.usages:
            at = self.engine.clock()
            observe(cluster, host, tuple((key_of(one.key), _usage(one.usage, at)) for one in message.usages))
            if checked := [c.CheckGpus(host, key_of(one.key)) for one in message.usages if _wants_look(one.usage.gpus)]:
                self.engine.post(checked)
        for one in message.progress:
            key, progress = key_of(one.key), _progress(host, one.progress, self.engine.clock())
            if observe_progress(cluster, host, key, progress, self.engine.clock()):
                self.engine.post([c.ReportProgress(host, key, progress)])
        if message.activities or message.stacks:
            self.engine.post(task_reports.activity_of(host, message))
        if message.checkpoints:
            self.engine.post([task_reports.checkpoint_of(host, one) for one in message.checkpoints])
        if message.HasField("health") and self.health_checks is not None:
            self.engine.post(self.health_checks.take(host, message.health, self.engine.clock()))
        if message.HasField("host_notice"):
            self.engine.post([_notice(host, message.host_notice)])
        if message.HasField("taken_notice"):
            self.engine.post([c.NoticeTaken(host, _seconds_of(message.taken_notice))])
        if message.reports:
            self.engine.post([_report(host, one) for one in message.reports if one.WhichOneof("what")])
            reach("master.after_report", message.reports)
        else:
            outbox.nudge()  # the echo dates the orders for the agent's leases


def key_of(key: common_pb2.AttemptKey) -> Key:
    """Convert an attempt key from the wire."""
    return Key(key.job, key.index, key.attempt)


def told(key: Key) -> str:
    """Format an attempt key for log lines."""
    return f"{key.job}[{key.index}].{key.attempt}" if key.index else f"{key.job}.{key.attempt}"


def _held(host: str, one: pb.Held) -> c.HeldAttempt:
    key = key_of(one.key)  # the reports in it are about this attempt, whatever keys they carry themselves
    kind = one.last.WhichOneof("what")
    last = _REPORTS[kind](host, key, one.last) if kind else None
    resized = _resized(host, key, one.resized) if one.HasField("resized") else None
    limit = _limit_reached(host, key, one.limit_reached) if one.HasField("limit_reached") else None
    tasks = task_reports.states_of(one.tasks)
    return c.HeldAttempt(key, last, one.launched, one.allocation_version, resized, one.limits_version, limit, tasks)


def _report(host: str, report: pb.Report) -> Any:
    kind = report.WhichOneof("what")
    assert kind is not None, "a report of a kind that is not known here is left out before"
    return _REPORTS[kind](host, key_of(report.key), report)


def _notice(host: str, notice: pb.HostNotice) -> c.HostNoticed:
    return c.HostNoticed(host, _seconds_of(notice), checks.words_of(notice.text))


def _seconds_of(notice: pb.HostNotice) -> float:
    return -1.0 if notice.withdrawn else checks.amount_of(notice.seconds)


_POSTS = {int(one): one for one in PostState}


def _finished(host: str, key: Key, report: pb.Report) -> c.ReportFinished:
    end = report.finished
    detail, words = checks.words_of(end.detail), checks.words_of
    reason = endings.explained(words(end.reason), detail if end.status else "")
    return c.ReportFinished(
        host, key, end.status, checks.moment_of(end.time, time.time()), reason, checks.amount_of(end.cpu_s),
        min(end.memory_mib_max, checks.MEMORY_MAX_MIB), end.pid, checks.amount_of(end.started),
        detail, words(end.exec_home), words(end.exec_cwd), report.also_released, end.lost, report.allocation_version,
        checks.amount_of(end.user_s), checks.amount_of(end.system_s), checks.amount_of(end.memory_mib_mean),
        checks.amount_of(end.seconds), tuple((one.host, _usage(one)) for one in end.others) if end.others else (),
        gpu_use.use_of(end.gpus), _POSTS.get(end.post, PostState.NONE), checks.moment_of(end.posted_at, time.time()),
    )  # fmt: skip


def _resized(host: str, key: Key, report: pb.Report) -> c.ReportResized:
    word = report.resized
    parts = task_reports.parts_of(word.tasks)
    return c.ReportResized(host, key, report.allocation_version, word.failed, checks.words_of(word.detail), parts)


def _released(host: str, key: Key, report: pb.Report) -> c.ReportReleased:
    usage = _usage(report.released.usage) if report.released.HasField("usage") else None
    return c.ReportReleased(host, key, report.allocation_version, usage)


def _limit_reached(host: str, key: Key, report: pb.Report) -> c.ReportLimit:
    reason = endings.sentence(checks.words_of(report.limit_reached.reason))
    return c.ReportLimit(host, key, reason, report.allocation_version)


def _refused(host: str, key: Key, report: pb.Report) -> c.ReportRefused:
    word = report.refused
    reason, version = checks.words_of(word.reason), report.allocation_version
    pre_exec = word.pre_exec if word.pre_exec in r.PRE_EXEC else ""
    code, lacking = min(word.pre_exec_code, 255), checks.words_of(word.lacking)
    status = max(word.lacking_status, 0)
    term = endings.explained(checks.words_of(word.lacking_term), reason) if status else ""
    return c.ReportRefused(
        host, key, reason, word.host_fault, version, word.user_unknown, pre_exec, code, lacking, status, term
    )


def _started(host: str, key: Key, report: pb.Report) -> c.ReportStarted:
    begin, words = report.started, checks.words_of
    at = checks.moment_of(begin.time, time.time())
    return c.ReportStarted(host, key, begin.pid, at, words(begin.exec_home), words(begin.exec_cwd))


_REPORTS: dict[str, Callable[[str, Key, pb.Report], Any]] = {
    "staged": task_reports.staged,
    "refused": _refused,
    "started": _started,
    "finished": _finished,
    "released": _released,
    "resized": _resized,
    "limit_reached": _limit_reached,
    "wanted": task_reports.wanted,
    "tasks": lambda host, key, report: c.ReportTasks(host, key, task_reports.states_of(report.tasks.tasks)),
}


def _usage(usage: common_pb2.Usage, at: float = 0.0) -> HostUsage:
    """Convert reported usage, kept within bounds: it is summed over hosts and charged to the job's account."""
    return HostUsage(
        checks.amount_of(usage.cpu_s),
        min(usage.memory_mib, checks.MEMORY_MAX_MIB),
        min(usage.memory_mib_max, checks.MEMORY_MAX_MIB),
        min(usage.swap_mib, checks.MEMORY_MAX_MIB),
        tuple(usage.pids[: checks.PIDS_MAX]),
        tuple(usage.process_groups[: checks.PIDS_MAX]),
        min(usage.threads, checks.THREADS_MAX),
        checks.amount_of(usage.memory_mib_mean),
        checks.amount_of(usage.user_s),
        checks.amount_of(usage.system_s),
        checks.amount_of(usage.seconds),
        gpu_use.use_of(usage.gpus),
        at,
    )


def _progress(host: str, said: common_pb2.Progress, now: float) -> Progress:
    """Convert a report of a job's progress, kept within bounds."""
    words = checks.words_of
    return Progress(
        min(checks.moment_of(said.time, now), now),
        min(checks.amount_of(said.percent), 100.0) if said.has_percent else NOT_SAID,
        checks.amount_of(said.seconds_left) if said.has_seconds_left else NOT_SAID,
        words(said.text),
        words(said.role),
        min(said.index, checks.INDICES_MAX),
        host,
    )


def _wants_look(gpus: Iterable[common_pb2.GpuUsage]) -> bool:
    """Return True if a GPU has been idle for a while, or is in trouble."""
    return any(gpu.idle_s >= 1 or gpu.trouble for gpu in gpus)


def register(server: grpc.aio.Server, service: AgentService) -> None:
    """Add the agent service to the server."""
    agents_pb2_grpc.add_AgentServiceServicer_to_server(service, server)
