"""Golden output of bjobs for planning: time left, pending reasons by level, their summary, names that match no job."""

import pytest

from protos import cluster_pb2, common_pb2, jobs_pb2
from tests.lavactl.scripted import Desk, a_job, at

RUN = common_pb2.RUN


@pytest.mark.parametrize(
    ("option", "title", "running"),
    [("-WL", "TIME_LEFT", "1:32 L"), ("-WF", "FINISH_TIME", "Nov 21 11:02 L"), ("-WP", "%COMPLETE", "23.15% L")],
)
def test_one_more_column_about_time(desk: Desk, option: str, title: str, running: str) -> None:
    """lsf.md 1.3: time_left is `hh:mm L`, finish_time has the same suffix; a job that waits has `-`."""
    limit = jobs_pb2.JobSpec(run_limit_s=7200)
    desk.client.jobs = [
        a_job([("n001", 1)], state=RUN, spec=limit, start_time=at("09:02:13")),
        a_job(job=1202, spec=limit, submit_time=at("09:05:00")),
    ]
    assert desk.type("bjobs", option).out == (
        f"JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME  {title}\n"
        f"1201    alice   RUN   normal     login1      n001        md_npt     Nov 21 09:02 {running}\n"
        "1202    alice   PEND  normal     login1         -        md_npt     Nov 21 09:05 -\n"
    )
    assert desk.client.asked[-1].details


def test_processors_of_each_task(desk: Desk) -> None:
    """-l -aff: a row for each task with its processors; what the requirement says of units, binding and memory."""
    affinity = "affinity[core(2,same=socket,exclusive=(socket,alljobs)):cpubind=core:membind=localprefer]"
    bound = a_job([("n001", 2), ("n002", 1)], state=RUN, effective_requirement=f"span[ptile=2] {affinity}")
    for share, cpus in ((0, (0, 2)), (0, (4, 6)), (1, (1,))):
        bound.hosts[share].cpus.add(cpus=cpus)
    desk.client.jobs = [bound]
    plain = desk.type("bjobs", "-l").out
    told = desk.type("bjobs", "-l", "-aff").out
    assert told.removeprefix(plain) == (
        "\n AFFINITY:\n"
        "                     CPU BINDING                          MEMORY BINDING\n"
        "                     ------------------------             --------------------\n"
        " HOST                TYPE   LEVEL  EXCL   IDS             POL   NUMA SIZE\n"
        " n001                core   core   socket 0,2             pref  -    -\n"
        " n001                core   core   socket 4,6             pref  -    -\n"
        " n002                core   core   socket 1               pref  -    -\n"
    )
    desk.client.jobs = [a_job([("n001", 2)], state=RUN)]
    assert desk.type("bjobs", "-l", "-aff").out == desk.type("bjobs", "-l").out
    assert "-aff needs -l or -UF" in desk.type("bjobs", "-aff").err


def _waiting(desk: Desk) -> None:
    """A job that two hosts could take once slots are free, and three never."""
    desk.client.cluster.servers = 5
    reasons = [
        jobs_pb2.PendingReason(code=38, text="The job array has reached its running element limit"),
        jobs_pb2.PendingReason(code=1303, text="Not enough job slot(s)", hosts=2),
        jobs_pb2.PendingReason(code=1311, text="Not specified in job submission", hosts=2, rules_out=True),
        jobs_pb2.PendingReason(code=1301, text="Closed by LSF administrator", hosts=1, rules_out=True),
    ]
    desk.client.jobs = [a_job(job=1202, pending_reasons=reasons)]


CANDIDATES = (
    " The job array has reached its running element limit;\n"
    " Candidate host pending reasons (2 of 5 hosts):\n"
    " Not enough job slot(s): 2 hosts;\n"
)
OTHERS = (
    " Non-candidate host pending reasons (3 of 5 hosts):\n"
    " Not specified in job submission: 2 hosts;\n"
    " Closed by LSF administrator: 1 host;\n"
)


def test_pending_reasons_of_candidate_hosts(desk: Desk) -> None:
    """lsf.md 1.3: levels 2 and 3 group the hosts; hosts that are closed, or not named, are no candidates."""
    _waiting(desk)
    assert desk.type("bjobs", "-p2", "-noheader").out.partition("\n")[2] == CANDIDATES
    assert desk.type("bjobs", "-p3", "-noheader").out.partition("\n")[2] == CANDIDATES + OTHERS
    assert desk.type("bjobs", "-p1", "-noheader").out.count("\n") == 2
    assert desk.client.asked[-1].filter.states


