"""Network part of an agent: its session with the master, its peers, and the local socket for commands.

Importing this module imports gRPC. Everything here may fail and recover without any effect on jobs.
"""

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
from pathlib import Path

import grpc.aio

from agents import sensors
from agents.activity.watch import ActivityWatch
from agents.assembly import Local
from agents.attempts.journal import JournalError
from agents.job_setup.commands.checkpoints import CheckpointSettings
from agents.job_setup.commands.eexec import LookUp
from agents.local_socket.callers import UserNames
from agents.local_socket.command_server import CommandServer
from agents.local_socket.gateway import Gateway
from agents.local_socket.local_methods import LocalMethods
from agents.mail.letters import MailSettings
from agents.master.enrolment import FILE_NAME, ensure_certificate
from agents.master.revocations import Revocations
from agents.master.session import Session
from agents.master.site_copy import SiteCopy
from agents.peers import PeerChannels, Peers
from agents.shepherd import messages
from protos import notify
from protos.agents_pb2 import JobProgress, Welcome
from protos.cluster_pb2 import HostFacts
from protos.trust.roles import MASTER_NAME, Identity, TrustError, join_address, split_address
from protos.trust.tls import channel_credentials, channel_target, secure_channel

LOG = logging.getLogger("lava.agent")

GC_THRESHOLD = 50_000
WILDCARDS = ("0.0.0.0", "::")


async def serve(options: argparse.Namespace, facts: HostFacts, local: Local) -> int:
    """Run an agent until SIGTERM or SIGINT; return the exit code, not 0 if it had to give up."""
    daemon = Daemon(options, facts, local)
    loop = asyncio.get_running_loop()
    serving = asyncio.ensure_future(daemon.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, serving.cancel)
    # Present objects stay; new ones hold few reference cycles, so collections can be rare.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 50, 1000)
    await asyncio.wait([serving])
    notify.stopping()
    await daemon.close()
    if serving.cancelled():
        LOG.info("event=told_to_stop")
        return 0
    error = serving.exception()
    LOG.critical("event=must_stop reason=%r", str(_first(error)), exc_info=None if _is_expected(error) else error)
    return 1


def _first(error: BaseException | None) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_expected(error: BaseException | None) -> bool:
    return isinstance(_first(error), JournalError | TrustError | OSError)


