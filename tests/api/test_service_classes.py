"""bsla: jobs and slots of each service class, by state."""

from dataclasses import replace

import pytest

from lavad.api.records.parameters_limits import pools_reply
from lavad.api.records.service_class_records import service_class_records
from lavad.core import commands as c
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import Pool, ServiceClass
from lavad.simulator.cluster.restart import reborn
from protos import cluster_pb2 as pb
from tests.builders import ANN, BOB, Story, a_cluster, a_host, a_job

HERS = Names(False, frozenset({"ann"}))
GOLD = ServiceClass("gold", HERS, attaches=True, access="USERS[ann]", description="first")
TIN = ServiceClass("tin", attaches=False)
PLAIN = Policy(queues=(Queue("normal"),), default_queue="normal")
SITE = replace(
    PLAIN,
    pools=(
        Pool("night/gold", HERS, guaranteed={"slots": 2.0}, service_class="gold"),
        Pool("night/tin", guaranteed={"slots": 1.0}, service_class="tin", attaches=False),
    ),
    service_classes={"gold": GOLD, "tin": TIN},
)


def _shown(story: Story) -> dict[str, str]:
    """Pending, running, suspended by a user and finished jobs of each class, and its pending slots."""
    return {
        one.name: f"{one.jobs.pend} {one.jobs.run} {one.jobs.ususp} {one.jobs.finish} / {one.slots.pend}"
        for one in service_class_records(story.cluster)
    }


def test_jobs_by_class_and_state() -> None:
    """Those that name a class, elements of arrays too, and those that attach to one; not those of others."""
    story = a_cluster(a_host(slots=4), policy=SITE)
    done = story.run(a_job())
    story.finished("n1", done)
    story.submit(a_job(slots=2, service_class="tin", array="1-2"))
    story.submit(a_job(caller=BOB, service_class="tin", hold=True))
    story.submit(a_job(caller=BOB, slots=3))
    assert _shown(story) == {"gold": "0 0 0 1 / 0", "tin": "3 0 0 0 / 5"}
    story.plan()
    assert _shown(story)["tin"] == "1 2 0 0 / 1"
    story.submit(a_job(slots=9))
    assert _shown(story)["gold"] == "1 0 0 1 / 9"
    story.cluster = reborn(story.cluster)
    assert _shown(story) == {"gold": "1 0 0 1 / 9", "tin": "1 2 0 0 / 1"}


def test_what_the_files_say_of_a_class() -> None:
    """Its description, who may use it, and which part of which pool is its own."""
    story = a_cluster(policy=SITE)
    gold, tin = service_class_records(story.cluster)
    assert (gold.name, gold.description, gold.access, gold.attaches) == ("gold", "first", "USERS[ann]", True)
    assert (tin.name, tin.description, tin.access, tin.attaches) == ("tin", "", "", False)
    parts = [(pool.name, pool.service_class) for pool in pools_reply(story.cluster, pb.PoolsRequest()).pools]
    assert parts == [("night/gold", "gold"), ("night/tin", "tin")]


def test_pools_of_a_queue_and_their_hosts() -> None:
    """bresources -m -q: the joined hosts of each pool, once for pools of the same; whose queue is the pool's, or lent
    to."""
    normal, short = (Names(False, frozenset({name})) for name in ("normal", "short"))
    fat = Names(False, frozenset({"fat", "away"}))
    pools = (
        Pool("a", queues=normal, hosts=fat, lends=False),
        Pool("b", queues=short, borrowers=normal),
        Pool("c", queues=short, borrowers=short),
    )
    story = a_cluster(a_host("fat"), a_host("n1"), policy=replace(PLAIN, pools=pools))
    reply = pools_reply(story.cluster, pb.PoolsRequest(hosts=True, queue="normal"))
    assert [(pool.takes_queue, pool.lends_to_queue) for pool in reply.pools] == [
        (True, False), (False, True), (False, False),
    ]  # fmt: skip
    assert [(one.hosts, list(one.names)) for one in reply.host_lists] == [("away fat", ["fat"]), ("all", ["fat", "n1"])]
    with pytest.raises(Refused, match=r"^gone: No such queue$"):
        pools_reply(story.cluster, pb.PoolsRequest(queue="gone"))


def test_jobs_that_were_there_before_the_class() -> None:
    """A reconfiguration counts them; without classes nothing is counted, and one that comes back has its jobs."""
    story = a_cluster(a_host(slots=4), policy=PLAIN)
    story.run(a_job())
    story.submit(a_job(slots=3, array="1-5"))
    assert not story.cluster.counters.jobs_by_kind
    for _ in range(2):
        story.do(c.Reconfigure(SITE))
        assert _shown(story) == {"gold": "5 1 0 0 / 15", "tin": "0 0 0 0 / 0"}
        story.do(c.Reconfigure(PLAIN))
        assert not story.cluster.counters.jobs_by_kind
        assert not story.cluster.counters.slots_by_kind


def test_a_job_that_changes_its_class() -> None:
    """bmod -sla and -slan of a pending job; while the class that it names is not in the files, it attaches to none."""
    story = a_cluster(policy=SITE)
    job = story.submit(a_job(slots=9))
    for name, gold, tin in (("tin", 0, 1), ("", 1, 0), ("tin", 0, 1)):
        new = a_job(slots=9, service_class=name)
        story.do(c.ModifyJob(c.Target(job), new, ANN, "", frozenset({"service_class"})))
        assert _shown(story) == {"gold": f"{gold} 0 0 0 / {9 * gold}", "tin": f"{tin} 0 0 0 / {9 * tin}"}
    story.do(c.Reconfigure(replace(SITE, pools=SITE.pools[:1], service_classes={"gold": GOLD})))
    assert _shown(story) == {"gold": "0 0 0 0 / 0"}
    story.do(c.Reconfigure(SITE))
    assert _shown(story)["tin"] == "1 0 0 0 / 9"


def test_a_job_that_ends_is_counted_until_it_is_forgotten() -> None:
    """FINISH is what bjobs -a shows; the counters keep no entry for users whose jobs are gone."""
    story = a_cluster(a_host(slots=4), policy=SITE)
    for job in (a_job(), a_job(service_class="tin", array="1-2")):
        story.kill(story.submit(job))
    assert _shown(story) == {"gold": "0 0 0 1 / 0", "tin": "0 0 0 2 / 0"}
    story.wait(story.cluster.policy.clean_period_s + 1)
    assert _shown(story) == {"gold": "0 0 0 0 / 0", "tin": "0 0 0 0 / 0"}
    assert not story.cluster.counters.jobs_by_kind
