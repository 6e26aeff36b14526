"""bhist of lsb.events files (lsf.md 7.3) in the forms of lsf.md 1.6; -UF, and CPU times for another host."""

from pathlib import Path

import pytest

from protos import jobs_pb2
from tests.lavactl.scripted import Desk, at
from tests.lavactl.test_cluster_commands import a_history


def moment(clock: str) -> int:
    """Second of a time on Sat Nov 21 2026."""
    return int(at(clock))


NO_LIMITS = " ".join(["-1"] * 11)
NO_USAGE = " ".join(["-1"] * 17)


def submitted(
    job: int, name: str, clock: str, *, version: str = "22", user: str = "alice", options: int = 0x13, slots: int = 1
) -> str:
    """A JOB_NEW record in the order of lsf.md 7.3; LSF's own has one limit and some strings more."""
    limits, shell, rest = NO_LIMITS, '"" ""', '0 0 "" "" "" -1 "a run" ""'
    if version == "10.1":
        limits, shell = NO_LIMITS + " -1", '"" "" "" "chem" ""'
        rest = '0 0 "" "" "" -1 "" 0 "" "/g" 0 "" "" -1 "" "" -1'
    time = moment(clock)
    return (
        f'"JOB_NEW" "{version}" {time} {job} 1001 {options} {slots} {time} 0 0 0 0 0 "{user}" {limits} "" 0.0 18 '
        f'"normal" "span[ptile=2]" "login1" "/home/alice/run" "" "" "out.%J" "" "/home/alice" "{time}.{job}" '
        f'1 "n001" "" "" "{name}" "mpirun ./md ""npt.in""" 0 "" "default" {slots} {shell} {rest}\n'
    )


def started(job: int, clock: str, *hosts: str, index: int = 0, version: str = "22") -> str:
    """JOB_START, JOB_START_ACCEPT and JOB_EXECUTE."""
    time, names = moment(clock), " ".join(f'"{host}"' for host in hosts)
    more = ' "" -1 0' if version == "10.1" else ""
    return (
        f'"JOB_START" "{version}" {time} {job} 4 0 0 60.0 {len(hosts)} {names} "" "" 0 "chem" {index}{more}\n'
        f'"JOB_START_ACCEPT" "{version}" {time} {job} 4101 4101 {index}{more}\n'
        f'"JOB_EXECUTE" "{version}" {time} {job} 1001 4101 "/home/alice/run" "/home/alice" "alice" 4101 {index}{more}\n'
    )


def status(
    job: int, clock: str, bits: int, index: int = 0, *, cpu_s: float = 0.0, code: int = 0, rest: str = ""
) -> str:
    """A JOB_STATUS record; that of an end has the resources used."""
    time, used = moment(clock), f"1 {cpu_s} 0.0 {NO_USAGE}" if bits & 0x60 else "0"
    version = "10.1" if rest else "22"
    return f'"JOB_STATUS" "{version}" {time} {job} {bits} 0 0 {cpu_s} {time} {used} {code << 8} {index}{rest}\n'


LIFE = (
    "#42\n"
    + '"MBD_START" "22" 1795176000 "m1" "c1" 3 2\n'
    + submitted(1201, "md_npt", "09:02:11", slots=4)
    + started(1201, "09:02:15", "n001", "n001", "n002", "n002")
    + f'"JOB_SIGNAL" "22" {moment("09:20:00")} 1201 1001 0 "KILL" 0 "alice"\n'
    + status(1201, "09:20:01", 0x20, cpu_s=1804.2, code=130)
    + f'"JOB_CLEAN" "22" {moment("09:25:00")} 1201 0\n'
)


@pytest.fixture
def log(desk: Desk, tmp_path: Path) -> Path:
    """An lsb.events with the job of lsf.md 1.6."""
    path = tmp_path / "lsb.events"
    path.write_text(LIFE)
    return path


