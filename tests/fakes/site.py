"""Several agents' gateways and peers in one thread of this test, connected by real TLS, and a scripted master."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import grpc
import grpc.aio

from agents.attempts.ledger import Ledger
from agents.attempts.usage_exchange import Counting
from agents.local_socket.callers import UserNames
from agents.local_socket.gateway import Gateway, Limits
from agents.local_socket.local_methods import LocalMethods
from agents.peers import PeerChannels, Peers
from lavactl.wire.connection import Connection
from protos.common_pb2 import HostShare
from protos.jobs_pb2 import AttachTicketReply, PeekTicketReply, PeekTicketRequest
from protos.trust import peek_tickets
from protos.trust.authority import Authority, key_pem, make_authority, make_key, make_request
from protos.trust.roles import MASTER_NAME, Identity, Kind, Role
from protos.trust.tls import channel_credentials, secure_channel, server_credentials
from protos.wire import SERVER_OPTIONS
from tests.fakes.attempts import FakeAttempts, Held

T = TypeVar("T")
Handler = Callable[[AsyncIterator[bytes], grpc.aio.ServicerContext], Awaitable[None]]


def identity_for(authority: Authority, role: Role) -> Identity:
    """Key and certificate of a daemon."""
    key = make_key()
    certificate = authority.sign(make_request(key, role.host or "lavad"), role)
    return Identity(key_pem(key), certificate, authority.certificate_pem)


class FakeMaster(grpc.GenericRpcHandler):
    """A gRPC server whose methods are coroutines in ``methods``, by full name, over raw bytes."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.methods: dict[str, Handler] = {}
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.signing = peek_tickets.new_key()
        self.port = 0
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Listen on loopback; the same port again after a stop."""
        self._server = grpc.aio.server(options=SERVER_OPTIONS)
        self._server.add_generic_rpc_handlers((self,))
        self.port = self._server.add_secure_port(f"127.0.0.1:{self.port}", server_credentials(self.identity))
        await self._server.start()

    async def stop(self) -> None:
        """Stop listening at once."""
        if self._server is not None:
            await self._server.stop(None)

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Find the method."""
        method = self.methods.get(details.method)
        if method is None:
            return None
        metadata = dict(details.invocation_metadata or ())
        self.seen.append((details.method, {name: str(value) for name, value in metadata.items()}))
        return grpc.stream_stream_rpc_method_handler(method)


class Agent:
    """One fake host's gateway and peers."""

    def __init__(self, host: str, site: "Site") -> None:
        self.host = host
        self.identity = identity_for(site.authority, Role(Kind.AGENT, host))
        self.attempts = FakeAttempts()
        self.socket = str(site.directory / host / "agent.sock")
        self.master_channel = secure_channel(site.master_target(), channel_credentials(self.identity), MASTER_NAME)
        self.address = "127.0.0.1:0"
        self._site = site
        self._begin()

    def _begin(self) -> None:
        site = self._site
        self.peers = Peers(
            self.host,
            self.attempts,
            Counting(Ledger(), lambda _: None, self.host),
            lambda: peek_tickets.public_bytes(site.master.signing),
        )
        self.channels = PeerChannels(lambda: self.identity)
        self.methods = LocalMethods(self.host, self.attempts, self.peers, self.channels)
        self.gateway = Gateway(
            self.socket, lambda: self.master_channel, site.master_target, self.methods.table(), site.names, site.limits
        )
        self.methods.gateway = self.gateway

    async def start(self) -> None:
        """Listen on both sockets."""
        self.address = await self.peers.serve(self.address, self.identity)
        await self.gateway.start()

    async def leave(self) -> None:
        """End as an agent does that is restarted: its shepherds stay."""
        await self.gateway.stop()
        await self.methods.close()
        await self.channels.close()
        await self.peers.stop()

    async def come_back(self) -> None:
        """Start a new agent in the place of the one that left."""
        self._begin()
        await self.start()

    async def stop(self) -> None:
        """Stop everything and kill all processes."""
        await self.leave()
        await self.master_channel.close(None)
        self.attempts.kill_all()


