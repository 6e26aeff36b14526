"""LSF configuration files of a running cluster, and their change while jobs run."""

import getpass
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavad.config import last_good
from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

PARAMS = """\
Begin Parameters
DEFAULT_QUEUE = day
MAX_JOB_ARRAY_SIZE = 50
End Parameters
"""
DAY = """\
Begin Queue
QUEUE_NAME  = day
PRIORITY    = 30
RUNLIMIT    = 10 60
DESCRIPTION = work of the day
End Queue
"""
GONE = """\
Begin Queue
QUEUE_NAME = gone
PRIORITY   = 20
End Queue
"""
HOSTS = """\
Begin Host
HOST_NAME   MXJ   JL/U
default     {slots}     ()
End Host
"""


@pytest.fixture(scope="module")
def site(open_directory: Path) -> Iterator[Cluster]:
    """One host whose agent offers four slots, of which lsb.hosts takes two."""
    files = {"lsb.params": PARAMS, "lsb.queues": DAY + GONE, "lsb.hosts": HOSTS.format(slots=2)}
    with a_cluster(open_directory / "C", 1, 4, lsf_files=files) as made:
        yield made


def _running(cluster: Cluster, job: int) -> bool:
    return cluster.state(job) == "RUN"


def test_the_files_are_in_force_from_the_start(site: Cluster) -> None:
    """Queues, limits and slots are those of the files."""
    queues = site.run("bqueues", "-noheader").stdout
    assert [line.split()[0] for line in queues.splitlines()] == ["day", "gone"]
    assert site.run("bhosts", "-noheader", "-o", "max").stdout.split() == ["2"]
    refused = site.run("bsub", "-W", "61", "true")
    assert refused.returncode != 0
    assert "RUNLIMIT: Cannot exceed queue's hard limit(s)" in refused.stderr


def test_new_rules_reach_a_cluster_that_works(site: Cluster) -> None:
    """A queue is removed and a limit raised while jobs run: no job is lost, and pending ones start."""
    running = [site.submit("-q", "gone", "sleep 300"), site.submit("sleep 300")]
    wait_for(lambda: all(_running(site, job) for job in running), 60, "two jobs to run")
    stranded = site.submit("-q", "gone", "sleep 300")
    waiting = site.submit("sleep 300")
    assert not _running(site, waiting)
    said = site.reconfigure({"lsb.queues": DAY, "lsb.hosts": HOSTS.format(slots=3)})
    assert "No errors found." in said
    assert "Reconfiguration initiated" in said
    wait_for(lambda: _running(site, waiting), 60, "the third job to run in the third slot")
    assert all(_running(site, job) for job in running)
    assert site.run("bsub", "-q", "gone", "true").returncode != 0
    site.kill("lavad")  # it is started again by files without the queue of a job that runs
    site.up()
    wait_for(lambda: all(_running(site, job) for job in (*running, waiting)), 60, "the jobs to be known again")
    assert site.run("bqueues", "-noheader", "gone").stdout.split()[2] == "Closed:Inact"
    assert site.run("bswitch", "day", str(stranded)).returncode == 0
    site.reconfigure({"lsb.hosts": HOSTS.format(slots=4)})
    wait_for(lambda: _running(site, stranded), 60, "the job to run in its new queue")
    site.reconfigure({"lsb.hosts": HOSTS.format(slots=1)})
    assert all(_running(site, job) for job in (*running, waiting, stranded))
    assert site.run("bhosts", "-noheader", "-o", "max").stdout.split() == ["1"]
    site.reconfigure({"lsb.queues": DAY + GONE, "lsb.hosts": HOSTS.format(slots=2)})
    site.run("bkill", "0")
    wait_for(lambda: not site.run("bjobs", "-noheader").stdout, 60, "all jobs to end")


