"""Lines that LSF reports and leaves out: they stop no cluster, and a warning says what is left out."""

from pathlib import Path

from lavad.config.accounts import Accounts
from tests.config.files import MadeUp, loaded, said

SHARED = """\
Begin Resource
RESOURCENAME TYPE    INTERVAL INCREASING CONSUMABLE DESCRIPTION
docker       Boolean ()       ()         ()         (containers)
cloudhost    Boolean ()       ()         (hosts from a cloud)
End Resource
"""


class WithoutEgroup(MadeUp):
    """Accounts of a site without an egroup program."""

    def external(self, kind: str, name: str) -> list[str]:
        return Accounts().external(kind, name)


def test_a_row_of_another_length(tmp_path: Path) -> None:
    """As a cloud's scripts add them, for a table with fewer columns."""
    found = loaded(tmp_path, {"lsf.shared": SHARED, "lsb.queues": "Begin Queue\nQUEUE_NAME = q\nEnd Queue\n"})
    columns = "RESOURCENAME TYPE INTERVAL INCREASING CONSUMABLE DESCRIPTION"
    assert not found.errors
    assert said(found) == [f"lsf.shared:4: expected 6 columns ({columns}), found 5; the line is left out"]
    assert list(found.policy.resources) == ["docker"]


def test_a_group_for_egroup_where_there_is_none(tmp_path: Path) -> None:
    """It has no members, and so its queue takes no jobs; one whose egroup fails is an error as before."""
    files = {
        "lsb.users": "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nout (!)\nboth (out ann)\nEnd UserGroup\n",
        "lsb.queues": "Begin Queue\nQUEUE_NAME = q\nUSERS = out\nEnd Queue\n",
    }
    found = loaded(tmp_path, files, accounts=WithoutEgroup())
    assert not found.errors
    why = "(!) takes an executable egroup in LSF_SERVERDIR of lsf.conf, and there is none"
    assert said(found) == [f"lsb.users:3: group out: {why}; the group has no members"]
    assert not found.policy.by_name["q"].users.names
    assert not found.policy.by_name["q"].users.is_all
    assert loaded(tmp_path, {"lsb.users": files["lsb.users"].replace("out", "slow")}).errors


def test_a_table_without_a_column_that_it_needs(tmp_path: Path) -> None:
    """One warning at its keywords, whatever number of rows it has; other tables of the file are read."""
    tables = ("GROUP_NAME GROUPMEMBER PRIORITY\na (ann) 1\nb (bob) 2", "GROUP_NAME GROUP_MEMBER\nc (cid)")
    text = "".join(f"Begin UserGroup\n{table}\nEnd UserGroup\n" for table in tables)
    found = loaded(tmp_path, {"lsb.users": text})
    assert not found.errors
    assert said(found) == [
        "lsb.users:2: UserGroup: GROUP_MEMBER is missing; there is a column GROUPMEMBER, which LSF does not know; "
        "the section is left out"
    ]
    assert [row.name for row in found.policy.user_group_rows] == ["c"]


def test_a_resource_of_a_host_that_lsf_shared_lacks(tmp_path: Path) -> None:
    """The host is without it."""
    hosts = "Begin Host\nHOSTNAME model type server RESOURCES\nh1 ! ! 1 (docker mg)\nEnd Host\n"
    found = loaded(
        tmp_path, {"lsf.shared": SHARED.replace("()         (hosts", "() () (hosts"), "lsf.cluster.c1": hosts}
    )
    assert not found.errors
    assert said(found) == ["lsf.cluster.c1:3: mg: no Boolean resource of lsf.shared; the host is without it"]
    assert found.policy.host_rules["h1"].resources == {"docker"}


def test_a_limit_of_what_lava_does_not_count(tmp_path: Path) -> None:
    """administration 117: a section with ELIGIBLE_PEND_JOBS alone refused the whole cluster; others are read."""
    limits = (
        "NAME = pending\nELIGIBLE_PEND_JOBS = 10\nPER_USER = all",
        "NAME = cycle\nJOBS_PER_SCHED_CYCLE = 5\nUSERS = ann",
        "NAME = both\nJOBS_PER_SCHED_CYCLE = 5\nSLOTS = 8",
    )
    text = "".join(f"Begin Limit\n{limit}\nEnd Limit\n" for limit in limits)
    found = loaded(tmp_path, {"lsb.resources": text})
    assert not found.errors
    assert said(found) == [
        "lsb.resources:3: ELIGIBLE_PEND_JOBS: MAX_PEND_JOBS of lsb.users does it; the whole limit is left out",
        "lsb.resources:8: JOBS_PER_SCHED_CYCLE: there are no cycles; the whole limit is left out",
        "lsb.resources:13: JOBS_PER_SCHED_CYCLE: it has no effect: there are no cycles",
    ]
    assert [limit.name for limit in found.policy.limits] == ["both"]


def test_a_limit_on_licenses_is_one_on_resources(tmp_path: Path) -> None:
    """LICENSE is the name that LSF had before RESOURCE; a section may have both."""
    resources = "".join(f"{name} Numeric () N Y (licence)\n" for name in ("verilog", "hspice"))
    shared = f"Begin Resource\nRESOURCENAME TYPE INTERVAL INCREASING CONSUMABLE DESCRIPTION\n{resources}End Resource\n"
    limit = "Begin Limit\nNAME = l\nLICENSE = [verilog,4]\nRESOURCE = [hspice,2]\nEnd Limit\n"
    found = loaded(tmp_path, {"lsf.shared": shared, "lsb.resources": limit})
    assert said(found) == []
    (one,) = found.policy.limits
    assert dict(one.resources) == {"verilog": 4.0, "hspice": 2.0}


def test_prose_within_a_section(tmp_path: Path) -> None:
    """IBM's own example of a service class goes on with its description in a line of its own, without a backslash."""
    queue = "Begin Queue\nQUEUE_NAME = q\nDESCRIPTION = For jobs that\nare attached to it.\nPRIORITY = 7\n{}End Queue\n"
    found = loaded(tmp_path, {"lsb.queues": queue.format("")})
    assert not found.errors
    assert said(found) == ["lsb.queues:4: expected KEY = value, found 'are attached to it.'; the line is left out"]
    assert found.policy.by_name["q"].priority == 7
    forgotten = loaded(tmp_path, {"lsb.queues": queue.format("USERS ann\n")})
    assert [str(one).rpartition("/")[2] for one in forgotten.errors] == [
        "lsb.queues:6: expected KEY = value, found 'USERS ann'"
    ]
