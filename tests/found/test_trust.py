"""Join tickets and certificates: the host names they admit, and their revocation. A real master over real TLS."""

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc.aio
import pytest

from agents.master.enrolment import ensure_certificate
from lavactl.personal import directory as files
from lavactl.personal.hosts import network
from protos import agents_pb2 as pb
from protos.agents_pb2_grpc import AgentServiceStub
from protos.trust.roles import MASTER_NAME, Identity, TrustError
from protos.trust.tls import aio_channel
from protos.wire import PROTOCOL
from tests.acceptance.personal import BIN, Cluster, a_cluster, wait_for
from tests.fakes.agent import PretendingAgent

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Directory of a cluster whose master runs, as ``lavactl init`` makes it."""
    directory = tmp_path_factory.mktemp("trust") / "D"
    # Below the ports that the kernel gives to connections: one of those could be taken before the master has it.
    one = network.free_port("127.0.0.1", 10_000 + os.getpid() % 10_000)
    listen, enrol = (f"127.0.0.1:{port}" for port in (one, network.free_port("127.0.0.1", one + 1)))
    files.create(directory, files.Settings("trusted", listen, listen, enrol, "root"))
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "lavad", "--conf", str(directory)], stdout=log, stderr=log)
        try:
            wait_for(lambda: "serving" in (directory / "log").read_text(), PATIENCE_S, "the master to serve")
            yield directory
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


def lavactl(*words: str) -> str:
    """Output of lavactl, which must succeed."""
    done = subprocess.run([BIN / "lavactl", *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def joined(directory: Path, host: str, state: Path, ticket: str = "ticket") -> Identity:
    """Identity that an agent of that name receives from the master for a ticket of the directory."""

    async def story() -> Identity:
        address = files.read_settings(directory)["LAVA_LISTEN"]
        async with asyncio.timeout(PATIENCE_S):
            return await ensure_certificate(address, directory / ticket, host, state)

    return asyncio.run(story())


def in_session(directory: Path, host: str, identity: Identity, then: Callable[[], None] = lambda: None) -> None:
    """Hold a session of that host while ``then`` happens beside the event loop."""

    async def story() -> None:
        address = files.read_settings(directory)["LAVA_LISTEN"]
        async with asyncio.timeout(PATIENCE_S), await aio_channel(address, identity, MASTER_NAME) as channel:
            agent = PretendingAgent(host, 1, channel)
            await agent.begin()
            await asyncio.to_thread(then)
            await agent.end()

    asyncio.run(story())


def last_word(directory: Path, host: str, identity: Identity) -> str:
    """Error with which the master ends a session that this certificate opens."""

    async def story() -> str:
        address = files.read_settings(directory)["LAVA_LISTEN"]
        async with asyncio.timeout(PATIENCE_S), await aio_channel(address, identity, MASTER_NAME) as channel:
            call = AgentServiceStub(channel).Session()
            try:
                hello = pb.Hello(protocol=PROTOCOL, incarnation=7)
                hello.facts.name = host
                await call.write(pb.Reports(hello=hello))
                while isinstance(orders := await call.read(), pb.Orders):
                    if orders.welcome.error:
                        return str(orders.welcome.error)
                return str(await call.details())
            except grpc.aio.AioRpcError:  # a write beside the end has words of the library
                return str(await call.details())

    return asyncio.run(story())


def refusal(master: Path, name: str, identity: Identity) -> str:
    """The master's last word, asked for again where gRPC lost the sentence of a stream that ended at once."""
    for _ in range(20):
        if (word := last_word(master, name, identity)) != "Internal error from Core":
            break
    return word


def test_a_ticket_does_not_give_the_masters_name(master: Path, tmp_path: Path) -> None:
    """Root of a compute node with a ticket would be an administrator's host, and root of all."""
    own = socket.gethostname()
    with pytest.raises(TrustError, match=f"{own} is a master, login or administration host"):
        joined(master, own, tmp_path / "s")
    in_session(master, own, joined(master, own, tmp_path / "s", f"ticket.{own}"))


