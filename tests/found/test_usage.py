"""Resource usage in records and reports: totals of all hosts, limits on any of them, reasons, listings."""

import os
import re
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

HOSTS, SLOTS = 3, 3
BURN_S = float(os.environ.get("LAVA_USAGE_SECONDS", "1"))  # of each rank; in full: 10
RANKS_PER_HOST = 2
# Of what the kernel says. Around each rank is a shell, and around all of them a start of a few milliseconds: with ranks
# of a second that is a larger part than with ranks of ten.
TOLERANCE = 0.03 if BURN_S >= 10 else 0.08
QUEUES = """
    Begin Queue
    QUEUE_NAME = normal
    PRIORITY   = 30
    End Queue

    Begin Queue
    QUEUE_NAME = fair
    PRIORITY   = 30
    FAIRSHARE  = USER_SHARES[[default,1]]
    End Queue
"""
PARAMS = """
    Begin Parameters
    DEFAULT_QUEUE = normal
    End Parameters
"""


@pytest.fixture(scope="module")
def wide(open_directory: Path, public_commands: Path) -> Iterator[Cluster]:
    """Three hosts of three slots, whose agents sample often."""
    files = {"lsb.queues": QUEUES, "lsb.params": PARAMS}
    settings = {"LAVA_TERMINATE_INTERVAL": "3", "LAVA_HEARTBEAT": "1", "LAVA_USAGE_INTERVAL": "1"}
    with a_cluster(open_directory / "W", HOSTS, SLOTS, commands=public_commands, lsf_files=files, **settings) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_jobs_left(wide: Cluster) -> Iterator[None]:
    yield
    wide.clear()


def fields(cluster: Cluster, job: int, names: str) -> list[str]:
    """Fields of bjobs -o, parted by semicolons."""
    return cluster.says("bjobs", "-a", "-noheader", "-o", f"{names} delimiter=';'", str(job)).split(";")


def test_the_rank_file_has_the_tasks_of_all_terms_of_a_compound_requirement(wide: Cluster, tmp_path: Path) -> None:
    """It listed the first term's tasks alone."""
    job = wide.submit(
        "-K", "-n", "4", "-R", "1*{rusage[mem=10]} + 3*{rusage[mem=20] span[ptile=2]}",
        "-o", str(tmp_path / "out"), f"cp $LSB_DJOB_RANKFILE {tmp_path}/ranks; cp $LSB_DJOB_HOSTFILE {tmp_path}/hosts",
    )  # fmt: skip
    wide.becomes(job, "DONE")
    ranks, hosts = (sorted((tmp_path / name).read_text().split()) for name in ("ranks", "hosts"))
    assert len(ranks) == 4
    assert ranks == hosts


def test_a_report_names_the_error_file_that_is_the_output_file(wide: Cluster, tmp_path: Path) -> None:
    """It printed: Read file <> for stderr output of this job."""
    out = tmp_path / "both"
    wide.submit("-K", "-o", str(out), "-e", str(out), "echo to error >&2")
    text = out.read_text()
    assert text.startswith("to error\n")
    assert f"Read file <{out}> for stderr output of this job." in text


def test_more_than_a_thousand_processes_are_counted(wide: Cluster, tmp_path: Path) -> None:
    """Max Processes stopped at 1000."""
    out, number = tmp_path / "out", 1100
    go, many = tmp_path / "go", f'for i in $(seq {number + 10}); do sleep 600 & all="$all $!"; done'
    job = wide.submit("-o", str(out), f"{many}; until [ -e {go} ]; do sleep 0.2; done; kill $all")
    wait_for(lambda: int(fields(wide, job, "nthreads")[0].replace("-", "0")) >= number, 60, "a sample of all of them")
    go.touch()
    wide.becomes(job, "DONE")
    found = re.search(r"Max Processes : +(\d+)\n +Max Threads : +(\d+)", out.read_text())
    assert found
    assert int(found[1]) >= number
    assert int(found[2]) >= number


SAVES = """\
import signal, sys, time
def save(number, frame):
    print("saving", flush=True); time.sleep(1.0); print("saved", flush=True); sys.exit(0)
signal.signal(getattr(signal, sys.argv[1]), save)
print("ready", flush=True)
while True: time.sleep(1)
"""


@pytest.mark.parametrize("name", ["SIGUSR2", "SIGTERM", "SIGINT"])
def test_a_program_that_a_shell_waits_for_has_time_to_handle_a_signal(wide: Cluster, tmp_path: Path, name: str) -> None:
    """The shell around ``./prog args`` died of the signal at once, and the program was killed in its handler."""
    program, out = tmp_path / "prog", tmp_path / "out"
    program.write_text(f"#!{sys.executable}\n{SAVES}")
    program.chmod(0o755)
    job = wide.submit("-cwd", str(tmp_path), "-o", str(out), "./prog", name)
    wait_for(lambda: out.exists() and "ready" in out.read_text(), 60, "the program to be ready")
    wide.says("bkill", "-s", name.removeprefix("SIG"), str(job))
    wide.becomes(job, "DONE")
    assert out.read_text().startswith("ready\nsaving\nsaved\n")


