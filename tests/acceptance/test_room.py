"""Competition for resources with real processes: memory reservation, backfill, resource pools, fewest victims."""

import re
from collections.abc import Iterator

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

QUEUES = """
    Begin Queue
    QUEUE_NAME = normal
    PRIORITY   = 30
    {}
    End Queue

    Begin Queue
    QUEUE_NAME = low
    PRIORITY   = 20
    End Queue
"""
FILES = {"lsb.queues": QUEUES.format(""), "lsb.resources": ""}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two hosts of four slots."""
    directory = tmp_path_factory.mktemp("room") / "D"
    with a_cluster(directory, 2, 4, lsf_files=FILES, LAVA_TERMINATE_INTERVAL="1") as made:
        yield made


@pytest.fixture(autouse=True)
def _nothing_left(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.clear()


def _normal(cluster: Cluster, *lines: str, pools: str = "") -> None:
    cluster.reconfigure({"lsb.queues": QUEUES.format("\n    ".join(lines)), "lsb.resources": pools})


def _submit(cluster: Cluster, *options: str, queue: str = "normal") -> int:
    return cluster.submit("-q", queue, "-o", "/dev/null", *options, "sleep 300")


def _running(cluster: Cluster, *jobs: int) -> list[int]:
    said = cluster.run("bjobs", "-noheader", "-o", "jobid stat", *map(str, jobs)).stdout
    return [int(line.split()[0]) for line in said.splitlines() if line.endswith(" RUN")]


def _most_of_a_host(cluster: Cluster) -> int:
    """MiB that only one job of a host can have."""
    row = cluster.run("lshosts", "lava1").stdout.splitlines()[1].split()
    found = re.fullmatch(r"([\d.]+)([MGT])", row[5])
    assert found, row
    return int(float(found[1]) * {"M": 1, "G": 1024, "T": 1024**2}[found[2]] * 0.6)


def _reserved(cluster: Cluster, host: str) -> str:
    lines = cluster.run("bhosts", "-l", host).stdout.splitlines()
    return next(line for line in lines if line.startswith(" Reserved")).split()[-1]


def test_memory_is_reserved(cluster: Cluster) -> None:
    """Two jobs that each reserve most of a host's memory never run together, whether or not they use it; bhosts shows
    the reservation.
    """
    _normal(cluster)
    asks = ("-m", "lava1", "-R", f"rusage[mem={_most_of_a_host(cluster)}]")
    first, second = _submit(cluster, *asks), _submit(cluster, *asks)
    cluster.becomes(first, "RUN")
    reason = "Job's requirements for reserving resource (mem) not satisfied"
    wait_for(lambda: reason in cluster.run("bjobs", "-p", str(second)).stdout, 60, "the reason")
    assert _reserved(cluster, "lava1") not in ("0M", "-")
    cluster.becomes(_submit(cluster, "-m", "lava1"), "RUN")
    cluster.run("bkill", str(first))
    cluster.becomes(second, "RUN")


def test_a_parallel_job_saves_up_memory(cluster: Cluster) -> None:
    """Memory freed on one host is kept for the job that needs both hosts; a later small job does not get it."""
    _normal(cluster, "RESOURCE_RESERVE = MAX_RESERVE_TIME[20]")
    most = ("-R", f"rusage[mem={_most_of_a_host(cluster)}]")
    holders = [_submit(cluster, "-m", host, *most) for host in ("lava1", "lava2")]
    for job in holders:
        cluster.becomes(job, "RUN")
    wide = _submit(cluster, "-n", "2", "-R", f"span[ptile=1] rusage[mem={_most_of_a_host(cluster)}]")
    small = _submit(cluster, *most)
    cluster.run("bkill", str(holders[0]))
    wait_for(lambda: "Room is kept" in cluster.history(wide), 60, "the memory to be kept")
    assert _running(cluster, wide, small) == []
    cluster.run("bkill", str(holders[1]))
    cluster.becomes(wide, "RUN")
    assert _running(cluster, small) == []


def test_an_exclusive_job_needs_a_queue_that_allows_it(cluster: Cluster) -> None:
    """In such a queue it has a host exclusively, and shows that; in another queue it is refused."""
    _normal(cluster, "EXCLUSIVE = Y")
    refused = cluster.run("bsub", "-q", "low", "-x", "true")
    assert (refused.returncode, refused.stdout) == (255, "")
    assert "Queue does not accept EXCLUSIVE jobs. Job not submitted." in refused.stderr
    alone = _submit(cluster, "-x", "-m", "lava1")
    cluster.becomes(alone, "RUN")
    assert cluster.run("bhosts", "-noheader", "-o", "host_name status").stdout.split() == [
        "lava1", "closed_Excl", "lava2", "ok",
    ]  # fmt: skip
    beside = _submit(cluster, "-m", "lava1")
    wait_for(lambda: "Running an exclusive job" in cluster.run("bjobs", "-p", str(beside)).stdout, 60, "the reason")


@pytest.mark.parametrize(
    ("rule", "second", "started"),
    [
        ("", "8", "long"),
        ("LAVA_STRICT_ORDER = Y", "7", ""),
        ("BACKFILL = Y", "8", "short"),
        ("BACKFILL = Y", "7", "long"),
        ("LAVA_BACKFILL_DEPTH = 2", "7", "short"),
    ],
    ids=["none", "strict", "EASY", "EASY beside the reservation", "conservative"],
)
def test_jobs_start_early_when_they_delay_nobody(cluster: Cluster, rule: str, second: str, started: str) -> None:
    """Backfill: one slot is free for ten minutes, then the second and third job want it. Without reservations the next
    job takes it; with one for the second, a job that delays it does not start; with one for the third, likewise.
    """
    _normal(cluster, rule)
    cluster.becomes(_submit(cluster, "-n", "7", "-W", "10"), "RUN")
    wide = [_submit(cluster, "-n", slots, "-W", "10") for slots in (second, "8")]
    narrow = {name: _submit(cluster, "-W", limit) for name, limit in (("long", "25"), ("short", "5"))}
    if started:
        cluster.becomes(narrow[started], "RUN")
    for name, job in narrow.items():
        if name != started:
            wait_for(
                lambda job=job: "PENDING REASONS" in cluster.run("bjobs", "-l", str(job)).stdout, 60, "its reasons"
            )
    assert _running(cluster, *wide, *narrow.values()) == [narrow[name] for name in narrow if name == started]
    if started == "short":
        assert "backfilled" in cluster.history(narrow[started])


def test_a_job_that_may_use_one_host_only_is_not_delayed_there(cluster: Cluster) -> None:
    """Its reservation names the host, so longer jobs that came later use the other one, or are pending; a short one
    backfills. Otherwise they would succeed each other on its host for ever.
    """
    _normal(cluster, "BACKFILL = Y")
    there = ("-m", "lava1")
    first = _submit(cluster, *there, "-n", "2", "-W", "10")
    cluster.becomes(first, "RUN")
    wide = _submit(cluster, *there, "-n", "4", "-W", "10")
    elsewhere, long, short = _submit(cluster, "-W", "25"), *(_submit(cluster, *there, "-W", one) for one in ("25", "5"))
    for job in (elsewhere, short):
        cluster.becomes(job, "RUN")
    assert cluster.run("bjobs", "-noheader", "-o", "exec_host", str(elsewhere)).stdout.strip() == "lava2"
    told = " ".join(cluster.run("bjobs", "-l", str(wide)).stdout.split())
    assert "Reserved <4> job slots on host(s) <4*lava1> from then on;" in told
    assert _running(cluster, wide, long) == []
    cluster.run("bkill", str(first), str(short))
    cluster.becomes(wide, "RUN")
    assert _running(cluster, long) == []


def test_the_fewest_victims_are_taken(cluster: Cluster) -> None:
    """Of three low-priority jobs on two hosts only the one is suspended whose slots suffice alone."""
    _normal(cluster, "PREEMPTION = PREEMPTIVE[low]")
    small = [_submit(cluster, "-m", "lava1", "-n", "2", queue="low") for _ in range(2)]
    large = _submit(cluster, "-m", "lava2", "-n", "4", queue="low")
    for job in (*small, large):
        cluster.becomes(job, "RUN")
    urgent = _submit(cluster, "-n", "4", "-R", "span[hosts=1]")
    cluster.becomes(urgent, "RUN")
    assert _running(cluster, *small, large) == small
    assert cluster.state(large) == "SSUSP"
    assert f"preempting job {large}" in cluster.history(urgent)


POOL = """
    Begin GuaranteedResourcePool
    NAME       = lab
    QUEUES     = normal
    GUARANTEED = slots=4
    DESERVED   = slots=5
    MAX        = slots=6
    LOAN       = {}
    End GuaranteedResourcePool

    Begin GuaranteedResourcePool
    NAME   = guests
    QUEUES = low
    End GuaranteedResourcePool
