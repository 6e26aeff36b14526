"""lsb.serviceclasses and pools with a DISTRIBUTION: the capacity pools they make, and warnings of the rest."""

from pathlib import Path

import pytest

from lavad.core.model.rules.names import ALL, Names
from tests.config.files import loaded, policy_of, said

QUEUES = "Begin Queue\nQUEUE_NAME = normal\nEnd Queue\nBegin Queue\nQUEUE_NAME = short\nEnd Queue\n"
APPLICATIONS = "Begin Application\nNAME = md\nEnd Application\n"
CLASSES = """\
    Begin ServiceClass
    NAME           = gold
    GOALS          = [GUARANTEE]
    ACCESS_CONTROL = QUEUES[normal] USERS[ann bob] APPS[md]
    AUTO_ATTACH    = Y
    PRIORITY       = 20
    DESCRIPTION    = the best
    End ServiceClass

    Begin ServiceClass
    NAME           = silver
    GOALS          = [guarantee]
    ACCESS_CONTROL = FAIRSHARE_GROUPS[staff] USERS[gil ann]
    AUTO_ATTACH    = Y
    End ServiceClass
    """
POOL = """\
    Begin GuaranteedResourcePool
    NAME          = night
    TYPE          = slots
    HOSTS         = h1 h2
    DISTRIBUTION  = ([silver, 25%] [gold, 10])
    LOAN_POLICIES = QUEUES[short] RETAIN[10%] DURATION[30]
    End GuaranteedResourcePool

    Begin GuaranteedResourcePool
    NAME  = lab
    USERS = eve
    End GuaranteedResourcePool
    """


def a_site(classes: str = CLASSES, pool: str = POOL) -> dict[str, str]:
    """Files of a site with two queues and an application profile."""
    return {
        "lsb.queues": QUEUES,
        "lsb.applications": APPLICATIONS,
        "lsb.serviceclasses": classes,
        "lsb.resources": pool,
    }


def test_a_capacity_pool_for_each_class(tmp_path: Path) -> None:
    """In the order of the classes, after lava's own pools; lent to the queues that LOAN_POLICIES names."""
    lab, gold, silver = policy_of(tmp_path, a_site()).pools
    assert (lab.name, lab.lends, lab.borrowers) == ("lab", True, ALL)
    assert (gold.name, gold.guaranteed, gold.slots_share) == ("night/gold", {"slots": 10.0}, 0.0)
    assert (gold.users, gold.queues, gold.applications) == (
        Names(False, frozenset({"ann", "bob"})), Names(False, frozenset({"normal"})), Names(False, frozenset({"md"})),
    )  # fmt: skip
    assert (silver.name, silver.guaranteed, silver.slots_share) == ("night/silver", {}, 0.25)
    assert (silver.users, silver.queues, silver.applications) == (Names(False, frozenset({"gil"})), ALL, ALL)
    for pool in (gold, silver):
        assert pool.hosts == Names(False, frozenset({"h1", "h2"}))
        assert (pool.lends, pool.borrowers) == (True, Names(False, frozenset({"short"})))


def test_a_class_without_auto_attach_is_for_jobs_that_name_it(tmp_path: Path) -> None:
    """Its pool takes no others (bsub -sla). Rules and texts of all classes are kept, also of one without a pool."""
    classes = CLASSES.replace("    AUTO_ATTACH    = Y\n", "", 1) + CLASSES.replace("gold", "lead").split("\n\n")[0]
    policy = policy_of(tmp_path, a_site(classes))
    assert [(pool.service_class, pool.attaches) for pool in policy.pools] == [
        ("", True),
        ("gold", False),
        ("silver", True),
    ]
    gold, silver, lead = policy.service_classes.values()
    assert (gold.name, gold.attaches, gold.description) == ("gold", False, "the best")
    assert gold.access == "QUEUES[normal] USERS[ann bob] APPS[md]"
    assert (silver.attaches, lead.attaches, lead.applications) == (True, True, Names(False, frozenset({"md"})))


def test_nothing_is_lent_without_loan_policies(tmp_path: Path) -> None:
    """As in LSF."""
    lines = [line for line in POOL.splitlines(keepends=True) if "LOAN_POLICIES" not in line]
    assert [pool.lends for pool in policy_of(tmp_path, a_site(pool="".join(lines))).pools] == [True, False, False]


def test_policies_without_effect_are_named(tmp_path: Path) -> None:
    """They are warnings: lent slots are taken back when the class needs them."""
    assert said(loaded(tmp_path, a_site())) == [
        "lsb.resources:6: RETAIN and DURATION have no effect: lent slots are taken back when the class needs them",
        "lsb.serviceclasses:13: FAIRSHARE_GROUPS: counts for all jobs of the groups' members, whatever their -G says",
    ]


