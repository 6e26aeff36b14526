"""LSF_UNIT_FOR_LIMITS wherever the files of a site have a size without a unit.

IBM's lsf.conf reference: limits are in KB without it, requirements and lsb.resources in MB.
"""

from pathlib import Path

import pytest

from lavad.core.model.rules.queues import Threshold
from lavad.core.model.rules.resources import SizeUnits
from tests.config.files import loaded

QUEUES = """
    Begin Queue
    QUEUE_NAME = night
    MEMLIMIT = 4
    STACKLIMIT = 4
    DATALIMIT = 4
    FILELIMIT = 4
    mem = 8/4
    tmp = 8/4
    STOP_COND = mem < 2
    RES_REQ = rusage[mem=2]
    End Queue
"""
RESOURCES = """
    Begin Limit
    NAME = most
    MEM = 16
    TMP = 16
    USERS = all
    End Limit
"""


@pytest.mark.parametrize(
    ("conf", "kib", "mib", "tmp_mib"),
    [
        ("", 1, 1, 1),
        ("LSF_UNIT_FOR_LIMITS=MB\n", 1 << 10, 1, 1),
        ("LSF_UNIT_FOR_LIMITS=GB\n", 1 << 20, 1 << 10, 1),
        ("LSF_UNIT_FOR_LIMITS=GB\nLSF_ENABLE_TMP_UNIT=Y\n", 1 << 20, 1 << 10, 1 << 10),
    ],
)
def test_each_size_of_the_files(tmp_path: Path, conf: str, kib: int, mib: int, tmp_mib: int) -> None:
    """Limits, thresholds, conditions, lsb.resources; DATALIMIT and FILELIMIT are always in KB."""
    found = loaded(tmp_path, {"lsf.conf": conf, "lsb.queues": QUEUES, "lsb.resources": RESOURCES})
    assert found.errors == ()
    policy = found.policy
    queue = next(queue for queue in policy.queues if queue.name == "night")
    assert queue.defaults.memory_limit_mib == -(-4 * kib // 1024)
    limits = {name: most for name, _, most in queue.defaults.rlimits}
    assert limits == {"stack": 4 * kib << 10, "data": 4 << 10, "fsize": 4 << 10}
    mem, tmp = Threshold("mem", 8.0 * mib, 4.0 * mib), Threshold("tmp", 8.0 * tmp_mib, 4.0 * tmp_mib)
    assert set(queue.thresholds) == {mem, tmp}
    assert queue.stop_condition == f"mem < {2 * mib}"
    assert policy.size_units == SizeUnits(float(mib), float(tmp_mib))
    assert policy.limits[0].memory_mib == 16 * mib
    assert policy.limits[0].resources == (("tmp", 16.0 * tmp_mib),)
