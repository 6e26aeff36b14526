"""Golden output of bacct (lsf.md 1.6), its filters, and lsb.acct files (lsf.md 7.2)."""

from pathlib import Path
from typing import Any

import pytest

from lavactl.accounting.display import summary
from protos import common_pb2, jobs_pb2
from protos.accounts import Figure, Tally
from tests.lavactl.scripted import NOW, Desk, a_job, at

HEAD = """
Accounting information about jobs that are:
  - submitted by users alice,
  - accounted on all projects.
  - completed normally or exited
  - executed on all hosts.
  - submitted to all queues.
  - accounted on all service classes.
  - accounted to all RC accounts.
------------------------------------------------------------------------------

"""


def a_page(*jobs: jobs_pb2.JobRecord, slots: float = 0.0, revocable: float = 0.0) -> jobs_pb2.AccountPage:
    """A page as the master makes it: the records, and the sums over them."""
    tally, page = Tally(), jobs_pb2.AccountPage()
    for job in jobs:
        is_done = job.state == common_pb2.DONE
        tally.add(is_done, job.submit_time, job.start_time, job.end_time, job.usage.cpu_s)
        page.jobs.add(record=job)
    tally.add_slots(slots, revocable)
    tally.fill(page.summary)
    return page


def an_end(job: int = 1201, cpu_s: float = 60.0, **fields: Any) -> jobs_pb2.JobRecord:
    """A job that waited ten seconds and ran for 90."""
    plain: dict[str, Any] = {
        "job": job, "state": common_pb2.DONE, "start_time": at("09:02:21"), "end_time": at("09:03:51"),
        "usage": common_pb2.Usage(cpu_s=cpu_s, memory_mib_max=2048),
        "spec": jobs_pb2.JobSpec(name="md_npt", command="./md npt.in", cwd="/home/alice/run", output="out.%J"),
    }  # fmt: skip
    return a_job(**{"hosts": [("n001", 2), ("n002", 2)], **plain, **fields})


def test_the_summary(desk: Desk) -> None:
    """lsf.md 1.6: labels and columns of the block; the pages' sums are joined. Lava's own lines stand behind it."""
    killed = an_end(1202, 0.0, hosts=[], state=common_pb2.EXIT, start_time=0.0, end_time=at("10:03:51"))
    desk.client.account_pages = [a_page(an_end(), slots=360.0, revocable=180.0), jobs_pb2.AccountPage(), a_page(killed)]
    assert desk.type("bacct").out == HEAD + (
        "SUMMARY:      ( time unit: second )\n"
        " Total number of done jobs:       1      Total number of exited jobs:     1\n"
        " Total CPU time consumed:      60.0      Average CPU time consumed:    30.0\n"
        " Maximum CPU time of a job:    60.0      Minimum CPU time of a job:     0.0\n"
        " Total wait time in queues:  3710.0\n"
        " Average wait time in queue: 1855.0\n"
        " Maximum wait time in queue: 3700.0      Minimum wait time in queue:   10.0\n"
        " Average turnaround time:      1900 (seconds/job)\n"
        " Maximum turnaround time:      3700      Minimum turnaround time:       100\n"
        " Average hog factor of a job:  0.30 ( cpu time / turnaround time )\n"
        " Maximum hog factor of a job:  0.60      Minimum hog factor of a job:  0.00\n"
        " Average expansion factor of a job:  1.11 ( turnaround time / run time )\n"
        " Total Run time consumed:        90      Average Run time consumed:      45\n"
        " Total throughput:             2.00 (jobs/hour)  during    1.00 hours\n"
        " Beginning time:       Nov 21 09:03      Ending time:          Nov 21 10:03\n"
        " Total slot time consumed:      360\n"
        " Slot time on other hosts:      180      On revocable hosts:            180\n"
        "\n"
    )
    assert desk.client.asked[-1] == jobs_pb2.AccountsRequest()