def test_a_life_from_a_file(desk: Desk, log: Path) -> None:
    """lsf.md 1.6: head, submission, events and summary, as from the database; the master is not asked."""
    assert (
        desk.type("bhist", "-l", "-f", str(log), "1201").out
        == """
Job <1201>, Job Name <md_npt>, User <alice>, Project <default>, User Group <chem
                     >, Command <mpirun ./md "npt.in">, Job Description <a run>
Sat Nov 21 09:02:11: Submitted from host <login1>, to Queue <normal>, CWD <$HOME
                     /run>, Output File <out.%J>, 4 Processors Requested, Reques
                     ted Resources <span[ptile=2]>, Specified Hosts <n001>;
Sat Nov 21 09:02:15: Dispatched to 4 Hosts/Processors <n001> <n001> <n002> <n002
                     >;
Sat Nov 21 09:02:15: Starting (Pid 4101);
Sat Nov 21 09:02:15: Running with execution home </home/alice>, Execution CWD </
                     home/alice/run>, Execution Pid <4101>;
Sat Nov 21 09:20:00: Signal <KILL> requested by user or administrator <alice>;
Sat Nov 21 09:20:01: Exited with exit code 130. The CPU time used is 1804.2 seco
                     nds;

Summary of time in seconds spent in various states by  Sat Nov 21 09:20:01
  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL
  4        0        1066     0        0        0        1070
"""
    )
    assert desk.client.asked == []


def test_which_of_a_file(desk: Desk, log: Path, tmp_path: Path) -> None:
    """The caller's unfinished jobs, or as options say; LSF's records are read."""
    lsf = submitted(1300, "solve", "09:10:00", version="10.1", user="bob", slots=2)
    lsf += started(1300, "09:10:05", "2*n003", version="10.1")
    lsf += status(1300, "09:12:05", 0x20, cpu_s=3.5, code=140, rest=" 5 0 0 0")
    log.write_text(LIFE + lsf + submitted(1301, "next", "09:20:00") + '"JOB_NEW" "22" 1795')
    rows = "Summary of time in seconds spent in various states:\n"
    rows += "JOBID   USER    JOB_NAME  PEND    PSUSP   RUN     USUSP   SSUSP   UNKWN   TOTAL\n"
    mine = rows + "1301    alice   next      600     0       0       0       0       0       600\n"
    assert desk.type("bhist", "-f", "lsb.events", cwd=str(tmp_path)).out == mine
    everybody = desk.type("bhist", "-a", "-u", "all", "-f", str(log)).out
    assert [line.split()[0] for line in everybody.splitlines()[2:]] == ["1201", "1300", "1301"]
    assert "1300    bob     solve     5       0       120     0       0       0       125\n" in everybody
    told = desk.type("bhist", "-l", "-m", "n003", "-u", "bob", "-a", "-f", str(log)).out
    assert "Dispatched to 2 Hosts/Processors <n003> <n003>;" in told
    assert "Sat Nov 21 09:12:05: Completed <exit>; TERM_RUNLIMIT: job killed after reaching" in told
    assert desk.type("bhist", "-d", "-D", "/09:00,/09:05", "-f", str(log)).out.splitlines()[2:][0].split()[0] == "1201"
    nothing = desk.type("bhist", "-f", str(log), "-q", "night", "-a")
    assert (nothing.code, nothing.err) == (255, "No matching job found\n")


def test_the_logs_of_the_site(desk: Desk) -> None:
    """LSF has -f - for its own logs in place of another service; here that is the database, and nothing is read."""
    desk.client.histories = [a_history()]
    for command in (["bhist", "-a"], ["bhist", "-l", "-N", "2.0"], ["bacct", "-N", "2.0"]):
        own, told = desk.type(*command), desk.type(*command, "-f", "-")
        assert (told.code, told.out, told.err) == (0, own.out, "")
        assert desk.client.asked[-1] == desk.client.asked[-2]


