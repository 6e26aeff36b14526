"""Enrolment of hosts: the real servicer and the real client over real TLS, with every attack that must fail."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc.aio
import pytest

from agents.master.enrolment import FILE_NAME, ensure_certificate
from lavactl.errors import CommandError
from lavactl.personal import directory as files
from lavactl.personal.hosts import network
from lavad.agent_links.seals import Seals
from lavad.api.enrolment import master_identity, register, start_enrolment_server
from lavad.api.interceptor import Guard
from lavad.api.trust import Trust
from lavad.commit_mark import Mark
from protos import agents_pb2 as pb
from protos import agents_pb2_grpc
from protos.trust import tickets, tls
from protos.trust.authority import Authority, check_identity, facts_of, key_pem, make_key, make_request
from protos.trust.certificates import Register
from protos.trust.private import write_private
from protos.trust.roles import MASTER_NAME, Identity, Kind, Role, TrustError, split_address
from protos.trust.tickets import Entry, read_ticket

PATIENCE_S = 60.0


def a_cluster(path: Path) -> Path:
    """A cluster directory as `lavactl init` makes it, to be served on loopback."""
    settings = files.Settings(
        cluster="test", master="localhost:1", listen="127.0.0.1:1", enrol_listen="127.0.0.1:2", administrators="root"
    )
    files.create(path, settings)
    return path


@asynccontextmanager
async def a_master(directory: Path) -> AsyncIterator[tuple[str, Path]]:
    """Both ports of a master; gives the main port's address and a ticket that names the enrolment port."""
    identity = master_identity(directory)
    enrolment_port, main_port = 0, 0
    trust = Trust(directory)
    main = grpc.aio.server(interceptors=[Guard(trust)])
    register(main, trust)
    main_port = main.add_secure_port("127.0.0.1:0", tls.server_credentials(identity))
    await main.start()
    enrolment_port = split_address(f"x:{_free_port()}")[1]
    enrolment = await start_enrolment_server(trust, identity, f"127.0.0.1:{enrolment_port}")
    ticket = replace(read_ticket(directory / "ticket"), enrol=f"localhost:{enrolment_port}")
    ticket.write(directory / "ticket")
    try:
        yield f"127.0.0.1:{main_port}", directory / "ticket"
    finally:
        await enrolment.stop(None)
        await main.stop(None)


def _free_port() -> int:
    """Below those that the kernel gives to connections, one of which could take it before a server does."""
    return network.free_port("127.0.0.1", 10_000 + os.getpid() % 10_000)


def joined(directory: Path, host: str, state: Path, *, with_ticket: bool = True) -> Identity:
    """Identity that an agent receives from a running master."""

    async def story() -> Identity:
        async with asyncio.timeout(PATIENCE_S), a_master(directory) as (address, ticket):
            return await ensure_certificate(address, ticket if with_ticket else None, host, state)

    return asyncio.run(story())


