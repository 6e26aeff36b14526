"""``lavactl simulate --from-history``: requests that the history lacks, and jobs that can never start."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lavad.core.commands import Caller, SubmitJob
from lavad.core.events import NewJob
from lavad.core.model import HostFacts, Request, RoleRequest, Shared
from lavad.simulator.replay import history_input
from lavad.simulator.replay.history_input import Past
from lavad.simulator.replay.main import main
from lavad.simulator.replay.report import Ran
from lavad.simulator.replay.workload import Submission

HOSTS = [HostFacts("a", 4, memory_mib=1000, cpus=4, resources=frozenset({"fast"}))]
ELIM = """Begin Resource
RESOURCENAME TYPE INTERVAL INCREASING CONSUMABLE DESCRIPTION
scratch Numeric 60 N Y (GiB)
End Resource
"""

Simulate = Callable[..., tuple[int, dict[str, float], list[str]]]


def a_job(number: int, priority: int = 0, tasks: int = 1, queue: str = "normal", **role: Any) -> Submission:
    """One that ran for ten seconds."""
    request = Request((RoleRequest(tasks_min=tasks, tasks_max=tasks, **role),))
    shared = Shared("alice", 1000, 1000, queue, "default", request)
    new = NewJob(0, shared, b"", b"", b"", priority=priority)
    return Submission(number, float(number), SubmitJob(new, Caller("alice", 1000)), {0: 10.0})


def _into(one: Submission, queue: str | None) -> Submission:
    """As textbook policies have it: all are in their only queue."""
    new = one.command.job
    shared = replace(new.shared, queue=queue or new.shared.queue)
    return one._replace(command=replace(one.command, job=new._replace(shared=shared)))


@pytest.fixture
def simulate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Simulate:
    """Replay these jobs as the history of a cluster; exit code, figures and messages."""
    settings = ["LAVA_LISTEN=x:1", "LAVA_ENROL_LISTEN=x:2", f"LAVA_STATE_DIR={tmp_path}"]
    (tmp_path / "lava.conf").write_text("\n".join(settings) + "\n")

    def run(jobs: list[Submission], *options: str, **files: str) -> tuple[int, dict[str, float], list[str]]:
        conf = tmp_path / "conf"
        conf.mkdir(exist_ok=True)
        (conf / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = normal\nEnd Queue\n")
        for name, text in files.items():
            (conf / name.replace("_", ".")).write_text(text)
        ran = [Ran(one.number, one.at, one.at, 10.0, 1) for one in jobs]
        monkeypatch.setattr(
            history_input, "read_past", lambda _, __, queue: Past([_into(one, queue) for one in jobs], HOSTS, ran)
        )
        where = options or ("--conf", str(conf))
        code = main(["--from-history", str(tmp_path), "--json", *where])
        said = capsys.readouterr()
        return code, json.loads(said.out or "{}"), said.err.splitlines()

    return run


@pytest.mark.parametrize("condition", ["mem>100", "it>15 && r1m<0.5 && ut<0.2", "mem>100 && fast"])
def test_hosts_of_the_past_are_idle(condition: str, simulate: Simulate) -> None:
    """Jobs' reservations are taken from their memory; they have no other load."""
    code, values, said = simulate([a_job(1, select=condition)])
    assert (code, values.get("jobs_kept"), said) == (0, 1, [])


def test_reserved_memory_is_not_free(simulate: Simulate) -> None:
    """The second wants half of the memory to be free, which the first reserves most of."""
    big = a_job(1, memory_mib=800)
    code, values, _ = simulate([big, a_job(2, select="mem>500")])
    assert (code, values["max_wait_s"]) == (0, 9)


