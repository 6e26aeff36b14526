"""Preemption with real processes: suspension and resumption, requeue, and the reasons shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, stands_still, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

QUEUES = """
    Begin Queue
    QUEUE_NAME = urgent
    PRIORITY = 50
    PREEMPTION = PREEMPTIVE[[normal again]]
    End Queue

    Begin Queue
    QUEUE_NAME = normal
    PRIORITY = 30
    End Queue

    Begin Queue
    QUEUE_NAME = again
    PRIORITY = 20
    TERMINATE_WHEN = PREEMPT
    End Queue
"""
TICKING = "while :; do echo x >> {}; sleep 0.1; done"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two hosts of two slots."""
    directory = tmp_path_factory.mktemp("preempt") / "D"
    with a_cluster(
        directory, 2, 2, lsf_files={"lsb.queues": QUEUES}, LAVA_TERMINATE_INTERVAL="1", LAVA_HEARTBEAT="1"
    ) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_jobs_left(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.clear()


def test_a_gang_is_stopped_on_all_its_hosts_and_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    """Its processes are stopped while the urgent job runs, the commands show the reason, also after a restart of the
    master, and afterwards they resume.
    """
    ticks = tmp_path / "ticks"
    gang = cluster.submit("-q", "normal", "-n", "4", "-o", "/dev/null", TICKING.format(ticks))
    cluster.becomes(gang, "RUN")
    wait_for(ticks.exists, 60, "the gang to tick")
    gate = tmp_path / "gate"
    urgent = cluster.submit("-q", "urgent", f"while [ ! -e {gate} ]; do sleep 0.1; done")
    cluster.becomes(urgent, "RUN")
    cluster.becomes(gang, "SSUSP")
    wait_for(lambda: stands_still(ticks), 60, "the ticks to end")
    low = cluster.submit("-q", "normal", "true")
    assert f"preempted by job {urgent}" in cluster.run("bjobs", "-l", str(gang)).stdout
    assert f"preempting job {gang}" in cluster.history(urgent)
    cluster.kill("lavad")
    wait_for(lambda: not cluster.is_running("lavad"), 60, "the master to die")
    cluster.up()
    wait_for(lambda: cluster.state(gang) == "SSUSP", 60, "the new master to answer")
    assert cluster.state(low) == "PEND"
    assert stands_still(ticks)
    gate.touch()
    cluster.becomes(urgent, "DONE")
    cluster.becomes(gang, "RUN")
    before = ticks.stat().st_size
    wait_for(lambda: ticks.stat().st_size > before, 60, "the ticks to go on")
    assert "Running: its room is free again" in cluster.history(gang)


def test_a_victim_is_ended_and_runs_again(cluster: Cluster, tmp_path: Path) -> None:
    """Under its id, after the urgent job; meanwhile no small job takes the freed slots."""
    starts = tmp_path / "starts"
    victims = [cluster.submit("-q", "again", "-n", "2", f"echo x >> {starts}; sleep 300") for _ in range(2)]
    for victim in victims:
        cluster.becomes(victim, "RUN")
    order = tmp_path / "order"
    urgent = cluster.submit("-q", "urgent", "-n", "4", f"echo urgent >> {order}; sleep 1")
    small = cluster.submit("-q", "normal", f"echo small >> {order}")
    cluster.becomes(urgent, "DONE")
    for victim in victims:
        assert f"requeued: preempted by job {urgent}" in cluster.history(victim)
    cluster.becomes(small, "DONE")
    for victim in victims:
        cluster.becomes(victim, "RUN")
    wait_for(lambda: len(starts.read_text().split()) == 4, 60, "both to have started twice")
    assert order.read_text() == "urgent\nsmall\n"


def _told(cluster: Cluster, job: int) -> str:
    """bhist -l without line breaks and repeated blanks."""
    return "".join(cluster.history(job).split())


def _slots(cluster: Cluster, job: int) -> str:
    return cluster.run("bjobs", "-noheader", "-o", "slots", str(job)).stdout.strip()


def test_an_elastic_job_shrinks_and_nobody_is_stopped(cluster: Cluster, tmp_path: Path) -> None:
    """It continues with half of its slots, and grows back when the urgent job is over. A master that is killed before
    the elastic job has adapted loses neither job.
    """
    notes, gate = tmp_path / "notes", tmp_path / "gate"
    notify = f'echo "$LSB_RESIZE_EVENT" >> {notes}; while [ ! -e {gate} ]; do sleep 0.1; done'
    elastic = cluster.submit("-q", "normal", "-ar", "-n", "1,4", "-rnc", notify, "sleep 300")
    cluster.becomes(elastic, "RUN")
    assert _slots(cluster, elastic) == "4"
    urgent = cluster.submit("-q", "urgent", "-n", "2", "sleep 1")
    wait_for(lambda: notes.exists() and "shrink" in notes.read_text(), 60, "the elastic job to be told")
    cluster.kill("lavad")
    wait_for(lambda: not cluster.is_running("lavad"), 60, "the master to die")
    cluster.up()
    assert (cluster.state(elastic), cluster.state(urgent)) == ("RUN", "PEND")
    gate.touch()
    cluster.becomes(urgent, "DONE")
    wait_for(lambda: _slots(cluster, elastic) == "4", 60, "the elastic job to grow back")
    story = _told(cluster, elastic)
    assert "Resizedto2slots" in story
    assert f"tomakeroomforjob{urgent}" in story
    assert "Suspended" not in story
    assert f"shrinkingjob{elastic}" in _told(cluster, urgent)


POOLS = """
    Begin GuaranteedResourcePool
    NAME = lab
    QUEUES = normal
    GUARANTEED = slots=3
    End GuaranteedResourcePool

    Begin GuaranteedResourcePool
    NAME = guests
    QUEUES = again
    GUARANTEED = slots=1
    End GuaranteedResourcePool
"""


def test_a_pool_gets_back_what_it_lent(cluster: Cluster) -> None:
    """Guests fill the cluster; the lab's jobs get all that is the lab's, and the guests keep their own slot."""
    cluster.reconfigure({"lsb.resources": POOLS})
    guests = [cluster.submit("-q", "again", "sleep 300") for _ in range(4)]
    for guest in guests:
        cluster.becomes(guest, "RUN")
    lab = [cluster.submit("-q", "normal", "-n", "3", "sleep 300"), cluster.submit("-q", "normal", "sleep 300")]
    cluster.becomes(lab[0], "RUN")
    states = sorted(cluster.state(guest) for guest in guests)
    assert states == ["PEND", "PEND", "PEND", "RUN"]
    assert cluster.state(lab[1]) == "PEND"
    ended = next(guest for guest in guests if cluster.state(guest) == "PEND")
    assert f"reclaimed for pool lab by job {lab[0]}" in cluster.history(ended)
    assert cluster.run("bkill", str(lab[0])).returncode == 0
    cluster.becomes(lab[1], "RUN")
    wait_for(lambda: [cluster.state(guest) for guest in guests].count("RUN") == 3, 60, "the guests to run again")
    cluster.reconfigure({"lsb.resources": ""})


def test_a_pool_takes_from_an_elastic_job_what_it_has_borrowed(cluster: Cluster) -> None:
    """It runs on with the slot that is the guests' own."""
    cluster.reconfigure({"lsb.resources": POOLS})
    guest = cluster.submit("-q", "again", "-ar", "-n", "1,4", "sleep 300")
    cluster.becomes(guest, "RUN")
    lab = cluster.submit("-q", "normal", "-n", "3", "sleep 300")
    cluster.becomes(lab, "RUN")
    assert (cluster.state(guest), _slots(cluster, guest)) == ("RUN", "1")
    story = _told(cluster, guest)
    assert f"reclaimedforpoollabbyjob{lab}" in story
    assert "requeued" not in story
    cluster.reconfigure({"lsb.resources": ""})


SAVING = """
    Begin Queue
    QUEUE_NAME = normal
    PRIORITY = 30
    SLOT_RESERVE = MAX_RESERVE_TIME[10]
    End Queue
"""


def test_a_parallel_job_saves_up_free_slots(cluster: Cluster) -> None:
    """Slot reservation: small jobs do not get freed slots; bhosts shows them as reserved; the job starts with enough of
    them.
    """
    cluster.reconfigure({"lsb.queues": SAVING})
    small = [cluster.submit("-q", "normal", "sleep 300") for _ in range(4)]
    for job in small:
        cluster.becomes(job, "RUN")
    wide = cluster.submit("-q", "normal", "-n", "2", "sleep 300")
    later = cluster.submit("-q", "normal", "sleep 300")
    assert cluster.run("bkill", str(small[0])).returncode == 0
    wait_for(lambda: "1" in cluster.run("bhosts", "-noheader", "-o", "rsv").stdout.split(), 60, "a slot to be reserved")
    assert (cluster.state(wide), cluster.state(later)) == ("PEND", "PEND")
    assert cluster.run("bkill", str(small[1])).returncode == 0
    cluster.becomes(wide, "RUN")
    assert cluster.state(later) == "PEND"
    assert "Room is kept: free slots are reserved for it" in cluster.history(wide)
    cluster.reconfigure({"lsb.queues": QUEUES})
