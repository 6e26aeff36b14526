"""Real MPI jobs on a real personal cluster: a plain mpirun uses exactly the allocation, and no process escapes.

Every MPI, in C and in Python, over two hosts; the job script contains no flag, no host list and no ssh.
"""

import re
import subprocess

import pytest

from tests.mpi.cluster import PersonalCluster, is_alive, until
from tests.mpi.environments import ROOT, Mpi

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.acceptance]

EXAMPLES = ROOT / "examples"
RANK = re.compile(r"^rank (\d+) of (\d+) on (\S+)", re.MULTILINE)
PIDS = re.compile(r"^rank .* pid (\d+)$", re.MULTILINE)
GONE_S = 90.0  # the whole terminate sequence INT, TERM, KILL takes 20 s
# The mpirun of MPICH 4.0 exits with 2, 255 or, in about one of five runs, with 0 when all its processes are interrupted
# at once; a job that answers bkill with exit code 0 is DONE.
OVER = {"openmpi4": ("EXIT",), "openmpi5": ("EXIT",), "mpich4": ("EXIT", "DONE"), "mpich5": ("EXIT",)}


def start_command(mpi: Mpi, launcher: str, language: str, cluster: PersonalCluster, hold_s: int = 0) -> str:
    """The line of the job script."""
    if language == "python":
        hold = f" --hold {hold_s}" if hold_s else ""
        return f"{launcher} {mpi.python} {EXAMPLES}/heat2d.py --cells 24 --time 0.02{hold}"
    program = cluster.home / f"ring-{mpi.name}"
    if not program.exists():
        mpi.compile(EXAMPLES / "ring.c", program)
    return f"{launcher} {program} {hold_s or ''}".rstrip()


def check_ranks(output: str) -> None:
    """Four ranks, two on each of two hosts."""
    ranks = RANK.findall(output)
    assert sorted((int(rank), int(size)) for rank, size, _ in ranks) == [(rank, 4) for rank in range(4)], output
    hosts = [host for _, _, host in ranks]
    assert sorted(hosts.count(host) for host in set(hosts)) == [2, 2], output


@pytest.mark.parametrize("language", ["c", "python"])
def test_a_plain_mpirun_uses_exactly_the_allocation(cluster: PersonalCluster, mpi: Mpi, language: str) -> None:
    """Two ranks on each of two hosts, the right result, and no remote shell."""
    name = f"plain-{mpi.name}-{language}"
    command = start_command(mpi, "mpirun", language, cluster)
    job = cluster.submit(name, command, mpi.environment(cluster.environment))
    output = cluster.finish(job, name)
    assert cluster.state(job) == "DONE", output
    check_ranks(output)
    assert ("sum 6, expected 6" if language == "c" else "the result is right") in output
    assert not cluster.called.exists(), cluster.called.read_text()


@pytest.mark.parametrize("language", ["c", "python"])
def test_lavarun_starts_ranks_without_a_launcher(cluster: PersonalCluster, mpich: Mpi, language: str) -> None:
    """The same, with the agents themselves starting the ranks."""
    name = f"lavarun-{mpich.name}-{language}"
    command = start_command(mpich, "lavarun", language, cluster)
    job = cluster.submit(name, command, mpich.environment(cluster.environment))
    output = cluster.finish(job, name)
    assert cluster.state(job) == "DONE", output
    check_ranks(output)
    assert ("sum 6, expected 6" if language == "c" else "the result is right") in output


def test_ranks_are_counted_and_die_with_bkill(cluster: PersonalCluster, mpi: Mpi) -> None:
    """While they run bjobs -l shows all of them; after bkill none is left on any host."""
    check_counted_and_killed(cluster, mpi, "mpirun")


def test_ranks_of_lavarun_are_counted_and_die_with_bkill(cluster: PersonalCluster, mpich: Mpi) -> None:
    """The same without a launcher."""
    check_counted_and_killed(cluster, mpich, "lavarun")