def test_what_follows_in_a_command_line_is_not_run_after_the_job_was_told_to_end(wide: Cluster, tmp_path: Path) -> None:
    """The shell outlives the signal for the program's sake; it does not go on."""
    out = tmp_path / "out"
    job = wide.submit("-o", str(out), "echo ready; sleep 600; echo next")
    wait_for(lambda: out.exists() and "ready" in out.read_text(), 60, "the job to be ready")
    wide.says("bkill", str(job))
    wide.becomes(job, "EXIT")  # long before the sleep has ended
    assert fields(wide, job, "exit_code exit_reason") == ["130", "TERM_OWNER: job killed by owner."]
    assert out.read_text().startswith("ready\n\n---")


# A rank: a given CPU time and 30 MB; the kernel's figures are written to a file at its end.
RANK = """\
import os, resource, sys, time
folder, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
held = bytearray(os.urandom(1) * (30 << 20))
while time.process_time() < seconds: sum(range(1000))
open(f"{folder}/burnt-{name}", "w").close()
while not os.path.exists(f"{folder}/go"): time.sleep(0.2)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, file=open(f"{folder}/rank-{name}", "w"))
"""
# The program on the first host: ranks on all hosts, then the kernel's figures of itself and its local children.
LEAD = """\
import os, resource, subprocess, sys
folder, seconds = sys.argv[1], sys.argv[2]
hosts = open(os.environ["LSB_DJOB_HOSTFILE"]).read().split()
started = [subprocess.Popen(["blaunch", host, sys.executable, f"{folder}/rank.py", folder, str(number), seconds])
           for number, host in enumerate(hosts)]
codes = [one.wait() for one in started]
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(one.ru_utime + one.ru_stime for one in used), file=open(f"{folder}/lead", "w"))
sys.exit(max(codes))
"""
WIDE = ("-n", str(HOSTS * RANKS_PER_HOST), "-R", f"span[ptile={RANKS_PER_HOST}]")


def burn(cluster: Cluster, folder: Path, *options: str, seconds: float = BURN_S) -> int:
    """Submit ranks on all hosts, and wait until they have used their CPU time."""
    (folder / "rank.py").write_text(RANK)
    (folder / "lead.py").write_text(LEAD)
    command = f"{sys.executable} {folder}/lead.py {folder} {seconds}"
    job = cluster.submit(*WIDE, "-o", str(folder / "out"), *options, command)
    ranks = HOSTS * RANKS_PER_HOST
    wait_for(lambda: len(list(folder.glob("burnt-*"))) == ranks, 60 + 10 * ranks * seconds, "all ranks to have burnt")
    return job


def cpu_used(cluster: Cluster, job: int) -> float:
    """CPU time in bjobs; 0 when it shows none."""
    return float(fields(cluster, job, "cpu_used")[0].split()[0].replace("-", "0"))


def share_tree(cluster: Cluster, queue: str) -> float:
    """CPU_TIME of the only account."""
    lines = cluster.says("bqueues", "-r", queue).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("USER/GROUP"))
    return float(lines[at + 1].split()[lines[at].split().index("CPU_TIME")])


def in_the_books(cluster: Cluster, job: int) -> list[tuple[float, int]]:
    """CPU time and memory of the accounting rows of all attempts."""
    with sqlite3.connect(cluster.directory / "state" / "lava.db", timeout=60) as database:
        query = "SELECT cpu_s, memory_mib_max FROM accounting WHERE job = ? ORDER BY attempt"
        return database.execute(query, (job,)).fetchall()


def cpu_in_the_books(cluster: Cluster, job: int) -> float:
    """CPU time of the first attempt; 0 before its row is there, which may be after its end is shown."""
    return next((cpu_s for cpu_s, _ in in_the_books(cluster, job)), 0.0)