def test_a_ticket_is_for_one_host_and_never_for_a_name_that_has_a_certificate(master: Path, tmp_path: Path) -> None:
    """Neither while that host is connected nor after; the refusal names the remedy."""
    lavactl("init", str(master), "--new-ticket")
    identity = joined(master, "n1", tmp_path / "a")

    def others_try() -> None:
        with pytest.raises(TrustError, match=r"A host n1 is connected.*badmin hremove n1"):
            joined(master, "n1", tmp_path / "b")
        with pytest.raises(TrustError, match=r"has been used, by n1; .*--new-ticket --host n2"):
            joined(master, "n2", tmp_path / "c")

    in_session(master, "n1", identity, others_try)
    with pytest.raises(TrustError, match="has a valid certificate"):
        joined(master, "n1", tmp_path / "b")


def test_an_answer_that_was_lost_may_be_asked_for_again(master: Path, tmp_path: Path) -> None:
    """The host never used its first certificate: the same ticket gives another, and the first is revoked."""
    lavactl("init", str(master), "--new-ticket")
    lost, second = joined(master, "lost", tmp_path / "a"), joined(master, "lost", tmp_path / "b")
    in_session(master, "lost", second)
    assert "revoked" in refusal(master, "lost", lost)


def test_a_reinstalled_host_joins_by_a_ticket_that_says_so(master: Path, tmp_path: Path) -> None:
    """A plain one for its name does not do; the certificate that was lost is revoked, and hosts with it are cut off."""
    lavactl("init", str(master), "--new-ticket", "--host", "old")
    identity = joined(master, "old", tmp_path / "a", "ticket.old")
    in_session(master, "old", identity)
    lavactl("init", str(master), "--new-ticket", "--host", "old")
    with pytest.raises(TrustError, match=r"--new-ticket --host old --replace"):
        joined(master, "old", tmp_path / "b", "ticket.old")
    lavactl("init", str(master), "--new-ticket", "--host", "old", "--replace")
    in_session(master, "old", joined(master, "old", tmp_path / "b", "ticket.old"))
    assert "revoked" in refusal(master, "old", identity)


def test_tickets_are_listed_and_revoked_by_one_command(master: Path, tmp_path: Path) -> None:
    """Each with the host it admits and the hosts that used it; one by its digest, all by ``all``."""
    lavactl("tickets", str(master), "--revoke", "all")
    lavactl("init", str(master), "--new-ticket", "--uses", "3")
    lavactl("init", str(master), "--new-ticket", "--host", "n7")
    joined(master, "n5", tmp_path / "n5")
    header, *rows = (line.split() for line in lavactl("tickets", str(master)).splitlines())
    assert header == ["TICKET", "ADMITS", "REPLACES", "EXPIRES", "USED_BY"]
    assert [row[1:-3] for row in rows] == [["3", "new", "hosts", "no"], ["n7", "no"]]
    assert [row[-1] for row in rows] == ["n5", "-"]
    lavactl("tickets", str(master), "--revoke", rows[0][0])
    with pytest.raises(TrustError, match="not known to this master"):
        joined(master, "n6", tmp_path / "n6")
    lavactl("tickets", str(master), "--revoke", "n7")
    with pytest.raises(TrustError, match="not known to this master"):
        joined(master, "n7", tmp_path / "n7", "ticket.n7")


