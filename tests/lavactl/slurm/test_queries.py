"""squeue, sacct, sinfo, scontrol and scancel: their requests, their columns, their exit codes."""

import json
from collections.abc import Iterator

import pytest

from lavactl.main import SLURM
from lavactl.slurm.words import accounting_fields, job_fields, json_text, show
from lavactl.slurm.words.jobs import JobView
from lavactl.wire import messages
from protos import cluster_pb2, common_pb2, jobs_pb2
from tests.lavactl.scripted import NOW, Desk, ScriptedClient, a_job, at

HEAD = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
SBATCH = jobs_pb2.SlurmTerms(command="sbatch", array_base=1)


def spec(**fields: object) -> jobs_pb2.JobSpec:
    """Spec of a job in Slurm's words."""
    plain = {"slurm": SBATCH, "cwd": "/home/alice/run", "output": "slurm-%A_%a.out", "run_limit_s": 3600}
    return jobs_pb2.JobSpec(**{**plain, **fields})  # type: ignore[arg-type]


def jobs() -> list[jobs_pb2.JobRecord]:
    """A running element, two pending ones, a held job."""
    why = [jobs_pb2.PendingReason(text="The job array has reached its running element limit")]
    counts = jobs_pb2.ArrayCounts(spec="sweep[1-3]%2")
    shared = spec(array_limit=2, roles=[common_pb2.Role(tasks_min=4, slots_per_task=1)])
    return [
        a_job([("n1", 2), ("n2", 2)], job=7, index=1, name="sweep[1]", state=common_pb2.RUN,
              start_time=at("08:28:57"), spec=shared, array=counts),
        a_job(job=7, index=2, name="sweep[2]", pending_reasons=why, slots_min=4, array=counts),
        a_job(job=7, index=3, name="sweep[3]", pending_reasons=why, slots_min=4, array=counts),
        a_job(job=8, name="held", state=common_pb2.PSUSP, spec=spec()),
    ]  # fmt: skip


def test_squeue(desk: Desk) -> None:
    """Pending elements are one line; numbers are those of the submission; a held job says so."""
    desk.client.jobs = jobs()
    result = desk.type("squeue")
    assert result.out == HEAD + (
        "               7_0    normal    sweep    alice  R    1:01:03      2 n[1-2]\n"
        "         7_[1-2%2]    normal    sweep    alice PD       0:00      1 (JobArrayTaskLimit)\n"
        "                 8    normal     held    alice PD       0:00      1 (JobHeldUser)\n"
    )
    request = desk.client.asked[-1]
    assert (request.filter.user, list(request.filter.states)) == ("all", [])


@pytest.mark.parametrize("has_columns", [True, False])
def test_plain_lists_by_columns(has_columns: bool, desk: Desk) -> None:
    """Lists without details ask for columns; a master that knows none answers with records, to the same effect."""
    desk.client.jobs, desk.client.has_columns = jobs(), has_columns
    assert desk.type("squeue", "-h", "-r", "-o", "%u %j %t").out.splitlines() == [
        "alice sweep R", "alice sweep PD", "alice sweep PD", "alice held PD",
    ]  # fmt: skip
    assert desk.client.asked[0].columns
    assert desk.type("bjobs", "-noheader", "-o", "jobid jobindex job_name stat exec_host").out.splitlines() == [
        "7 1 sweep[1] RUN n1:n1:n2:n2", "7 2 sweep[2] PEND -", "7 3 sweep[3] PEND -", "8 0 held PSUSP -",
    ]  # fmt: skip
    desk.type("scancel", "-u", "alice", "-t", "PENDING")
    assert [(ref.job, [one.first for one in ref.indices]) for ref in desk.client.asked[-1].filter.refs] == [
        (7, [2]), (7, [3]), (8, []),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "out"),
    [
        (["-h", "-o", "%i %T %l %L"], "7_0 RUNNING 1:00:00 0:00\n7_[1-2%2] PENDING 1:00:00 1:00:00\n"
         "8 PENDING 1:00:00 1:00:00\n"),
        (["-h", "-r", "-o", "%F %K %A"], "7 0 7\n7 1 7\n7 2 7\n8 N/A 8\n"),
        (["-h", "-O", "jobarrayid:5,statecompact:.4"], "7_0     R\n7_[1-  PD\n8      PD\n"),
        (["-h", "-t", "R", "-o", "%i"], "7_0\n"),
        (["-h", "-t", "BOOT_FAIL", "-o", "%i"], ""),
        (["-h", "-n", "held", "-o", "%j"], "held\n"),
        (["-h", "-w", "n[2-3]", "-o", "%i"], "7_0\n"),
        (["-h", "-S", "-i", "-o", "%A"], "8\n7\n7\n"),
    ],
)  # fmt: skip
def test_squeue_formats_and_filters(desk: Desk, options: list[str], out: str) -> None:
    """Letters, names, states, names of jobs, hosts, order."""
    desk.client.jobs = jobs()
    assert desk.type("squeue", *options).out == out