def test_a_broken_file_changes_nothing(site: Cluster) -> None:
    """Every error is reported with file and line; the old configuration stays, also after a restart of the master."""
    broken = DAY.replace("30", "high").replace("10 60", "60 10")
    site.write_lsf_files({"lsb.queues": broken})
    for verb in ("ckconfig", "reconfig"):
        done = site.run("badmin", verb)
        assert done.returncode == 255
        path = site.directory / "lsb.queues"
        assert f"{path}:3: PRIORITY = high: expected a whole number from 1 to 2147483647" in done.stderr
        assert f"{path}:4: RUNLIMIT = 60 10: expected the default before the maximum" in done.stderr
        assert "There are fatal errors." in done.stderr
    assert "gone" in site.run("bqueues").stdout
    site.write_lsf_files({"lsb.queues": DAY + GONE})
    done = site.run("badmin", "ckconfig", "-v")
    assert "settings are honoured:" in done.stdout
    assert "lsb.params:2 DEFAULT_QUEUE" in done.stdout


def test_a_master_that_starts_with_a_broken_file_keeps_the_last_good_rules(site: Cluster) -> None:
    """It serves by what was in force before, as after a refused reconfig, and says so until all is well."""
    site.write_lsf_files({"lsb.queues": DAY.replace("30", "high")})
    site.kill("lavad")
    site.up()
    assert "Closed" not in site.run("bqueues", "-noheader", "day").stdout
    assert site.run("bqueues", "-noheader", "gone").returncode == 0
    found = site.run("badmin", "showstatus").stdout
    assert "is in force: " in found
    assert "lsb.queues:3: PRIORITY = high: expected a whole number" in " ".join(found.split())
    site.reconfigure({"lsb.queues": DAY + GONE})
    assert "Problem" not in site.run("badmin", "showstatus").stdout


def test_lava_conf_is_checked_as_lsfs_files_are(site: Cluster) -> None:
    """A misspelt name, a wrong value and a change that waits for a start are told, each with its line."""
    path = site.directory / "lava.conf"
    before = path.read_text()
    path.write_text(f"{before}LAVA_SILENT_AFTR=20\nLAVA_HEARTBEAT=often\n")
    lines = len(before.splitlines())
    try:
        for verb in ("ckconfig", "reconfig"):
            done = site.run("badmin", verb)
            assert done.returncode == 255
            assert f"{path}:{lines + 2}: LAVA_HEARTBEAT must be a number of seconds, not 'often'" in done.stderr
            near = "LAVA_SILENT_AFTR: unknown setting, it has no effect; did you mean LAVA_SILENT_AFTER?"
            assert f"{path}:{lines + 1}: warning: {near}" in done.stderr
        path.write_text(f"{before}LAVA_CLAIM_TIMEOUT=200\n")
        done = site.run("badmin", "ckconfig")
        assert done.returncode == 0
        assert "LAVA_CLAIM_TIMEOUT: it was changed, and counts when lavad is started anew" in done.stderr
    finally:
        path.write_text(before)


def test_an_unknown_parameter_is_reported(site: Cluster) -> None:
    """It has no effect and is no error."""
    said = site.reconfigure({"lsb.queues": DAY.replace("RUNLIMIT", "RUN_LIMIT") + GONE})
    assert "RUN_LIMIT: unknown parameter, it has no effect; did you mean RUNLIMIT?" in said
    assert "There are warning errors." in said
    site.reconfigure({"lsb.queues": DAY + GONE})


def test_queues_are_closed_and_inactivated_by_administrators(site: Cluster) -> None:
    """A closed queue accepts no jobs, an inactive one starts none; both survive a reconfiguration and a restart."""
    done = site.run("badmin", "qclose", "-C", "until Monday", "gone")
    assert (done.returncode, done.stdout) == (0, "Queue <gone> is closed\n")
    assert site.run("badmin", "qinact", "gone").stdout == "Queue <gone> is inactivated\n"
    refused = site.run("bsub", "-q", "gone", "true")
    assert "gone: Queue has been closed" in refused.stderr
    site.reconfigure()
    site.kill("lavad")
    site.up()
    row = site.run("bqueues", "-noheader", "gone").stdout.split()
    assert row[2] == "Closed:Inact"
    assert site.run("badmin", "qopen", "gone").stdout == "Queue <gone> is opened\n"
    job = site.submit("-q", "gone", "true")
    assert not _running(site, job)
    assert site.run("badmin", "qact", "gone").stdout == "Queue <gone> is activated\n"
    wait_for(lambda: site.states(job).get(0, ("", 0))[0] == "DONE", 60, "the job to run")
    nowhere = site.run("badmin", "qopen", "nowhere")
    assert (nowhere.returncode, nowhere.stderr) == (255, "nowhere: No such queue\n")