"""


def test_a_pool_without_a_share_lives_on_loans(cluster: Cluster) -> None:
    """Guests borrow what the lab does not use, and return only the lab's own share; the lab has a maximum."""
    _normal(cluster, pools=POOL.format("Y"))
    guests = [_submit(cluster, queue="low") for _ in range(8)]
    wait_for(lambda: len(_running(cluster, *guests)) == 8, 60, "all guests to run")
    lab = [_submit(cluster) for _ in range(7)]
    wait_for(lambda: len(_running(cluster, *lab)) == 5, 60, "the lab to have its own")
    wait_for(lambda: len(_running(cluster, *guests)) == 3, 60, "the guests to have the rest")
    cluster.run("bkill", *map(str, guests))
    wait_for(lambda: len(_running(cluster, *lab)) == 6, 60, "the lab to have its maximum")
    reason = "The capacity pool has reached its maximum (Pool: lab, Resource: slots, Limit Value: 6)"
    assert reason in cluster.run("bjobs", "-p", str(lab[-1])).stdout


def test_a_pool_that_lends_nothing_stands_ready(cluster: Cluster) -> None:
    """Guaranteed slots stay free for the pool."""
    _normal(cluster, pools=POOL.format("N"))
    guests = [_submit(cluster, queue="low") for _ in range(8)]
    wait_for(lambda: len(_running(cluster, *guests)) == 4, 60, "four guests to run")
    lab = _submit(cluster, "-n", "4")
    cluster.becomes(lab, "RUN")
    assert len(_running(cluster, *guests)) == 4