def check_counted_and_killed(cluster: PersonalCluster, mpi: Mpi, launcher: str) -> None:
    """Start an endless job, check its processes, kill it."""
    name = f"kill-{mpi.name}-{launcher}"
    command = start_command(mpi, launcher, "c", cluster, hold_s=600)
    job = cluster.submit(name, command, mpi.environment(cluster.environment))
    until("all ranks to speak", lambda: len(PIDS.findall(cluster.output(name))) == 4)
    pids = {int(pid) for pid in PIDS.findall(cluster.output(name))}
    assert all(map(is_alive, pids))
    until("all ranks to be counted", lambda: pids <= cluster.pids_shown(job), 60)
    until("their time to be counted", lambda: cpu_seconds(cluster, job) >= 1, 60)
    cluster.run("bkill", job)
    until("the ranks to be gone", lambda: not any(map(is_alive, pids)), GONE_S)
    until("the job to be over", lambda: cluster.state(job) in OVER[mpi.name], GONE_S)
    assert not cluster.called.exists(), cluster.called.read_text()


def cpu_seconds(cluster: PersonalCluster, job: str) -> float:
    """CPU time of all processes of a job, from bjobs -l."""
    found = re.search(r"The CPU time used is ([\d.]+) second", cluster.run("bjobs", "-l", job))
    return float(found.group(1)) if found else 0.0


# Not openmpi5: prterun of PRRTE 3.0.14 stops for ever in every second abort over two hosts, with any remote agent.
@pytest.mark.parametrize("mpi", ["openmpi4", "mpich4", "mpich5"], indirect=True)
def test_a_rank_that_fails_ends_the_job_with_its_code(cluster: PersonalCluster, mpi: Mpi) -> None:
    """The others do not wait for it."""
    name = f"fail-{mpi.name}"
    program = cluster.home / "fail.py"
    program.write_text("from mpi4py import MPI\nw = MPI.COMM_WORLD\nif w.rank == 3: w.Abort(5)\nw.Barrier()\n")
    job = cluster.submit(name, f"mpirun {mpi.python} {program}", mpi.environment(cluster.environment))
    output = cluster.finish(job, name)
    assert cluster.state(job) == "EXIT", output
    assert "Exited with exit code 5." in output


def test_variables_set_in_the_script_reach_every_rank(cluster: PersonalCluster, mpi: Mpi) -> None:
    """Also those on other hosts: blaunch carries them."""
    name = f"variables-{mpi.name}"
    program = cluster.script("colour.sh", 'echo "$(hostname) $COLOUR $(pwd)"')
    script = cluster.script(f"{name}.sh", f"export COLOUR='dark blue'\nmpirun {program}")
    job = cluster.submit(name, script, mpi.environment(cluster.environment))
    output = cluster.finish(job, name)
    lines = re.findall(r"^(\S+) dark blue (\S+)$", output, re.MULTILINE)
    assert len({host for host, _ in lines}) == 2, output
    assert len(lines) == 4, output
    assert {where for _, where in lines} == {str(cluster.home)}


def test_the_network_between_the_hosts_is_checked(cluster: PersonalCluster, mpi: Mpi) -> None:
    """The example program measures the pair, and fails when too much is asked."""
    environment = mpi.environment(cluster.environment)
    check = f"mpirun {mpi.python} {EXAMPLES}/netcheck.py"
    good = cluster.submit(f"net-{mpi.name}", check, environment)
    output = cluster.finish(good, f"net-{mpi.name}")
    assert cluster.state(good) == "DONE", output
    assert "every pair of hosts is well" in output
    bad = cluster.submit(f"slow-{mpi.name}", f"{check} --min-bandwidth 1e12", environment)
    output = cluster.finish(bad, f"slow-{mpi.name}")
    assert cluster.state(bad) == "EXIT", output
    assert "1 pairs of hosts are not well" in output


def test_blaunch_reaches_every_slot_from_every_host(cluster: PersonalCluster) -> None:
    """From the lead host, and from a task on the other host as well."""
    script = cluster.script("tree.sh", "blaunch hostname\nblaunch ${LSB_HOSTS##* } blaunch hostname")
    job = cluster.submit("tree", script)
    output = cluster.finish(job, "tree")
    assert cluster.state(job) == "DONE", output
    hosts = re.findall(r"^(\w+[12])$", output, re.MULTILINE)
    assert sorted(hosts.count(host) for host in set(hosts)) == [4, 4], output