def test_an_array_of_a_file(desk: Desk, log: Path) -> None:
    """Each element has its own life; what is told of the array is told of all, and elements without records wait."""
    log.write_text(
        submitted(7, "sweep[1-3]%2", "09:00:00")
        + f'"JOB_SWITCH" "22" {moment("09:00:10")} 1001 7 "night" 0 "root"\n'
        + started(7, "09:00:30", "n001", index=2)
        + status(7, "09:00:40", 0x10, 2)
        + status(7, "09:00:50", 0x4, 2)
        + status(7, "09:01:00", 0x40, 2, cpu_s=9.0)
        + status(7, "09:01:05", 0xC0, 2)
        + status(7, "09:01:10", 0x2, 3)
        + status(7, "09:01:20", 0x1, 3)
        + started(7, "09:02:00", "n002", index=3)
        + f'"JOB_REQUEUE" "22" {moment("09:03:00")} 7 3\n'
    )
    table = desk.type("bhist", "-a", "-f", str(log)).out.splitlines()[2:]
    assert [line.split() for line in table] == [
        ["7[1]", "alice", "sweep", "1800", "0", "0", "0", "0", "0", "1800"],
        ["7[2]", "alice", "sweep", "30", "0", "20", "10", "0", "0", "60"],
        ["7[3]", "alice", "sweep", "1730", "10", "60", "0", "0", "0", "1800"],
    ]
    told = [line.split(": ", 1)[1] for line in desk.type("bhist", "-UF", "-f", str(log), "7[2-3]").out.splitlines()
            if line.startswith("Sat Nov 21")]  # fmt: skip
    assert [line for line in told if not line.startswith("Submitted from")] == [
        "Job switched to queue <night> by user or administrator <root>;",
        "Dispatched to <n001>;",
        "Starting (Pid 4101);",
        "Running with execution home </home/alice>, Execution CWD </home/alice/run>, Execution Pid <4101>;",
        "Suspended by the user or administrator;",
        "Running;",
        "Done successfully. The CPU time used is 9.0 seconds;",
        "Post job process done successfully;",
        "Job switched to queue <night> by user or administrator <root>;",
        "Suspended by the user or administrator;",
        "Pending: Waiting for scheduling after resumed by user;",
        "Dispatched to <n002>;",
        "Starting (Pid 4101);",
        "Running with execution home </home/alice>, Execution CWD </home/alice/run>, Execution Pid <4101>;",
        "Pending: Job has been requeued;",
    ]


def test_events_of_a_file_by_time(desk: Desk, log: Path) -> None:
    """lsf.md 7.3: moves, forced starts, changes and messages have their lines; a new file repeats unfinished jobs."""
    again = submitted(8, "one", "09:00:00") + started(8, "09:01:00", "n001")
    log.write_text(
        again
        + f'"JOB_MOVE" "22" {moment("09:00:20")} 1001 8 1 2 0 "alice"\n'
        + f'"JOB_FORCE" "22" {moment("09:00:30")} 8 0 0 1 "n001" "root"\n'
        + f'"JOB_MODIFY2" "22" {moment("09:00:40")} "8" 1 0 0 0 1001\n'
        + f'"JOB_EXT_MSG" "10.1" {moment("09:00:50")} 8 0 1 1001 0 {moment("09:00:50")} 0 "half" "alice"\n'
        + again
    )
    lines = desk.type("bhist", "-t", "-T", "/09:00,/09:02", "-f", str(log)).out.splitlines()
    told = [line.split("Job <8> ")[1][:48] for line in lines if "Job <8> " in line]
    assert told == [
        "submitted from host <login1>, to Queue <normal>,",
        "job is moved to position 1 from bottom by user o",
        "job is forced to run by user or administrator <r",
        "parameters of Job are changed;",
        'external Message "half" was posted from "alice" ',
        "dispatched to <n001>;",
        "starting (Pid 4101);",
        "running with execution home </home/alice>, Execu",
    ]