CLASSES = """
    Begin ServiceClass
    NAME           = gold
    GOALS          = [GUARANTEE]
    ACCESS_CONTROL = QUEUES[normal]
    AUTO_ATTACH    = Y
    End ServiceClass
"""
OF_CLASSES = """
    Begin GuaranteedResourcePool
    NAME         = night
    TYPE         = slots
    HOSTS        = all
    DISTRIBUTION = ([gold, 50%])
    End GuaranteedResourcePool
"""


def test_a_service_class_has_its_part_of_the_slots(cluster: Cluster) -> None:
    """LSF's own files: half of the slots stay free for jobs of the class, and others are told why they wait."""
    cluster.reconfigure({"lsb.queues": QUEUES.format(""), "lsb.resources": OF_CLASSES, "lsb.serviceclasses": CLASSES})
    others = [_submit(cluster, queue="low") for _ in range(5)]
    wait_for(lambda: len(_running(cluster, *others)) == 4, 60, "four jobs of no class to run")
    reason = "What is free is guaranteed to another capacity pool (Pool: night/gold)"
    wait_for(lambda: reason in cluster.run("bjobs", "-p", *map(str, others)).stdout, 60, "the fifth to be told why")
    gold = _submit(cluster, "-n", "4")
    cluster.becomes(gold, "RUN")
    assert len(_running(cluster, *others)) == 4
    row = cluster.run("bresources", "-g", "night").stdout.splitlines()[1].split()
    assert row == ["night/gold", "slots", "ok", "8", "0", "4", "4", "0"]
    shown = cluster.run("bsla", "gold").stdout.splitlines()
    assert (shown[0], shown[9].split()) == ("SERVICE CLASS NAME:  gold", ["night", "slots", "4", "4", "4"])
    assert shown[12].split()[1:5] == ["0", "1", "0", "0"]  # FINISH has those of the tests before
    (cluster.directory / "lsb.serviceclasses").unlink()
    _normal(cluster)


def test_a_service_class_for_jobs_that_name_it(cluster: Cluster) -> None:
    """Without AUTO_ATTACH its slots are for jobs with -sla; the option also chooses jobs, ended ones too."""
    classes = CLASSES.replace("= Y", "= N")
    cluster.reconfigure({"lsb.queues": QUEUES.format(""), "lsb.resources": OF_CLASSES, "lsb.serviceclasses": classes})
    refused = cluster.run("bsub", "-sla", "tin", "-q", "normal", "true")
    assert refused.stderr == "tin: No such service class. Job not submitted.\n"
    refused = cluster.run("bsub", "-sla", "gold", "-q", "low", "true")
    assert refused.stderr == "gold: Jobs of queue low cannot use the service class. Job not submitted.\n"
    others = [_submit(cluster) for _ in range(5)]
    wait_for(lambda: len(_running(cluster, *others)) == 4, 60, "four jobs of no class to run")
    gold = _submit(cluster, "-n", "4", "-sla", "gold")
    cluster.becomes(gold, "RUN")
    assert len(_running(cluster, *others)) == 4
    shown = cluster.run("bjobs", "-noheader", "-sla", "gold", "-o", "jobid service_class delimiter=' '")
    assert shown.stdout == f"{gold} gold\n"
    waits = next(job for job in others if job not in _running(cluster, *others))
    cluster.run("bmod", "-sla", "gold", str(waits))
    assert "Service Class <gold>" in cluster.run("bjobs", "-UF", str(waits)).stdout
    cluster.run("bmod", "-slan", str(waits))
    cluster.run("bkill", "-sla", "gold", "0")
    cluster.becomes(gold, "EXIT")
    assert len(_running(cluster, *others)) == 4
    assert f"{gold} " in cluster.run("bhist", "-a", "-sla", "gold").stdout
    assert "Total number of exited jobs:     1" in cluster.run("bacct", "-sla", "gold").stdout
    (cluster.directory / "lsb.serviceclasses").unlink()
    _normal(cluster)
