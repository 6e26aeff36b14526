"""Effects of bsub's options on real jobs."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]


@pytest.fixture(autouse=True)
def _no_jobs_left(shared_cluster: Cluster) -> Iterator[None]:
    yield
    shared_cluster.clear()


@pytest.mark.parametrize(("text", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_bsub_waits_and_has_the_jobs_exit_code(cluster: Cluster, text: str, code: int) -> None:
    """-K: as if the job had been run here."""
    done = cluster.run("bsub", "-K", "-o", "/dev/null", text)
    assert done.returncode == code, done
    assert "<<Waiting for dispatch ...>>\n" in done.stderr


def test_input_directory_and_environment(cluster: Cluster, tmp_path: Path) -> None:
    """-i, -cwd, -env, a script on standard input with #BSUB lines; a job always has LSF's variables."""
    (tmp_path / "in").write_text("from the file\n")
    outer = cluster.with_environment(OUTER="outer")
    out = tmp_path / "out"
    script = f'#BSUB -i in\n#BSUB -oo {out}\ncat; pwd; echo "$OUTER-$GIVEN-$LSB_JOBID"\n'
    job = outer.submit("-K", "-cwd", str(tmp_path), "-env", "GIVEN=given", stdin=script)
    assert out.read_text().splitlines()[:3] == ["from the file", str(tmp_path), f"-given-{job}"]
    job = outer.submit("-K", "-cwd", str(tmp_path), "-env", "none", stdin=script)
    assert out.read_text().splitlines()[2] == f"--{job}"
    job = outer.submit("-K", "-cwd", str(tmp_path), stdin=script)
    assert out.read_text().splitlines()[2] == f"outer--{job}"


def test_files_are_copied_to_and_from_the_first_host(cluster: Cluster, account: str, open_directory: Path) -> None:
    """-f: before and after the job, as its user, with permissions; bjobs -l shows them. A missing file ends the job.

    lsf.md, section 1.2.
    """
    home = open_directory / "copies"
    for place in (home, home / "there"):
        place.mkdir()
        shutil.chown(place, account)
    (home / "tool").write_text("#!/bin/sh\necho made on $LSB_HOSTS by $(id -un)\n")
    (home / "tool").chmod(0o700)
    (home / "log").write_text("old\n")
    for name in ("tool", "log"):
        shutil.chown(home / name, account)
    secret = home / "secret"
    secret.write_text("of root")
    secret.chmod(0o600)
    user = cluster.as_seen_by(account).at(home)
    copies = [word for text in ("tool > tool", "made < made", "log << log") for word in ("-f", text)]
    command = "./tool > made; echo new > log; chmod 600 *"
    job = user.submit("-K", *copies, "-cwd", str(home / "there"), "-o", str(home / "out"), "-m", "lava2", command)
    assert (home / "log").read_text() == "old\nnew\n"  # L10: -K came back before the files did, and make went on
    assert (home / "made").read_text() == f"made on lava2 by {account}\n"
    assert (home / "made").stat().st_uid == (home / "tool").stat().st_uid
    shown = user.says("bjobs", "-UF", str(job))
    assert f"Copy Files <{home}/tool > tool; {home}/made < made; {home}/log << log>" in shown
    for name, why in (("missing", "No such file or directory"), ("secret", "Permission denied")):
        out = home / f"out.{name}"
        job = user.submit("-f", f"{name} > {name}", "-cwd", str(home / "there"), "-o", str(out), "true")
        user.becomes(job, "EXIT", 60)
        assert f"{name} on its submission host: " in out.read_text(), out.read_text()
        assert why in out.read_text()
        message = f"{name}: {name} on its submission host: {why}"
        bread = ("bread", "-w", "-i", "127", str(job))
        wait_for(lambda said=message, asked=bread: said in " ".join(user.run(*asked).stdout.split()), 60, message)  # type: ignore[misc]
        assert "TERM_PRE_EXEC_FAIL" in user.says("bjobs", "-l", str(job))


def test_an_exclusive_job_shares_its_host_with_nobody(cluster: Cluster) -> None:
    """-x takes a whole host; other jobs run elsewhere or are pending."""
    job = cluster.submit("-x", "-m", "lava1", "sleep 300")
    wait_for(lambda: cluster.states(job)[0][0] == "RUN", 60, "the job to run")
    fields = ("bhosts", "-noheader", "-o", "run max", "lava1")
    (run, most), whole = (cluster.says(*fields, *more).split() for more in ((), ("-alloc",)))
    assert (run, whole) == ("1", [most, most])
    beside = cluster.submit("-m", "lava1", "sleep 300")
    elsewhere = cluster.submit("sleep 300")
    wait_for(lambda: cluster.states(elsewhere)[0][0] == "RUN", 60, "the other job to run")
    assert cluster.run("bjobs", "-noheader", "-o", "exec_host", str(elsewhere)).stdout.strip() == "lava2"
    assert cluster.states(beside)[0][0] == "PEND"
    assert cluster.run("bkill", str(job)).returncode == 0
    wait_for(lambda: cluster.states(beside)[0][0] == "RUN", 60, "the waiting job to follow")


