"""Unsupported settings in a site's files that ``badmin ckconfig`` did not report; and errors that were none."""

from pathlib import Path

import pytest

from lavactl.personal import site_files
from tests.config.files import loaded, said, write


def told(directory: Path, files: dict[str, str]) -> str:
    """Output of plain ckconfig."""
    return "\n".join(said(loaded(write(directory, files))))


QUEUE = "Begin Queue\nQUEUE_NAME = q\n{}\nEnd Queue\n"


@pytest.mark.parametrize(
    "line",
    [
        "USE_PRIORITY_IN_POOL = Y",
        "CHUNK_JOB_SIZE = 4",
        "SNDJOBS_TO = q@other",
        "RCVJOBS_FROM = other",
        "RC_HOSTS = all",
    ],
)
def test_a_queue_that_asks_in_vain(tmp_path: Path, line: str) -> None:
    """administration 113, 122 to 125, 133: only ckconfig -v reported it."""
    name = line.partition(" ")[0]
    assert f"lsb.queues:3: {name}: it has no effect: " in told(tmp_path, {"lsb.queues": QUEUE.format(line)})
    empty = told(tmp_path, {"lsb.queues": QUEUE.format(f"{name} =")})
    assert name not in empty


def test_files_that_ask_in_vain(tmp_path: Path) -> None:
    """administration 113, 124, 134 and section 3."""
    text = told(
        tmp_path,
        {
            "lsf.conf": "LSB_RESOURCE_ENFORCE=cpu\nLSF_BIND_JOB=BALANCE\nLSB_BIND_JOB=N\n",
            "lsb.params": "Begin Parameters\nMAX_SBD_FAIL = 3\nEnd Parameters\n",
            "lsb.hosts": "Begin Host\nHOST_NAME MXJ MIG CHKPNT\ndefault 4 10 C\nEnd Host\n",
            "lsb.resources": "Begin ReservationUsage\nRESOURCE METHOD\nlic PER_TASK\nEnd ReservationUsage\n",
        },
    )
    for name in (
        "LSB_RESOURCE_ENFORCE", "LSF_BIND_JOB", "MAX_SBD_FAIL",
        "CHKPNT", "Begin ReservationUsage",
    ):  # fmt: skip
        assert f"{name}: " in text
    assert "LSB_BIND_JOB" not in text
    assert "lsb.resources:1: Begin ReservationUsage: the section has no effect" in text
    assert told(tmp_path / "other", {"lsf.conf": "LSB_RESOURCE_ENFORCE=memory\n"}) == ""


def test_resources_of_gpus_are_known(tmp_path: Path) -> None:
    """administration, section 3: four lines of LSF's own installer refused the whole cluster."""
    names = ("ngpus", "ngpus_shared", "ngpus_excl_t", "ngpus_prohibited")
    shared = "Begin Cluster\nClusterName\nc\nEnd Cluster\nBegin Resource\nRESOURCENAME TYPE INTERVAL INCREASING\n"
    files = {
        "lsf.shared": shared + "ngpus Numeric 60 N\nEnd Resource\n",
        "lsf.cluster.c": "Begin ResourceMap\nRESOURCENAME LOCATION\n"
        + "".join(f"{name} [default]\n" for name in names)
        + "End ResourceMap\n",
    }
    assert told(tmp_path, files) == ""


def test_parameters_of_the_installer_are_known(tmp_path: Path) -> None:
    """administration, section 3: 20 were unknown, one with ``did you mean LSF_API_RECVTIMEOUT?``."""
    names = [
        "LSB_MODE",
        "LSF_DEFAULT_INSTALL",
        "LSF_LINK_PATH",
        "LSF_EGO_ENVDIR",
        "LSF_LIVE_CONFDIR",
        "LSF_PIM_SLEEPTIME_UPDATE",
        "LSF_PIM_LINUX_ENHANCE",
        "LSB_DISABLE_LIMLOCK_EXCL",
        "LSF_RES_SYNCUP_INTERVAL",
        "LSB_BJOBS_DISPLAY_ENH",
        "LSB_QUERY_ENH",
        "DAEMON_SHUTDOWN_DELAY",
        "LSB_ENABLE_HPC_ALLOCATION",
        "LSB_RC_DEFAULT_HOST_TYPE",
        "EBROKERD_HOST_CLEAN_DELAY",
    ]
    parameters = "JOB_ARRAY_EVENTS_COMBINE = Y\nRC_MAX_REQUESTS = 300\nNEWJOB_REFRESH = Y\n"
    files = {
        "lsf.conf": "".join(f"{name}=Y\n" for name in names),
        "lsb.params": f"Begin Parameters\n{parameters}End Parameters\n",
    }
    assert told(tmp_path, files) == ""


def test_a_misspelt_column_is_named_with_its_line(tmp_path: Path) -> None:
    """administration, section 3: ``lsb.users:1: UserGroup: GROUP_MEMBER is missing``, four times."""
    text = told(tmp_path, {"lsb.users": "Begin UserGroup\nGROUP_NAME GROUPMEMBER\ng (root)\nh (root)\nEnd UserGroup\n"})
    assert text.count("GROUP_MEMBER is missing") == 1
    assert "lsb.users:2: UserGroup: GROUP_MEMBER is missing; there is a column GROUPMEMBER" in text


def test_nothing_far_is_meant(tmp_path: Path) -> None:
    """everyday 6: every short unknown name was answered by ``did you mean ngpus?.``."""
    text = told(tmp_path, {"lsb.queues": QUEUE.format("RES_REQ = select[gpux]")})
    assert "gpux" in text
    assert "ngpus" not in text
    assert "did you mean" in told(tmp_path, {"lsb.queues": QUEUE.format("RES_REQ = select[maxmen > 1]")})


def test_the_sites_name_is_the_clusters(tmp_path: Path) -> None:
    """administration, section 3: ``lsid`` showed personal-root for a cluster with a site's files."""
    source = write(
        tmp_path,
        {"lsf.shared": "Begin Cluster\nClusterName\nmill\nEnd Cluster\n", "lsf.cluster.mill": "", "lsb.users": ""},
    )
    assert site_files.find(source).cluster == "mill"