def test_pending_reasons_of_a_master_that_rules_no_host_out(desk: Desk) -> None:
    """An older master does not say which reasons rule a host out: all its hosts are candidates."""
    slots = jobs_pb2.PendingReason(code=1303, text="Not enough job slot(s)", hosts=2)
    closed = jobs_pb2.PendingReason(code=1301, text="Closed by LSF administrator", hosts=1)
    desk.client.jobs = [a_job(job=1202, pending_reasons=[slots, closed])]
    desk.client.cluster.servers = 3
    assert desk.type("bjobs", "-p3", "-noheader").out.partition("\n")[2] == (
        " Candidate host pending reasons (3 of 3 hosts):\n"
        " Not enough job slot(s): 2 hosts;\n"
        " Closed by LSF administrator: 1 host;\n"
    )


def test_the_level_of_pending_reasons_from_the_settings(desk: Desk) -> None:
    """LSB_BJOBS_PENDREASON_LEVEL stands for the number; -p0 shows all of them all the same."""
    _waiting(desk)
    desk.environ["LSB_BJOBS_PENDREASON_LEVEL"] = "3"
    assert desk.type("bjobs", "-p", "-noheader").out.partition("\n")[2] == CANDIDATES + OTHERS
    assert "andidate" not in desk.type("bjobs", "-p0").out


def test_summary_of_pending_reasons(desk: Desk) -> None:
    """-psum: how many pending jobs have each reason, the most frequent first."""
    slots = jobs_pb2.PendingReason(code=1303, text="Not enough job slot(s)", hosts=2)
    begin = jobs_pb2.PendingReason(code=2, text="The job has a specified start time")
    desk.client.jobs = [
        a_job(job=1, pending_reasons=[begin]),
        a_job(job=2, pending_reasons=[slots]),
        a_job(job=3, pending_reasons=[slots]),
    ]
    assert desk.type("bjobs", "-psum", "-u", "all").out == (
        "Pending reason summary: published Sat Nov 21 09:30:00\n"
        "Summarizing 3 pending jobs in cluster (c1):\n"
        " Not enough job slot(s): 2 jobs;\n"
        " The job has a specified start time: 1 job;\n"
    )
    desk.client.jobs = []
    assert desk.type("bjobs", "-psum").err == "No pending job found\n"


@pytest.mark.parametrize("option", ["-Lp"])
def test_a_project_that_no_job_has(desk: Desk, option: str) -> None:
    """lsf.md 1.3: nothing matches: LSF's sentence, and exit code 0."""
    desk.client.jobs = [a_job()]
    result = desk.type("bjobs", option, "chem")
    assert (result.code, result.out, result.err) == (0, "", "No unfinished job found\n")
    assert desk.type("bjobs", option, "chem", "1201").err == "No unfinished job found\n"
    assert '"JOBS":0' in desk.type("bjobs", option, "chem", "-o", "jobid", "-json").out


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("-fwd", "bjobs -fwd: lava neither forwards jobs to other clusters nor receives any.\n"),
    ],
)
def test_what_cannot_be_honoured_is_said(desk: Desk, option: str, sentence: str) -> None:
    """One sentence, no listing."""
    result = desk.type("bjobs", option)
    assert (result.code, result.out, result.err) == (255, "", sentence)


def test_the_cluster_for_a_host(desk: Desk) -> None:
    """lsf-clients.md: Open OnDemand calls `bjobs -m CLUSTER` first; no job of it is no unknown host."""
    result = desk.type("bjobs", "-m", "c1", "-u", "all", "-a", "-w", "-W")
    assert (result.code, result.out, result.err) == (0, "", "No job found on host/group <c1>\n")
    assert desk.type("bjobs", "-m", "nope").err == "nope: Bad host name, host group name or cluster name\n"