@pytest.mark.parametrize(
    ("sort", "out"),
    [("M", "3\n1\n2\n"), ("-M", "2\n1\n3\n"), ("j,-A", "3\n1\n2\n"), ("L", "1\n3\n2\n"), ("l", "1\n2\n3\n")],
)
def test_squeue_sorts_by_size(desk: Desk, sort: str, out: str) -> None:
    """Times count by their length, and a field that needs details is asked for, though it is not shown."""
    desk.client.jobs = [
        a_job(job=job, name=name, state=common_pb2.RUN, start_time=NOW - seconds, spec=spec(run_limit_s=limit))
        for job, name, seconds, limit in ((1, "x10", 59, 60), (2, "x\u00b2", 100_000, 200_000), (3, "x9", 5, 0))
    ]
    desk.client.jobs[2].spec.run_limit_s = 500_000 if sort == "l" else 80
    assert desk.type("squeue", "-h", "-o", "%A", "-S", sort).out == out
    assert desk.client.asked[-1].details == (sort in "Ll")


def test_squeue_knows_what_it_cannot_sort_by(desk: Desk) -> None:
    """A letter of no field, and a pause that is no number, are refused."""
    assert "Invalid sort specification: \u00b2" in desk.type("squeue", "-S", "i,\u00b2").err
    assert "--iterate \u00b2: expected a number of seconds." in desk.type("squeue", "-i", "\u00b2").err


def test_squeue_joins_elements_across_pages(desk: Desk) -> None:
    """An array that waits is one line, wherever the pages of the answer part; -r has a line for each."""

    class Paged(ScriptedClient):
        def list_jobs(self, request: jobs_pb2.ListJobsRequest) -> Iterator[jobs_pb2.JobPage]:
            self.keep(jobs_pb2.ListJobsRequest, request)
            yield from (jobs_pb2.JobPage(jobs=[job]) for job in self.jobs)

    client = Paged()
    client.jobs = jobs()
    out = "7_0\n7_[1-2%2]\n8\n"
    assert desk.type("squeue", "-h", "-o", "%i %l", client=client).out.replace(" 1:00:00", "") == out
    assert desk.type("squeue", "-h", "-r", "-o", "%i", client=client).out == "7_0\n7_1\n7_2\n8\n"


def test_squeue_shows_the_number_of_a_user(desk: Desk) -> None:
    """%U is the uid, as in sacct."""
    desk.client.jobs = [a_job(user="root")]
    assert desk.type("squeue", "-h", "-o", "%u %U").out == "root 0\n"


def test_squeue_in_json(desk: Desk) -> None:
    """Numbers carry Slurm's marks."""
    desk.client.jobs = jobs()[:1]
    found = json.loads(desk.type("squeue", "--json").out)["jobs"][0]
    assert (found["job_id"], found["job_state"], found["nodes"]) == (7, ["RUNNING"], "n[1-2]")
    assert found["array_task_id"] == {"set": True, "infinite": False, "number": 0}
    assert found["end_time"]["number"] == found["start_time"]["number"] + 3600
    desk.client.jobs[0].spec.run_limit_s = 0
    assert json.loads(desk.type("squeue", "--json").out)["jobs"][0]["end_time"]["number"] == 0
    assert found["standard_output"] == "/home/alice/run/slurm-7_0.out"


