"""Commands with wrong effects on hosts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, wait_for


@pytest.fixture
def idle(cluster: Cluster) -> Iterator[Cluster]:
    """The shared cluster, for a test that leaves jobs behind."""
    cluster.clear()
    yield cluster
    cluster.clear()


def results(cluster: Cluster, directory: Path, *words: str) -> tuple[int, str]:
    """(exit code of ``bsub -K``, output of the job before its report)."""
    output = directory / "out.txt"
    done = cluster.run("bsub", "-K", "-oo", str(output), "-cwd", str(directory), *words)
    return done.returncode, output.read_text().partition("\n--------")[0]


def test_words_reach_the_program(cluster: Cluster, tmp_path: Path) -> None:
    """commands-by-clients 1: exit 7 was 0, awk and python3 ended with a shell's syntax error, one file was two."""
    (tmp_path / "f").write_text("one two\n")
    assert results(cluster, tmp_path, "bash", "-c", "exit 7")[0] == 7
    assert results(cluster, tmp_path, "awk", "{print $2}", "f") == (0, "two\n")
    assert results(cluster, tmp_path, "python3", "-c", "print(1); print('a')") == (0, "1\na\n")
    assert results(cluster, tmp_path, "sh", "-c", 'echo a  b; echo "it\'s" $0', "me") == (0, "a b\nit's me\n")
    assert results(cluster, tmp_path, "touch", "two words")[0] == 0
    assert (tmp_path / "two words").exists()
    assert results(cluster, tmp_path, "echo a; echo b") == (0, "a\nb\n")
    assert results(cluster, tmp_path, "echo", "$LSB_JOBINDEX", ">", "into") == (0, "")
    assert (tmp_path / "into").read_text() == "0\n"


def test_an_unknown_default_queue_is_told(cluster: Cluster) -> None:
    """everyday 4: LSB_DEFAULTQUEUE=nosuch silently meant the default queue."""
    there = cluster.with_environment(LSB_DEFAULTQUEUE="nosuch")
    done = there.run("bsub", "true")
    assert (done.returncode, done.stderr) == (255, "nosuch: No such queue. Job not submitted.\n")


def test_a_job_knows_its_directory_and_its_users_defaults(cluster: Cluster, tmp_path: Path) -> None:
    """commands-by-clients 4: LS_EXECCWD was unset; LSB_DEFAULTPROJECT must reach a bsub within the job, too."""
    there = cluster.with_environment(LSB_DEFAULTPROJECT="envproj")
    assert results(there, tmp_path, "echo $LS_EXECCWD $LSB_DEFAULTPROJECT") == (0, f"{tmp_path} envproj\n")


def test_directories_of_a_job_are_made(cluster: Cluster, tmp_path: Path) -> None:
    """everyday 35: -cwd with %J ended with TERM_CWD_NOTEXIST, -outdir was accepted and never made."""
    there = cluster.at(tmp_path)
    job = there.submit("-cwd", "run_%J_%I", "-outdir", "od/%U_%J", "-o", "said", "pwd; echo $LSB_OUTDIR $LS_EXECCWD")
    there.becomes(job, "DONE")
    own, out = tmp_path / f"run_{job}_0", tmp_path / f"od/root_{job}"
    said = (out / "said").read_text().splitlines()
    assert said[:2] == [str(own), f"{out} {own}"]
    assert (own.stat().st_mode & 0o777, out.stat().st_mode & 0o777) == (0o700, 0o700)
    missing = there.submit("-cwd", "nowhere", "true")
    there.becomes(missing, "EXIT")
    assert "TERM_CWD_NOTEXIST" in there.says("bjobs", "-UF", str(missing))


def test_files_are_shown_as_given(cluster: Cluster, tmp_path: Path) -> None:
    """everyday 10: bjobs -l showed the absolute path, not ``out.%J``."""
    there = cluster.at(tmp_path)
    job = there.submit("-H", "-o", "out.%J", "-e", "err", "-i", "in", "true")
    shown = there.says("bjobs", "-UF", str(job))
    for text in ("Input File <in>", "Output File <out.%J>", "Error File <err>"):
        assert text in shown
    there.run("bkill", str(job))
    (tmp_path / "in").write_text("hello\n")
    job = there.submit("-o", "both.%J", "-e", "both.%J", "-i", "in", "cat; echo x >&2; echo $LSB_OUTPUTFILE")
    there.becomes(job, "DONE")
    text = (tmp_path / f"both.{job}").read_text()
    assert text.startswith(f"hello\nx\n{tmp_path}/both.{job}\n")
    assert "Read file <>" not in text