def test_an_array_runs_no_more_elements_than_it_says(cluster: Cluster, tmp_path: Path) -> None:
    """%2 holds at every moment, judged by the elements' own marks; all of them run."""
    marks = tmp_path / "marks"
    both = f"until [ $(wc -l < {marks}) -ge 2 ]; do sleep 0.05; done"  # the first two, however slow one of them starts
    text = f'echo "+" >> {marks}; {both}; sleep 0.2; echo "-" >> {marks}'
    job = cluster.submit("-J", "few[1-8]%2", "-o", "/dev/null", text)
    wait_for(lambda: cluster.counts(job)["DONE"] == 8, 60, "all elements to end")
    running = most = 0
    for line in marks.read_text().split():
        running += 1 if line == "+" else -1
        most = max(most, running)
    assert (running, most) == (0, 2)


def test_jobs_have_gpus_of_their_own(cluster: Cluster, tmp_path: Path) -> None:
    """No two running jobs share a device; a fifth is pending while four are taken; a job without -gpu sees none."""
    text = 'echo "$(hostname) $CUDA_VISIBLE_DEVICES"; sleep 300'
    jobs = [cluster.submit("-gpu", "num=1", "-oo", str(tmp_path / "%J"), text) for _ in range(5)]
    wait_for(lambda: sum((tmp_path / str(job)).exists() for job in jobs) == 4, 60, "four jobs to run")
    wait_for(lambda: all((tmp_path / str(job)).read_text() for job in jobs[:4]), 60, "four jobs to tell")
    devices = [(tmp_path / str(job)).read_text().strip() for job in jobs[:4]]
    assert sorted(devices) == ["lava1 0", "lava1 1", "lava2 0", "lava2 1"]
    assert cluster.states(jobs[4])[0][0] == "PEND"
    cluster.submit("-K", "-oo", str(tmp_path / "none"), 'echo "[$CUDA_VISIBLE_DEVICES]"')
    assert (tmp_path / "none").read_text().startswith("[]\n")


HOSTILE = {
    "a;rm -rf $HOME": "a;rm -rf $HOME",
    "quote\" ' `id` $(id)": "quote\" ' `id` $(id)",
    "ünïcödé ☃": "ünïcödé ☃",
    "%s%n{0}\\": "%s%n{0}\\",
    "x" * 4000: "x" * 4000,
}


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: name[:12])
def test_a_hostile_name_is_only_a_name(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """No part of it is executed, and every command prints it escaped."""
    job = cluster.submit("-K", "-J", name, "-oo", str(tmp_path / "out"), 'printf "%s\\n" "$LSB_JOBNAME"')
    assert (tmp_path / "out").read_text().splitlines()[0] == name
    assert cluster.run("bjobs", "-noheader", "-o", "job_name", str(job)).stdout.rstrip("\n") == name
    for command in (["bjobs", "-l"], ["bjobs", "-a", "-w"], ["bhist", "-l"], ["bjobs", "-json", "-o", "job_name"]):
        done = cluster.run(*command, str(job))
        assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.parametrize("name", ["\x1b[2J", "line\nline", "bell\a", ""])
def test_a_name_that_would_harm_a_terminal_is_refused(cluster: Cluster, name: str) -> None:
    """One sentence, itself harmless."""
    done = cluster.run("bsub", "-J", name, "true")
    assert done.returncode == 255
    assert re.fullmatch(r"[ -~]+ Job not submitted\.\n", done.stderr), done.stderr


def test_commands_that_would_harm_a_terminal_are_shown_escaped(cluster: Cluster, tmp_path: Path) -> None:
    """Escape sequences in a command: run as they are, shown without their power. Paths with such are refused."""
    job = cluster.submit("-K", "-oo", str(tmp_path / "out"), "printf '\x1b[5m%s' done")
    assert (tmp_path / "out").read_text().startswith("\x1b[5mdone")
    for command in (["bjobs", "-l"], ["bjobs", "-a", "-w"], ["bhist", "-l"], ["bhist"], ["bjobs", "-a", "-UF"]):
        done = cluster.run(*command, str(job))
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", done.stdout + done.stderr), command
    for option in ("-cwd", "-oo"):
        done = cluster.run("bsub", option, f"{tmp_path}/esc\x1b[31m\x07dir", "true")
        assert (done.returncode, done.stderr.count("\n"), "\x1b" in done.stderr) == (255, 1, False), done.stderr
