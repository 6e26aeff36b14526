"""``lavactl simulate``: figures of each user, group and queue before and after a change; a copy is read as the copy."""

from dataclasses import replace
from pathlib import Path

import pytest

from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.simulator.replay import history_input
from lavad.simulator.replay.comparison import as_text, as_values, compared
from lavad.simulator.replay.history_input import Past
from lavad.simulator.replay.main import main
from lavad.simulator.replay.policy_choice import configured
from lavad.simulator.replay.report import Ran
from lavad.simulator.replay.workload import Submission
from protos.conffile import ConfError
from tests.simulator.test_history import HOSTS, a_job

QUEUE = "Begin Queue\nQUEUE_NAME = {name}\nPRIORITY = {priority}\nEnd Queue\n"
SETTINGS = "LAVA_LISTEN=x:1\nLAVA_ENROL_LISTEN=x:2\nLAVA_STATE_DIR={}\n"


def of(one: Submission, user: str, group: str = "") -> Submission:
    """The job as another user's."""
    shared = replace(one.command.job.shared, user=user, user_group=group)
    return one._replace(command=replace(one.command, job=one.command.job._replace(shared=shared)))


def test_each_user_group_and_queue_has_its_figures() -> None:
    """Jobs, mean and 95th percentile of the waits, slot hours; of whom there were none before they are zero."""
    jobs = [of(a_job(number), "ann" if number <= 20 else "bob") for number in range(1, 22)] + [
        of(a_job(22), "cat", "phys")
    ]
    before = [Ran(number, 0.0, float(number), 3600.0, 2) for number in range(1, 22)]
    after = [Ran(number, 0.0, 0.0, 3600.0, 2) for number in range(1, 23)]
    policy = Policy(user_groups={"chem": Names(False, frozenset({"ann"}))})
    tables = compared(before, after, jobs, policy)
    assert list(tables["user"]) == ["ann", "bob", "cat"]
    assert tables["user"]["ann"] == ((20, 10.5, 19.0, 40.0), (20, 0.0, 0.0, 40.0))
    assert tables["user"]["cat"] == ((0, 0.0, 0.0, 0.0), (1, 0.0, 0.0, 2.0))
    assert list(tables["group"]) == ["-", "chem", "phys"]
    assert [table.jobs for table in tables["queue"]["normal"]] == [21, 22]
    told = as_values(tables)
    assert told["by_user"]["ann"]["p95_wait_s"] == {"before": 19.0, "after": 0.0, "difference": -19.0}
    lines = as_text(tables).splitlines()
    assert lines[1].split()[:4] == ["USER", "JOBS", "JOBS_AFTER", "JOBS_DIFF"]
    assert " ".join(lines[2].split()) == "ann 20 20 +0 10.5 0.0 -10.5 19.0 0.0 -19.0 40.0 40.0 +0.0"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A cluster's directory whose lsf.conf names its own lsb files by an absolute path, as LSF's installer does."""
    (tmp_path / "site" / "lsbatch").mkdir(parents=True)
    (tmp_path / "site" / "lava.conf").write_text(SETTINGS.format(tmp_path))
    (tmp_path / "site" / "lsf.conf").write_text(f"LSB_CONFDIR={tmp_path}/site/lsbatch\n")
    queues = QUEUE.format(name="normal", priority=30) + QUEUE.format(name="urgent", priority=40)
    (tmp_path / "site" / "lsbatch" / "lsb.queues").write_text(queues)
    return tmp_path / "site"


def copied(site: Path, *, flat: bool) -> Path:
    """A copy of the directory, its lsb files below it or beside lsf.conf, in which urgent has become slow."""
    copy = site.parent / "copy"
    copy.mkdir()
    (copy / "lava.conf").write_text((site / "lava.conf").read_text())
    (copy / "lsf.conf").write_text((site / "lsf.conf").read_text())
    place = copy if flat else copy / "lsbatch"
    place.mkdir(exist_ok=True)
    queues = QUEUE.format(name="normal", priority=30) + QUEUE.format(name="urgent", priority=1)
    (place / "lsb.queues").write_text(queues)
    return copy


@pytest.mark.parametrize("flat", [True, False])
def test_a_copy_is_read_though_lsf_conf_names_the_original(
    site: Path, capsys: pytest.CaptureFixture[str], flat: bool
) -> None:
    """Its own lsb.queues count, wherever in the copy they lie, and a line says so."""
    copy = copied(site, flat=flat)
    policy = configured(copy, {}, site)
    assert [queue.priority for queue in policy.queues if queue.name == "urgent"] == [1]
    place = copy if flat else copy / "lsbatch"
    expected = f"{copy}/lsf.conf:1: LSB_CONFDIR = {site}/lsbatch: {place} is read in its place\n"
    assert capsys.readouterr().err == expected


def test_a_copy_without_the_files_is_refused(site: Path) -> None:
    """The original's files in their place would show no change, whatever the copy says."""
    copy = site.parent / "copy"
    copy.mkdir()
    (copy / "lava.conf").write_text((site / "lava.conf").read_text())
    (copy / "lsf.conf").write_text((site / "lsf.conf").read_text())
    with pytest.raises(ConfError) as refused:
        configured(copy, {}, site)
    assert f"LSB_CONFDIR = {site}/lsbatch: expected a directory within {copy}, which is a copy" in str(refused.value)


def test_a_copy_whose_lava_conf_names_the_original_is_refused(site: Path) -> None:
    """LAVA_LSF_DIR leads out of the copy."""
    copy = copied(site, flat=True)
    (copy / "lava.conf").write_text(SETTINGS.format(site.parent) + f"LAVA_LSF_DIR={site}\n")
    with pytest.raises(ConfError, match=r"LAVA_LSF_DIR = .*: expected a directory within .*, which is a copy"):
        configured(copy, {}, site)


@pytest.mark.parametrize("named", ["LAVA_ENVDIR", "LSF_ENVDIR", ""])
def test_the_clusters_own_directory_is_no_copy(
    site: Path, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files outside of it that its lsf.conf names count."""
    (tmp_path / "elsewhere").mkdir()
    (site / "lsbatch" / "lsb.queues").rename(tmp_path / "elsewhere" / "lsb.queues")
    (site / "lsf.conf").write_text(f"LSB_CONFDIR={tmp_path}/elsewhere\n")
    policy = configured(site, {named: str(site)} if named else {}, None if named else site)
    assert "urgent" in {queue.name for queue in policy.queues}
    assert not capsys.readouterr().err


def test_a_change_of_priorities_is_told_by_user(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ann's urgent jobs went first; with the copy's priority they wait for bob's."""
    monkeypatch.delenv("LAVA_ENVDIR", raising=False)
    monkeypatch.delenv("LSF_ENVDIR", raising=False)
    jobs = [of(a_job(number, tasks=4, queue="normal" if number % 2 else "urgent"), "bob" if number % 2 else "ann")
            for number in range(1, 11)]  # fmt: skip
    ran = [Ran(one.number, one.at, one.at, 10.0, 4) for one in jobs]
    monkeypatch.setattr(history_input, "read_past", lambda _, __, ___: Past(jobs, HOSTS, ran))
    copy = copied(site, flat=False)
    assert main(["--from-history", str(site), "--conf", str(copy)]) == 0
    lines = capsys.readouterr().out.split("\n\n")[1].splitlines()
    words = {line.split()[0]: line.split() for line in lines}
    ann, bob = words["ann"], words["bob"]
    assert ann[1:4] == bob[1:4] == ["5", "5", "+0"]
    assert float(ann[6]) > 0 > float(bob[6])