def test_elements_are_named_by_a_list(idle: Cluster) -> None:
    """everyday 65 and 19: ``bkill -J "arr[2-3]"`` and ``done("a[1-2]")`` found nothing."""
    array = idle.submit("-H", "-J", "listed[1-4]", "true")
    done = idle.run("bkill", "-J", "listed[2-3]")
    assert (done.returncode, done.stderr) == (0, "")
    assert {index: state for index, (state, _) in idle.states(array).items()} == {
        1: "PSUSP", 2: "EXIT", 3: "EXIT", 4: "PSUSP"
    }  # fmt: skip
    after = idle.submit("-w", 'ended("listed[2-3]")', "true")
    idle.becomes(after, "DONE")
    waits = idle.submit("-w", 'done("listed[1,4]")', "true")
    assert idle.state(waits) == "PEND"
    assert idle.says("bjobs", "-noheader", "-o", "jobindex", "-J", "listed[3-9]", "-a") == "3\n4"


def test_resuming_all_leaves_running_jobs_out(idle: Cluster) -> None:
    """everyday 70: ``bresume 0`` also reported every running job, as an operation in progress, with 255."""
    runs, held = idle.submit("sleep", "600"), idle.submit("-H", "sleep", "600")
    idle.becomes(runs, "RUN")
    assert idle.says("bresume", "0") == f"Job <{held}> is being resumed"


def test_waiting_jobs_are_listed_in_their_order(idle: Cluster) -> None:
    """everyday 50: after btop and bbot the list was unchanged."""
    full = idle.submit("-n", "8", "sleep", "600")
    idle.becomes(full, "RUN")
    first, second, third = (idle.submit("-n", "8", "sleep", "600") for _ in range(3))
    assert idle.run("btop", str(third)).returncode == 0
    assert idle.run("bbot", str(first)).returncode == 0
    listed = idle.says("bjobs", "-noheader", "-o", "jobid").split()
    assert listed == [str(job) for job in (full, third, second, first)]


def test_lists_of_hosts_and_users_left_out(idle: Cluster) -> None:
    """everyday 50: ``-m "lava1 lava2"`` was a bad host name, ``-u ^x`` an unknown user."""
    first, second = idle.hosts()
    one, two = (idle.submit("-m", host, "sleep", "600") for host in (first, second))
    for job in (one, two):
        idle.becomes(job, "RUN")
    assert idle.says("bjobs", "-noheader", "-o", "jobid", "-m", f"{first} {second}").split() == [str(one), str(two)]
    assert idle.says("bjobs", "-noheader", "-o", "jobid", "-m", second).split() == [str(two)]
    assert "No unfinished job found" in idle.run("bjobs", "-u", "^root").stderr


def test_a_job_may_be_ended_as_done(cluster: Cluster) -> None:
    """commands-by-clients 2: ``bkill -d`` was refused; workflow managers end jobs with it."""
    job = cluster.submit("sleep", "600")
    cluster.becomes(job, "RUN")
    assert cluster.says("bkill", "-d", str(job)) == f"Job <{job}> is being terminated"
    cluster.becomes(job, "DONE")
    assert cluster.states(job) == {0: ("DONE", 0)}
    assert "Done successfully" in cluster.history(job)
    waits = cluster.submit("-H", "true")
    assert cluster.run("bkill", "-d", str(waits)).returncode == 0
    cluster.becomes(waits, "EXIT")


def test_a_running_job_is_estimated_anew(cluster: Cluster) -> None:
    """everyday 15: ``bmod -We+ 20`` and ``-Wep 50`` were refused."""
    job = cluster.submit("sleep", "600")
    cluster.becomes(job, "RUN")

    def estimate() -> str:
        return cluster.says("bjobs", "-noheader", "-o", "estimated_run_time", str(job))

    # A dispatched job is shown as RUN a moment before its host has told that it runs: till then nothing is done.
    said = f"Parameters of job <{job}> are being changed"
    assert cluster.says("bmod", "-We+", "20", str(job)) == said
    assert estimate() in ("1200 second(s)", "1260 second(s)", "1320 second(s)")
    part = ("bmod", "-Wep", "50", str(job))
    wait_for(lambda: cluster.run(*part).stdout.strip() == said, 60, "the job to run, so that a part of it can be done")
    assert estimate() in ("60 second(s)", "120 second(s)")
    assert "from 1 to 100" in cluster.run("bmod", "-Wep", "0", str(job)).stderr
    cluster.run("bkill", str(job))
    waits = cluster.submit("-H", "true")
    assert "are for a job that runs" in cluster.run("bmod", "-We+", "5", str(waits)).stderr
    cluster.run("bkill", str(waits))
