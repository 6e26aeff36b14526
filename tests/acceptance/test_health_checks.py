"""Health checks in a cluster of real processes: a bad host is closed with the reason, and opens when it is well."""

from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


def test_a_bad_host_is_closed_until_its_check_is_good(tmp_path: Path) -> None:
    """bhosts shows it as closed with the check's word, jobs go elsewhere, the log has one warning of the reason."""
    check = tmp_path / "check"
    check.write_text(f"#!/bin/sh\n[ -e {tmp_path}/bad ] || exit 0\necho 'GPU 3 fell off the bus'\nexit 2\n")
    check.chmod(0o755)
    settings = {"LAVA_HEALTH_CHECK": str(check), "LAVA_HEALTH_CHECK_INTERVAL": "1", "LAVA_HEALTH_CHECK_SHARE": "50"}
    settings["LAVA_HEARTBEAT"] = "0.5"
    with a_cluster(tmp_path / "cluster", 2, 1, **settings) as cluster:
        (tmp_path / "bad").touch()
        listing = ("bhosts", "-noheader", "-o", "host_name status")

        def closed() -> list[str]:
            rows = [line.split() for line in cluster.says(*listing).splitlines()]
            return [name for name, status in rows if status == "closed_Adm"]

        wait_for(lambda: len(closed()) == 1, 60, "one of two hosts to be closed")
        (bad,) = closed()
        assert "health check: GPU 3 fell off the bus" in cluster.says("bhosts", "-l", bad)
        line = f"host=closed host={bad} reason='health check: GPU 3 fell off the bus'"
        wait_for(lambda: line in cluster.log("lavad"), 60, "the log to tell")
        job = cluster.submit("-m", bad, "true")
        assert cluster.state(job) == "PEND"
        assert len(closed()) == 1  # not both: the check itself may be at fault
        (tmp_path / "bad").unlink()
        wait_for(lambda: not closed(), 60, "the host to be open")
        cluster.becomes(job, "DONE")
        _check_before_jobs(cluster, tmp_path)


QUEUES = """\
    Begin Queue
    QUEUE_NAME = normal
    End Queue
    Begin Queue
    QUEUE_NAME = gpus
    HEALTH_CHECKS = BEFORE[{program} prolog] LIMIT[30]
    End Queue
    """


def _check_before_jobs(cluster: Cluster, directory: Path) -> None:
    """The queue's own check keeps a job from a bad host, which opens when that check is good again."""
    program = directory / "before"
    program.write_text(
        f"#!/bin/sh\n[ $(uname -n) != lava1 -o -e {directory}/mended ] && exit 0\necho GPU 7 is lost\nexit 2\n"
    )
    program.chmod(0o755)
    cluster.reconfigure({"lsb.queues": QUEUES.format(program=program)})
    wide = cluster.submit("-q", "gpus", "-n", "2", "-R", "span[ptile=1]", "-o", "/dev/null", "true")
    wait_for(lambda: "health check: GPU 7 is lost" in cluster.says("bhosts", "-l", "lava1"), 60, "lava1 to be closed")
    narrow = cluster.submit("-q", "gpus", "-o", "/dev/null", "true")
    cluster.becomes(narrow, "DONE")
    assert "health check before the job: GPU 7 is lost" in " ".join(cluster.history(wide).split())
    assert cluster.state(wide) == "PEND"

    def bad() -> list[tuple[str, str, str]]:
        rows = [line.split() for line in cluster.says("lavactl", "checks", "-noheader", "-bad").splitlines()]
        return [(words[0], words[1], words[5]) for words in rows]

    # Each host may still have to run the site's check again, which was bad before.
    wait_for(lambda: bad() == [("lava1", "bad", str(program))], 60, "the queue's check to be the only bad one")
    (directory / "mended").touch()
    cluster.becomes(wide, "DONE", 60)