@pytest.mark.parametrize(
    ("reason", "status", "state", "code"),
    [
        ("", 3 << 8, "FAILED", "3:0"),
        ("TERM_RUNLIMIT: job killed after reaching LSF run time limit", 15, "TIMEOUT", "0:15"),
        ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit", 9, "OUT_OF_MEMORY", "0:9"),
        ("TERM_OWNER: job killed by owner", 15, "CANCELLED", "0:15"),
        ("host rebooted", 9, "NODE_FAIL", "0:9"),
    ],
)
def test_sacct_tells_how_jobs_ended(desk: Desk, reason: str, status: int, state: str, code: str) -> None:
    """The states that wrappers decide by."""
    desk.client.jobs = [
        a_job(
            [("n1", 1)],
            job=9,
            state=common_pb2.EXIT,
            start_time=at("09:03:00"),
            end_time=at("09:04:05"),
            exit_reason=reason,
            exit_status=status,
        )
    ]
    result = desk.type("sacct", "-X", "-n", "-P", "-j", "9", "-o", "JobID,State,ExitCode,Elapsed,NodeList")
    assert result.out == f"9|{state}|{code}|00:01:05|n1\n"


def test_sacct_has_usage_in_the_line_of_the_batch_step(desk: Desk) -> None:
    """MaxRSS stands where tools like seff look for it; columns are cut with a plus."""
    usage = common_pb2.Usage(cpu_s=75.25, memory_mib_max=512)
    desk.client.jobs = [
        a_job([("n1", 2)], job=9, name="a_long_name", state=common_pb2.DONE, start_time=at("09:03:00"),
              end_time=at("09:04:05"), usage=usage, spec=spec()),
    ]  # fmt: skip
    result = desk.type("sacct", "-j", "9", "-o", "JobID,JobName,MaxRSS,TotalCPU,Timelimit")
    assert [line.split() for line in result.out.splitlines()[2:]] == [
        ["9", "a_long_na+", "01:15.250", "01:00:00"],
        ["9.batch", "batch", "524288K", "01:15.250"],
    ]


def test_sacct_of_steps_and_of_all_fields(desk: Desk) -> None:
    """ID.batch is the line of the step alone; other steps are not recorded; -o all has every field."""
    times = {"start_time": at("09:03:00"), "end_time": at("09:04:05")}
    desk.client.jobs = [a_job([("n1", 2)], job=9, state=common_pb2.DONE, spec=spec(), **times)]
    assert desk.type("sacct", "-n", "-P", "-o", "jobid", "-j", "9.batch").out == "9.batch\n"
    assert desk.type("sacct", "-n", "-P", "-o", "jobid", "-j", "9.batch,9").out == "9\n9.batch\n"
    asked = len(desk.client.asked)
    assert desk.type("sacct", "-n", "-j", "9.0").out == ""
    assert len(desk.client.asked) == asked
    head = desk.type("sacct", "-P", "-o", "all", "-j", "9").out.splitlines()[0].split("|")
    assert (head[0], len(head)) == ("JobID", len(accounting_fields.FIELDS))


def test_sacct_without_ids_reads_the_history_of_today(desk: Desk) -> None:
    """Jobs that ended before are left out."""
    records = [
        a_job([("n1", 1)], job=1, state=common_pb2.DONE, start_time=at("08:00:00", 20), end_time=at("09:00:00", 20)),
        a_job([("n1", 1)], job=2, state=common_pb2.DONE, start_time=at("08:00:00"), end_time=at("09:00:00")),
    ]
    desk.client.histories = [jobs_pb2.JobHistory(job=one.job, record=one) for one in records]
    assert desk.type("sacct", "-X", "-n", "-P", "-o", "jobid").out == "2\n"
    assert desk.type("sacct", "-X", "-n", "-P", "-o", "jobid", "-S", "2026-11-20").out == "1\n2\n"


def test_sacct_asks_the_history_for_its_times_only(desk: Desk) -> None:
    """From today on, or between the times given; the end is open, since the master's clock may be ahead."""
    desk.client.histories = []
    desk.type("sacct")
    assert desk.client.asked[-1].between == jobs_pb2.TimeRange(first=at("00:00:00"))
    desk.type("sacct", "-S", "noon", "-E", "2026-11-21T08:00")
    assert desk.client.asked[-1].between == jobs_pb2.TimeRange(first=at("12:00:00", 20), last=at("08:00:00"))