def test_hosts_are_closed_with_a_reason(site: Cluster) -> None:
    """hclose and hopen report on standard error, as in LSF."""
    host = site.hosts()[0]
    done = site.run("badmin", "hclose", "-C", "new disk", host)
    assert (done.returncode, done.stderr) == (0, f"Close <{host}> ...... done\n")
    assert "new disk" in site.run("bhosts", "-l", host).stdout
    assert "closed_Adm" in site.run("bhosts", "-w", host).stdout
    assert site.run("badmin", "hopen", "all").stderr == f"Open <{host}> ...... done\n"
    here = site.run("badmin", "hclose")  # on a login host, which runs no jobs
    assert here.returncode == 255
    assert "> runs no jobs of this cluster: name the hosts that are meant" in here.stderr
    closed_from_there = site.submit("-o", "/dev/null", "badmin hclose")
    wait_for(lambda: site.states(closed_from_there).get(0, ("", 0))[0] == "DONE", 60, "a host to close itself")
    assert "closed_Adm" in site.run("bhosts", "-w", host).stdout
    assert site.run("badmin", "hopen", host).returncode == 0


def test_a_host_is_closed_with_two_lock_ids(site: Cluster) -> None:
    """It opens when both are removed; the last one is there after a restart of the master, with its comment."""
    host = site.hosts()[0]
    for lock_id in ("disk", "fan"):
        done = site.run("badmin", "hclose", "-i", lock_id, "-C", f"new {lock_id}", host)
        assert (done.returncode, done.stderr) == (0, f"Close <{host}> ...... done\n")
    opened = site.run("badmin", "hopen", "-i", "disk", host).stderr
    assert opened == f"Open <{host}> ...... done : host remains closed due to lock ID <fan>\n"
    site.kill("lavad")
    site.up()
    wait_for(lambda: "closed_Adm" in site.run("bhosts", "-w", host).stdout, 60, "the host to be back")
    shown = site.run("bhosts", "-l", host).stdout
    assert "new fan" in shown
    assert "new disk" not in shown
    assert site.run("badmin", "hopen", "-i", "all", host).stderr == f"Open <{host}> ...... done\n"
    wait_for(lambda: " ok " in site.run("bhosts", "-w", host).stdout, 60, "the host to be open")
    told = [line[21:] for line in site.run("badmin", "hhist", host).stdout.splitlines()][-2:]
    by = getpass.getuser()
    assert told == [
        f"Host <{host}> partly opened with lock ID <disk> by administrator <{by}>.",
        f"Host <{host}> opened with lock ID <fan> by administrator <{by}>.",
    ]


