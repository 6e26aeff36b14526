"""Unknown words that would do harm unnoticed: in requirements, in limits, as host names."""

from pathlib import Path

import pytest

from tests.config.files import loaded, policy_of, said, write

SHARED = "Begin Resource\nRESOURCENAME TYPE INTERVAL INCREASING\nmatlab Numeric () N\nssd Boolean () ()\nEnd Resource\n"
JOINS = "counts once such a host has joined"


def _queue(*lines: str) -> dict[str, str]:
    return {
        "lsf.shared": SHARED,
        "lsb.queues": "\n".join(("Begin Queue", "QUEUE_NAME = normal", *lines, "End Queue")) + "\n",
    }


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("RES_REQ = select[sdd]", "Bad resource name 'sdd' at character 8; did you mean ssd?"),
        ("RES_REQ = rusage[matlabb=1]", "Bad resource name 'matlabb' at character 8; did you mean matlab?"),
        ("RES_REQ = order[zzyzx]", "Bad resource name 'zzyzx' at character 7"),
        ("STOP_COND = select[itt < 5]", "Bad resource name 'itt' at character 8; did you mean it?"),
        ("RESUME_COND = it >", "Bad resource requirement syntax at character 5: it ends too early"),
        ("STOP_COND = select[it < 5] span[hosts=1]", "expected select[...] and nothing else"),
        ("STOP_COND = {it < 5}||{mem < 5}", "expected select[...] and nothing else"),
    ],
)
def test_a_queues_requirement(tmp_path: Path, line: str, sentence: str) -> None:
    """An error: every submission to the queue would be refused, or no job ever stopped."""
    found = loaded(tmp_path, _queue(line))
    assert [str(one) for one in found.errors] == [f"{tmp_path}/lsb.queues:3: {line}: {sentence}"]


def test_conditions_with_and_without_brackets(tmp_path: Path) -> None:
    """LSF's manual writes select[...] around them."""
    queue = policy_of(tmp_path, _queue("STOP_COND = select[ssd && ut > 0.9]", "RESUME_COND = it > 5")).queues[0]
    assert (queue.stop_condition, queue.resume_condition) == ("ssd && (ut > 0.9)", "it > 5")


@pytest.mark.parametrize(
    ("section", "known"),
    [
        ("Limit", "NAME SLOTS SLOTS_PER_PROCESSOR JOBS MEM TMP SWP RESOURCE LICENSE USERS PER_USER QUEUES PER_QUEUE "
                  "HOSTS PER_HOST PROJECTS PER_PROJECT APPS PER_APP LAVA_WINDOW"),
        ("GuaranteedResourcePool", "NAME USERS QUEUES HOSTS GUARANTEED DESERVED MAX LOAN DISTRIBUTION "
                                  "LOAN_POLICIES"),
        ("ResourceReservation", "NAME USERS HOSTS TIME_WINDOW"),
    ],
)  # fmt: skip
def test_a_misspelt_consumer(tmp_path: Path, section: str, known: str) -> None:
    """A limit meant for one user would apply to all."""
    lines = f"Begin {section}\nNAME = few\nUSRES = ann\nEnd {section}\n"
    found = loaded(tmp_path, {"lsb.resources": lines})
    assert str(found.errors[-1]) == (
        f"{tmp_path}/lsb.resources:3: USRES: unknown parameter of a {section}; did you mean USERS?; known are {known}"
    )


def test_a_misspelt_column(tmp_path: Path) -> None:
    """The same where the section is a table."""
    found = loaded(tmp_path, {"lsb.resources": "Begin Limit\nNAME QUEUE SLOTS\nfew normal 4\nEnd Limit\n"})
    assert [one.text.partition(";")[0] for one in found.errors] == ["QUEUE: unknown parameter of a Limit"]


def test_hosts_that_nobody_knows(tmp_path: Path) -> None:
    """A warning where lsf.cluster lists hosts; a name that differs in its numbers alone was hardly misspelt."""
    found = loaded(tmp_path, {
        "lsf.cluster.c1": "Begin Host\nHOSTNAME server RESOURCES\nnode1 1 ()\nbigmem 1 ()\nEnd Host\n",
        "lsb.hosts": "Begin Host\nHOST_NAME MXJ\nbigmen 4\nnode7 4\nEnd Host\n",
        "lsb.queues": "Begin Queue\nQUEUE_NAME = normal\nHOSTS = nod1 node1\nEnd Queue\n",
    })  # fmt: skip
    assert said(found) == [
        f"lsb.hosts:3: bigmen: no host of lsf.cluster; {JOINS}; did you mean bigmem?",
        f"lsb.hosts:4: node7: no host of lsf.cluster; {JOINS}",
        f"lsb.queues:3: nod1: no host of lsf.cluster; {JOINS}; did you mean node1?",
    ]