LEFT_OUT = "the service class gold is left out"


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("GOALS = [VELOCITY 10 timeWindow(9:00-17:30)] [DEADLINE timeWindow(18-20)]\nAUTO_ATTACH = Y",
         f"3: GOALS: lava has no VELOCITY and DEADLINE; {LEFT_OUT}"),
        ("AUTO_ATTACH = Y", f"2: GOALS: expected [GUARANTEE]; {LEFT_OUT}"),
        ("GOALS = [GUARANTEE]\nAUTO_ATTACH = Y\nACCESS_CONTROL = LIC_PROJECTS[p]",
         f"5: LIC_PROJECTS: lava has no such consumers; {LEFT_OUT}"),
        ("GOALS = [GUARANTEE]\nAUTO_ATTACH = Y\nUSER_GROUP = staff",
         "5: USER_GROUP: it has no effect: ACCESS_CONTROL says it"),
    ],
)  # fmt: skip
def test_classes_that_are_left_out(tmp_path: Path, lines: str, sentence: str) -> None:
    """With a warning that says why; the cluster starts all the same, and no job has their part of the pool."""
    classes = f"Begin ServiceClass\nNAME = gold\n{lines}\nEnd ServiceClass\n"
    pool = "Begin GuaranteedResourcePool\nNAME = p\nTYPE = slots\nDISTRIBUTION = [gold,2]\nEnd GuaranteedResourcePool\n"
    found = loaded(tmp_path, a_site(classes, pool))
    assert said(found) == [f"lsb.serviceclasses:{sentence}"]
    assert len(found.policy.pools) == ("left out" not in sentence)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("TYPE = hosts\nDISTRIBUTION = [gold,1]",
         "resources:3: TYPE = hosts: lava guarantees slots to service classes; the pool p is left out"),
        ("TYPE = package[slots=2:mem=100]\nDISTRIBUTION = [gold,1]",
         "resources:3: TYPE = package[slots=2:mem=100]: lava guarantees slots to service classes; the pool p is left "
         "out"),
        ("DISTRIBUTION = [gold,1] [tin,5]",
         "resources:3: tin: lsb.serviceclasses has no such service class; its part is not kept"),
        ("DISTRIBUTION = [gold,1]\nSLOTS_PER_HOST = 2",
         "resources:4: SLOTS_PER_HOST: it has no effect: all slots of its hosts count"),
        ("DISTRIBUTION = [gold,1]\nRES_SELECT = mem>1",
         "resources:4: RES_SELECT: it has no effect: all hosts of HOSTS count"),
        ("DISTRIBUTION = [silver,1]",
         "serviceclasses:2: the service class gold is in no pool's DISTRIBUTION; it guarantees nothing"),
    ],
)  # fmt: skip
def test_pools_that_lava_honours_in_part(tmp_path: Path, lines: str, sentence: str) -> None:
    """A warning for each such word or class."""
    pool = f"Begin GuaranteedResourcePool\nNAME = p\n{lines}\nEnd GuaranteedResourcePool\n"
    found = loaded(tmp_path, a_site(pool=pool))
    assert not found.errors
    assert f"lsb.{sentence}" in said(found)


def test_a_pool_with_the_name_of_a_part_of_another(tmp_path: Path) -> None:
    """The files are refused: both once counted as one pool in bresources, with the amounts of both."""
    own = "Begin GuaranteedResourcePool\nNAME = night/gold\nUSERS = ann\nEnd GuaranteedResourcePool\n"
    (error,) = loaded(tmp_path, a_site(pool=POOL + own)).errors
    assert "GuaranteedResourcePool: the name night/gold is there twice" in str(error)


def test_a_class_counts_in_the_first_of_its_pools(tmp_path: Path) -> None:
    """A job belongs to one capacity pool."""
    pools = [f"Begin GuaranteedResourcePool\nNAME = {name}\nDISTRIBUTION = [gold,1] [silver,1]\n"
             "End GuaranteedResourcePool\n" for name in ("p", "q")]  # fmt: skip
    found = loaded(tmp_path, a_site(pool="".join(pools)))
    assert [pool.name for pool in found.policy.pools] == ["p/gold", "p/silver"]
    assert "lsb.resources:7: gold: its jobs belong to the pool p; its part here is not kept" in said(found)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("DISTRIBUTION = [gold,1]\nUSERS = ann",
         "4: USERS: not beside DISTRIBUTION or LOAN_POLICIES; expected one or the other"),
        ("LOAN_POLICIES = QUEUES[all]",
         "3: LOAN_POLICIES: expected DISTRIBUTION beside it; other pools take LOAN"),
        ("DISTRIBUTION = gold 1",
         "3: DISTRIBUTION = gold 1: expected [service class, amount or percentage] one after another"),
    ],
)  # fmt: skip
def test_pools_that_contradict_themselves(tmp_path: Path, lines: str, sentence: str) -> None:
    """An error: they could be meant either way."""
    pool = f"Begin GuaranteedResourcePool\nNAME = p\n{lines}\nEnd GuaranteedResourcePool\n"
    found = loaded(tmp_path, a_site(pool=pool))
    assert f"lsb.resources:{sentence}" in said(found)
    assert found.errors


def test_a_class_that_is_there_twice(tmp_path: Path) -> None:
    """An error, as for pools and limits."""
    found = loaded(tmp_path, a_site(CLASSES + CLASSES))
    assert "lsb.serviceclasses:17: ServiceClass: the name gold is there twice" in said(found)
