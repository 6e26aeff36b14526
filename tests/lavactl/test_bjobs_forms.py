"""Golden output of bjobs for planning: time left, pending reasons by level, their summary, names that match no job."""

import pytest

from protos import common_pb2, jobs_pb2
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


def _waiting(desk: Desk) -> None:
    """A job that two hosts could take once slots are free, and three never."""
    desk.client.cluster.servers = 5
    reasons = [
        jobs_pb2.PendingReason(code=38, text="The job array has reached its running element limit"),
        jobs_pb2.PendingReason(code=1303, text="Not enough job slot(s)", hosts=2),
        jobs_pb2.PendingReason(code=1311, text="Not specified in job submission", hosts=2),
        jobs_pb2.PendingReason(code=1301, text="Closed by LSF administrator", hosts=1),
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


@pytest.mark.parametrize("option", ["-app", "-sla", "-Lp"])
def test_a_profile_that_no_job_has(desk: Desk, option: str) -> None:
    """lsf.md 1.3: nothing matches: LSF's sentence, and exit code 0."""
    desk.client.jobs = [a_job()]
    result = desk.type("bjobs", option, "chem")
    assert (result.code, result.out, result.err) == (0, "", "No unfinished job found\n")
    assert desk.type("bjobs", option, "chem", "1201").err == "No unfinished job found\n"
    assert '"JOBS":0' in desk.type("bjobs", option, "chem", "-o", "jobid", "-json").out


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("-g", "bjobs -g: job groups are not supported yet.\n"),
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
