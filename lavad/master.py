"""Assembly of the master: settings, store, cluster, engine, pacer, links, services; the only module that knows all."""

import argparse
import asyncio
import contextlib
import logging
import os
import pwd
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import grpc

from lavad import commit_mark
from lavad.adoption import Adoption
from lavad.agent_links.host_log import HostLog
from lavad.agent_links.links import AgentLinks
from lavad.agent_links.seals import Seals
from lavad.agent_links.spec_cache import SpecShelf
from lavad.api import agents, enrolment, trust
from lavad.api.audit import Auditor
from lavad.api.cluster import cluster_service, configuration
from lavad.api.cluster.control_history import ControlHistory
from lavad.api.cluster.installation import Installation
from lavad.api.cluster.performance import PerformanceMonitor
from lavad.api.cluster.query_log import QueryLog
from lavad.api.history.reader import HistoryReader
from lavad.api.interceptor import Guard
from lavad.api.jobs import job_service as jobs
from lavad.api.jobs.history import Stored
from lavad.api.jobs.watch import Watchers
from lavad.clock import SystemClock
from lavad.config.load import Loaded
from lavad.core import commands as c
from lavad.core import invariants
from lavad.core.cluster import Cluster
from lavad.core.decide import health_checks
from lavad.core.decide.clock import exit_rates
from lavad.core.decide.clock.tick import wake_at
from lavad.core.events import Event, HostClosed, HostRevoked
from lavad.core.model import Key
from lavad.core.model.ranges import Ranges
from lavad.engine import Engine
from lavad.gc_tuning import collect_seldom
from lavad.health import Health
from lavad.health_checks import HealthChecks
from lavad.job_exceptions import JobExceptions
from lavad.pacer import Pacer
from lavad.settings import Settings, examine
from lavad.store.disk_reserve import DiskReserve
from lavad.store.errors import StoreRefused
from lavad.store.lsf_logs.keeper import LsfLogs, directory_of, rules_of
from lavad.store.store import Store
from lavad.sweeps.environments import EnvironmentSweep
from lavad.sweeps.job_records import RecordSweep
from lavad.version import VERSION
from protos import logs, notify
from protos.conffile import FILE_NAME, ConfError
from protos.pidfile import PidFileInUse, pid_file
from protos.trust import peek_tickets, tickets, tls
from protos.trust.roles import Identity, TrustError
from protos.wire import SERVER_OPTIONS

log = logging.getLogger("lavad")

TICK_S = 1.0
LATE_S = 3.0


class CannotStart(Exception):
    """Failure to start; the message is one sentence for the administrator."""