def test_the_summary_of_lsfs_example(desk: Desk) -> None:
    """lsf.md 1.6: the block with the figures given there, in UTC."""

    def figure(total: float, least: float, most: float) -> Figure:
        made = Figure()
        made.count, made.total, made.least, made.most = 45, total, least, most
        return made

    tally = Tally()
    tally.done, tally.exited = 42, 3
    tally.cpu_s, tally.wait_s = figure(90210.4, 0.1, 14400.0), figure(5400.0, 1.0, 1800.0)
    tally.turnaround_s, tally.hog_factor = figure(2100 * 45, 5.0, 16200.0), figure(0.95 * 45, 0.01, 3.9)
    tally.expansion_factor, tally.run_s = figure(1.06 * 45, 1.0, 2.0), figure(88000.0, 1.0, 4000.0)
    tally.first_end, tally.last_end = at("00:00:00", 20), at("00:00:00", 21)
    assert summary(tally).splitlines()[1:] == [
        " Total number of done jobs:      42      Total number of exited jobs:     3",
        " Total CPU time consumed:   90210.4      Average CPU time consumed:  2004.7",
        " Maximum CPU time of a job: 14400.0      Minimum CPU time of a job:     0.1",
        " Total wait time in queues:  5400.0",
        " Average wait time in queue:  120.0",
        " Maximum wait time in queue: 1800.0      Minimum wait time in queue:    1.0",
        " Average turnaround time:      2100 (seconds/job)",
        " Maximum turnaround time:     16200      Minimum turnaround time:         5",
        " Average hog factor of a job:  0.95 ( cpu time / turnaround time )",
        " Maximum hog factor of a job:  3.90      Minimum hog factor of a job:  0.01",
        " Average expansion factor of a job:  1.06 ( turnaround time / run time )",
        " Total Run time consumed:     88000      Average Run time consumed:    1955",
        " Total throughput:             1.88 (jobs/hour)  during   24.00 hours",
        " Beginning time:       Nov 20 00:00      Ending time:          Nov 21 00:00",
    ]


def test_a_line_for_each_job(desk: Desk) -> None:
    """lsf.md 1.6, -b: its columns; -w cuts nothing."""
    desk.client.account_pages = [a_page(an_end(name="a_name_of_some_length", user="alice_of_physics"))]
    header = "U/UID      QUEUE      SUBMIT_TIME   CPU_T     WAIT       TURNAROUND FROM        EXEC_ON     JOB_NAME\n"
    out = desk.type("bacct", "-b").out
    assert header + "alice_of_p normal     Nov 21 09:02  60.00     10         100        login1      " in out
    assert "2*n001:2*n0 *me_length\n" + "-" * 78 + "\n" in out.replace("*some_", "*")
    wide = desk.type("bacct", "-b", "-w").out
    assert "alice_of_physics normal" in wide
    assert "2*n001:2*n002 a_name_of_some_length\n" in wide


def test_a_job_in_full(desk: Desk) -> None:
    """lsf.md 1.6, -l: the job's paragraphs, then its figures under their header."""
    killed = an_end(state=common_pb2.EXIT, exit_status=9, exit_reason="TERM_OWNER: job killed by owner.")
    desk.client.account_pages = [a_page(killed)]
    assert desk.type("bacct", "-l", "1201").out.split("\n\n", 1)[1].split("SUMMARY")[0] == (
        "Job <1201>, Job Name <md_npt>, User <alice>, Project <default>, Status <EXIT>, Q\n"
        "                     ueue <normal>, Command <./md npt.in>\n"
        "Sat Nov 21 09:02:11: Submitted from host <login1>, CWD <$HOME/run>, Output File \n"
        "                     <out.%J>;\n"
        "Sat Nov 21 09:02:21: Dispatched to 4 Hosts/Processors <n001> <n001> <n002> <n002\n"
        "                     >;\n"
        "Sat Nov 21 09:03:51: Completed <exit>; TERM_OWNER: job killed by owner.\n"
        "\n"
        "Accounting information about this job:\n"
        "     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP\n"
        "     60.00       10            100     exit         0.6000  2048M       -\n"
        "------------------------------------------------------------------------------\n\n"
    )
    request = desk.client.asked[-1]
    assert (request.form, [ref.job for ref in request.refs]) == (jobs_pb2.ACCOUNT_LONG, [1201])
    assert "  - submitted by all users.\n" in desk.type("bacct", "-l", "1201").out


def test_the_filters(desk: Desk) -> None:
    """Options as the master is asked, and their words in the head."""
    desk.client.queue_records = [cluster_queue("normal"), cluster_queue("night")]
    out = desk.type(
        "bacct", "-d", "-x", "-u", "bob carol", "-q", "normal night", "-m", "n001", "-P", "fluid", "-J", "md*", "-U",
        "bob#1", "-N", "60.0", "-C", "20/,21/08:30", "-D", ".-1/,", "-S", ",2026/11/20/10:00", "7[1-3]",
    ).out  # fmt: skip
    asked = desk.client.asked[-1]
    assert asked == jobs_pb2.AccountsRequest(
        refs=[common_pb2.JobRef(job=7, indices=[common_pb2.IndexRange(first=1, last=3, step=1)])],
        users=["bob", "carol"], queues=["normal", "night"], projects=["fluid"], hosts=["n001"], name="md*",
        states=[common_pb2.DONE], reservation="bob#1", hung=True, normalized_to="60.0",
        completed=jobs_pb2.TimeRange(first=at("00:00:00", 20), last=asked.completed.last),
        dispatched=jobs_pb2.TimeRange(first=NOW - 86400),
        submitted=jobs_pb2.TimeRange(last=asked.submitted.last),
    )  # fmt: skip
    assert at("08:30:59") < asked.completed.last < at("08:31:00")
    assert "  - submitted by users bob, carol,\n  - accounted on projects fluid,\n  - completed normally\n" in out
    assert "  - executed on hosts n001,\n  - submitted to queues normal, night,\n" in out
    assert "  - completed between Fri Nov 20 00:00:00 and Sat Nov 21 08:30:59.\n" in out
    assert "  - dispatched since Fri Nov 20 09:30:00.\n" in out