def _described(desk: Desk) -> None:
    """Jobs that differ in what only their details tell."""
    note = jobs_pb2.JobNote(time=at("09:20:00"), text="GPU 0 of n001 is idle")
    soon = jobs_pb2.JobSpec(user_group="chem", description="night run", begin_time=at("11:00:00"))
    desk.client.jobs = [
        a_job([("n001", 1)], job=1, state=RUN, start_time=at("09:03:00"), hangs_since=at("09:10:00"),
              spec=jobs_pb2.JobSpec(user_group="chem", description="night run 1", reservation="ann#0")),
        a_job([("n001", 1)], job=2, state=RUN, start_time=at("09:03:00"), warnings=[note]),
        a_job(job=3, spec=soon),
        a_job(job=4, spec=jobs_pb2.JobSpec(description="day run")),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "jobs"),
    [
        (["-G", "chem"], ["1", "3"]),
        (["-G", "che"], []),
        (["-Jd", "night run"], ["3"]),
        (["-Jd", "night*"], ["1", "3"]),
        (["-Jd", "*run", "-G", "chem"], ["3"]),
        (["-U", "ann#0"], ["1"]),
        (["-x"], ["1", "2"]),
        (["-pe"], ["4"]),
        (["-pi"], ["3"]),
    ],
)
def test_jobs_chosen_by_their_details(desk: Desk, options: list[str], jobs: list[str]) -> None:
    """User group, description with asterisks, advance reservation, exceptions, eligible or not."""
    _described(desk)
    result = desk.type("bjobs", "-noheader", "-o", "jobid", *options)
    assert result.out.split() == jobs
    request = desk.client.asked[0]
    assert request.details
    assert list(request.filter.states) == ([common_pb2.PEND, common_pb2.PSUSP] if options[0] in ("-pe", "-pi") else [])
    assert result.code == 0
    assert bool(jobs) or result.err == "No unfinished job found\n"


def test_jobs_by_id_that_a_condition_leaves_out(desk: Desk) -> None:
    """They are there: nothing says that they are not found."""
    _described(desk)
    assert desk.type("bjobs", "-G", "bio", "1").err == "No unfinished job found\n"


def test_the_script_of_a_job(desk: Desk) -> None:
    """-script: as it was submitted; a job array has one; a job without one has a command line."""
    script = "#!/bin/sh\n# first\nexec ./md\n"
    desk.client.jobs = [
        a_job(job=1, index=1, spec=jobs_pb2.JobSpec(command=script, is_script=True)),
        a_job(job=1, index=2),
    ]
    assert desk.type("bjobs", "-script", "1").out == script
    desk.client.jobs = [a_job(job=2, spec=jobs_pb2.JobSpec(command="./md npt.in"))]
    assert desk.type("bjobs", "-script", "2").out == "./md npt.in\n"
    for argv in ((), ("1", "2"), ("-w", "1")):
        assert desk.type("bjobs", "-script", *argv).err.startswith("bjobs: -script takes one job id and no other")


def test_the_environment_of_a_job(desk: Desk) -> None:
    """-env: a line for each variable, byte for byte; a job of others is refused; one job at a time."""
    desk.client.environment_reply = jobs_pb2.EnvironmentReply(environment=[b"A=1", b"PATH=/bin", b"B=\xc3\xa4"])
    assert desk.type("bjobs", "-env", "7[2]").out == "A=1\nPATH=/bin\nB=\u00e4\n"
    assert desk.client.asked[-1].ref.job == 7
    desk.client.environment_reply = jobs_pb2.EnvironmentReply(error="User permission denied")
    result = desk.type("bjobs", "-env", "7")
    assert (result.code, result.out, result.err) == (255, "", "Job <7>: User permission denied\n")
    for argv in ((), ("1", "2"), ("-w", "1")):
        assert desk.type("bjobs", "-env", *argv).err.startswith("bjobs: -env takes one job id and no other option")


def test_pending_jobs_in_two_lists(desk: Desk) -> None:
    """-pei: those that may be considered, and then those that may not, with their reasons."""
    reasons = [jobs_pb2.PendingReason(code=1303, text="Job slot limit reached", hosts=2)]
    held = [jobs_pb2.PendingReason(code=3, text="Job dependency condition not satisfied", is_ineligible=True)]
    spec = jobs_pb2.JobSpec(name="x")
    desk.client.jobs = [
        a_job(job=1, spec=spec, pending_reasons=held),
        a_job(job=2, spec=spec, pending_reasons=reasons),
    ]
    result = desk.type("bjobs", "-pei", "-noheader", "-w")
    assert result.code == 0
    assert [line.split()[0] if line[0] != " " else line for line in result.out.splitlines()] == [
        "PENDING",
        "2",
        " Job slot limit reached: 2 hosts;",
        "PENDING",
        "1",
        " Job dependency condition not satisfied;",
    ]
    desk.client.jobs.pop()
    assert desk.type("bjobs", "-pei").out.startswith("PENDING JOBS ELIGIBLE FOR SCHEDULING:\nNone\nPENDING JOBS INEL")
    assert "-pei and -o cannot be used together" in desk.type("bjobs", "-pei", "-o", "jobid").err