class Master:
    """All parts of the master, in the order of their start."""

    def __init__(self, settings: Settings, check: bool = False, pid_path: Path | None = None) -> None:
        self.settings = settings
        self.check = check
        self.pid_path = pid_path
        self.clock = SystemClock()
        self.stopping = asyncio.Event()
        self.failure = ""

    async def run(self) -> int:
        """Serve until told to stop, or until nothing can be made durable any more."""
        identity = enrolment.master_identity(self.settings.directory)
        self.loaded, self.wrong_files = await asyncio.to_thread(configuration.policy_at_start, self.settings)
        self.installation = Installation(self.settings)
        await asyncio.to_thread(self.installation.take, self.loaded)
        self.reserve = DiskReserve(self.settings.state_dir)
        self.store = await self._open_store()
        self.reader = HistoryReader(self.settings.database)
        self.lsf_logs = LsfLogs(
            self.settings.database,
            self.settings.cluster,
            self.store.cluster_id,
            self.settings.master_host,
            self.store.mark.batch,
        )
        with contextlib.ExitStack() as to_the_end:  # a successor that finds the pid file waits until all is closed
            try:
                to_the_end.enter_context(pid_file(self.pid_path))
                await self._complete_policy()
                self._restore()
                await self._serve(identity)
            finally:
                await asyncio.gather(self.store.close(), self.reader.close())
                await self.lsf_logs.close()  # it tells what the store has committed last
        return 1 if self.failure else 0

    async def _complete_policy(self) -> None:
        """Read the files again if what they say depends on the database: on the known hosts, or on hghostadd."""
        changes = self.store.group_changes()
        if changes or self.loaded.follows_hosts:
            hosts = self.store.host_names()
            found = await asyncio.to_thread(configuration.policy_at_start, self.settings, hosts, changes)
            self.loaded, self.wrong_files = found
        configuration.log_warnings(self.loaded)

    async def _open_store(self) -> Store:
        """Open the store; on a full disk give up the disk reserve first."""
        mark_path = self.settings.state_dir / commit_mark.FILE_NAME
        try:
            store = await Store.open(self.settings.database, self._lost, mark_path=mark_path)
        except StoreRefused:
            if not self.reserve.give_up():
                raise
            store = await Store.open(self.settings.database, self._lost, mark_path=mark_path)
        self.reserve.fill()
        return store

    def _lost(self, why: str) -> None:
        self.failure = why
        log.error("master=stops reason=%r", why)
        self.stopping.set()

    def _restore(self) -> None:
        self.cluster = Cluster(self.loaded.policy, self.settings.cluster, self.store.term)
        self.store.restore(self.cluster, self.clock())
        self.cluster.begin(self.clock())
        if self.check:
            invariants.check(self.cluster)
        self.adoption = Adoption(self.cluster, self.store, self.settings.state_dir, self.clock)
        self.adoption.recall(self.store.adoptions())
        self.adoption.witness(self.store.witness)
        for warning in self.store.warnings:
            log.warning("store=warning reason=%r", warning)
        log.info(
            "restored jobs=%d attempts=%d term=%d", len(self.cluster.jobs), len(self.cluster.attempts), self.store.term
        )
        collect_seldom()

    def _assemble(self) -> None:
        store = self.store
        self.shelf = SpecShelf(store.spec, store.environment)
        self.links = AgentLinks(self.cluster, self.shelf, Seals.of(self.settings.directory, self.settings.state_dir))
        self.engine = Engine(self.cluster, self._append, self.links.send, self.clock)
        gone = configuration.gone_groups(self.loaded, self.cluster.group_changes)
        self.engine.post([c.Reconfigure(self.loaded.policy, gone)])  # the files may have lost queues with jobs
        self.pacer = Pacer(self.engine)
        self.pacer.worklist.look_at_everything(self.cluster)
        self.engine.on_change = self.pacer.wake
        self.engine.on_defect = self._lost
        self.links.on_lost_spec = self._give_up
        self.health = Health(f"serving on {self.settings.listen}")
        self.health.watch("database", lambda: self.store.stuck_reason)
        self.health.watch("authority", lambda: tickets.why_none_joins(self.settings.directory))
        self.health.watch("disk", self.reserve.problem)
        self.health.watch("logs for LSF's tools", lambda: self.lsf_logs.problem)
        self.health.watch("adoption", lambda: self.adoption.reason)
        self.engine.not_now = lambda: (self.adoption.is_behind and self.adoption.reason) or self.store.stuck_reason
        self.pacer.is_held = lambda: self.adoption.is_behind or self.adoption.is_settling
        self.links.mark = lambda: self.adoption.mine
        self.adoption.on_behind = self._fall_behind
        self.adoption.on_settled = self._settled
        self.store.tell_stuck(self.health.look)
        self.performance = PerformanceMonitor(self.engine, lambda: self.pacer.passes)
        self.control_history = ControlHistory(self.engine, store, self.settings.master_host, self.settings.state_dir)
        self.watchers = Watchers(self.cluster)
        self.engine.listeners += [self.watchers.notify, _warn_of_hosts]
        self.health_checks = HealthChecks(self.cluster, self.links, self.settings.health_checks())
        self.engine.listeners.append(self.health_checks.notify)
        self.job_exceptions = JobExceptions(self.cluster, self._serverdir)
        self.engine.listeners.append(self.job_exceptions.notify)
        self.engine.listeners += [HostLog(self.cluster).notify, self.adoption.notify]

    def _follow(self, loaded: Loaded) -> None:
        """Let all that depends on the files follow a new configuration."""
        self._set_logs(loaded)
        self.performance.follow(loaded.policy.samples_performance, loaded.policy.sample_period_s)
        self.agent_service.tell_settings()

    def _set_logs(self, loaded: Loaded) -> None:
        """Write LSF's logs, or not, as the configuration in force says."""
        settings = self.installation.settings
        is_on = self.settings.writes_lsf_logs(bool(loaded.files))
        counts = {"hosts": len(self.cluster.hosts), "queues": len(loaded.policy.queues)}
        directory = str(directory_of(settings, self.settings.cluster))
        rules = rules_of(loaded.policy, settings, self.settings.retention_s)
        self.lsf_logs.take({"directory": directory, **counts, **rules} if is_on else None)

    def _fall_behind(self) -> None:
        """Close all links after a host reported a newer database; orders stop until an adoption."""
        self.links.close_all()
        self.health.look()

    def _settled(self) -> None:
        self.control_history.tell_start()
        self.agent_service.enter_ends(self.adoption)
        self.pacer.worklist.look_at_everything(self.cluster)
        self.pacer.wake()

    def _give_up(self, key: Key) -> None:
        """Kill a job whose spec the store has lost: it can never start, and its hosts become free."""
        indices = Ranges.of(key.index) if key.index else None
        master = c.Caller("lavad", 0, is_administrator=True)
        self.engine.post([c.KillJob(c.Target(key.job, indices), master, remove=True)])

    def _append(self, events: list[Event], durable: Callable[[], None]) -> None:
        if self.check:
            invariants.check(self.cluster)
        self.store.append(self.store.rows.rows_for(events, self.cluster), durable)

    async def _serve(self, identity: Identity) -> None:
        self._assemble()
        ticket_key = peek_tickets.new_key()
        trusted = trust.of_settings(self.settings, self._is_connected, self.cluster.hosts.__contains__)
        query_log = QueryLog(self.settings.state_dir / "diagnosis", self.clock)
        interceptors = [self.performance, query_log, Guard(trusted), Auditor()]
        server = grpc.aio.server(interceptors=interceptors, options=SERVER_OPTIONS)
        self.agent_service = agent_service = agents.AgentService(
            self.engine, self.links, self.settings, peek_tickets.public_bytes(ticket_key), trusted, self.adoption
        )
        agent_service.installation, agent_service.health_checks = self.installation, self.health_checks
        agents.register(server, agent_service)
        stored = Stored(self.store, self.reader, self.clock)
        job_service = jobs.JobService(
            self.engine, self.links, self.shelf, stored, self.watchers, self.settings, ticket_key, self.pacer.worklist
        )
        jobs.register(server, job_service)
        enrolment.register(server, trusted)
        configurator = configuration.Configurator(
            self.engine, self.settings, [agent_service, job_service], self.installation, self.loaded, self.wrong_files
        )
        self.health.watch("configuration", lambda: configurator.problem)
        cluster_service.register(
            server,
            cluster_service.ClusterService(
                self.engine, agent_service, configurator, self.health, self.control_history, self.performance, query_log
            ),
        )
        configurator.admit()
        configurator.on_applied = self._follow
        self._set_logs(self.loaded)
        self._open_port(server, identity)
        await server.start()
        enrolling = await enrolment.start_enrolment_server(trusted, identity, self.settings.enrol_listen)
        sweep = EnvironmentSweep(self.cluster, self.shelf, self.store, self.settings.sweep_interval_s)
        records = RecordSweep(
            self.cluster, self.store, self.clock, self.settings.retention_s, self.settings.sweep_interval_s
        )
        work = (self._tick(agent_service.enforce_trust), sweep.run(), records.run(), configurator.keep_to_the_clock())
        periodic = [asyncio.create_task(one) for one in work]
        log.info("serving listen=%s enrol=%s version=%s", self.settings.listen, self.settings.enrol_listen, VERSION)
        notify.ready(self.health.summary)
        self.performance.follow(self.loaded.policy.samples_performance, self.loaded.policy.sample_period_s)
        if not self.adoption.is_behind:
            self.control_history.tell_start()
        await self.stopping.wait()
        notify.stopping()
        self.control_history.tell_end(self.failure)
        for task in periodic:
            task.cancel()
        self.links.close_all()  # sessions last for ever: each of them would use up the time given to calls
        await asyncio.gather(server.stop(0.5), enrolling.stop(0.1))

    def _open_port(self, server: grpc.aio.Server, identity: Identity) -> None:
        try:
            server.add_secure_port(tls.channel_target(self.settings.listen), tls.server_credentials(identity))
        except RuntimeError as error:
            raise CannotStart(
                f"The port {self.settings.listen} can't be opened; is another program using it?"
            ) from error

    def _is_connected(self, host: str) -> bool:
        known = self.cluster.hosts.get(host)
        return host in self.links.outboxes and known is not None and not known.is_silent

    def _serverdir(self) -> str:
        return self.installation.settings.get("LSF_SERVERDIR", "")

    def _excuse_silence(self, late_s: float) -> None:
        """Exclude a delay of this process (stopped, busy, clock set) from the silence of hosts."""
        if late_s > LATE_S:
            log.warning("master=late late_s=%.0f reason='it was stopped or busy, or the clock was set'", late_s)
            self.cluster.excuse_silence(late_s, self.clock())

    async def _tick(self, enforce_trust: Callable[[], None]) -> None:
        """Run periodic work; a defect there is logged and must not end the watch over hosts."""
        since = self.clock()
        while True:
            pause_s = min(TICK_S, max(0.0, wake_at(self.cluster, self.clock()) - self.clock()))
            await asyncio.sleep(pause_s)
            self._excuse_silence(self.clock() - since - pause_s)
            since = self.clock()
            try:
                self.reserve.fill()
                await self.adoption.look()
                self.health.look()
                if not self.adoption.is_behind:  # hosts are refused: their silence means nothing
                    self.engine.post([c.Tick(), c.EndLeases()])
                    self.pacer.wake()
                    self.engine.post(self.health_checks.look(self.clock()))
                    self.job_exceptions.look(self.clock())
                enforce_trust()
            except Exception:
                log.exception("tick=failed")


