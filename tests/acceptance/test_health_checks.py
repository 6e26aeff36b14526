"""Health checks in a cluster of real processes: a bad host is closed with the reason, and opens when it is well."""

from pathlib import Path

import pytest

from tests.acceptance.personal import a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


def test_a_bad_host_is_closed_until_its_check_is_good(tmp_path: Path) -> None:
    """bhosts shows it as closed with the check's word, jobs go elsewhere, the log has one warning of the reason."""
    check = tmp_path / "check"
    check.write_text(f"#!/bin/sh\n[ -e {tmp_path}/bad ] || exit 0\necho 'GPU 3 fell off the bus'\nexit 2\n")
    check.chmod(0o755)
    settings = {"LAVA_HEALTH_CHECK": str(check), "LAVA_HEALTH_CHECK_INTERVAL": "1", "LAVA_HEALTH_CHECK_SHARE": "50"}
    with a_cluster(tmp_path / "cluster", 2, 1, **settings) as cluster:
        (tmp_path / "bad").touch()
        listing = ("bhosts", "-noheader", "-o", "host_name status")

        def closed() -> list[str]:
            rows = [line.split() for line in cluster.says(*listing).splitlines()]
            return [name for name, status in rows if status == "closed_Adm"]

        wait_for(lambda: len(closed()) == 1, 30, "one of two hosts to be closed")
        (bad,) = closed()
        assert "health check: GPU 3 fell off the bus" in cluster.says("bhosts", "-l", bad)
        assert f"host=closed host={bad} reason='health check: GPU 3 fell off the bus'" in cluster.log("lavad")
        job = cluster.submit("-m", bad, "true")
        assert cluster.state(job) == "PEND"
        assert len(closed()) == 1  # not both: the check itself may be at fault
        (tmp_path / "bad").unlink()
        wait_for(lambda: not closed(), 30, "the host to be open")
        cluster.becomes(job, "DONE")