def test_the_command_of_a_job_of_several_roles(desk: Desk) -> None:
    """-o command: the first role's, as in bjobs -l."""
    spec = jobs_pb2.JobSpec(roles=[common_pb2.Role(name="a", command="./ps"), common_pb2.Role(name="b", command="x")])
    desk.client.jobs = [a_job(spec=spec)]
    assert desk.type("bjobs", "-noheader", "-o", "command").out == "./ps\n"


@pytest.mark.parametrize(
    ("asked", "jobs"),
    [
        ("mem", ["1", "2", "3"]),
        ("mem,disk", ["1"]),
        ("gpfs", ["3"]),
        ("lic,mem", ["2"]),
        ("lic,tape", []),
        ("span", []),
    ],
)
def test_jobs_by_what_they_reserve(desk: Desk, asked: str, jobs: list[str]) -> None:
    """-rusage: all the resources, of one alternative."""
    requirements = (
        "select[type == local] rusage[mem=100:duration=5,disk=2/host] span[ptile=2]",
        "rusage[mem=1] rusage[lic=1 || tape=1]",
        "{rusage[mem=1]} || {rusage[gpfs=2]}@5",
        "span[hosts=1]",
    )
    desk.client.jobs = [
        a_job(job=job, effective_requirement=text, spec=jobs_pb2.JobSpec(name="x"))
        for job, text in enumerate(requirements, 1)
    ]
    assert desk.type("bjobs", "-noheader", "-o", "jobid", "-rusage", asked).out.split() == jobs


@pytest.mark.parametrize(("is_ineligible", "state"), [(True, "IPEND"), (False, "EPEND")])
def test_jobs_that_hosts_would_not_start(desk: Desk, is_ineligible: bool, state: str) -> None:
    """One whose queue is inactive is ineligible, as one that waits for another job."""
    reasons = [jobs_pb2.PendingReason(text="why", is_ineligible=is_ineligible)]
    desk.client.jobs = [a_job(pending_reasons=reasons, spec=jobs_pb2.JobSpec(name="x"))]
    assert desk.type("bjobs", "-noheader", "-o", "pendstate").out == f"{state}\n"


def test_durations_in_hours_minutes_and_seconds(desk: Desk) -> None:
    """-hms, with -o only; a value that is not there stays -."""
    desk.client.jobs = [
        a_job([("n001", 1)], state=RUN, start_time=at("07:02:13"), submit_time=at("07:02:03"),
              usage=common_pb2.Usage(cpu_s=3723.5)),
        a_job(job=1202, submit_time=at("09:05:00")),
    ]  # fmt: skip
    fields = "jobid run_time cpu_used pend_time estimated_run_time"
    assert desk.type("bjobs", "-noheader", "-hms", "-o", fields).out == (
        "1201 02:27:47 01:02:03 00:00:10 -\n1202 00:00:00 - 00:25:00 -\n"
    )
    assert desk.type("bjobs", "-hms").err.startswith("bjobs: -hms needs -o")


@pytest.mark.parametrize(("to", "seconds"), [("n002", "50.0"), ("Xeon", "25.0"), ("0.5", "400.0")])
def test_normalized_cpu_times(desk: Desk, to: str, seconds: str) -> None:
    """-N: as a host, a host model or a CPU factor would have taken them, by the factor of the first host."""
    desk.client.host_records = [
        cluster_pb2.HostRecord(facts=cluster_pb2.HostFacts(name=name, cpu_factor=factor))
        for name, factor in (("n001", 2.0), ("n002", 4.0))
    ]
    desk.client.resources_reply.models.add(name="Xeon", cpu_factor=8.0)
    desk.client.jobs = [a_job([("n001", 1)], state=RUN, start_time=at("09:03:00"), usage=common_pb2.Usage(cpu_s=100.0))]
    assert desk.type("bjobs", "-noheader", "-N", to, "-o", "cpu_used").out == f"{seconds} second(s)\n"
    result = desk.type("bjobs", "-N", "nowhere")
    assert (result.code, result.err) == (255, "nowhere: Bad host name, host model or CPU factor\n")


@pytest.mark.parametrize("option", ["-x", "-pe", "-pi"])
def test_arrays_are_not_chosen_by_details(desk: Desk, option: str) -> None:
    """-A counts elements; the conditions are about each."""
    assert desk.type("bjobs", "-A", option).err.startswith(f"bjobs: -A and {option} cannot be used together")