class Daemon:
    """Running agent. `Local` is closed through this object."""

    def __init__(self, options: argparse.Namespace, facts: HostFacts, local: Local) -> None:
        self._options = options
        self._facts = facts
        self._local = local
        self._identity: Identity | None = None
        self._for_commands: grpc.aio.Channel | None = None
        self._commands_to: tuple[str, bytes] = ("", b"")
        self._site_copy = SiteCopy(str(options.socket))
        self._revocations = Revocations(options.state / "identity")
        self._peers = Peers(
            options.name,
            local.attempts,
            local.counting,
            lambda: self._session.welcome.ticket_key,
            self._revocations.why_refused,
        )
        self._peers.kept = str(local.outputs)
        self._channels = PeerChannels(self._own_identity)
        local.counting.ask = self._channels.count
        self._methods = methods = LocalMethods(options.name, local.attempts, self._peers, self._channels)
        self._commands = CommandServer()
        local_methods = {**methods.table(), **self._commands.table()}
        self._gateway = Gateway(
            str(options.socket), self._channel_for_commands, lambda: str(options.master), local_methods, UserNames()
        )
        methods.gateway = self._commands.gateway = self._gateway
        keeper = local.keeper
        self._watch = ActivityWatch(local.ledger, local.pool, local.attempts, options.name, str(local.outputs))
        keeper.signalled = self._watch.signalled
        keeper.heard[messages.LOOKED] = lambda key, fields: self._watch.answered(key, *fields[:2])
        self._elims = sensors.Elims(options.elims)
        self._sampler = sensors.Sampler(options.simulate_gpus, self._elims, local.gpus.watch)
        self._session = Session(
            self._dial,
            facts,
            int.from_bytes(os.urandom(7), "little"),
            keeper,
            self._sampler,
            sensors.significant,
            self._watch,
            local.checkpoints,
        )
        self._watch.gpus = lambda: self._session.newest_load.gpus
        self._session.on_welcome = self._take_welcome
        self._session.before_orders = self._look_for_eexec
        self._eexec = LookUp()
        local.interface.progress.tell = self._progressed
        local.interface.answers.cluster = lambda: self._session.welcome.cluster
        local.interface.answers.has_master = self._session.connected.is_set
        local.gpus.tell_load = self._session.tell_load
        self._session.credentials = self._credentials

    async def run(self) -> None:
        """Serve for ever.

        Raises:
            TrustError, OSError: no certificate can be had, or an address cannot be used.
            JournalError: in an exception group; the agent must end.
        """
        await self._local.start()
        await self._refresh_channel_for_commands()
        await asyncio.to_thread(self._revocations.load)
        self._options.socket.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        address = await self._serve_peers()
        self._facts.peer_address = await asyncio.to_thread(reachable, address, self._options.master)
        self._local.keeper.task_orders.address = await asyncio.to_thread(ip_address, self._facts.peer_address)
        await self._gateway.start()
        await self._local.interface.socket.start()
        LOG.info(
            "event=serving host=%s slots=%d cgroups=%d socket=%s peers=%s",
            self._facts.name, self._facts.slots, self._local.base.version, self._options.socket,
            self._facts.peer_address,
        )  # fmt: skip
        notify.ready(f"host {self._facts.name}, {self._facts.slots} slots")
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch.run())
            group.create_task(self._session.run())

    async def _serve_peers(self) -> str:
        """Listen for peers; if any port will do, on the last one, since running jobs know it."""
        address, identity = self._options.peer_listen, self._own_identity()
        kept = self._options.state / "peer-port"
        if address.endswith(":0") and kept.exists() and (last := kept.read_text().strip()).isdigit():
            try:
                return await self._peers.serve(address[:-1] + last, identity)
            except OSError as error:
                LOG.warning("event=peer_port_taken port=%s reason=%r", last, str(error))
        address = await self._peers.serve(address, identity)
        kept.write_text(f"{address.rpartition(':')[2]}\n")
        return address

    async def close(self) -> None:
        """Stop serving; jobs continue."""
        self._session.checks.program.stop()
        self._session.notice.program.stop()
        await self._watch.close()
        await asyncio.to_thread(self._sampler.close)
        await self._local.interface.socket.stop()
        await self._commands.close()
        await self._gateway.stop()
        await self._methods.close()
        await self._peers.stop()
        await self._channels.close()
        if self._for_commands is not None:
            await self._for_commands.close(None)
        await self._local.close()

    # -- the master

    def _progressed(self, progress: JobProgress) -> None:
        self._watch.progressed(progress)
        self._session.progressed(progress)

    def _take_welcome(self, welcome: Welcome) -> None:
        self._watch.configure(welcome.settings)
        self._revocations.take(welcome.revoked)
        self._local.preparation.mail = MailSettings.of(welcome.lsf_conf)
        self._local.preparation.checkpoints = CheckpointSettings.of(welcome.lsf_conf)
        self._local.mailer.take_settings()
        self._elims.look_in(welcome.lsf_conf["LSF_SERVERDIR"])
        self._site_copy.take(welcome.lsf_conf, welcome.cluster, welcome.default_queues)

    async def _look_for_eexec(self, welcome: Welcome) -> None:
        """Take the site's program for the jobs of the orders that follow."""
        self._local.preparation.eexec = await self._eexec.look(welcome.lsf_conf["LSF_SERVERDIR"])

    def _credentials(self) -> tuple[int, ...]:
        """Return when the files of certificate and ticket were changed; 0 for one that is not there."""
        options = self._options
        files = (options.state / "identity" / FILE_NAME, *([options.ticket] if options.ticket else []))
        return tuple(map(_changed_at, files))

    async def _dial(self) -> grpc.aio.Channel:
        """Open a channel for a session; the channel for commands follows if the master has moved."""
        target, identity = await self._refresh_channel_for_commands()
        return secure_channel(target, channel_credentials(identity), MASTER_NAME)

    async def _refresh_channel_for_commands(self) -> tuple[str, Identity]:
        options = self._options
        identity = await ensure_certificate(options.master, options.ticket, options.name, options.state / "identity")
        self._identity = identity
        target = await asyncio.to_thread(channel_target, options.master)
        if self._commands_to != (target, identity.certificate_pem):
            old = self._for_commands
            # A connection of its own: bulk answers must not delay the session.
            self._for_commands = secure_channel(target, channel_credentials(identity), MASTER_NAME)
            self._commands_to = (target, identity.certificate_pem)
            if old is not None:
                await old.close(None)
        return target, identity

    def _channel_for_commands(self) -> grpc.aio.Channel:
        assert self._for_commands is not None  # made before the gateway opens
        return self._for_commands

    def _own_identity(self) -> Identity:
        if self._identity is None:
            raise TrustError("This agent has no certificate yet.")
        return self._identity


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def ip_address(peer_address: str) -> str:
    """Return the IP address in the address for peers; a name that is unknown here stays a name."""
    host, port = split_address(peer_address)
    try:
        return str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        LOG.warning("event=own_address_unknown host=%s reason=%r", host, error.strerror)
        return host


def reachable(listening: str, master: str) -> str:
    """Return HOST:PORT under which other hosts reach a listening address.

    For a wildcard address, the host's own address on the route to the master.
    """
    host, port = split_address(listening)
    if host not in WILDCARDS:
        return listening
    target, target_port = split_address(channel_target(master))
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((target, target_port))
        return join_address(str(probe.getsockname()[0]), port)