def test_without_a_list_those_that_have_joined_are_known(tmp_path: Path) -> None:
    """No host has joined while the master starts, so it does not warn then."""
    write(tmp_path, {"lsb.hosts": "Begin Host\nHOST_NAME MXJ\nalph 4\nEnd Host\n"})
    assert said(loaded(tmp_path)) == []
    assert said(loaded(tmp_path, joined=frozenset({"alpha"}))) == [
        f"lsb.hosts:3: alph: no host of the cluster; {JOINS}; did you mean alpha?"
    ]


def test_a_pattern_that_no_host_has_yet(tmp_path: Path) -> None:
    """Hosts that join by themselves are named so beforehand; LSF goes on, and so does lava, with a warning."""
    found = loaded(tmp_path, {
        "lsf.cluster.c1": "Begin Host\nHOSTNAME model type server RESOURCES\na1 ! ! 1 ()\nEnd Host\n",
        "lsb.hosts": "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\ncloud (c* a1)\nouter (cloud)\nEnd HostGroup\n",
        "lsb.queues": "Begin Queue\nQUEUE_NAME = normal\nHOSTS = cloud d*\nEnd Queue\n",
    })  # fmt: skip
    later = "no host has such a name; counts at badmin reconfig once such a host has joined"
    assert not found.errors
    assert said(found) == [f"lsb.hosts:3: c*: {later}", f"lsb.queues:3: d*: {later}"]
    assert found.policy.host_groups["cloud"].names == found.policy.queues[0].hosts.names == {"a1"}


def test_a_licence_that_suspended_jobs_keep(tmp_path: Path) -> None:
    """LSF lends what the site has declared: one word that lava does not honour does not refuse the cluster."""
    files = {
        "lsf.shared": SHARED,
        "lsb.params": "Begin Parameters\nPREEMPTABLE_RESOURCES = mem matlab\nEnd Parameters\n",
    }
    found = loaded(tmp_path, files)
    assert said(found) == ["lsb.params:2: matlab: not lent by suspended jobs; only mem and ngpus_physical are"]
    assert (len(found.errors), found.policy.preemptable_resources) == (0, {"mem"})


def test_names_of_lsf_are_not_called_unknown(tmp_path: Path) -> None:
    """Those that sites' files have; what a site may rely on is told with its reason, the rest is not told."""
    found = loaded(tmp_path, {
        "lsf.conf": "LSF_GETCONF=lim\nLSF_STRICT_CHECKING=Y\nLSB_MBD_MAX_SIG_COUNT=5\nLSB_NQS_PORT=607\n"
                    "LSF_LOCAL_RESOURCES=\"[resource mg]\"\nLSB_JOB_TMPDIR=/scratch\nLSF_UGROUP_TRANSFER=Y\n",
        "lsb.params": "Begin Parameters\nENFORCE_ONE_UG_LIMITS = Y\nDIAGNOSE_LOGDIR = /tmp\n"
                      "GROUP_PEND_JOBS_BY = merge\nEnd Parameters\n",
        "lsb.queues": "Begin Queue\nQUEUE_NAME = normal\nMAX_SLOTS_IN_POOL = 9\nEnd Queue\n",
    })  # fmt: skip
    assert not [line for line in said(found) if "unknown" in line]
    assert [line.split()[1] for line in said(found)] == [
        "ENFORCE_ONE_UG_LIMITS:", "MAX_SLOTS_IN_POOL:",
        "LSF_LOCAL_RESOURCES:", "LSB_JOB_TMPDIR:", "LSF_UGROUP_TRANSFER:",
    ]  # fmt: skip


def test_an_unknown_column_is_told_once(tmp_path: Path) -> None:
    """At the first row of each table that has it, however many rows there are."""
    rows = "".join(f"n{number} 4 7 ()\n" for number in range(1, 40))
    found = loaded(tmp_path, {
        "lsb.hosts": f"Begin Host\nHOST_NAME MXJ COLOUR RC_ACCOUNT\n{rows}End Host\n"
                     "Begin HostGroup\nGROUP_NAME GROUP_MEMBER COLOUR\ng1 (n1) 7\ng2 (n2) 7\nEnd HostGroup\n",
    })  # fmt: skip
    assert said(found) == [
        "lsb.hosts:3: COLOUR: unknown parameter, it has no effect",
        "lsb.hosts:3: RC_ACCOUNT: unknown parameter, it has no effect",
        "lsb.hosts:45: COLOUR: unknown parameter, it has no effect",
    ]