def test_the_figures_of_a_parallel_job_are_those_of_all_its_hosts(wide: Cluster, tmp_path: Path) -> None:
    """The end of the job dropped the usage of all hosts but the first: a third was left, and less was charged."""
    ranks = HOSTS * RANKS_PER_HOST
    job = burn(wide, tmp_path, "-q", "fair")
    wait_for(lambda: cpu_used(wide, job) >= ranks * BURN_S, 60, "the samples of all hosts")
    live, live_share = cpu_used(wide, job), share_tree(wide, "fair")
    live_memory = float(fields(wide, job, "max_mem")[0].split()[0])
    (tmp_path / "go").touch()
    wide.becomes(job, "DONE")
    kernel = sum(float(path.read_text()) for path in [*tmp_path.glob("rank-*"), tmp_path / "lead"])
    # A host that was slow to say what was used there adds it after the end.
    wait_for(lambda: cpu_in_the_books(wide, job) >= (1 - TOLERANCE) * kernel, 60, "the figures of all hosts")
    report = (tmp_path / "out").read_text()
    long = wide.says("bjobs", "-l", str(job))
    figures = {
        "bjobs while it runs": live,
        "share tree while it runs": live_share,
        "bjobs": cpu_used(wide, job),
        "bjobs -l": float(re.search(r"The CPU time used is ([\d.]+)", long)[1]),  # type: ignore[index]
        "report": float(re.search(r"CPU time : +([\d.]+)", report)[1]),  # type: ignore[index]
        "bhist": float(re.search(r"The CPU time used is ([\d.]+)", wide.history(job))[1]),  # type: ignore[index]
        "accounting": in_the_books(wide, job)[0][0],
        "share tree": share_tree(wide, "fair"),
    }
    print(f"kernel {kernel:.2f}", figures)
    wrong = {name: figure for name, figure in figures.items() if abs(figure - kernel) > TOLERANCE * kernel}
    assert not wrong, f"the kernel says {kernel:.2f}"
    assert figures["bjobs"] >= live - 0.1
    memory = {
        "bjobs": float(fields(wide, job, "max_mem")[0].split()[0]),
        "bjobs -l": float(re.search(r"MAX MEM: (\d+)", long)[1]),  # type: ignore[index]
        "report": float(re.search(r"Max Memory : +(\d+)", report)[1]),  # type: ignore[index]
        "accounting": in_the_books(wide, job)[0][1],
    }
    assert all(figure >= max(live_memory, 30 * ranks) for figure in memory.values()), (memory, live_memory)
    assert int(re.search(r"Max Processes : +(\d+)", report)[1]) >= ranks  # type: ignore[index]
    assert re.search(r"AVG MEM: \d+", long)
    user, system, mean, cwd = fields(wide, job, "ru_utime ru_stime avg_mem exec_cwd")
    assert abs(float(user.split()[0]) + float(system.split()[0]) - figures["bjobs"]) < 0.3
    assert float(mean.split()[0]) >= 30 * ranks / 2
    assert cwd == os.getcwd()


def test_a_killed_parallel_job_keeps_what_all_hosts_used_whatever_was_restarted(wide: Cluster, tmp_path: Path) -> None:
    """bkill, and before it a master and an agent that were killed."""
    ranks = HOSTS * RANKS_PER_HOST
    job = burn(wide, tmp_path, seconds=0.5)
    wait_for(lambda: cpu_used(wide, job) >= ranks * 0.5, 60, "the samples of all hosts")
    live = cpu_used(wide, job)
    hosts = fields(wide, job, "exec_host")[0].split(":")
    for daemon in ("lavad", f"agent-{hosts[-1].rpartition('*')[2]}"):
        wide.end(daemon, signal.SIGKILL)
    wide.up()
    wide.says("bkill", str(job))
    wide.becomes(job, "EXIT", 60)
    wait_for(lambda: cpu_used(wide, job) >= live - 0.1, 60, "the figures of all hosts")
    wait_for(lambda: cpu_in_the_books(wide, job) >= live - 0.1, 60, "the figures of all hosts in the books")
    assert cpu_used(wide, job) < live + ranks


HOG = """\
import sys, time
held = bytearray(b"x" * (200 << 20))
time.sleep(60)
"""


@pytest.mark.parametrize("then", ["sleep 100", "exit $?"])
def test_a_memory_kill_on_another_host_ends_the_whole_job(wide: Cluster, tmp_path: Path, then: str) -> None:
    """The job went on, or ended with 137 and no reason."""
    (tmp_path / "hog.py").write_text(HOG)
    out = tmp_path / "out"
    command = f"h=$(tail -1 $LSB_DJOB_HOSTFILE); blaunch $h {sys.executable} {tmp_path}/hog.py; {then}"
    job = wide.submit("-n", "2", "-R", "span[ptile=1]", "-M", "100MB", "-o", str(out), command)
    wide.becomes(job, "EXIT", 60)
    assert fields(wide, job, "exit_reason exit_code") == [
        "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "137",
    ]  # fmt: skip
    assert "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit." in out.read_text()


def test_a_report_names_the_host_that_does_not_answer_and_the_record_is_completed(
    wide: Cluster, tmp_path: Path
) -> None:
    """A silent host does not keep a job from ending; its usage is added when it is back."""
    (tmp_path / "rank.py").write_text(RANK)
    out, rank = tmp_path / "out", f"{sys.executable} {tmp_path}/rank.py {tmp_path} 0 0.5"
    waits = f"while ! [ -e {tmp_path}/end ]; do sleep 0.1; done; kill -9 $!"
    command = f"h=$(tail -1 $LSB_DJOB_HOSTFILE); blaunch $h {rank} & {waits}"
    job = wide.submit("-n", "2", "-R", "span[ptile=1]", "-o", str(out), command)
    wait_for(lambda: (tmp_path / "burnt-0").exists(), 60, "the task to have burnt")
    other = fields(wide, job, "exec_host")[0].split(":")[-1].rpartition("*")[2]
    wide.kill(f"agent-{other}")
    (tmp_path / "end").touch()
    wide.becomes(job, "DONE", 60)
    assert f"Not counted in it: what was used on {other}, which did not answer in time." in out.read_text()
    wide.up()
    wait_for(lambda: cpu_in_the_books(wide, job) >= 0.5, 60, "the record to be complete")
    assert cpu_used(wide, job) >= 0.5
