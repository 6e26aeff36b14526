"""Properties of the telling of every job: one cluster for all tasks, and nothing shared between two jobs."""

import itertools
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agents.job_setup.task_files import directory_of
from agents.job_setup.told.table import Table
from agents.job_setup.told.tell import CONVENTIONS, needs_files, tell
from agents.job_setup.told.values import Told
from protos.agents_pb2 import JobSpecBlob
from protos.common_pb2 import LAUNCH_EACH, PortRequest, Role, RoleTasks, TaskHost, TaskRun
from protos.jobs_pb2 import Convention, JobSpec, TaskRules
from tests.agents.told.jobs import facts

NAMES = ("ps", "worker", "launcher", "head", "master", "scheduler")
STATE = Path("state")


@st.composite
def jobs(draw: st.DrawFn) -> tuple[JobSpecBlob, list[TaskHost]]:
    """A job of some roles and conventions, its tasks in any order on some hosts, each with a port of its own there."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    ports = [PortRequest(name=name) for name in ("tensorflow", "http")]
    roles = [Role(name=name, ports=ports, launch=LAUNCH_EACH, slots_per_task=2) for name in names]
    known = draw(st.lists(st.sampled_from(sorted(CONVENTIONS)), unique=True))
    rules = TaskRules(conventions=[Convention(name=name) for name in known], format=1)
    blob = JobSpecBlob(job=7, user="ada", spec=JobSpec(name="net", roles=roles, tasks=rules))
    count = draw(st.integers(1, 3))
    parts: list[dict[int, list[int]]] = [{} for _ in range(count)]
    for at in range(len(roles)):
        for index in range(draw(st.integers(1, 4))):
            parts[draw(st.integers(0, count - 1))].setdefault(at, []).append(index)
    hosts = []
    for number, part in enumerate(parts):
        free = itertools.count(4000)
        tasks = [
            RoleTasks(role=at, indices=indices, ports=[next(free) for _ in range(2 * len(indices))])
            for at, indices in part.items()
        ]
        hosts.append(TaskHost(host=f"n{number}", address=f"10.0.0.{number}", roles=tasks))
    return blob, draw(st.permutations(hosts))


def told_all(blob: JobSpecBlob, hosts: list[TaskHost]) -> dict[tuple[int, int], Told]:
    """The telling of every task."""
    table = Table.of(blob, hosts)
    return {
        (part.role, index): tell(blob, TaskRun(role=part.role, index=index, run=1), table, facts(host.host))
        for host in hosts
        for part in host.roles
        for index in part.indices
    }


@given(jobs())
def test_all_tasks_have_the_same_files_and_names(job: tuple[JobSpecBlob, list[TaskHost]]) -> None:
    """So any of them may be written for all of a host; and only conventions with files need any."""
    blob, hosts = job
    first, *others = told_all(blob, hosts).values()
    for other in others:
        assert (other.files, other.own, other.names) == (first.files, first.own, first.names)
        assert other.path_prefix == first.path_prefix
    assert needs_files(blob) is bool(first.files or first.names)
    assert len({known[0] for _, known in first.names}) == len(first.names)


@given(jobs())
def test_clusters_agree_and_addresses_differ(job: tuple[JobSpecBlob, list[TaskHost]]) -> None:
    """TF_CONFIG has one cluster for all; no two tasks share an address, or a number."""
    found = told_all(*job)
    configs = [json.loads(one.environment["TF_CONFIG"]) for one in found.values() if "TF_CONFIG" in one.environment]
    for config in configs:
        assert config["cluster"] == configs[0]["cluster"]
        own = config["cluster"][config["task"]["type"]]
        assert 0 <= config["task"]["index"] < len(own)
    if configs:
        addresses = [address for some in configs[0]["cluster"].values() for address in some]
        assert len(set(addresses)) == len(addresses)
    assert {int(one.environment["LAVA_TASK_INDEX"]) for one in found.values()} == set(range(len(found)))
    procids = [one.environment["SLURM_PROCID"] for one in found.values() if "SLURM_PROCID" in one.environment]
    assert len(set(procids)) == len(procids)


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 99), st.integers(1, 9)), unique=True))
def test_two_attempts_never_share_a_directory(keys: list[tuple[int, int, int]]) -> None:
    """Neither two jobs, nor two elements, nor two attempts of one."""
    directories = {directory_of(STATE, key) for key in keys}
    assert len(directories) == len(keys)