class Site:
    """Agents of ``hosts`` and a master, for the length of a ``with``; ``call`` runs a coroutine on their loop."""

    def __init__(
        self, directory: Path, *hosts: str, limits: Limits | None = None, names: Callable[[int], str] | None = None
    ) -> None:
        self.directory = directory
        self.limits = limits or Limits()
        self.authority = make_authority("test")
        self.master = FakeMaster(identity_for(self.authority, Role(Kind.MASTER)))
        self.agents: dict[str, Agent] = {}
        self.names: UserNames | None = None
        self._connections: list[Connection] = []
        self._hosts = hosts
        self._look_up = names
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="site")

    def __enter__(self) -> "Site":
        self._thread.start()
        try:
            self.call(self._start())
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for connection in self._connections:
            connection.close()
        self.call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float = 120.0) -> T:
        """The result of a coroutine run on the agents' loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def dial(self, host: str = "") -> Connection:
        """A command's connection to the agent of a host, or of the first one; closed at the end."""
        connection = Connection(self.agents[host or self._hosts[0]].socket)
        self._connections.append(connection)
        return connection

    def master_target(self) -> str:
        """HOST:PORT of the master."""
        return f"127.0.0.1:{self.master.port}"

    def allocate(self, job: int, *slots: tuple[str, int], **facts: Any) -> Held:
        """Allocate the named hosts to attempt 1 of a job; the lead host's record."""
        shares = [HostShare(host=host, slots=count, address=self.agents[host].address) for host, count in slots]
        held = Held((job, 0, 1), shares, **facts)
        for host, _ in slots:
            self.agents[host].attempts.held.append(replace(held))
        return held

    def job_environment(self, job: int, *slots: tuple[str, int]) -> dict[str, str]:
        """Environment of a process of that job on its lead host."""
        return {
            "LSB_JOBID": str(job),
            "LSB_JOBINDEX": "0",
            "LSB_MCPU_HOSTS": " ".join(f"{host} {count}" for host, count in slots),
            "LAVA_SOCKET": self.agents[slots[0][0]].socket,
        }

    def may_peek(self, host: str, job: int, *, has_error_file: bool = False, ticket: bytes | None = None) -> None:
        """Let the master issue tickets for a job that runs on a host."""

        async def peek_ticket(requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> None:
            request = PeekTicketRequest.FromString(await anext(requests))
            reply = PeekTicketReply(host=host, address=self.agents[host].address, has_error_file=has_error_file)
            reply.key.job, reply.key.attempt = request.ref.job, 1
            key = (request.ref.job, 0, 1)
            expires = time.time() + peek_tickets.LIFE_S
            reply.ticket = ticket or peek_tickets.sign(self.master.signing, key, host, expires)
            await context.write(reply.SerializeToString())

        assert self.agents[host].attempts.find(job, 0) is not None, "allocate first"
        self.master.methods["/lava.v1.JobService/PeekTicket"] = peek_ticket

    def may_attach(self, host: str, job: int, *, ticket: bytes | None = None, error: str = "") -> None:
        """Let the master issue tickets to attach to a job on a host."""

        async def attach_ticket(requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> None:
            await anext(requests)
            reply = AttachTicketReply(host=host, address=self.agents[host].address, error=error)
            reply.key.job, reply.key.attempt = job, 1
            expires = time.time() + peek_tickets.LIFE_S
            key, purpose = (job, 0, 1), peek_tickets.ATTACH
            reply.ticket = ticket or peek_tickets.sign(self.master.signing, key, host, expires, purpose)
            await context.write(reply.SerializeToString())

        self.master.methods["/lava.v1.JobService/AttachTicket"] = attach_ticket

    async def _start(self) -> None:
        if self._look_up is not None:
            self.names = UserNames(self._look_up)
        await self.master.start()
        for host in self._hosts:
            self.agents[host] = Agent(host, self)
            await self.agents[host].start()

    async def _stop(self) -> None:
        for agent in self.agents.values():
            await agent.stop()
        await self.master.stop()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        _, stuck = await asyncio.wait(left, timeout=60) if left else (set(), set())
        assert not stuck, f"tasks left behind: {stuck}"