def test_a_host_is_added_to_a_group(site: Cluster) -> None:
    """A job that waits for the group starts; the host is a member after reconfigurations and a restart of the master,
    until the group leaves lsb.hosts. The restart leaves one that a pattern names in its group, too. It is deleted even
    if lsb.hosts names it by now, and a group that lsb.hosts has lost is changed no more."""
    host, by = site.hosts()[0], getpass.getuser()
    hosts = HOSTS.format(slots=2)
    rack = hosts + "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nrack (elsewhere)\nEnd HostGroup\n"
    rack = rack.replace("\nEnd HostGroup", f"\nwild ({host[:-1]}*)\nEnd HostGroup")
    site.reconfigure({"lsb.hosts": rack})
    job = site.submit("-m", "rack", "true")
    wrong = site.run("badmin", "hghostadd", "rack", host, "nowhere")
    assert (wrong.returncode, wrong.stderr) == (255, "nowhere: Bad host name.\n")
    assert site.state(job) == "PEND"
    done = site.run("badmin", "hghostadd", "-C", "for a while", "rack", host)
    assert (done.returncode, done.stdout) == (0, f"Host <{host}> is added to host group <rack>\n")
    site.becomes(job, "DONE")
    site.reconfigure()
    site.kill("lavad")
    site.up()
    listed = f"GROUP_NAME    HOSTS\nrack          elsewhere {host}\n"
    wait_for(lambda: site.run("bmgroup", "rack").stdout == listed, 60, "the group as it was")
    assert site.run("bmgroup", "-r", "wild").stdout == f"GROUP_NAME    HOSTS\nwild          {host}\n"
    site.becomes(site.submit("-m", "rack", "true"), "DONE")
    site.write_lsf_files({"lsb.hosts": rack.replace("elsewhere", f"elsewhere {host}")})
    done = site.run("badmin", "hghostdel", "-f", "rack", host)
    assert (done.returncode, done.stdout) == (0, f"Host <{host}> is deleted from host group <rack>\n")
    assert site.run("bmgroup", "rack").stdout == "GROUP_NAME    HOSTS\nrack          elsewhere\n"
    told = [line[21:] for line in site.run("badmin", "hhist", host).stdout.splitlines()][-2:]
    assert told == [
        f"Host <{host}> added to host group <rack> by administrator <{by}> for a while",
        f"Host <{host}> deleted from host group <rack> by administrator <{by}>.",
    ]
    site.run("badmin", "hghostadd", "rack", host)
    site.write_lsf_files({"lsb.hosts": hosts})
    for _ in range(2):  # before the files are put into force, and afterwards
        assert site.run("badmin", "hghostdel", "-f", "rack", host).stderr == "rack: No such host group.\n"
        site.reconfigure()
    site.reconfigure({"lsb.hosts": rack})
    assert site.run("bmgroup", "rack").stdout == "GROUP_NAME    HOSTS\nrack          elsewhere\n"
    site.reconfigure({"lsb.hosts": hosts})


def test_a_locked_host_suspends_its_jobs(site: Cluster) -> None:
    """lsadmin limlock outlives a restart of the master; limunlock lets the jobs go on."""
    host = site.hosts()[0]
    job = site.submit("sleep 300")
    wait_for(lambda: _running(site, job), 60, "the job to run")
    assert site.run("lsadmin", "limlock", host).stderr == f"Lock <{host}> ...... done\n"
    site.becomes(job, "SSUSP")
    assert "locked by the administrator" in " ".join(site.run("bjobs", "-l", str(job)).stdout.split())
    site.kill("lavad")
    site.up()
    wait_for(lambda: "closed_Lock" in site.run("bhosts", "-w", host).stdout, 60, "the host to be back")
    assert site.run("lsadmin", "limunlock", host).returncode == 0
    site.becomes(job, "RUN")
    assert site.run("bkill", str(job)).returncode == 0
    site.becomes(job, "EXIT")


def test_what_administrators_did_is_kept(site: Cluster) -> None:
    """badmin hist and its kin: the start of the master, its reconfiguration, a queue and a host with their comments."""
    host = site.hosts()[0]
    for words in (["qclose", "-C", "until Monday", "gone"], ["hclose", host], ["qopen", "gone"], ["hopen", host]):
        assert site.run("badmin", *words).returncode == 0
    too_long = site.run("badmin", "reconfig", "-C", "x" * 512)
    assert too_long.stderr == "-C: a comment has at most 511 characters, and no NUL.\n"
    assert site.run("badmin", "reconfig", "-C", "new queues").returncode == 0
    by = getpass.getuser()
    queue = [line[21:] for line in site.run("badmin", "qhist", "gone").stdout.splitlines()][-2:]
    assert queue == [
        f"Queue <gone> closed by user or administrator <{by}> until Monday",
        f"Queue <gone> opened by user or administrator <{by}>.",
    ]
    hosts = [line[21:] for line in site.run("badmin", "hhist", host).stdout.splitlines()][-2:]
    assert hosts == [f"Host <{host}> {done} by administrator <{by}>." for done in ("closed", "opened")]
    master = site.run("badmin", "mbdhist").stdout.splitlines()
    assert ": mbatchd started on host <" in master[0]
    assert master[-1].endswith(f"> reconfigured by administrator <{by}> new queues")
    assert len(site.run("badmin", "hist", "-t", ".-5,.").stdout.splitlines()) >= len(queue + hosts + master[-1:])


