"""Figures of bresources -g: total, free and used resources of a pool's hosts."""

from lavad.core import commands as c
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import Pool
from lavad.core.queries.pool_usage import PoolUsage, pool_usage
from tests.builders import BOB, ROOT, Story, a_cluster, a_host, a_job

ANN = Names(False, frozenset({"ann"}))


def a_site(*pools: Pool) -> Story:
    """Two hosts of four slots, the second with two GPUs."""
    policy = Policy(queues=(Queue("normal", 30),), pools=pools)
    return a_cluster(a_host("n1", 4, 1000), a_host("n2", 4, 3000, gpus=2), policy=policy)


def shown(story: Story) -> list[tuple[str, str, float, float, float, float]]:
    """Pool, resource, total, free, used, borrowed."""
    return [
        (one.pool.name, one.resource, one.total, one.free, one.used, one.borrowed) for one in pool_usage(story.cluster)
    ]


def test_what_is_there_and_who_has_it() -> None:
    """Each resource of a pool, on its own hosts; other jobs there reduce what is free and are not counted as the
    pool's."""
    here = Names(False, frozenset({"n2"}))
    story = a_site(Pool("lab", ANN, hosts=here, guaranteed={"slots": 1.0}, largest={"gpus": 2.0}), Pool("rest"))
    assert shown(story) == [("lab", "slots", 4, 4, 0, 0), ("lab", "gpus", 2, 2, 0, 0), ("rest", "slots", 8, 8, 0, 0)]
    story.run(a_job(2, hosts=("n2",), memory_mib=500))
    story.run(a_job(3, BOB, hosts=("n1",)))
    assert shown(story) == [("lab", "slots", 4, 2, 2, 1), ("lab", "gpus", 2, 2, 0, 0), ("rest", "slots", 8, 3, 3, 3)]


def test_a_pool_of_memory() -> None:
    """In MiB."""
    story = a_site(Pool("lab", ANN, deserved={"mem": 1024.0}))
    story.run(a_job(1, memory_mib=500))
    assert shown(story) == [("lab", "mem", 4000, 3500, 500, 0)]


def test_more_promised_than_there_is() -> None:
    """A closed host counts nothing, whatever runs there."""
    story = a_site(Pool("lab", ANN, guaranteed={"slots": 6.0}))
    key = story.run(a_job(1))

    def lab() -> PoolUsage:
        return next(iter(pool_usage(story.cluster)))

    assert not lab().is_overcommitted
    story.do(c.CloseHost(story.where(key.job)[0], ROOT, ""))
    assert (lab().total, lab().free, lab().used, lab().is_overcommitted) == (4, 4, 1, True)