def test_certificates_are_listed_and_revoked_by_one_command(master: Path, tmp_path: Path) -> None:
    """An open session ends, no other begins, no certificate is renewed, and the host's tickets are revoked."""
    lavactl("init", str(master), "--new-ticket", "--host", "n8")
    shutil.copy(master / "ticket.n8", tmp_path / "kept")
    identity = joined(master, "n8", tmp_path / "n8", "ticket.n8")
    listed = lavactl("certificates", str(master), "n8").splitlines()[1].split()
    assert listed[:3] == ["n8", "not", "used"]

    def revoked() -> None:
        said = ["n8", "valid"]
        listed = ("certificates", str(master), "n8")
        wait_for(lambda: lavactl(*listed).splitlines()[1].split()[:2] == said, PATIENCE_S, "its use to be recorded")
        lavactl("certificates", str(master), "--revoke", "n8")
        wait_for(lambda: "session=cut host=n8" in (master / "log").read_text(), PATIENCE_S, "the session to be cut")

    in_session(master, "n8", identity, revoked)
    assert "The certificate of n8 is revoked" in refusal(master, "n8", identity)
    assert lavactl("certificates", str(master), "n8").splitlines()[1].split()[:2] == ["n8", "revoked"]
    assert " n8 " not in lavactl("tickets", str(master))
    with pytest.raises(TrustError, match="made before n8 was removed"):
        joined(master, "n8", tmp_path / "again", "ticket.n8")
    lavactl("init", str(master), "--new-ticket", "--host", "n8")
    in_session(master, "n8", joined(master, "n8", tmp_path / "again", "ticket.n8"))


@pytest.fixture(scope="module")
def personal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two hosts."""
    with a_cluster(tmp_path_factory.mktemp("personal") / "D", 2, 2) as cluster:
        yield cluster


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="copies the identity of another host, whose network it enters")
def test_a_cloned_disk_image_does_not_throw_the_first_host_out(personal: Cluster, tmp_path: Path) -> None:
    """A second agent with the same certificate is refused with a sentence; the first is unaffected."""
    state = next(path.parent.parent for path in personal.directory.rglob("lava1/identity/agent.pem"))
    shutil.copytree(state / "identity", tmp_path / "clone" / "identity")
    begun = personal.log("agent-lava1").count("session_began")
    argv = [sys.executable, "-m", "agents", "--name", "lava1", "--state", str(tmp_path / "clone"), "--slots", "1"]
    argv += ["--master", files.read_settings(personal.directory)["LAVA_MASTER"], "--socket", str(tmp_path / "sock")]
    with (tmp_path / "log").open("wb") as log:
        clone = subprocess.Popen([*argv, "--no-cgroups"], stdout=log, stderr=log)
    try:
        refused = "Another agent of host lava1 is connected with the same name"
        wait_for(lambda: refused in (tmp_path / "log").read_text(), 60, "the clone to be refused")
    finally:
        clone.send_signal(signal.SIGTERM)
        clone.wait(PATIENCE_S)
    wait_for(
        lambda: any("level=WARNING" in line and refused in line for line in personal.log("lavad").splitlines()),
        PATIENCE_S,
        "the master's log to tell of it",
    )
    assert personal.log("agent-lava1").count("session_began") == begun
    assert personal.state(personal.submit("-K", "-m", "lava1", "-o", "/dev/null", "true")) == "DONE"
    subprocess.run([*argv[:3], "--shutdown", "--state", str(tmp_path / "clone")], check=False, timeout=60)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another account")
def test_root_sets_a_cluster_up_in_the_directory_of_its_service_account(tmp_path: Path) -> None:
    """Its files belong to that account, which reads them; in the directory of a login account root makes none."""
    for path in (tmp_path, *tmp_path.parents[:-1]):
        assert path.stat().st_uid == 0
    service = next(one for one in pwd.getpwall() if one.pw_uid and one.pw_shell.endswith("nologin"))
    (tmp_path / "D").mkdir()
    os.chown(tmp_path / "D", service.pw_uid, service.pw_gid)
    lavactl("init", str(tmp_path / "D"))
    lavactl("init", str(tmp_path / "D"), "--new-ticket", "--host", "n1")
    assert {path.stat().st_uid for path in (tmp_path / "D").rglob("*")} == {service.pw_uid}