def test_the_master_is_monitored(site: Cluster) -> None:
    """badmin perfmon counts what the master is asked and does, until it is stopped."""
    assert site.run("badmin", "perfmon", "start", "1").returncode == 0
    job = site.submit("true")

    def counted() -> bool:
        rows = site.run("badmin", "perfmon", "view").stdout.splitlines()
        totals = {row[:35].strip(): row.split()[-1] for row in rows}
        return totals["Jobs submitted"] == "1" and totals["Jobs dispatched"] == "1" and totals["Total queries"] != "0"

    wait_for(lambda: site.run("bqueues").returncode == 0 and counted(), 60, "samples with the job")
    site.becomes(job, "DONE")
    assert site.run("badmin", "perfmon", "stop").returncode == 0
    assert site.run("badmin", "perfmon", "view").returncode == 255


def test_queries_are_logged(site: Cluster) -> None:
    """badmin diagnose -c query names the file, which has the calls of users."""
    said = site.run("badmin", "diagnose", "-c", "query", "-d", "10").stdout
    path = Path(said.partition("<")[2].partition(">")[0])
    assert site.run("bqueues").returncode == 0
    assert site.run("badmin", "diagnose", "-c", "query", "-o").returncode == 0
    assert f",{getpass.getuser()}," in path.read_text()
    assert path.read_text().endswith(",Queues\n")


def test_what_the_files_say_is_shown(site: Cluster) -> None:
    """Groups, users, limits and parameters, as their commands show them."""
    users = """\
        Begin UserGroup
        GROUP_NAME  GROUP_MEMBER  USER_SHARES
        crew        (root ada)    ([root,2] [default,1])
        everybody   (all)         ()
        End UserGroup
        Begin User
        USER_NAME  MAX_JOBS  MAX_PEND_JOBS
        root       7         90
        default    3         -
        End User
        """
    host = site.hosts()[0]
    groups = f"Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nrack ({host})\nEnd HostGroup\n"
    limits = "Begin Limit\nNAME = few\nPER_USER = all\nSLOTS = 2\nEnd Limit\n"
    limits += "Begin GuaranteedResourcePool\nNAME = lab\nGUARANTEED = slots=2\nEnd GuaranteedResourcePool\n"
    site.reconfigure({"lsb.users": users, "lsb.hosts": HOSTS.format(slots=2) + groups, "lsb.resources": limits})
    assert site.run("bugroup", "-l", "crew").stdout == (
        "GROUP_NAME:  crew\nUSERS:  root ada\nSHARES:  [root, 2] [default, 1]\n"
    )
    assert "everybody     all users" in site.run("bugroup").stdout
    assert site.run("bmgroup", "rack").stdout == f"GROUP_NAME    HOSTS\nrack          {host}\n"
    assert site.run("bhosts", "-noheader", "-o", "host_name", "rack").stdout.split() == [host]
    row = site.run("busers", "-w").stdout.splitlines()[1].split()
    assert (row[0], row[2], row[-1]) == ("root", "7", "90")
    assert "crew/" in site.run("busers", "crew", "default").stdout
    assert "PER_USER            = all" in site.run("blimits", "-c").stdout
    assert site.run("bresources", "-g").stdout.split()[-8:] == ["lab", "slots", "ok", "2", "2", "2", "0", "0"]
    assert "MAX_JOB_ARRAY_SIZE = 50" in site.run("bparams", "-a").stdout
    assert site.run("lsclusters").stdout.splitlines()[1].split()[-2:] == ["2", "1"]
    long = site.run("bqueues", "-l", "day").stdout
    assert "DEFAULT LIMITS:\n RUNLIMIT\n 10.0 min" in long
    assert "MAXIMUM LIMITS:\n RUNLIMIT\n 60.0 min" in long
    assert "This is the default queue." in long
    for name in ("lsb.users", "lsb.resources"):
        (site.directory / name).unlink()
    site.reconfigure({"lsb.hosts": HOSTS.format(slots=2)})