def test_sacct_shows_where_a_job_runs(desk: Desk) -> None:
    """The history learns hosts and start with the end of a job; of those that run they come from memory."""
    desk.client.histories = [
        jobs_pb2.JobHistory(job=7, index=1, record=a_job(job=7, index=1, name="x[1]", state=common_pb2.RUN)),
        jobs_pb2.JobHistory(job=8, record=a_job(job=8)),
    ]
    desk.client.jobs = jobs()[:1]
    out = desk.type("sacct", "-X", "-n", "-P", "-o", "jobid,alloccpus,nodelist,elapsed,state").out
    assert out == "7_0|4|n[1-2]|01:01:03|RUNNING\n8|0|None assigned|00:00:00|PENDING\n"
    refs = desk.client.asked[-1].filter.refs
    assert [(ref.job, [one.first for one in ref.indices]) for ref in refs] == [(7, [1])]


def test_every_field_of_a_record_as_it_comes() -> None:
    """The messages of commands have what the fields ask for, also those that a listing rarely shows."""
    usage = common_pb2.Usage(cpu_s=1.5, memory_mib_max=10, swap_mib_max=6)
    sent = a_job([("n1", 2)], state=common_pb2.DONE, start_time=at("09:03:00"), end_time=at("09:04:05"), usage=usage)
    view = JobView(messages.JobRecord.FromString(sent.SerializeToString()), 0, NOW)
    assert {name: accounting_fields.reader(name, of_step=True)(view) for name in accounting_fields.FIELDS}[
        "maxvmsize"
    ] == "16384K"
    assert all(
        isinstance(accounting_fields.reader(name, of_step=False)(view), str) for name in accounting_fields.FIELDS
    )
    assert all(isinstance(job_fields.reader(name)(view), str) for name in job_fields.FIELDS)
    assert show.job_lines(view)
    assert json.loads(json_text.jobs_text([view]))["jobs"]


def test_sacct_shows_a_job_of_a_clock_ahead(desk: Desk) -> None:
    """A job submitted a second from now, by this host's clock, is there."""
    record = a_job(job=3, submit_time=at("09:30:01"))
    desk.client.histories = [jobs_pb2.JobHistory(job=3, record=record)]
    assert desk.type("sacct", "-X", "-n", "-P", "-o", "jobid").out == "3\n"


@pytest.fixture
def site(desk: Desk) -> Desk:
    """Two queues, three hosts, one of them closed."""
    facts = {"type": "X86_64", "cores": 4, "sockets": 1, "memory_mib": 8000}
    desk.client.host_records = [
        cluster_pb2.HostRecord(facts=cluster_pb2.HostFacts(name=name, **facts), status=status, slots_max=4, njobs=used,
                               comment=comment)
        for name, status, used, comment in (
            ("n1", "ok", 2, ""), ("n2", "ok", 0, ""), ("n3", "closed_Adm", 0, "bad disk"),
        )
    ]  # fmt: skip
    desk.client.queue_records = [
        cluster_pb2.QueueRecord(name="normal", open=True, active=True, is_default=True),
        cluster_pb2.QueueRecord(name="gpu", open=True, parameters={"HOSTS": "n1+2 n2", "RUNLIMIT": "2:00"}),
    ]  # fmt: skip
    return desk


def test_sinfo(site: Desk) -> None:
    """A line for each queue and state."""
    assert site.type("sinfo").out == (
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
        "normal*      up   infinite      1    mix n1\n"
        "normal*      up   infinite      1   idle n2\n"
        "normal*      up   infinite      1  drain n3\n"
        "gpu        down    2:00:00      1    mix n1\n"
        "gpu        down    2:00:00      1   idle n2\n"
    )


@pytest.mark.parametrize(
    ("options", "out"),
    [
        (["-h", "-N", "-o", "%N %t %C"], "n1 mix 2/2/0/4\nn2 idle 0/4/0/4\nn3 drain 0/0/4/4\n"),
        (["-h", "-s", "-o", "%P %F"], "normal* 1/1/1/3\ngpu 1/1/0/2\n"),
        (["-h", "-p", "gpu", "-t", "idle", "-o", "%R %n"], "gpu n2\n"),
        (["-h", "-R", "-o", "%E %N"], "bad disk n3\n"),
    ],
)
def test_sinfo_forms(site: Desk, options: list[str], out: str) -> None:
    """Without a field of queues a host has one line."""
    assert site.type("sinfo", *options).out == out


