"""Seed rows 12 and 17 to 28: jobs that grow and shrink, and those that never do."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import wait_for
from tests.seeds.elastic_jobs import ends, lists, slots_listed, starts, workers
from tests.seeds.site import Site
from tests.seeds.test_elastic_training import mpijob
from tests.seeds.test_volcano import volcano

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

# Ranks of a launcher that starts them by ssh, as horovodrun does.
HOROVODRUN = """\
#!/bin/sh
# horovodrun -np N -H host:slots,... command ...
[ "$1" = -np ] && size=$2; [ "$3" = -H ] && hosts=$4; shift 4
rank=0
for entry in $(echo "$hosts" | tr , ' '); do
  local=0
  while [ $local -lt ${entry##*:} ] && [ $rank -lt $size ]; do
    ssh "${entry%:*}" "export HOROVOD_RANK=$rank HOROVOD_SIZE=$size; $*" &
    rank=$((rank + 1)); local=$((local + 1))
  done
done
wait
"""
HOROVOD_JOB = """
name: ranks
conventions: {horovod: {worker: worker}}
roles:
  worker: {tasks: 4, launch: none}
  launcher:
    tasks: 1
    slots: 1
    after: [worker]
    command: PATH_TO/horovodrun -np 4 -H $LAVA_HOROVOD_HOSTS 'echo rank $HOROVOD_RANK of $HOROVOD_SIZE on $(hostname)'
"""


def size(site: Site, job: int) -> int:
    """Tasks that have a place."""
    return sum(row["HOST"] != "-" for row in site.tasks(job).values())


def is_steady(site: Site, job: int, tasks: int) -> bool:
    """True if so many tasks run, and the list says so."""
    running = [name for name, stat in site.phases(job).items() if stat == "RUN"]
    return len(running) == tasks and slots_listed(site.folder) == tasks


def be(site: Site, job: int, tasks: int, limit_s: float = 60) -> None:
    """Wait until the job has that size in every respect."""
    what = f"{tasks} workers: {lists(site.folder)[-1:]}"
    wait_for(lambda: is_steady(site, job, tasks), limit_s, what)


def fill(site: Site, slots: int, *options: str) -> int:
    """A job that takes so many slots."""
    job = site.cluster.submit("-n", str(slots), *options, "sleep", "600")
    site.cluster.becomes(job, "RUN")
    return job


def test_the_output_of_tasks_that_left_stays_readable(site: Site) -> None:
    """On the hosts that they ran on, although the job has left them."""
    command = "echo here $LAVA_ROLE_INDEX; exec sleep 600"
    job = site.run(f"name: shrinks\nroles:\n  worker:\n    tasks: 1-6\n    command: {command}\n")
    site.runs(job, *(f"worker/{index}" for index in range(6)))
    all_are_here = [f"worker/{index}: here {index}" for index in range(6)]

    def said() -> list[str]:
        return sorted(site.cluster.says("lavactl", "logs", str(job)).splitlines())

    site.wait(lambda: said() == all_are_here, "the output of all tasks")
    site.cluster.says("lavactl", "scale", str(job), "worker=2")
    site.wait(lambda: size(site, job) == 2, "the job to shrink")
    assert said() == all_are_here


def test_row_12_a_gang_of_fixed_size_is_never_shrunk(site: Site) -> None:
    """A job that goes before it takes all of its room or none: there is never a part of it."""
    job = site.run(volcano("fixed", worker="sleep 600"))
    site.runs(job)
    go = site.folder / "go"
    urgent = site.cluster.submit("-q", "urgent", "-n", "4", f"until [ -e {go} ]; do sleep 0.1; done")
    seen = set()
    end = time.monotonic() + 120
    while site.cluster.state(urgent) != "DONE":
        # One answer: the job may go, and come back, between two.
        state, slots = site.cluster.says("bjobs", "-noheader", "-o", "stat nalloc_slot", str(job)).split()
        seen.add(slots if state == "RUN" else state)
        if state == "PEND":
            go.touch()
        assert time.monotonic() < end
    assert seen <= {"3", "PEND"}, seen
    assert "PEND" in seen
    site.runs(job)


def test_row_17_ranks_start_on_the_allocation_only(site: Site) -> None:
    """One command starts all: the hosts come from lava, the ranks by its ssh."""
    (site.folder / "horovodrun").write_text(HOROVODRUN)
    (site.folder / "horovodrun").chmod(0o755)
    job = site.run(HOROVOD_JOB.replace("PATH_TO", str(site.folder)))
    site.ends(job)
    said = re.findall(r"rank (\d) of 4 on (\S+)", site.log(job, "launcher/0"))
    hosts = sorted(row["HOST"] for name, row in site.tasks(job).items() if name.startswith("worker"))
    assert sorted(rank for rank, _ in said) == ["0", "1", "2", "3"]
    assert sorted(host for _, host in said) == hosts


def test_row_18_the_number_of_instances_changes_at_run_time(site: Site) -> None:
    """It starts with what is free, and grows without a restart of the others."""
    first = sorted(site.cluster.hosts())[0]
    blocking = fill(site, 4, "-R", f"select[hname!={first}]")
    job = site.run(workers(site, 1, 3))
    be(site, job, 2)
    site.cluster.says("bkill", str(blocking))
    be(site, job, 3)
    assert {index: len(pids) for index, pids in starts(site.folder).items()} == {0: 1, 1: 1, 2: 1}


def test_row_19_any_instance_may_fail_and_the_job_goes_on(site: Site) -> None:
    """A lost worker leaves the list, and another one takes its place later."""
    full = fill(site, 3)
    job = site.run(workers(site, 1, 3))
    be(site, job, 3)
    waiting = site.cluster.submit("sleep", "600")  # it is given the slot first, so that the shorter list stays a while
    pid = starts(site.folder)[2][0]
    killed_at = time.time()
    site.cluster.says("bkill", f"{job}[worker/2]")
    site.wait(lambda: any(at > killed_at and len(" ".join(names)) for at, names in lists(site.folder)), "a new list")
    assert sum(int(one.rpartition(":")[2]) for one in next(e for t, e in lists(site.folder) if t > killed_at)) == 2
    assert site.cluster.state(job) == "RUN"
    site.cluster.says("bkill", str(full), str(waiting))
    be(site, job, 3)
    assert starts(site.folder)[2][-1] != pid
    assert len(starts(site.folder)[0]) == 1


def test_row_20_elastic_jobs_shrink_for_those_that_go_before_them(site: Site) -> None:
    """By no more than is needed, and without a pause."""
    fill(site, 3)
    job = site.run(workers(site, 1, 3))
    be(site, job, 3)
    submitted, go = time.monotonic(), site.folder / "go"
    urgent = site.cluster.submit("-q", "urgent", f"until [ -e {go} ]; do sleep 0.1; done")
    states = set()
    while site.cluster.state(urgent) == "PEND":
        states.add(site.cluster.state(job))
    assert time.monotonic() - submitted < 60
    be(site, job, 2)
    assert states <= {"RUN"}
    assert len(starts(site.folder)[0]) == 1
    go.touch()
    be(site, job, 3)


def test_row_21_growth_delays_no_pending_job(site: Site) -> None:
    """Idle slots go to a job that waits; what is left then is the elastic job's."""
    blocking = fill(site, 4)
    job = site.run(workers(site, 1, 6))
    be(site, job, 2)
    waiting = site.cluster.submit("-n", "4", f"while [ ! -e {site.folder}/go ]; do sleep 0.1; done")
    site.cluster.says("bkill", str(blocking))
    site.cluster.becomes(waiting, "RUN")
    assert size(site, job) == 2
    (site.folder / "go").touch()
    be(site, job, 6)


@pytest.fixture
def revocable(site: Site) -> Iterator[str]:
    """A host that may be taken away, by lsf.cluster; an ordinary one again at the end."""
    hosts = sorted(site.cluster.hosts())
    rows = "\n".join(f"{name} ! ! 1 ({'revocable' if name == hosts[2] else ''})" for name in hosts)
    shared = "Begin Cluster\nClusterName\nsite\nEnd Cluster\n"
    table = "Begin Host\nHOSTNAME model type server RESOURCES\n{}\nEnd Host\n"
    site.cluster.reconfigure({"lsf.shared": shared, "lsf.cluster.site": table.format(rows)})
    yield hosts[2]
    site.cluster.run("badmin", "hopen", hosts[2])
    site.cluster.reconfigure({"lsf.cluster.site": table.format(rows.replace("revocable", ""))})


def test_row_22_hosts_that_are_taken_away(site: Site, revocable: str) -> None:
    """The list is without the host long before the notice is over, the task is told, and killed when it is."""
    plain = site.cluster.submit("-m", revocable, "sleep", "600")
    job = site.run(workers(site, 1, 6, lingers=600))
    be(site, job, 6)
    there = [int(name.partition("/")[2]) for name, row in site.tasks(job).items() if row["HOST"] == revocable]
    pids = [starts(site.folder)[index][0] for index in there]
    assert len(there) == 2
    assert site.cluster.state(plain) == "PEND"
    begun = time.time()
    site.cluster.run("badmin", "hclose", "-revoke", "8s", "-C", "spot", revocable)
    be_listed = next((at for at, names in _lists_without(site, revocable, begun)), 0.0)
    assert be_listed - begun < 7  # of the eight seconds of the notice
    site.wait(lambda: all(index in ends(site.folder) for index in there), "the tasks to be told to end")
    assert all(be_listed < ends(site.folder)[index] for index in there)
    assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 60, "the tasks to be killed")
    assert time.time() - begun > 7.5
    assert site.cluster.state(job) == "RUN"
    be(site, job, 4)
    assert "WILL BE TAKEN AWAY" in site.cluster.says("bhosts", "-l", revocable)
    assert site.cluster.state(plain) == "PEND"
    (site.folder / "stop").touch()


def _lists_without(site: Site, host: str, since: float) -> list[tuple[float, list[str]]]:
    def found() -> list[tuple[float, list[str]]]:
        return [one for one in lists(site.folder) if one[0] > since and not any(host in name for name in one[1])]

    site.wait(lambda: bool(found()), "a list without the host")
    return found()


def test_row_23_the_discovery_script_says_what_is(site: Site) -> None:
    """Before, during and after a growth and a shrink it equals the table of tasks."""
    job = site.run(workers(site, 1, 6))
    be(site, job, 6)

    def told() -> list[str]:
        return sorted(lists(site.folder)[-1][1])

    def placed() -> list[str]:
        hosts = [row["HOST"] for row in site.tasks(job).values() if row["HOST"] != "-"]
        return sorted(f"{host}:{hosts.count(host)}" for host in set(hosts))

    assert told() == placed()
    site.cluster.says("lavactl", "scale", str(job), "worker=2")
    be(site, job, 2)
    assert told() == placed()
    site.cluster.says("lavactl", "scale", str(job), "worker=5")
    be(site, job, 5)
    assert told() == placed()
    assert all(names for _, names in lists(site.folder))


def test_row_24_the_list_changes_before_a_worker_is_ended(site: Site) -> None:
    """A planned shrink is no failure: a launcher that looks at its list then does not blacklist the host."""
    job = site.run(workers(site, 1, 6))
    be(site, job, 6)
    asked = time.time()
    site.cluster.says("lavactl", "scale", str(job), "worker=3")
    be(site, job, 3)
    site.wait(lambda: len(ends(site.folder)) == 3, "three workers to be told")
    changed = next(at for at, names in lists(site.folder) if at > asked)
    assert changed < min(ends(site.folder).values())
    site.cluster.says("lavactl", "scale", str(job), "worker=6")
    be(site, job, 6)  # the hosts are used again


def test_row_30_the_size_follows_a_metric(site: Site) -> None:
    """A script prints it; within the cooldown nothing changes, and a failing script changes nothing."""
    wanted = site.folder / "wanted"
    wanted.write_text("3\n")
    rule = f"{{metric: script, command: 'cat {wanted}', cooldown: 3s, interval: 1s, limit: 2s}}"
    job = site.run(workers(site, 1, 4, extra=f"autoscale: {rule}"))
    be(site, job, 3)
    asked = time.monotonic()
    wanted.write_text("1\n")
    be(site, job, 1)
    wanted.write_text("4\n")
    be(site, job, 4)
    assert time.monotonic() - asked > 2.9  # the growth alone waits for 3 s after the shrink
    wanted.write_text("many\n")
    told = "its script should print a number of tasks, and prints 'many'; the size stays"
    site.wait(lambda: told in site.cluster.says("bjobs", "-l", str(job)), "the failure to be told")
    assert "".join(told.split()) in "".join(site.cluster.history(job).split())
    assert is_steady(site, job, 4)


def test_row_28_the_launcher_may_start_processes_on_a_new_host(site: Site) -> None:
    """Its blaunch knows the allocation as it is now."""
    third = sorted(site.cluster.hosts())[2]
    blocking = fill(site, 2, "-m", third)
    script = f"""
until [ -e {site.folder}/grown ]; do sleep 0.1; done
blaunch {third} hostname
"""
    text = mpijob("reach", script, workers=4, version="v1")
    words = "".join(f"                - {word}\n" for word in ("horovodrun", "--min-np", "'1'", "--max-np", "'5'"))
    job = site.run(text.replace("    Worker:\n", f"{words}    Worker:\n", 1))
    site.wait(lambda: size(site, job) == 4, "all slots to be used")
    assert third not in {row["HOST"] for row in site.tasks(job).values()}
    site.cluster.says("bkill", str(blocking))
    site.wait(lambda: third in {row["HOST"] for row in site.tasks(job).values()}, "the job to grow")
    (site.folder / "grown").touch()
    site.ends(job)
    assert site.log(job, "launcher/0").split() == [third]