@pytest.mark.parametrize(
    "asked",
    [
        {"rusage": "scratch=1"},
        {"select": "scratch>5"},
        {"select": "mem>100 && (scratch>5 || fast)"},
        {"select": "defined(scratch) && fast"},
        {"order": "scratch:mem", "rusage": "scratch=1,swp=0"},
    ],
)
@pytest.mark.parametrize(
    ("options", "why"), [((), "its past values are not known"), (("--policy", "easy"), "these rules do not define it")]
)
def test_what_nobody_knows_is_left_out(
    asked: dict[str, str], options: tuple[str, ...], why: str, simulate: Simulate
) -> None:
    """elim values, and resources unknown to the other rules; one line reports it."""
    jobs = [a_job(1, **asked), a_job(2, **asked), a_job(3)]
    code, values, said = simulate(jobs, *options, lsf_shared=ELIM)
    assert (code, values.get("jobs_kept")) == (0, 3)
    assert said == [f"2 jobs: what they asked of scratch is left out: {why}"]


def test_only_what_is_not_known_is_left_out_of_a_condition(simulate: Simulate) -> None:
    """The rest of it still holds."""
    code, values, said = simulate([a_job(1, select="scratch>5 && mem>5000"), a_job(2)], lsf_shared=ELIM)
    assert (code, values.get("jobs_kept")) == (0, 1)
    assert said[1].startswith(
        "left out 1 job that can never start on this machine under this policy: job 1, of 1 slots: "
    )


@pytest.mark.parametrize("policy", ["fcfs", "easy", "lava"])
def test_who_can_never_start_is_left_out(policy: str, simulate: Simulate) -> None:
    """It delays no job, and is named with the reason."""
    jobs = [a_job(1), *(a_job(number, tasks=9) for number in range(2, 7)), a_job(7), a_job(8, tasks=4)]
    code, values, said = simulate(jobs, *(() if policy == "lava" else ("--policy", policy)))
    assert (code, values.get("jobs_kept"), values["max_wait_s"]) == (0, 3, 9)
    assert said[0].startswith(
        "left out 5 jobs that can never start on this machine under this policy: job 2, of 9 slots: "
    )
    assert "; job 4, of 9 slots: " in said[0]
    assert said[0].endswith("; and 2 more")


def test_where_no_job_can_start_there_are_no_figures(simulate: Simulate) -> None:
    """Nor is that a success."""
    code, values, said = simulate([a_job(1, tasks=9)])
    assert (code, values) == (1, {})
    assert said[0].startswith("left out 1 job ")
    assert said[-1] == "lavactl simulate: no job of this history could be replayed"


@pytest.mark.parametrize("options", [(), ("--policy", "easy"), ("--policy", "fcfs")])
def test_a_user_priority_that_nobody_knows_there(options: tuple[str, ...], simulate: Simulate) -> None:
    """The replay does without."""
    code, values, said = simulate([a_job(1, priority=50), a_job(2, priority=70)], *options)
    assert (code, values.get("jobs_kept")) == (0, 2)
    assert said == ["2 jobs: their user priority is left out: these rules have no MAX_USER_PRIORITY"]


def test_a_user_priority_above_the_highest(simulate: Simulate) -> None:
    """An administrator gave it, or the highest was another."""
    most = "Begin Parameters\nDEFAULT_QUEUE = normal\nMAX_USER_PRIORITY = 60\nEnd Parameters\n"
    code, values, said = simulate([a_job(1, priority=50), a_job(2, priority=70)], lsb_params=most)
    assert (code, values.get("jobs_kept")) == (0, 2)
    assert said == ["1 job: their user priority is lowered to MAX_USER_PRIORITY, 60"]


def test_all_dropped_is_no_success(simulate: Simulate) -> None:
    """Their queue is not there."""
    code, values, said = simulate([a_job(1, queue="other")])
    assert (code, values) == (1, {})
    assert said[0] == "dropped 1 of 1 jobs: other: No such queue"


def test_a_default_queue_that_no_file_configures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace's jobs are submitted to it, and the configured queue has no effect."""
    nine = str(Path(__file__).parent / "traces" / "nine-jobs.swf")
    (tmp_path / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = normal\nEnd Queue\n")
    assert main([nine, "--conf", str(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert said.startswith(
        "All jobs were submitted to queue <default>, which the files do not configure: they configure <normal>; "
    )
    (tmp_path / "lsb.params").write_text("Begin Parameters\nDEFAULT_QUEUE = normal\nEnd Parameters\n")
    assert main([nine, "--conf", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