def test_a_job_gets_what_its_queue_gives(site: Cluster, tmp_path: Path) -> None:
    """Size, core file limit and memory limit by default; more than the queue's maximum is refused."""
    queue = """\
        Begin Queue
        QUEUE_NAME = wide
        TASKLIMIT  = 1 2 2
        CORELIMIT  = 512
        MEMLIMIT   = 100 200
        USERS      = all ~ada
        End Queue
        """
    site.reconfigure({"lsb.queues": DAY + GONE + textwrap.dedent(queue)})
    shown = tmp_path / "shown"
    job = site.submit("-q", "wide", "-o", "/dev/null", f"(ulimit -c; echo $LSB_DJOB_NUMPROC) > {shown}")
    wait_for(lambda: site.states(job).get(0, ("", 0))[0] == "DONE", 60, "the job to end")
    assert shown.read_text().split() == [str(512 << 11), "2"]  # MB by lsf.conf, half KB by sh
    assert site.run("bjobs", "-noheader", "-o", "memlimit", str(job)).stdout.strip().startswith("100")
    for words, sentence in (
        (("-n", "3"), "Too many processors requested"),
        (("-M", "201"), "MEMLIMIT: Cannot exceed queue's hard limit(s)"),
        (("-C", "1048576"), "CORELIMIT: Cannot exceed queue's hard limit(s)"),
        (("-x",), "wide: Queue does not accept EXCLUSIVE jobs"),
    ):
        refused = site.run("bsub", "-q", "wide", *words, "true")
        assert f"{sentence}. Job not submitted." in refused.stderr
    site.reconfigure({"lsb.queues": DAY + GONE})


def test_a_master_without_good_rules_does_not_start_under_broken_ones(site: Cluster) -> None:
    """It prints the errors line by line and ends; the same check is available without a master."""
    (site.directory / "state" / last_good.FILE_NAME).unlink()
    site.write_lsf_files({"lsb.queues": "Begin Queue\nPRIORITY = 5\nEnd Queue\n"})
    checked = site.run("lavad", "--conf", str(site.directory), "--check-config")
    assert (checked.returncode, checked.stderr.splitlines()[-1]) == (1, "There are fatal errors.")
    assert "lsb.queues:1: Queue: QUEUE_NAME is missing" in checked.stderr
    site.kill("lavad")  # the shorter it is away the sooner the agents ask for it again
    done = site._call("up")
    assert done.returncode != 0
    assert "QUEUE_NAME is missing" in done.stdout + done.stderr
    site.write_lsf_files({"lsb.queues": DAY + GONE})
    site.up()
    assert "day" in site.run("bqueues").stdout


def test_the_installation_is_shown_as_lsf_would(site: Cluster) -> None:
    """badmin showconf names a directory with lsb.params at LSF's path; showstatus counts."""
    said = site.run("badmin", "showconf", "mbd").stdout.splitlines()[1:]
    values = dict(line.strip().split(" = ") for line in said)
    cluster = site.run("lsclusters", "-w").stdout.splitlines()[1].split()[0]
    params = Path(values["LSF_CONFDIR"], "lsbatch", cluster, "configdir", "lsb.params").read_text()
    assert "DEFAULT_QUEUE = day" in params
    running = site.submit("sleep 300")
    wait_for(lambda: _running(site, running), 60, "the job to run")
    status = site.run("badmin", "showstatus").stdout
    assert f"Active mbatchd PID:                  {site.pid('lavad')}" in status
    assert "Running:                           1\n" in status
    site.run("bkill", str(running))
