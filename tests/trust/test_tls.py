"""Identities, roles and channels: permitted and refused connections, tried with real TLS."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from protos.trust import roles, tls
from protos.trust.authority import (
    Authority,
    check_identity,
    is_near_expiry,
    key_pem,
    make_authority,
    make_key,
    make_request,
)
from protos.trust.private import write_private
from protos.trust.roles import Identity, Kind, Role, TrustError

MASTER = Role(Kind.MASTER)
METHOD = "/test/WhoAmI"


def an_identity(authority: Authority, role: Role, now: datetime | None = None) -> Identity:
    """A key and its certificate."""
    key = make_key()
    certificate = authority.sign(make_request(key, "whatever"), role, now)
    return Identity(key_pem(key), certificate, authority.certificate_pem)


class WhoAmI(grpc.GenericRpcHandler):
    """Answers with the role that the caller's certificate proves."""

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        """The one method there is."""

        async def answer(_: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
            try:
                return repr(tls.peer_role(context.auth_context())).encode()
            except TrustError as error:
                return str(error).encode()

        return grpc.unary_unary_rpc_method_handler(answer)


@asynccontextmanager
async def a_server(credentials: grpc.ServerCredentials) -> AsyncIterator[str]:
    """A server on loopback that answers `WhoAmI`; gives its address."""
    server = grpc.aio.server(handlers=[WhoAmI()])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield f"localhost:{port}"
    finally:
        await server.stop(None)


async def ask(address: str, identity: Identity, server_name: str) -> str:
    """One call over mutual TLS."""
    async with await tls.aio_channel(address, identity, server_name) as channel:
        answer: bytes = await channel.unary_unary(METHOD)(b"", timeout=60)
        return answer.decode()


def test_a_host_is_known_by_its_certificate() -> None:
    """The server learns role and host of its caller from TLS alone."""
    authority = make_authority("test")

    async def story() -> str:
        async with a_server(tls.server_credentials(an_identity(authority, MASTER))) as address:
            return await ask(address, an_identity(authority, Role(Kind.AGENT, "n1")), roles.MASTER_NAME)

    assert asyncio.run(story()) == repr(Role(Kind.AGENT, "n1"))


@pytest.mark.parametrize("host", ["n1", "N-1_x.example.org", "a" * 64, "lavad"])
def test_every_lawful_host_name_works_as_a_server(host: str) -> None:
    """The name of any host that is allowed one passes TLS's own check of the server's name."""
    authority = make_authority("test")

    async def story() -> str:
        async with a_server(tls.server_credentials(an_identity(authority, Role(Kind.AGENT, host)))) as address:
            return await ask(address, an_identity(authority, MASTER), roles.agent_server_name(host))

    assert asyncio.run(story()) == repr(MASTER)


NOT_LET_THROUGH = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def refused(server: Identity, client: Identity, server_name: str) -> grpc.StatusCode:
    """Status that ends a call refused by TLS."""

    async def story() -> None:
        async with a_server(tls.server_credentials(server)) as address:
            await ask(address, client, server_name)

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        asyncio.run(story())
    return caught.value.code()


def test_an_agents_certificate_cannot_pose_as_the_master() -> None:
    """A client that dials the master refuses a server that is an agent."""
    authority = make_authority("test")
    agent = an_identity(authority, Role(Kind.AGENT, "n1"))
    assert refused(agent, an_identity(authority, Role(Kind.AGENT, "n2")), roles.MASTER_NAME) in NOT_LET_THROUGH


def test_one_agent_cannot_pose_as_another() -> None:
    """A client that dials host n2 refuses n1, and also a host whose name only ends like it."""
    authority = make_authority("test")
    client = an_identity(authority, MASTER)
    assert (
        refused(an_identity(authority, Role(Kind.AGENT, "n1")), client, roles.agent_server_name("n2"))
        in NOT_LET_THROUGH
    )
    assert (
        refused(an_identity(authority, Role(Kind.AGENT, "x.n2")), client, roles.agent_server_name("n2"))
        in NOT_LET_THROUGH
    )


def test_another_authority_is_refused_on_both_sides() -> None:
    """Neither a client nor a server with certificates of another cluster gets through."""
    here, elsewhere = make_authority("here"), make_authority("here")
    master = an_identity(here, MASTER)
    stranger = an_identity(elsewhere, Role(Kind.AGENT, "n1"))
    posing = Identity(stranger.key_pem, stranger.certificate_pem, here.certificate_pem)
    assert refused(master, posing, roles.MASTER_NAME) in NOT_LET_THROUGH
    assert (
        refused(an_identity(elsewhere, MASTER), an_identity(here, Role(Kind.AGENT, "n1")), roles.MASTER_NAME)
        in NOT_LET_THROUGH
    )


def test_a_client_without_certificate_is_refused() -> None:
    """The main port demands a certificate."""
    authority = make_authority("test")

    async def story() -> None:
        async with a_server(tls.server_credentials(an_identity(authority, MASTER))) as address:
            target = tls.channel_target(address)
            credentials = tls.enrolment_channel_credentials(authority.certificate_pem)
            async with tls.secure_channel(target, credentials, roles.MASTER_NAME) as channel:
                await channel.unary_unary(METHOD)(b"", timeout=60)

    with pytest.raises(grpc.aio.AioRpcError):
        asyncio.run(story())


def test_an_expired_certificate_is_refused() -> None:
    """TLS itself refuses an expired certificate."""
    authority = make_authority("test", datetime.now(UTC) - timedelta(days=19 * 365))
    old = an_identity(authority, Role(Kind.AGENT, "n1"), datetime.now(UTC) - timedelta(days=6 * 365))
    assert refused(an_identity(authority, MASTER), old, roles.MASTER_NAME) in NOT_LET_THROUGH


@pytest.mark.parametrize(
    "names",
    [
        [],
        [b"n1.agent.lava"],
        [b"lava://agent/../../etc"],
        [b"lava://agent/"],
        [b"lava://agent/n1/x"],
        [b"lava://master/other"],
        [b"lava://master"],
        [b"lava://boss/n1"],
        [b"LAVA://master/lavad"],
        [b"lava://agent/n1", b"lava://master/lavad"],
        [b"lava://agent/n1\n"],
    ],
)
def test_a_certificate_must_name_exactly_one_known_role(names: list[bytes]) -> None:
    """No role, an unknown one, or two at once are refused."""
    with pytest.raises(TrustError):
        tls.peer_role({"x509_subject_alternative_name": names})


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a b", "a" * 65, "n1\n", "n\0", "naïve", "*", "a\\b"])
def test_names_that_could_leave_their_directory_name_no_host(name: str) -> None:
    """Host names become parts of paths and certificates."""
    authority = make_authority("test")
    with pytest.raises(TrustError):
        roles.check_host_name(name)
    with pytest.raises(TrustError):
        authority.sign(make_request(make_key(), "x"), Role(Kind.AGENT, name))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    """One sentence names the file, and the remedy."""
    identity = an_identity(make_authority("test"), MASTER)
    write_private(tmp_path / "master.key", identity.key_pem)
    (tmp_path / "master.pem").write_bytes(identity.certificate_pem)
    (tmp_path / "ca").mkdir()
    (tmp_path / "ca" / "ca.pem").write_bytes(identity.ca_pem)
    assert Identity.load(tmp_path, "master") == identity
    os.chmod(tmp_path / "master.key", mode)
    with pytest.raises(TrustError, match=f"mode is {mode:04o}; run: chmod 600 {tmp_path}/master.key"):
        Identity.load(tmp_path, "master")


@pytest.mark.root
def test_a_key_of_another_user_is_refused(tmp_path: Path) -> None:
    """A key that another user can replace proves nothing."""
    write_private(tmp_path / "master.key", b"x")
    os.chown(tmp_path / "master.key", 65534, 65534)
    with pytest.raises(TrustError, match="belongs to user id 65534"):
        Identity.load(tmp_path, "master")


def test_a_missing_key_is_one_sentence(tmp_path: Path) -> None:
    """No traceback for a directory that is not set up."""
    with pytest.raises(TrustError, match=r"master\.key: No such file or directory"):
        Identity.load(tmp_path, "master")


def test_an_identity_never_shows_its_key() -> None:
    """Logging an identity by mistake reveals no key."""
    identity = an_identity(make_authority("test"), MASTER)
    assert "PRIVATE" not in repr(identity)


def test_a_bundle_reads_back(tmp_path: Path) -> None:
    """A stored bundle loads as the same identity."""
    identity = an_identity(make_authority("test"), Role(Kind.AGENT, "n1"))
    write_private(tmp_path / "agent.pem", identity.bundle())
    assert (tmp_path / "agent.pem").stat().st_mode & 0o777 == 0o600
    assert Identity.load_bundle(tmp_path / "agent.pem") == identity
    write_private(tmp_path / "agent.pem", identity.bundle()[:300])
    with pytest.raises(TrustError, match="does not hold one key"):
        Identity.load_bundle(tmp_path / "agent.pem")


def test_an_identity_is_checked_for_all_that_can_be_wrong_with_it() -> None:
    """Role, time, key and authority each have their own sentence."""
    authority = make_authority("test")
    role = Role(Kind.AGENT, "n1")
    good = an_identity(authority, role)
    check_identity(good, role)
    other = an_identity(make_authority("test"), role)
    with pytest.raises(TrustError, match="not for lava://agent/n2"):
        check_identity(good, Role(Kind.AGENT, "n2"))
    with pytest.raises(TrustError, match="not for lava://master/lavad"):
        check_identity(good, MASTER)
    with pytest.raises(TrustError, match="belongs to another key"):
        check_identity(Identity(other.key_pem, good.certificate_pem, good.ca_pem), role)
    with pytest.raises(TrustError, match="not signed by this cluster's authority"):
        check_identity(Identity(good.key_pem, good.certificate_pem, other.ca_pem), role)
    with pytest.raises(TrustError, match="not now"):
        check_identity(good, role, datetime.now(UTC) + timedelta(days=6 * 365))
    assert not is_near_expiry(good)
    assert is_near_expiry(good, datetime.now(UTC) + timedelta(days=4 * 365))


def test_a_request_gives_nothing_but_a_key() -> None:
    """A request for a wrong kind of key, with a broken signature, or that is no request at all gets no certificate."""
    authority = make_authority("test")
    request = make_request(make_key(), "n1")
    broken = request.replace(request.splitlines()[2], request.splitlines()[2][::-1])
    for hostile in (b"", b"x" * 100_000, b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n", broken):
        with pytest.raises(TrustError):
            authority.sign(hostile, Role(Kind.AGENT, "n1"))


@pytest.mark.parametrize(
    "address", ["", "host", "host:", ":1", "host:0", "host:65536", "host:x", "a:b:1", "host:-1", "h:\u0661"]
)
def test_wrong_addresses_are_one_sentence(address: str) -> None:
    """Neither a traceback nor a hanging resolver."""
    with pytest.raises(TrustError, match="expected HOST:PORT"):
        roles.split_address(address)


def test_addresses_are_dialled_as_numbers() -> None:
    """gRPC's own resolver never sees a name."""
    assert tls.channel_target("localhost:6920") in ("127.0.0.1:6920", "[::1]:6920")
    assert tls.channel_target("[::1]:6920") == "[::1]:6920"
    with pytest.raises(TrustError, match="cannot be found"):
        tls.channel_target("no-such-host.invalid:1")