def test_scontrol_shows_nodes_and_partitions(site: Desk) -> None:
    """One line each with -o; an unknown name is an error."""
    assert "State=IDLE+DRAIN " in site.type("scontrol", "-o", "show", "node", "n3").out
    assert "Reason=bad disk" in site.type("scontrol", "-o", "show", "node", "n3").out
    assert "Nodes=n[1-2] " in site.type("scontrol", "-o", "show", "partition=gpu").out
    result = site.type("scontrol", "show", "node", "n9")
    assert (result.code, result.err) == (1, "Node n9 not found\n")


def test_scontrol_names_the_queues_of_each_node(site: Desk) -> None:
    """In the order of the queues."""
    out = site.type("scontrol", "-o", "show", "node").out
    assert [line.partition(" Partitions=")[2].split(" ")[0] for line in out.splitlines()] == [
        "normal,gpu", "normal,gpu", "normal",
    ]  # fmt: skip


def test_scontrol_shows_jobs_and_lists_of_hosts(desk: Desk) -> None:
    """KEY=value as tools parse it; show hostnames needs no cluster."""
    desk.client.jobs = jobs()[:1]
    out = desk.type("scontrol", "-o", "show", "job", "7_0").out
    for part in ("JobId=7 ArrayJobId=7 ArrayTaskId=0 ", "JobState=RUNNING ", "TimeLimit=01:00:00 ", "NodeList=n[1-2] ",
                 "StdOut=/home/alice/run/slurm-7_0.out"):  # fmt: skip
        assert part in out
    assert desk.type("scontrol", "show", "hostnames", "n[08-10]").out == "n08\nn09\nn10\n"
    desk.environ["SLURM_JOB_NODELIST"] = "n[1-2]"
    assert desk.type("scontrol", "show", "hostnames").out == "n1\nn2\n"


@pytest.mark.parametrize("text", ["n[1-60000]m[1-60000]", "n" + "[1]" * 1200, "n[1-65536],m"])
def test_a_list_of_too_many_hosts_is_refused_at_once(desk: Desk, text: str) -> None:
    """However many names it stands for, and however many brackets it has: memory and stack stay small."""
    result = desk.type("scontrol", "show", "hostnames", text)
    assert (result.code, result.err) == (1, f"scontrol: error: Invalid hostlist: {text}\n")


@pytest.mark.parametrize(
    ("words", "action", "states", "hold"),
    [
        (["hold", "8"], jobs_pb2.STOP, [common_pb2.PEND], False),
        (["release", "8"], jobs_pb2.RESUME, [common_pb2.PSUSP], False),
        (["requeuehold", "8"], jobs_pb2.REQUEUE, None, True),
        (["suspend", "8"], jobs_pb2.STOP, [common_pb2.RUN, common_pb2.UNKWN], False),
    ],
)
def test_scontrol_holds_and_releases(
    desk: Desk, words: list[str], action: int, states: list[int] | None, hold: bool
) -> None:
    """Each for jobs in the state that it is for."""
    desk.client.signal_reply = jobs_pb2.SignalReply(results=[jobs_pb2.SignalResult(job=8)])
    assert desk.type("scontrol", *words).code == 0
    request = desk.client.asked[-1]
    assert (request.action, request.hold) == (action, hold)
    assert states is None or list(request.filter.states) == states


def test_scontrol_updates(desk: Desk) -> None:
    """Bounded: what it cannot change is refused by name."""
    desk.client.modify_reply = jobs_pb2.ModifyReply(results=[jobs_pb2.SignalResult(job=8)])
    assert desk.type("scontrol", "update", "JobId=8", "TimeLimit=1:00:00", "Partition=gpu").code == 0
    request = desk.client.asked[-1]
    assert (list(request.fields), request.spec.run_limit_s) == (["run_limit_s", "queues"], 3600)
    assert desk.type("scontrol", "update", "JobId=8_[1,3],9", "Requeue=0").code == 0
    request = desk.client.asked[-1]
    assert [(ref.job, len(ref.indices)) for ref in request.refs] == [(8, 2), (9, 0)]
    assert (request.spec.rerunnable, request.spec.not_rerunnable) == (False, True)
    result = desk.type("scontrol", "update", "JobId=8", "Requeue=yes")
    assert (result.code, result.err) == (1, "scontrol: error: requeue=yes: the value is malformed.\n")
    assert "numnodes cannot be changed" in desk.type("scontrol", "update", "JobId=8", "NumNodes=2").err
    assert desk.type("scontrol", "update", "NodeName=n[1-2]", "State=DRAIN", "Reason=x").code == 0
    request = desk.client.asked[-1]
    assert (request.action, list(request.names), request.comment) == (cluster_pb2.CLOSE_HOST, ["n1", "n2"], "x")