def test_a_host_joins_with_a_ticket_and_needs_it_only_once(tmp_path: Path) -> None:
    """The certificate is for the host's own name, stored privately, and used again without asking."""
    directory, state = a_cluster(tmp_path / "D"), tmp_path / "state"
    first = joined(directory, "n1", state)
    check_identity(first, Role(Kind.AGENT, "n1"))
    assert (state / FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert state.stat().st_mode & 0o777 == 0o700
    assert asyncio.run(ensure_certificate("nowhere:1", None, "n1", state)) == first
    assert asyncio.run(ensure_certificate("nowhere:1", tmp_path / "lost", "n1", state)) == first
    with pytest.raises(TrustError, match="lost: No such file"):
        asyncio.run(ensure_certificate("nowhere:1", tmp_path / "lost", "n2", state))


def test_a_known_name_may_join_again_from_elsewhere_with_a_ticket_that_replaces_its_certificate(tmp_path: Path) -> None:
    """A reinstalled host gets a new certificate for a new key, and the old one is revoked; without a ticket none."""
    directory = a_cluster(tmp_path / "D")
    first = joined(directory, "n1", tmp_path / "a")
    tickets.admit(directory / "tickets", "again", Entry(time.time() + 60, "n1", replaces=True))
    replace(read_ticket(directory / "ticket"), secret="again").write(directory / "ticket")
    second = joined(directory, "n1", tmp_path / "b")
    assert first.key_pem != second.key_pem
    old, new = (facts_of(one.certificate_pem).serial for one in (first, second))
    register = Register(directory)
    assert {one.serial: bool(one.revoked_at) for one in register.of_host("n1")} == {old: True, new: False}
    with pytest.raises(TrustError, match="no ticket"):
        joined(directory, "n1", tmp_path / "c", with_ticket=False)


def test_a_ticket_for_one_host_admits_no_other(tmp_path: Path) -> None:
    """The master's list names its host, whatever the ticket contains; one for any host stays beside it."""
    directory = a_cluster(tmp_path / "D")
    path = files.new_ticket(directory, entry=Entry(0.0, "n1"))
    assert path == directory / "ticket.n1"
    for_any = (directory / "ticket").read_bytes()
    read_ticket(path).write(directory / "ticket")
    with pytest.raises(
        TrustError, match="The ticket is for host n1 only; ask the master's administrator for one for n2"
    ):
        joined(directory, "n2", tmp_path / "n2")
    check_identity(joined(directory, "n1", tmp_path / "n1"), Role(Kind.AGENT, "n1"))
    (directory / "ticket").write_bytes(for_any)
    check_identity(joined(directory, "n2", tmp_path / "n2"), Role(Kind.AGENT, "n2"))


def test_an_expired_ticket_admits_nobody(tmp_path: Path) -> None:
    """The master decides by its own list, whatever the ticket contains."""
    directory = a_cluster(tmp_path / "D")
    ticket = read_ticket(directory / "ticket")
    tickets.admit(directory / "tickets", ticket.secret, Entry(time.time() - 1))
    with pytest.raises(TrustError, match="n1: The ticket has expired"):
        joined(directory, "n1", tmp_path / "state")
    assert not (tmp_path / "state" / FILE_NAME).exists()


@pytest.mark.parametrize("secret", ["", "wrong", "0" * 64])
def test_a_wrong_secret_admits_nobody(tmp_path: Path, secret: str) -> None:
    """Nor does the hash that the master keeps."""
    directory = a_cluster(tmp_path / "D")
    stored = (directory / "tickets").read_text().split()[0]
    for attempt in (secret, stored):
        replace(read_ticket(directory / "ticket"), secret=attempt).write(directory / "ticket")
        with pytest.raises(TrustError, match="not known to this master"):
            joined(directory, "n1", tmp_path / "state")


@pytest.mark.slow
def test_a_ticket_of_another_cluster_never_sends_its_secret(tmp_path: Path) -> None:
    """A master of another authority is not contacted; the agent keeps waiting for the right one."""
    here, elsewhere = a_cluster(tmp_path / "here"), a_cluster(tmp_path / "elsewhere")

    async def story() -> None:
        async with a_master(here) as (address, ticket):
            foreign = read_ticket(elsewhere / "ticket").ca_pem
            replace(read_ticket(ticket), ca_pem=foreign).write(ticket)
            async with asyncio.timeout(2):
                await ensure_certificate(address, ticket, "n1", tmp_path / "state")

    with pytest.raises(TimeoutError):
        asyncio.run(story())


@pytest.mark.parametrize("host", ["../../etc", "a/b", ".", "..", "", "x" * 65, "n1\nhost=n2"])
def test_a_host_name_that_is_a_path_is_refused_by_both_sides(tmp_path: Path, host: str) -> None:
    """The client does not ask, and the server would not answer."""
    directory = a_cluster(tmp_path / "D")
    with pytest.raises(TrustError, match="cannot name a host"):
        asyncio.run(ensure_certificate("localhost:1", directory / "ticket", host, tmp_path / "state"))

    async def story() -> pb.EnrolReply:
        async with a_master(directory) as (_, path):
            ticket = read_ticket(path)
            credentials = tls.enrolment_channel_credentials(ticket.ca_pem.encode())
            target = tls.channel_target(ticket.enrol)
            async with tls.secure_channel(target, credentials, MASTER_NAME) as channel:
                request = pb.EnrolRequest(secret=ticket.secret, host=host, csr_pem=make_request(make_key(), "x"))
                return await agents_pb2_grpc.EnrolmentServiceStub(channel).Enrol(request, timeout=60)

    reply = asyncio.run(story())
    assert "cannot name a host" in reply.error
    assert not reply.certificate_pem


def an_ageing_identity(directory: Path, host: str, state: Path) -> Identity:
    """A stored certificate in the last third of its life."""
    authority = Authority.load(directory / "ca")
    key = make_key()
    old = datetime.now(UTC) - timedelta(days=4 * 365)
    certificate = authority.sign(make_request(key, host), Role(Kind.AGENT, host), old)
    identity = Identity(key_pem(key), certificate, authority.certificate_pem)
    state.mkdir()
    write_private(state / FILE_NAME, identity.bundle())
    return identity


def test_a_host_renews_its_certificate_with_the_one_it_has(tmp_path: Path) -> None:
    """No ticket is needed for one's own name while the certificate lasts."""
    directory = a_cluster(tmp_path / "D")
    old = an_ageing_identity(directory, "n1", tmp_path / "state")
    new = joined(directory, "n1", tmp_path / "state", with_ticket=False)
    assert new.certificate_pem != old.certificate_pem
    check_identity(new, Role(Kind.AGENT, "n1"), datetime.now(UTC) + timedelta(days=3 * 365))


def test_a_failed_renewal_costs_nothing(tmp_path: Path) -> None:
    """With the master away the old certificate stays in use."""
    directory = a_cluster(tmp_path / "D")
    old = an_ageing_identity(directory, "n1", tmp_path / "state")
    assert asyncio.run(ensure_certificate("127.0.0.1:1", None, "n1", tmp_path / "state")) == old


def test_a_certificate_renews_no_other_host(tmp_path: Path) -> None:
    """Host n1, with a perfect certificate and no ticket, asks for one of n2."""
    directory = a_cluster(tmp_path / "D")
    identity = joined(directory, "n1", tmp_path / "state")

    async def story() -> pb.EnrolReply:
        request = pb.EnrolRequest(host="n2", csr_pem=make_request(make_key(), "n2"))
        async with (
            a_master(directory) as (address, _),
            await tls.aio_channel(address, identity, MASTER_NAME) as channel,
        ):
            return await agents_pb2_grpc.EnrolmentServiceStub(channel).Enrol(request, timeout=60)

    assert "ticket" in asyncio.run(story()).error


def test_a_changed_host_name_or_a_damaged_file_means_joining_again(tmp_path: Path) -> None:
    """A stored identity is used only if it is whole and for this name."""
    directory, state = a_cluster(tmp_path / "D"), tmp_path / "state"
    tickets.admit(directory / "tickets", read_ticket(directory / "ticket").secret, Entry(time.time() + 60, uses=2))
    joined(directory, "n1", state)
    check_identity(joined(directory, "n2", state), Role(Kind.AGENT, "n2"))
    write_private(state / FILE_NAME, b"garbage")
    check_identity(joined(directory, "n2", state), Role(Kind.AGENT, "n2"))


@pytest.mark.slow
def test_an_agent_that_is_early_waits_for_its_master(tmp_path: Path) -> None:
    """Hosts boot in any order."""
    directory = a_cluster(tmp_path / "D")
    port = _free_port()
    replace(read_ticket(directory / "ticket"), enrol=f"localhost:{port}").write(directory / "ticket")

    async def story() -> Identity:
        asking = asyncio.create_task(ensure_certificate("localhost:1", directory / "ticket", "n1", tmp_path / "state"))
        done, _ = await asyncio.wait({asking}, timeout=0.3)
        assert not done
        server = await start_enrolment_server(Trust(directory), master_identity(directory), f"127.0.0.1:{port}")
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await asking
        finally:
            await server.stop(None)

    check_identity(asyncio.run(story()), Role(Kind.AGENT, "n1"))


def test_a_taken_enrolment_port_is_one_sentence(tmp_path: Path) -> None:
    """The master's log names the port, without a traceback."""
    directory = a_cluster(tmp_path / "D")

    async def story() -> None:
        port = _free_port()
        first = await start_enrolment_server(Trust(directory), master_identity(directory), f"127.0.0.1:{port}")
        try:
            await start_enrolment_server(Trust(directory), master_identity(directory), f"127.0.0.1:{port}")
        finally:
            await first.stop(None)

    with pytest.raises(TrustError, match="cannot be opened"):
        asyncio.run(story())


def test_the_master_renews_its_own_certificate(tmp_path: Path) -> None:
    """A master started in the last third of its certificate's life keeps its key and gets a new certificate."""
    directory = a_cluster(tmp_path / "D")
    authority = Authority.load(directory / "ca")
    key = make_key()
    old = authority.certify(key.public_key(), Role(Kind.MASTER), datetime.now(UTC) - timedelta(days=4 * 365))
    write_private(directory / "master.key", key_pem(key))
    (directory / "master.pem").write_bytes(old)
    renewed = master_identity(directory)
    assert renewed.certificate_pem != old
    assert renewed.key_pem == key_pem(key)
    assert master_identity(directory) == renewed


def test_a_lost_authority_keeps_only_new_hosts_out(tmp_path: Path) -> None:
    """The master starts and knows its hosts; who asks for a certificate is told, and gets one once the key is back."""
    directory = a_cluster(tmp_path / "D")
    key = directory / "ca" / "ca.key"
    first = joined(directory, "n1", tmp_path / "a")
    tickets.admit(directory / "tickets", "second", Entry(time.time() + 60, "n2"))
    replace(read_ticket(directory / "ticket"), secret="second").write(directory / "ticket")
    copy = key.read_bytes()
    key.unlink()
    assert joined(directory, "n1", tmp_path / "a", with_ticket=False) == first
    with pytest.raises(TrustError, match=r"ca\.key is lost: no host can join"):
        joined(directory, "n2", tmp_path / "b")
    with pytest.raises(CommandError, match=r"ca\.key is lost: no host can join"):
        files.new_ticket(directory)
    write_private(key, copy)
    assert joined(directory, "n2", tmp_path / "b")


def test_seals_outlive_the_key_of_the_authority(tmp_path: Path) -> None:
    """Of that key they are made; the state directory has a copy of what was made, and a new one where it has none."""
    directory, state, other = a_cluster(tmp_path / "D"), tmp_path / "state", tmp_path / "other"
    mark = Mark("x", 1, 2, 3)
    for place in (state, other):
        place.mkdir(mode=0o700)
    first = Seals.of(directory, state)
    (directory / "ca" / "ca.key").unlink()
    assert Seals.of(directory, state).is_own_mark(mark, first.of_mark(mark))
    assert not Seals.of(directory, other).is_own_mark(mark, first.of_mark(mark))
    assert Seals.of(directory, other).is_own_mark(mark, Seals.of(directory, other).of_mark(mark))
    assert (state / "seal-key").stat().st_mode & 0o777 == 0o600
