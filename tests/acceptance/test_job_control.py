"""Commands on submitted jobs, with real processes: bmod, btop, bswitch, brun, brequeue, bchkpnt and bmig."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, stands_still, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

QUEUES = """
    Begin Queue
    QUEUE_NAME = normal
    PRIORITY = 30
    REQUEUE_EXIT_VALUES = 77
    {window}
    End Queue

    Begin Queue
    QUEUE_NAME = later
    PRIORITY = 20
    End Queue
"""


PARAMETERS = """
    Begin Parameters
    DEFAULT_QUEUE = normal
    LAVA_REQUEUE_DELAY = 0
    End Parameters
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two hosts of one slot."""
    directory = tmp_path_factory.mktemp("control") / "D"
    files = {"lsb.queues": QUEUES.format(window=""), "lsb.params": PARAMETERS}
    with a_cluster(directory, 2, 1, lsf_files=files, LAVA_TERMINATE_INTERVAL="1", LAVA_HEARTBEAT="1") as made:
        yield made


@pytest.fixture(autouse=True)
def _no_jobs_left(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.clear()


def _unwrapped(text: str) -> str:
    """Long forms break lines anywhere."""
    return re.sub(r"\n {21}", "", text)


def _filled(cluster: Cluster) -> list[int]:
    """Both slots are taken."""
    jobs = [cluster.submit("sleep 300") for _ in range(2)]
    for job in jobs:
        cluster.becomes(job, "RUN")
    return jobs


def test_an_exit_code_runs_a_job_again(cluster: Cluster, tmp_path: Path) -> None:
    """By the queue's values; by the job's own, and then not on the same host."""
    ran = tmp_path / "ran"
    job = cluster.submit(f"echo x >> {ran}; [ $(wc -l < {ran}) -ge 3 ] || exit 77")
    cluster.becomes(job, "DONE")
    assert ran.read_text() == "x\n" * 3
    assert _unwrapped(cluster.history(job)).count("exit code 77 requeues the job") == 2
    where = tmp_path / "where"
    own = cluster.submit("-Q", "EXCLUDE(5)", f"echo $LSB_HOSTS >> {where}; [ $(wc -l < {where}) -ge 2 ] || exit 5")
    cluster.becomes(own, "DONE")
    assert sorted(where.read_text().split()) == ["lava1", "lava2"]


def test_a_job_is_requeued_by_hand(cluster: Cluster, tmp_path: Path) -> None:
    """During its run, and after its end; its history shows it."""
    ran = tmp_path / "ran"
    job = cluster.submit(f"echo x >> {ran}; [ -e {tmp_path}/go ] || sleep 300")
    wait_for(lambda: ran.exists() and cluster.state(job) == "RUN", 60, "the first run")
    assert cluster.says("brequeue", str(job)) == f"Job <{job}> is being requeued"
    wait_for(lambda: ran.read_text() == "x\nx\n" and cluster.state(job) == "RUN", 60, "the second run")
    cluster.says("brequeue", "-H", str(job))
    cluster.becomes(job, "PSUSP")
    (tmp_path / "go").touch()
    cluster.says("bresume", str(job))
    cluster.becomes(job, "DONE")
    assert cluster.run("brequeue", str(job)).stderr == f"Job <{job}>: Job has already finished\n"
    cluster.says("brequeue", "-d", str(job))
    wait_for(lambda: ran.read_text() == "x\n" * 4, 60, "the fourth run")
    cluster.becomes(job, "DONE")
    assert "TERM_REQUEUE_OWNER" in _unwrapped(cluster.history(job))


def test_jobs_change_queue_and_place(cluster: Cluster) -> None:
    """bswitch of a running and a pending job; btop and bbot among pending ones."""
    running, _ = _filled(cluster)
    first, second, third = (cluster.submit("sleep 300") for _ in range(3))
    assert cluster.says("bswitch", "later", str(running)) == f"Job <{running}> is switched to queue <later>"
    assert cluster.state(running) == "RUN"
    assert f"Job <{third}> has been moved to position 1 from top." in cluster.says("btop", str(third))
    cluster.says("bbot", str(first))
    cluster.says("bkill", str(running))
    cluster.becomes(third, "RUN")
    cluster.says("bkill", str(third))
    cluster.becomes(second, "RUN")
    cluster.says("bswitch", "later", str(first))
    assert cluster.says("bjobs", "-noheader", "-o", "queue", str(first)) == "later"
    assert "Job switched to queue <later>" in _unwrapped(cluster.history(first))
    assert cluster.run("bswitch", "nowhere", str(first)).returncode == 255


def test_parameters_are_changed(cluster: Cluster, tmp_path: Path) -> None:
    """Set, reset, refused."""
    out = tmp_path / "out"
    job = cluster.submit(
        "-H", "-n", "2", "-R", "span[hosts=1]", "-W", "1", "-J", "old", f"echo $LSB_DJOB_NUMPROC >{out}"
    )
    assert cluster.says("bmod", "-n", "1", "-J", "new", "-Wn", str(job)) == (
        f"Parameters of job <{job}> are being changed"
    )
    shown = cluster.says("bjobs", "-UF", str(job))
    assert "Job Name <new>" in shown
    assert "RUNLIMIT" not in shown
    assert "Requested Resources <span[hosts=1]>" in shown
    cluster.says("bresume", str(job))
    cluster.becomes(job, "DONE")
    assert out.read_text() == "1\n"
    late = cluster.run("bmod", "-n", "2", str(job))
    assert (late.returncode, late.stderr) == (255, f"Job <{job}>: Job has already finished. Job not modified.\n")
    plain = cluster.submit("-H", "true")
    refused = cluster.run("bmod", "-J", "%3", str(plain))
    assert refused.stderr == f"Job <{plain}>: The job is not an array. Job not modified.\n"


def test_elements_of_an_array_are_changed_by_themselves(cluster: Cluster, tmp_path: Path) -> None:
    """bmod and bswitch with indices: each element runs with its own, and lists and histories show it so."""
    array = cluster.submit("-H", "-J", "a[1-3]", f"echo $LSB_QUEUE >{tmp_path}/$LSB_JOBINDEX")
    assert cluster.says("bswitch", "later", f"{array}[2-3]") == f"Job <{array}> is switched to queue <later>"
    own = f"echo own $LSB_QUEUE $LSB_JOBID >{tmp_path}/$LSB_JOBINDEX"
    assert cluster.says("bmod", "-Z", own, "-W", "7", f"{array}[3]") == (
        f"Parameters of job <{array}[3]> are being changed"
    )
    cluster.says("bmod", "-We", "5", str(array))
    assert cluster.says("bjobs", "-noheader", "-q", "later", "-o", "jobindex queue").splitlines() == [
        "2 later",
        "3 later",
    ]
    shown = _unwrapped(cluster.says("bjobs", "-l", f"{array}[3]"))
    assert "7.0 min" in shown
    assert "5.0 min" in shown
    assert "7.0 min" not in _unwrapped(cluster.says("bjobs", "-l", f"{array}[2]"))
    refused = cluster.run("bmod", "-J", "b", f"{array}[2]")
    assert refused.stderr == (
        f"Job <{array}[2]>: -J is the same for all elements of a job array: change it without an index. "
        "Job not modified.\n"
    )
    cluster.says("bresume", str(array))
    wait_for(lambda: cluster.counts(array)["DONE"] == 3, 120, "the end of the array")
    assert [(tmp_path / str(index)).read_text() for index in (1, 2, 3)] == [
        "normal\n", "later\n", f"own later {array}\n",
    ]  # fmt: skip
    assert "Job switched to queue <later>" in _unwrapped(cluster.history(array))
    told = _unwrapped(cluster.says("bhist", "-l", f"{array}[1]"))
    assert "Job switched" not in told
    assert _unwrapped(cluster.says("bhist", "-l", f"{array}[3]")).count("estimated run time from none") == 1
    assert "Queue <later>" in _unwrapped(cluster.says("bacct", "-q", "later", "-l", f"{array}[3]"))


@pytest.mark.parametrize("command", ["bjobs", "bkill", "bstop", "bresume", "brequeue", "bpeek"])
def test_a_name_that_no_job_has(cluster: Cluster, command: str) -> None:
    """-J of any command: reported by name, and no success."""
    done = cluster.run(command, "-J", "nosuch")
    assert (done.returncode, done.stdout, done.stderr) == (255, "", "Job <nosuch> is not found\n")


def test_a_reason_is_kept_with_the_job(cluster: Cluster) -> None:
    """bstop -C, bresume -C and bkill -C: bhist -l tells who gave it."""
    job = cluster.submit("sleep 300")
    cluster.becomes(job, "RUN")
    cluster.says("bstop", "-C", "the disk is full", str(job))
    cluster.becomes(job, "USUSP")
    cluster.says("bresume", "-C", "there is room", str(job))
    cluster.says("bkill", "-C", "wrong input", str(job))
    cluster.becomes(job, "EXIT")
    told = "".join(cluster.says("bhist", "-l", str(job)).split())  # lines are folded within words
    for what, text in (("Suspend", "the disk is full"), ("Resume", "there is room"), ("Kill", "wrong input")):
        assert f"{what} reason of user or administrator <root>: {text};".replace(" ", "") in told


def test_an_element_is_chosen_by_its_name(cluster: Cluster) -> None:
    """bkill -J 'sweep[2]' ends that one, and brackets are no shell pattern."""
    array, plain = cluster.submit("-H", "-J", "sweep[1-3]", "true"), cluster.submit("-H", "-J", "sweep2", "true")
    assert cluster.says("bkill", "-J", "sweep[2]") == f"Job <{array}[2]> is being terminated"
    states = cluster.says("bjobs", "-a", "-noheader", "-o", "jobindex stat", str(array), str(plain)).split()
    assert states == ["1", "PSUSP", "2", "EXIT", "3", "PSUSP", "0", "PSUSP"]
    cluster.says("bkill", str(array), str(plain))


def test_a_running_job_keeps_another_amount_of_memory(cluster: Cluster) -> None:
    """bmod -R: released memory is reserved on its host no more; the rest of its requirement is unchanged."""
    job = cluster.submit("-R", "rusage[mem=300]", "sleep 300")
    cluster.becomes(job, "RUN")
    host = cluster.says("bjobs", "-noheader", "-o", "exec_host", str(job)).strip()
    refused = cluster.run("bmod", "-R", "select[mem>1]", str(job))
    assert "of its -R only the amount of rusage[mem=...] can be changed" in refused.stderr
    assert _reserved(cluster, host) == "300M"
    assert cluster.says("bmod", "-R", "rusage[mem=100]", str(job)) == f"Parameters of job <{job}> are being changed"
    assert _reserved(cluster, host) == "100M"
    assert "rusage[mem=100]" in cluster.says("bjobs", "-noheader", "-o", "effective_resreq", str(job))


def test_a_running_job_gets_other_files_and_a_cpu_limit(cluster: Cluster, tmp_path: Path) -> None:
    """bmod -o, -e and -c: bpeek and the first file show its output while it runs, the new ones all of it at its end."""
    old, new, errors, go = (tmp_path / name for name in ("old", "new", "errors", "go"))
    limited = f'until [ -e {go} ] && [ "$(ulimit -St)" = 300 ]; do sleep 0.1; done'
    script = f"echo before; echo wrong >&2; {limited}; echo after"
    job = cluster.submit("-o", str(old), "-e", str(tmp_path / "first"), script)
    wait_for(lambda: old.exists() and "before" in old.read_text(), 60, "output")
    changed = cluster.says("bmod", "-o", str(new), "-e", str(errors), "-c", "5", str(job))
    assert changed == f"Parameters of job <{job}> are being changed"
    assert f"Output File <{new}>" in _unwrapped(cluster.says("bjobs", "-l", str(job)))
    peeked = cluster.says("bpeek", str(job))
    assert peeked.count("before") == 1
    assert not new.exists()
    go.touch()
    cluster.becomes(job, "DONE")
    text = new.read_text()
    assert text.startswith("before\nafter\n")
    assert "Successfully completed." in text
    assert errors.read_text() == "wrong\n"
    assert not old.exists()
    none = cluster.submit("sleep 300")
    cluster.becomes(none, "RUN")
    refused = cluster.run("bmod", "-o", str(new), str(none))
    assert "its output file can be changed, neither added nor taken away. Job not modified." in refused.stderr


def _reserved(cluster: Cluster, host: str) -> str:
    """Memory of a host reserved by jobs, as bhosts -l shows it."""
    lines = cluster.says("bhosts", "-l", host).splitlines()
    return next(line.split()[-1] for line in lines if line.strip().startswith("Reserved"))


def test_an_administrator_forces_a_job(cluster: Cluster) -> None:
    """Onto a full host, whatever its pending reason."""
    _filled(cluster)
    never = cluster.submit("-H", "true")
    job = cluster.submit("-w", f"done({never})", "sleep 300")
    assert cluster.says("brun", "-m", "lava1", str(job)) == f"Job <{job}> is being forced to run."
    cluster.becomes(job, "RUN")
    assert cluster.says("bjobs", "-noheader", "-o", "exec_host", str(job)) == "lava1"


def test_a_job_is_ended_at_its_deadline(cluster: Cluster) -> None:
    """A running job by signals, a pending one at once."""
    at = time.strftime("%Y:%m:%d:%H:%M", time.localtime(time.time() + 3600))
    runs = cluster.submit("-t", at, "trap 'exit 9' USR2; while :; do sleep 0.1; done")
    waits = cluster.submit("-t", at, "-H", "true")
    cluster.becomes(runs, "RUN")
    for job in (runs, waits):
        cluster.change(job, terminate_time=time.time() + 1)
    cluster.becomes(waits, "EXIT")
    cluster.becomes(runs, "EXIT")
    assert "TERM_DEADLINE" in cluster.history(waits)
    assert "TERM_DEADLINE" in cluster.history(runs)


def test_jobs_are_suspended_outside_the_run_window(cluster: Cluster, tmp_path: Path) -> None:
    """As soon as the rules close it, and go on as soon as it is open again."""
    ticks = tmp_path / "ticks"
    job = cluster.submit("-o", "/dev/null", f"while :; do echo x >> {ticks}; sleep 0.1; done")
    wait_for(ticks.exists, 60, "the job to run")
    now = time.localtime()
    shut = f"RUN_WINDOW = {(now.tm_hour + 6) % 24}:00-{(now.tm_hour + 7) % 24}:00"
    for window, state in ((shut, "SSUSP"), ("", "RUN")):
        cluster.reconfigure({"lsb.queues": QUEUES.format(window=window)})
        cluster.becomes(job, state)
        if window:
            assert "The run windows of the queue are closed" in _unwrapped(cluster.says("bjobs", "-l", str(job)))
            wait_for(lambda: stands_still(ticks), 60, "the job to stand still")
    count = ticks.stat().st_size
    wait_for(lambda: ticks.stat().st_size > count, 60, "the job to go on")


def _window(hours_from_now: int, hours: int) -> str:
    hour = time.localtime().tm_hour + hours_from_now
    return f"{hour % 24}:00-{(hour + hours) % 24}:00"


def test_no_job_starts_outside_the_dispatch_windows(cluster: Cluster) -> None:
    """Windows of the queue, and of a host; running jobs continue."""
    running = cluster.submit("-m", "lava1", "sleep 300")
    cluster.becomes(running, "RUN")
    hosts = f"Begin Host\nHOST_NAME MXJ DISPATCH_WINDOW\nlava2 ! ({_window(6, 1)})\nEnd Host\n"
    cases = (
        ({"lsb.queues": QUEUES.format(window=f"DISPATCH_WINDOW = {_window(6, 1)}")}, "inactivated by its time windows"),
        ({"lsb.hosts": hosts}, "Dispatch windows closed: 1 host"),
    )
    for files, reason in cases:
        cluster.reconfigure(files)
        waiting = cluster.submit("-m", "lava2", "sleep 300")
        wait_for(lambda job=waiting, why=reason: why in cluster.says("bjobs", "-p", str(job)), 60, reason)
        assert (cluster.state(running), cluster.state(waiting)) == ("RUN", "PEND")
        cluster.reconfigure({"lsb.queues": QUEUES.format(window=""), "lsb.hosts": ""})
        cluster.becomes(waiting, "RUN")
        cluster.says("bkill", str(waiting))


def test_a_job_that_would_outlast_the_run_window_waits(cluster: Cluster) -> None:
    """Judged by its run limit; not in a queue that ignores it."""
    open_now = f"RUN_WINDOW = {_window(-1, 3)}"
    cluster.reconfigure({"lsb.queues": QUEUES.format(window=open_now)})
    long, short = cluster.submit("-W", "5:00", "sleep 300"), cluster.submit("-W", "1", "sleep 300")
    cluster.becomes(short, "RUN")
    reason = "Job will not finish before queue's run window is closed"
    wait_for(lambda: reason in cluster.says("bjobs", "-p", str(long)), 60, reason)
    assert (cluster.state(long), cluster.state(short)) == ("PEND", "RUN")
    cluster.reconfigure({"lsb.queues": QUEUES.format(window=f"{open_now}\n    IGNORE_DEADLINE = Y")})
    cluster.becomes(long, "RUN")
    cluster.reconfigure({"lsb.queues": QUEUES.format(window="")})


def test_a_rerunnable_job_is_migrated(cluster: Cluster) -> None:
    """bmig: it begins anew on the other host, whose free slot bslots has shown before, or on the one that -m names,
    although it has left that; other jobs are refused."""
    cluster.clear()
    job = cluster.submit("-r", "-o", "/dev/null", "sleep 300")
    cluster.becomes(job, "RUN")
    where = "bjobs", "-noheader", "-o", "exec_host", str(job)
    first = cluster.says(*where)
    assert cluster.says("bslots").splitlines()[1].split() == ["1", "UNLIMITED"]
    assert f"HOSTS: 1*{first}" not in cluster.says("bslots", "-l")
    assert cluster.says("bmig", str(job)) == f"Job <{job}> is being migrated"
    wait_for(lambda: cluster.state(job) == "RUN" and cluster.says(*where) not in ("-", first), 60, "the other host")
    assert "nowhere" in cluster.run("bmig", "-m", "nowhere", str(job)).stderr
    assert cluster.says("bmig", "-m", first, str(job)) == f"Job <{job}> is being migrated"
    wait_for(lambda: cluster.state(job) == "RUN" and cluster.says(*where) == first, 60, "the host that -m names")
    plain = cluster.submit("-o", "/dev/null", "sleep 300")
    cluster.becomes(plain, "RUN")
    refused = cluster.run("bmig", "-m", first, str(plain))
    assert (refused.returncode, "neither rerunnable (bsub -r) nor checkpointable" in refused.stderr) == (255, True)
    assert cluster.says("bslots") == "No backfill window exists at this time"
    cluster.clear()


def test_a_job_migrates_by_itself(cluster: Cluster) -> None:
    """MIG = 0: as soon as its host is locked."""
    cluster.clear()
    cluster.reconfigure({"lsb.queues": QUEUES.format(window="MIG = 0")})
    assert "Migration threshold is 0 minutes" in cluster.says("bqueues", "-l", "normal")
    assert "-mig needs a job that may migrate" in cluster.run("bsub", "-mig", "5", "true").stderr
    job = cluster.submit("-r", "-mig", "5", "-o", "/dev/null", "-H", "sleep 300")
    assert "Migration threshold <5 min>" in _unwrapped(cluster.says("bjobs", "-l", str(job)))
    cluster.says("bmod", "-mign", str(job))
    assert "migration threshold from 5 min to none" in _unwrapped(cluster.history(job))
    cluster.says("bresume", str(job))
    cluster.becomes(job, "RUN")
    where = "bjobs", "-noheader", "-o", "exec_host", str(job)
    first = cluster.says(*where)
    cluster.run("lsadmin", "limlock", first)
    wait_for(lambda: cluster.state(job) == "RUN" and cluster.says(*where) not in ("-", first), 60, "the other host")
    cluster.run("lsadmin", "limunlock", first)
    why = "Requeue requested: the job migrates: it was suspended for longer than its migration threshold"
    assert why in _unwrapped(cluster.history(job))
    cluster.reconfigure({"lsb.queues": QUEUES.format(window="")})
    cluster.clear()


ECHKPNT = """\
#!/bin/sh
# Save what the job has counted to. A checkpoint that ends the job ends it itself, as programs do.
for group; do :; done
while getopts kfd: option; do case $option in k) ends=y ;; d) directory=$OPTARG ;; esac; done
[ -e refuse ] && { echo "no room" >&2; exit 3; }
cp count "$directory/saved"
echo "$directory $LSB_JOBID $LSB_CHKPNT_DIR" > "$directory/told"
[ -z "$ends" ] || kill -KILL "-$group"
"""
ERESTART = """\
#!/bin/sh
echo "LSB_RESTART_CMD=\\"sh count.sh $(cat "$1/saved") again\\"" > "$1/.restart_cmd"
"""
CHECKPOINTS = """CHKPNT = saved 90
JOB_CONTROLS = SUSPEND[CHKPNT] TERMINATE[CHKPNT]"""
COUNT = """\
n=$1
echo "$n $2" >> begun
while :; do n=$((n + 1)); echo $n > count.new; mv count.new count; sleep 0.1; done
"""


def _method(directory: Path) -> None:
    """A job that counts, and its programs."""
    for name, text in (("echkpnt.count", ECHKPNT), ("erestart.count", ERESTART), ("count.sh", COUNT)):
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)


def _counts(directory: Path) -> int:
    return int((directory / "count").read_text()) if (directory / "count").exists() else 0


def test_a_job_goes_on_from_its_checkpoint(cluster: Cluster, tmp_path: Path) -> None:
    """bchkpnt: by the program of its method; one that fails leaves the job as it is; bmig moves it, and it goes on
    from what was saved; with -k it ends, and brestart makes a new job that goes on. The history tells of each."""
    _method(tmp_path)
    here = cluster.at(tmp_path).with_environment(LSB_ECHKPNT_METHOD_DIR=str(tmp_path))
    job = here.submit("-o", "/dev/null", "-k", "saved method=count", "sh count.sh 1000")
    saved = tmp_path / "saved" / str(job)
    wait_for(lambda: _counts(tmp_path) > 1000, 60, "the job to count")
    assert f"Checkpoint directory <{saved}>" in _unwrapped(cluster.says("bjobs", "-l", str(job)))
    (tmp_path / "refuse").touch()
    assert cluster.says("bchkpnt", str(job)) == f"Job <{job}> is being checkpointed"
    failed = f"Checkpoint failed: {tmp_path}/echkpnt.count exited with code 3; what it said is in {saved}/echkpnt.err"
    wait_for(lambda: failed in _unwrapped(cluster.history(job)), 60, failed)
    assert (saved / "echkpnt.err").read_text() == "no room\n"
    (tmp_path / "refuse").unlink()
    cluster.says("bchkpnt", str(job))
    wait_for(lambda: "Checkpoint succeeded" in cluster.history(job), 60, "a checkpoint")
    assert (saved / "told").read_text() == f"{saved} {job} {saved}\n"
    where = "bjobs", "-noheader", "-o", "exec_host", str(job)
    first, begun = cluster.says(*where), tmp_path / "begun"
    assert cluster.says("bmig", str(job)) == f"Job <{job}> is being migrated"
    wait_for(lambda: "again" in begun.read_text(), 60, "the job to go on")
    assert begun.read_text() == f"1000 \n{(saved / 'saved').read_text().strip()} again\n"
    wait_for(lambda: cluster.state(job) == "RUN" and cluster.says(*where) != first, 60, "it to run elsewhere")
    assert cluster.says("bchkpnt", "-k", str(job)) == f"Job <{job}> is being checkpointed"
    cluster.becomes(job, "EXIT")
    assert "TERM_CHKPNT: job killed after checkpointing" in _unwrapped(cluster.says("bjobs", "-l", str(job)))
    assert cluster.run("bchkpnt", str(job)).stderr == f"Job <{job}>: Job has already finished\n"
    answer = here.says("brestart", "-J", "third", "saved", str(job))
    third = int(answer.partition("<")[2].partition(">")[0])
    wait_for(lambda: begun.read_text().count("again") == 2, 60, "a new job to go on")
    kept = (saved.with_name(str(third)) / "saved").read_text().strip()
    assert (begun.read_text().splitlines()[2], saved.exists()) == (f"{kept} again", False)
    again = here.run("brestart", "saved", str(job)).stderr
    assert again == f"{tmp_path}/saved: no checkpoint of job <{job}> was made there. Job not submitted.\n"
    cluster.says("bkill", str(third))
    plain = cluster.submit("-o", "/dev/null", "sleep 300")
    cluster.becomes(plain, "RUN")
    assert cluster.run("bchkpnt", str(plain)).stderr == f"Job <{plain}>: Job is not checkpointable\n"


def test_the_queues_jobs_have_checkpoints(cluster: Cluster, tmp_path: Path) -> None:
    """CHKPNT of lsb.queues, and CHKPNT_DIR and the like of a profile before it: a requeued job goes on from one. With
    JOB_CONTROLS that are checkpoints one is made before a job is stopped, and before it is ended."""
    _method(tmp_path)
    profile = f"""
        Begin Application
        NAME = counting
        CHKPNT_DIR = {tmp_path}/own
        CHKPNT_INITPERIOD = 30
        CHKPNT_PERIOD = 60
        CHKPNT_METHOD = count
        End Application
    """
    cluster.reconfigure({"lsb.queues": QUEUES.format(window=CHECKPOINTS), "lsb.applications": profile})
    here = cluster.at(tmp_path).with_environment(LSB_ECHKPNT_METHOD_DIR=str(tmp_path))
    assert "CHKPNTDIR:  saved" in cluster.says("bqueues", "-l", "normal")
    plain = here.with_environment(LSB_ECHKPNT_METHOD="count").submit("-o", "/dev/null", "sh count.sh 1000")
    wait_for(lambda: _counts(tmp_path) > 1000, 60, "the job to count")
    cluster.says("bchkpnt", str(plain))
    wait_for(lambda: "Checkpoint succeeded" in cluster.history(plain), 60, "a checkpoint")
    told = _unwrapped(cluster.says("bjobs", "-l", str(plain)))
    assert f"Checkpoint period 90 min., Checkpoint directory <{tmp_path}/saved/{plain}>" in told
    assert cluster.says("bchkpnt", "-p", "45", str(plain)) == f"Job <{plain}>: Checkpoint period is now 45 min."
    assert "Checkpoint period 45 min., Checkpoint" in _unwrapped(cluster.says("bjobs", "-l", str(plain)))
    cluster.says("brequeue", str(plain))
    wait_for(lambda: "again" in (tmp_path / "begun").read_text(), 60, "the job to go on")
    for command, state, action in (("bstop", "USUSP", "suspend"), ("bkill", "EXIT", "terminate")):
        cluster.says(command, str(plain))
        cluster.becomes(plain, state)
        told = f"Checkpoint of the {action} action succeeded"
        wait_for(lambda told=told: told in _unwrapped(cluster.history(plain)), 60, told)  # type: ignore[misc]
    assert "TERM_OWNER: job killed by owner" in _unwrapped(cluster.says("bjobs", "-l", str(plain)))
    other = here.submit("-app", "counting", "-o", "/dev/null", "sleep 100")
    told = _unwrapped(cluster.says("bjobs", "-l", str(other)))
    assert "Initial checkpoint period 30 min., Checkpoint period 60 min." in told
    assert f"Checkpoint directory <{tmp_path}/own/{other}>, Checkpoint method <count>" in told
    cluster.reconfigure({"lsb.queues": QUEUES.format(window=""), "lsb.applications": ""})