def test_scancel(desk: Desk) -> None:
    """Silent on success; an unknown id is an error; a signal is sent."""
    desk.client.signal_reply = jobs_pb2.SignalReply(results=[jobs_pb2.SignalResult(job=8)])
    result = desk.type("scancel", "8")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert desk.client.asked[-1].action == jobs_pb2.TERMINATE
    desk.type("scancel", "-s", "USR1", "8")
    assert (desk.client.asked[-1].action, desk.client.asked[-1].signal) == (jobs_pb2.SEND, 10)
    desk.client.signal_reply = jobs_pb2.SignalReply()
    result = desk.type("scancel", "99")
    assert (result.code, result.err) == (1, "scancel: error: Kill job error on job id 99: Invalid job id specified\n")
    assert desk.type("scancel").err == "scancel: error: No job identification provided\n"


def test_scancel_by_options_names_each_job(desk: Desk) -> None:
    """Pending jobs of a user: what is chosen is what is signalled."""
    desk.client.jobs = jobs()
    desk.client.signal_reply = jobs_pb2.SignalReply(results=[jobs_pb2.SignalResult(job=8)])
    assert desk.type("scancel", "-u", "alice", "-t", "PENDING").code == 0
    refs = desk.client.asked[-1].filter.refs
    assert [(ref.job, [one.first for one in ref.indices]) for ref in refs] == [(7, [2]), (7, [3]), (8, [])]


@pytest.mark.parametrize(
    ("options", "chosen"), [(["-w", "n[2-3]"], [(7, [1])]), (["-w", "n[3,4]"], []), (["-t", "BOOT_FAIL"], [])]
)
def test_scancel_by_hosts_and_states(desk: Desk, options: list[str], chosen: list[tuple[int, list[int]]]) -> None:
    """Lists of hosts are those of squeue; a state that no job here has selects nothing, so nothing is signalled."""
    desk.client.jobs = jobs()
    desk.client.signal_reply = jobs_pb2.SignalReply(results=[jobs_pb2.SignalResult(job=7, index=1)])
    assert desk.type("scancel", *options).code == 0
    last = desk.client.asked[-1]
    refs = last.filter.refs if isinstance(last, jobs_pb2.SignalRequest) else []
    assert [(ref.job, [one.first for one in ref.indices]) for ref in refs] == chosen


def test_within_an_element_the_jobs_id_is_the_element(desk: Desk) -> None:
    """``scancel $SLURM_JOB_ID`` of a script ends itself, not the whole array."""
    desk.environ |= {"LSB_JOBID": "7", "LSB_JOBINDEX": "3", "SLURM_ARRAY_JOB_ID": "7"}
    desk.client.signal_reply = jobs_pb2.SignalReply(results=[jobs_pb2.SignalResult(job=7, index=3)])
    desk.type("scancel", "7")
    assert [one.first for one in desk.client.asked[-1].filter.refs[0].indices] == [3]


@pytest.mark.parametrize("name", SLURM)
def test_every_command_helps_and_refuses(desk: Desk, name: str) -> None:
    """--help names each option's fate, --version is one line, an unknown option is one sentence."""
    shown = desk.type(name, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(f"Usage: {name}")
    assert desk.type(name, "--version").out.startswith("lava ")
    for argv in (["--bogus"], ["-\x1b[2J"], ["--clusters=x"]):
        result = desk.type(name, *argv)
        assert result.code == 1
        assert result.err.startswith(f"{name}: ")
        assert "Traceback" not in result.err
        assert "\x1b" not in result.err


def test_an_agent_that_is_not_there(desk: Desk) -> None:
    """The sentence of all commands, as Slurm's commands print errors."""
    desk.client = None  # type: ignore[assignment]
    desk.environ["LAVA_SOCKET"] = "/nonexistent/socket"
    result = desk.type("squeue")
    assert result.code == 1
    assert result.err.startswith("squeue: error: Cannot reach the lava agent of this host")