def test_what_a_task_leaves_behind_dies_with_the_job(cluster: PersonalCluster) -> None:
    """A process on another host with a session of its own and no parent that ignores SIGTERM."""
    note = cluster.home / "escapee"
    escapee = cluster.script("escapee.sh", f"trap '' TERM INT HUP\necho $$ >{note}\nexec sleep 600")
    escape = cluster.script("escape.sh", f"(setsid {escapee} >/dev/null 2>&1 &) &\nexit 0")
    waits = f"while ! test -s {note}; do sleep 0.1; done"
    job = cluster.submit("escape", cluster.script("leave.sh", f"blaunch ${{LSB_HOSTS##* }} {escape}\n{waits}"))
    until("the escapee to run", lambda: note.exists() and note.read_text().strip())
    pid = int(note.read_text())
    cluster.finish(job, "escape")
    until("the escapee to be gone", lambda: not is_alive(pid), 60)
    assert cluster.state(job) == "DONE"


@pytest.mark.parametrize("where", ["${LSB_HOSTS%% *}", "${LSB_HOSTS##* }"], ids=["own host", "other host"])
def test_killing_blaunch_kills_what_it_started(cluster: PersonalCluster, where: str) -> None:
    """Even by SIGKILL, while the job continues; even a process that ignores SIGTERM behind a shell that does not."""
    note = cluster.home / f"task-pid-{len(where)}"
    note.unlink(missing_ok=True)
    stubborn = cluster.script("stubborn.sh", f"trap '' TERM\necho $$ >{note}\nsleep 600\nsleep 600")
    lines = [
        f"blaunch {where} '{stubborn}; true' &",
        f"while ! test -s {note}; do sleep 0.1; done",
        "kill -9 $!",
        "sleep 600",
    ]
    job = cluster.submit("killed", cluster.script("killed.sh", "\n".join(lines)))
    until("the task to run", lambda: note.exists() and note.read_text().strip())
    pid = int(note.read_text())
    until("the task to be gone", lambda: not is_alive(pid), 60)
    assert cluster.state(job) == "RUN"
    cluster.run("bkill", job)


@pytest.mark.root
def test_a_task_goes_on_while_its_host_is_cut_off(cluster: PersonalCluster) -> None:
    """The link to its caller is dead for a while: blaunch waits, and gets all output of that time."""
    note, go_on = cluster.home / "cut-off", cluster.home / "cut-go-on"
    task = cluster.script("cut.sh", f"echo $$ >{note}\nwhile ! test -e {go_on}; do sleep 0.1; done\necho meanwhile")
    other = "${LSB_HOSTS##* }"
    job = cluster.submit("cut", cluster.script("cut-job.sh", f"blaunch {other} {task}\necho code=$?"))
    until("the task to run", lambda: note.exists() and note.read_text().strip())
    pid = int(note.read_text())
    link = ["nsenter", "-t", str(pid), "-n", "ip", "link", "set", "eth0"]
    holder = subprocess.Popen(["nsenter", "-t", str(pid), "-n", "sleep", "600"])  # keeps the network when the task ends
    cluster.run(*link, "down")
    try:
        go_on.touch()
        until("the task to end", lambda: not is_alive(pid), 60)
    finally:
        link[2] = str(holder.pid)
        cluster.run(*link, "up")
        holder.kill()
        holder.wait()
    output = cluster.finish(job, "cut")
    assert "meanwhile\n" in output
    assert "code=0\n" in output
    until(
        "the host to be back",
        lambda: re.findall(r"^\w+[12] +(\w+)", cluster.run("bhosts"), re.MULTILINE) == ["ok", "ok"],
    )


def test_bpeek_reads_and_follows_the_output_of_a_job(cluster: PersonalCluster) -> None:
    """While it runs, on whichever host it is."""
    go_on = cluster.home / "go-on"
    waits = cluster.script("peeked.sh", f"echo first\nwhile ! test -e {go_on}; do sleep 0.1; done\necho last")
    job = cluster.submit("peeked", waits, slots=1)
    until("the start to be reported", lambda: "Starting (Pid" in cluster.run("bhist", "-l", job))
    until("the job to speak", lambda: "first" in cluster.output("peeked"))
    assert "first" in cluster.run("bpeek", job)
    go_on.touch()
    cluster.finish(job, "peeked")
