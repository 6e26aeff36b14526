"""Attacks on the whole cluster by root of one host, or by any client of the master's ports."""

import asyncio
import socket
from pathlib import Path

import grpc.aio
import pytest

from lavad.api import agents, checks
from lavad.api.enrolment import master_identity
from lavad.api.trust import RENEWALS_MAX
from lavad.core.model import Key
from lavad.core.model.reasons import Refused
from protos import agents_pb2 as pb
from protos import cluster_pb2
from protos.agents_pb2_grpc import EnrolmentServiceStub
from protos.trust import tls
from protos.trust.authority import make_key, make_request
from protos.trust.roles import MASTER_NAME, Identity
from protos.wire import HANDSHAKE_MS, SERVER_OPTIONS
from tests.trust.test_enrolment import a_cluster, a_master, an_ageing_identity

pytestmark = pytest.mark.slow

LONG = "x" * 10_000_000  # more than one answer to a command can bear


def test_a_host_that_says_too_much_of_itself_is_refused() -> None:
    """bhosts and lshosts failed for all users, about all hosts."""
    for facts in (cluster_pb2.HostFacts(model=LONG), cluster_pb2.HostFacts(resources=map(str, range(100_000)))):
        with pytest.raises(Refused, match="more of itself"):
            checks.check_facts(facts)
    load = cluster_pb2.Load(r1m=1.0, external={str(number): 1.0 for number in range(100_000)})
    checks.tidy_load(load)
    assert load == cluster_pb2.Load(r1m=1.0)


def test_long_words_about_jobs_are_cut() -> None:
    """Listings with such a job failed, also bjobs -u all, and the text was stored as well."""
    finished = pb.Finished(status=1, reason=LONG, detail=LONG, exec_home=LONG, exec_cwd=LONG)
    started = pb.Started(exec_home=LONG, exec_cwd=LONG)
    said = [
        agents._REPORTS[kind]("n1", Key(1, 0, 1), pb.Report(**{kind: word}))  # type: ignore[arg-type]
        for kind, word in (
            ("finished", finished),
            ("started", started),
            ("refused", pb.Refused(reason=LONG)),
            ("resized", pb.Resized(failed=True, detail=LONG)),
            ("limit_reached", pb.LimitReached(reason=LONG)),
        )
    ]
    assert max(len(repr(one)) for one in said) < 6 * checks.TEXT_MAX


def test_renewals_without_end_are_refused(tmp_path: Path) -> None:
    """Each is written to the register, which delays all others; other hosts are not affected."""
    directory = a_cluster(tmp_path / "D")
    one, other = (an_ageing_identity(directory, name, tmp_path / name) for name in ("n1", "n2"))

    async def asked(identity: Identity, address: str, host: str) -> str:
        async with await tls.aio_channel(address, identity, MASTER_NAME) as channel:
            request = pb.EnrolRequest(host=host, csr_pem=make_request(make_key(), host))
            reply = await EnrolmentServiceStub(channel).Enrol(request, timeout=60)
            return str(reply.error)

    async def story() -> None:
        async with a_master(directory) as (address, _):
            assert [await asked(one, address, "n1") for _ in range(RENEWALS_MAX)] == [""] * RENEWALS_MAX
            assert "n1 has been given 20 certificates within a day" in await asked(one, address, "n1")
            assert not await asked(other, address, "n2")

    asyncio.run(story())


def test_a_connection_that_says_nothing_is_closed(tmp_path: Path) -> None:
    """Any user of the network could keep all descriptors of the master for two minutes, and again. Here after less."""
    assert HANDSHAKE_MS <= 15_000
    options = [(name, 1500 if name == "grpc.server_handshake_timeout_ms" else value) for name, value in SERVER_OPTIONS]
    assert options != list(SERVER_OPTIONS)
    identity = master_identity(a_cluster(tmp_path / "D"))

    async def story() -> None:
        server = grpc.aio.server(options=options)
        port = server.add_secure_port("127.0.0.1:0", tls.server_credentials(identity))
        await server.start()
        with socket.create_connection(("127.0.0.1", port)) as silent:
            silent.settimeout(100)
            while await asyncio.to_thread(silent.recv, 4096):
                continue
        await server.stop(None)

    asyncio.run(story())