def cluster_queue(name: str) -> Any:
    """A queue of which only the name matters."""
    from protos import cluster_pb2

    return cluster_pb2.QueueRecord(name=name)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["-C", "yesterday"], "bacct -C yesterday: expected a time interval, as "),
        (["-C", "2026/02/30/10:00,"], "bacct -C 2026/02/30/10:00,: expected a time interval"),
        (["-C", "21/10:00,20/10:00"], "bacct -C 21/10:00,20/10:00: expected a time interval"),
        (["-q", "nowhere"], "nowhere: No such queue"),
        (["-b", "-l"], "bacct: -b and -l cannot be used together"),
        (["-f", "/nowhere/lsb.acct"], "/nowhere/lsb.acct: No such file or directory."),
        (["-f", "x", "-N", "2"], "bacct -N and -f cannot be used together: "),
        (["0"], "0: Illegal job ID."),
        (["99"], "No matching job found"),
    ],
)
def test_what_is_refused(desk: Desk, argv: list[str], sentence: str) -> None:
    """One sentence on standard error, exit code 255."""
    result = desk.type("bacct", *argv)
    assert (result.code, result.err[: len(sentence)]) == (255, sentence)


V_LINE = (  # lsf.md 7.2, the line made up there
    '"JOB_FINISH" "22" 1795176000 1201 1001 33816626 4 1795172531 0 0 1795172535 "alice" "normal" "span[ptile=2]" "" '
    '"" "login1" "run" "" "out.%J" "" "1795172531.1201" 0 4 "n001" "n001" "n002" "n002" 64 60.0 "md_npt" '
    '"mpirun ./md npt.in" 7100.5 99.6 -1 -1 -1 -1 -1 9120 12 0 -1 -1 -1 -1 -1 -1 5123 88 -1 "" "default" 0 4 "" 0 '
    '2097152 4194304 "" ""\n'
)
L_LINE = (  # lsf.md 7.2, the order of LSF 10.1: a time event before the index, the TERM number in exitInfo
    '"JOB_FINISH" "10.1" 1795179600 1202 1001 33816626 1 1795172531 0 0 1795172541 "bob" "night" "" "" "" "login1" '
    '"run" "" "" "" "1795172531.1202" 0 1 "2*n003" 32 60.0 "say ""hi""" "echo ""hi""" 10.0 2.5 -1 -1 -1 -1 -1 0 0 0 '
    '-1 -1 -1 -1 -1 -1 0 0 -1 "" "default" 9 1 "" "" 3 1024 -1 "" "" "" "" 0 "" 14 "" -1 "" "" ""\n'
)


def test_a_file_of_either_form(desk: Desk, tmp_path: Path) -> None:
    """lsf.md 7.2: OpenLava's records and LSF's; other records are passed over, and an unfinished last line."""
    path = tmp_path / "lsb.acct"
    path.write_text('#1\n"EVENT_ADRSV_FINISH" "10.1" 1795176000 1\n' + V_LINE + L_LINE + V_LINE[:200])
    out = desk.type("bacct", "-u", "all", "-f", str(path)).out
    assert " Total number of done jobs:       1      Total number of exited jobs:     1\n" in out
    assert " Total CPU time consumed:    7212.6 " in out
    assert "slot time" not in out
    brief = desk.type("bacct", "-b", "-u", "bob", "-f", "lsb.acct", cwd=str(tmp_path)).out
    assert "bob        night      Nov 20 11:02  12.50     10         7069       login1      2*n003 " in brief
    long = desk.type("bacct", "-l", "-f", str(path), "1202[3]").out
    assert 'Job <1202[3]>, Job Name <say "hi">, User <bob>' in long
    assert "Completed <exit>; TERM_OWNER: job killed by owner.\n" in long
    assert desk.type("bacct", "-f", str(path), "1202[4]").code == 255
    assert desk.type("bacct", "-f", str(path), "1202[3]", "1202[4]").code == 0
    assert desk.type("bacct", "-f", str(path), "1202", "1202[4]").code == 0


def test_a_damaged_file_is_not_summed_up(desk: Desk, tmp_path: Path) -> None:
    """The line that cannot be read is named; no sum is printed that leaves it out."""
    path = tmp_path / "lsb.acct"
    path.write_text(V_LINE + V_LINE[:200] + "\n" + V_LINE)
    result = desk.type("bacct", "-u", "all", "-f", str(path))
    assert (result.code, "SUMMARY" in result.out) == (255, False)
    assert result.err == f"{path}, line 2: expected a record of lsb.acct; the line is damaged or cut short.\n"