def _warn_of_hosts(events: list[Event]) -> None:
    """Log hosts that the master closed by itself, for an administrator to check."""
    for event in events:
        if isinstance(event, HostRevoked):
            log.warning("host=revoked host=%s by=%r seconds=%.0f", event.host, event.by, event.until - event.at)
        if isinstance(event, HostClosed) and event.by in (exit_rates.BY, health_checks.BY):
            log.warning("host=closed host=%s reason=%r", event.host, event.comment)


def _check_config(directory: Path) -> int:
    """Print the complaints of ``badmin ckconfig``, for a master that can't start."""
    _become_owner(directory)
    if (directory / FILE_NAME).exists():
        loaded = configuration.read_policy(examine(directory)[0])
    else:
        loaded = configuration.read_files(directory)
    for complaint in loaded.complaints:
        sys.stderr.write(f"{complaint}{'' if complaint.is_fatal else ' (warning)'}\n")
    sys.stderr.write("There are fatal errors.\n" if loaded.errors else "No errors found.\n")
    return 1 if loaded.errors else 0


def _become_owner(directory: Path) -> None:
    """Give up root for the user of the cluster directory, as whom lavad runs: it may read and trust the same."""
    owner = directory.stat() if os.geteuid() == 0 and directory.exists() else None
    if owner is not None and owner.st_uid:
        os.setgroups([])
        with contextlib.suppress(KeyError):  # an owner without an account has no further groups
            os.setgroups(os.getgrouplist(pwd.getpwuid(owner.st_uid).pw_name, owner.st_gid))
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)


async def _run(arguments: argparse.Namespace) -> int:
    master = Master(configuration.settings_at_start(Path(arguments.conf)), arguments.check, arguments.pid_file)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, master.stopping.set)
    return await master.run()


def run(arguments: argparse.Namespace) -> int:
    """Run the master, or only check its files; return the exit code, not 0 with a sentence on stderr."""
    try:
        if arguments.check_config:
            return _check_config(Path(arguments.conf))
        return asyncio.run(_run(arguments))
    except (ConfError, StoreRefused, TrustError, CannotStart, PidFileInUse) as error:
        sys.stderr.write(f"{logs.error_mark(os.environ)}lavad: {error}\n")
        notify.status(str(error).replace("\n", " "))  # systemctl status shows it until the next start
        return 1