def test_a_file_that_cannot_be_read(desk: Desk, log: Path) -> None:
    """One sentence says which line is none of a log, or what the file lacks; nothing is shown."""
    lines = LIFE.splitlines(keepends=True)
    log.write_text("".join([*lines[:4], lines[4][:30] + "\n", *lines[5:]]))
    result = desk.type("bhist", "-a", "-f", str(log))
    assert (result.code, result.out) == (255, "")
    assert result.err == f"{log}, line 5: expected a record of lsb.events; the line is damaged or cut short.\n"
    assert desk.type("bhist", "-f", "/nowhere/lsb.events").err == "/nowhere/lsb.events: No such file or directory.\n"
    for option, word in (("-N", "2.0"), ("-app", "md"), ("-g", "/g")):
        forms = ["-l"] if option == "-N" else []
        refused = desk.type("bhist", *forms, option, word, "-f", str(log))
        assert (refused.code, f"bhist {option} and -f cannot be used together: " in refused.err) == (255, True)


def test_each_paragraph_on_one_line(desk: Desk) -> None:
    """lsf.md 1.3: -UF breaks no line and counts tasks; it is a form of its own."""
    desk.client.histories = [a_history()]
    lines = desk.type("bhist", "-UF", "1201").out.splitlines()
    assert lines[1:4] == [
        "Job <1201>, Job Name <md_npt>, User <alice>, Project <default>, Command <mpirun ./md npt.in>",
        "Sat Nov 21 09:02:11: Submitted from host <login1>, to Queue <normal>, CWD <$HOME/run>, 4 Task(s);",
        "Sat Nov 21 09:02:15: Dispatched to 4 Hosts/Processors <n001> <n001> <n002> <n002>;",
    ]
    assert desk.type("bhist", "-l", "-UF", "1201").out.splitlines() == lines
    assert "-UF and -b cannot be used together" in desk.type("bhist", "-UF", "-b").err


def test_files_and_cpu_factors(desk: Desk) -> None:
    """-n is a number of files, of blocks or a range; -N goes to the master and needs a form that shows CPU times."""
    for number in ("0", "3", "2,5", "-4"):
        assert "expected a number of files" not in desk.type("bhist", "-n", number).err
    assert "bhist: -n many: expected a number of files" in desk.type("bhist", "-n", "many").err
    desk.type("bhist", "-l", "-N", "n001")
    asked = desk.client.asked[-1]
    assert isinstance(asked, jobs_pb2.HistoryRequest)
    assert asked.normalized_to == "n001"
    assert "-N needs -l, -UF, -b or -t" in desk.type("bhist", "-N", "n001").err


def test_jobs_of_a_group(desk: Desk) -> None:
    """-g shows the jobs of one job group."""
    histories = [a_history() for _ in range(2)]
    histories[1].job = histories[1].record.job = 1202
    histories[1].record.spec.job_group = "/a/b"
    desk.client.histories = histories
    assert [line.split()[0] for line in desk.type("bhist", "-a", "-g", "/a/b").out.splitlines()[2:]] == ["1202"]


@pytest.mark.parametrize(
    "line",
    [
        f'"JOB_SWITCH" "22" {10**23} 1001 1201 "night" 0 "alice"\n',
        status(1201, "09:20:01", 0x20, cpu_s=float("nan")),
        status(1201, "09:20:01", 0x20, code=10**19),
        started(1201, "09:02:15", "2000000000*n001", version="10.1"),
    ],
)
def test_numbers_that_no_log_has(desk: Desk, log: Path, line: str) -> None:
    """The line is named, as of any damage."""
    log.write_text(submitted(1201, "md_npt", "09:02:11") + line + "\n")
    result = desk.type("bhist", "-l", "-a", "-u", "all", "-f", str(log))
    assert (result.code, result.out) == (255, "")
    assert result.err == f"{log}, line 2: expected a record of lsb.events; the line is damaged or cut short.\n"


def test_more_elements_than_an_array_can_have(desk: Desk, log: Path) -> None:
    """A name with so many is one job's."""
    log.write_text(submitted(1201, "a[1-2000000000]", "09:02:11"))
    assert len(desk.type("bhist", "-a", "-u", "all", "-f", str(log)).out.splitlines()) == 3
