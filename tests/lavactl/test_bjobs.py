"""Golden output of bjobs, written by hand from the interface facts in LSF's and OpenLava's manuals."""

import json

import pytest

from lavactl.views.job_table import HEADER
from protos import cluster_pb2, common_pb2, jobs_pb2
from tests.lavactl.scripted import NOW, Desk, Result, a_job, at

HOSTS = [("n001", 2), ("n002", 2)]
RUN, PEND, DONE, EXIT = common_pb2.RUN, common_pb2.PEND, common_pb2.DONE, common_pb2.EXIT


def three_jobs() -> list[jobs_pb2.JobRecord]:
    """The jobs of the example tables (lsf.md 1.3)."""
    return [
        a_job(HOSTS, state=RUN),
        a_job(job=1202, queue="gpu", name="train_resnet50", submit_time=at("09:05:00")),
        a_job(job=1203, index=4, name="sweep[4]", submit_time=at("09:06:00")),
    ]


def by_columns(desk: Desk, *words: str) -> Result:
    """Result of a command with columns; it is the same with an entry for each job, and with records."""
    desk.client.has_columns, desk.client.has_entries = True, True
    result = desk.type("bjobs", *words)
    assert desk.client.asked[-1].columns
    desk.client.has_entries = False
    assert repr(result) == repr(desk.type("bjobs", *words))
    desk.client.has_columns = False
    assert repr(result) == repr(desk.type("bjobs", *words))
    return result


@pytest.mark.parametrize("form", [(), ("-w",), ("-W",), ("-w", "-noheader")])
@pytest.mark.parametrize("other", [[], [a_job(job=1204)], [a_job(job=1203, index=13, state=RUN, name="sweep[13]")]])
def test_elements_alike_by_columns_are_those_by_records(
    form: tuple[str, ...], other: list[jobs_pb2.JobRecord], desk: Desk
) -> None:
    """Elements that differ in their indices only, alone and beside another job or element."""
    desk.client.jobs = [*(a_job(job=1203, index=index, name=f"sweep[{index}]") for index in range(8, 12)), *other]
    assert by_columns(desk, *form).out.count("sweep[") == 4 + (other[:1] != [] and other[0].index > 0)


def test_jobs_of_one_minute_by_columns_have_times_of_their_own(desk: Desk) -> None:
    """With seconds in -W, without in the others."""
    desk.client.jobs = [a_job(job=1200 + one, submit_time=at("09:05:58") + one + 0.5) for one in range(4)]
    for form, times in (("-w", ["09:05", "09:05", "09:06", "09:06"]), ("-W", ["09:05:58", "09:05:59", "09:06:00"])):
        shown = by_columns(desk, form, "-noheader").out
        assert [time for time in times if time in shown] == times


@pytest.mark.parametrize("numbers", [(9, 10), (998, 999), (999998, 1000000), (1234567, 12345678), (12345678,)])
@pytest.mark.parametrize("form", [(), ("-w",), ("-W",)])
def test_job_ids_of_any_length_are_to_the_left_of_their_columns(
    numbers: tuple[int, ...], form: tuple[str, ...], desk: Desk
) -> None:
    """All of one length, or not; a longer one moves what follows it."""
    desk.client.jobs = [a_job(job=number, submit_time=at("09:05:10")) for number in numbers]
    lines = by_columns(desk, *form, "-noheader").out.splitlines()
    assert [line.partition("alice")[0] for line in lines] == [f"{one:<7} " for one in numbers]


def test_default_table_has_a_line_for_each_slot(desk: Desk) -> None:
    """lsf.md 1.3: widths 7 7 5 10 11 11 10; one execution host a line; a long job name keeps its tail."""
    desk.client.jobs = three_jobs()
    result = desk.type("bjobs")
    assert result.code == 0
    assert result.err == ""
    assert result.out == (
        "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n"
        "1201    alice   RUN   normal     login1      n001        md_npt     Nov 21 09:02\n"
        "                                             n001\n"
        "                                             n002\n"
        "                                             n002\n"
        "1202    alice   PEND  gpu        login1                  *_resnet50 Nov 21 09:05\n"
        "1203    alice   PEND  normal     login1                  sweep[4]   Nov 21 09:06\n"
    )


@pytest.mark.parametrize("form", [(), ("-w",), ("-W",), ("-w", "-noheader")])
@pytest.mark.parametrize("last", [2, 3])
def test_lists_by_columns_are_those_by_records(form: tuple[str, ...], last: int, desk: Desk) -> None:
    """With elements of an array and without; odd names are made printable in both."""
    usage = common_pb2.Usage(cpu_s=62.25, memory_mib=3, pids=[7, 8])
    odd = a_job(HOSTS, job=1204, state=RUN, name="a\tb", project="p\x1b", usage=usage, start_time=NOW)
    ended = [
        a_job(HOSTS, job=1207 + more, state=EXIT, name="c\td", project="p\x1b", start_time=NOW, end_time=NOW + 5 + more)
        for more in range(2)
    ]
    ended[0].usage.cpu_s = 62.25
    ended[1].usage.cpu_s = 0.0
    desk.client.jobs = [odd, ended[0], *three_jobs()[:last], a_job(job=1205), ended[1], a_job(job=1206)]
    assert by_columns(desk, *form).out.count("\n120") + ("-noheader" in form) == last + 5


def test_short_host_list_counts_slots(desk: Desk) -> None:
    """lsf.md 1.3: LSB_SHORT_HOSTLIST=1 gives n*host, one line a host."""
    desk.environ["LSB_SHORT_HOSTLIST"] = "1"
    desk.client.jobs = [a_job(HOSTS, state=RUN)]
    assert desk.type("bjobs", "-noheader").out == (
        "1201    alice   RUN   normal     login1      2*n001      md_npt     Nov 21 09:02\n"
        "                                             2*n002\n"
    )


def test_wide_table_cuts_nothing(desk: Desk) -> None:
    """lsf.md 1.3: -w has the same header, hosts joined by colons, and a dash among blanks where there is no host."""
    desk.client.jobs = three_jobs()[:2]
    assert desk.type("bjobs", "-w").out == (
        HEADER + "\n"
        "1201    alice   RUN   normal     login1      n001:n001:n002:n002 md_npt     Nov 21 09:02\n"
        "1202    alice   PEND  gpu        login1         -        train_resnet50 Nov 21 09:05\n"
    )


def test_staging_is_shown_as_running(desk: Desk) -> None:
    """architecture.md section 4: a staging job is RUN to users."""
    desk.client.jobs = [a_job([("n001", 1)], state=common_pb2.STAGING)]
    assert desk.type("bjobs", "-noheader", "-o", "stat").out == "RUN\n"


def test_array_summary(desk: Desk) -> None:
    """lsf.md 1.3: the table of -A."""
    counts = jobs_pb2.ArrayCounts(total=100, pend=80, done=10, run=8, exit=2, spec="sweep[1-100]")
    desk.client.jobs = [a_job(job=1203, name="sweep", array=counts)]
    assert desk.type("bjobs", "-A").out == (
        "JOBID    ARRAY_SPEC  OWNER   NJOBS PEND DONE  RUN EXIT SSUSP USUSP PSUSP\n"
        "1203     sweep[1-    alice     100   80   10    8    2     0     0     0\n"
    )
    assert desk.client.asked[-1].arrays


def test_array_summary_of_what_is_no_array(desk: Desk) -> None:
    """lsf.md 1.3: `Job array <5> is not found`."""
    result = desk.type("bjobs", "-A", "7")
    assert (result.code, result.out, result.err) == (0, "", "Job array <7> is not found\n")


def test_an_element_that_does_not_exist(desk: Desk) -> None:
    """An index outside the array is not found, even if the master does not report it."""
    result = desk.type("bjobs", "7[99]")
    assert (result.code, result.out, result.err) == (0, "", "Job <7[99]> is not found\n")


def test_an_id_that_the_other_options_exclude(desk: Desk) -> None:
    """A pending job is not "not found" when only running ones were requested."""
    result = desk.type("bjobs", "-r", "7")
    assert (result.code, result.err) == (0, "No running job found\n")


def test_pending_reasons_count_hosts(desk: Desk) -> None:
    """lsf.md 1.3: -p has no EXEC_HOST; a reason begins with a blank and ends with a semicolon."""
    reasons = [
        jobs_pb2.PendingReason(text="Job's resource requirements not satisfied", hosts=3),
        jobs_pb2.PendingReason(text="Job slot limit reached", hosts=1, host_names=["n001"]),
        jobs_pb2.PendingReason(text="New job is waiting for scheduling"),
    ]
    desk.client.jobs = [
        a_job(job=1202, queue="gpu", name="train_resnet50", submit_time=at("09:05:00"), pending_reasons=reasons)
    ]
    assert desk.type("bjobs", "-p").out == (
        "JOBID   USER    STAT  QUEUE       FROM_HOST      JOB_NAME           SUBMIT_TIME\n"
        "1202    alice   PEND  gpu         login1         train_resnet50     Nov 21 09:05\n"
        " Job's resource requirements not satisfied: 3 hosts;\n"
        " Job slot limit reached: 1 host;\n"
        " New job is waiting for scheduling;\n"
    )
    request = desk.client.asked[-1]
    assert request.reasons
    assert list(request.filter.states) == [common_pb2.PEND, common_pb2.PSUSP]


def test_pending_reasons_name_hosts(desk: Desk) -> None:
    """lsf.md 1.3: -pl gives names instead of counts."""
    desk.client.jobs = [a_job(pending_reasons=[jobs_pb2.PendingReason(text="Job slot limit reached", hosts=2)])]
    named = jobs_pb2.PendingReason(text="Job slot limit reached", hosts=2, host_names=["n001", "n002"])
    desk.client.explain_reply.explanations.add(job=1201, reasons=[named])
    assert desk.type("bjobs", "-pl").out.endswith("\n Job slot limit reached: n001, n002;\n")


def test_summary_counts_slots_by_state(desk: Desk) -> None:
    """lsf.md 1.3: -sum, one row under its header."""
    desk.client.jobs = [
        a_job([("n001", 46)], state=RUN),
        a_job(job=2, slots_min=8),
        a_job(job=3, slots_min=4),
        a_job(job=4, slots_min=2, state=common_pb2.PSUSP),
    ]
    assert desk.type("bjobs", "-sum").out == (
        "RUN        SSUSP       USUSP      UNKNOWN    PEND       FWD_PEND  PSUSP\n"
        "46         0           0          0          12         0         2\n"
    )


def test_extended_table(desk: Desk) -> None:
    """lsf.md 1.3: -W adds project, CPU, memory in KB, processes and times as MM/DD-HH:MM:SS."""
    usage = common_pb2.Usage(cpu_s=62.25, memory_mib=2, swap_mib=1, pids=[4101, 4102], collected_at=NOW)
    desk.client.jobs = [a_job([("n001", 1)], state=RUN, usage=usage, start_time=at("09:02:15"))]
    row = desk.type("bjobs", "-W", "-noheader").out.split()
    assert row[7:] == [
        "11/21-09:02:11", "default", "000:01:02.25", "2048", "1024", "4101,4102", "11/21-09:02:15", "-",
    ]  # fmt: skip


def test_long_form_of_a_running_job(desk: Desk) -> None:
    """lsf.md 1.3: -l breaks lines at 80 columns, anywhere, with an indent of 21 blanks."""
    spec = jobs_pb2.JobSpec(
        name="md_npt",
        command="mpirun ./md npt.in",
        cwd="/home/alice/run",
        output="/home/alice/run/out.%J",
        requirement_text="span[ptile=2] rusage[mem=2000]",
        run_limit_s=7200,
        memory_limit_mib=4096,
    )
    usage = common_pb2.Usage(
        collected_at=at("09:29:48"),
        cpu_s=2804.2, memory_mib=2048, swap_mib=4096, memory_mib_max=2048, memory_mib_mean=1800,
        pids=[4101, 4102, 4107], process_groups=[4101],
    )  # fmt: skip
    desk.client.jobs = [
        a_job(HOSTS, state=RUN, spec=spec, usage=usage, slots_min=4, slots_max=4, start_time=at("09:02:15"),
              exec_home="/home/alice", exec_cwd="/home/alice/run",
              effective_requirement="select[type == local] rusage[mem=2000.00] span[ptile=2]",
              load_bounds=[jobs_pb2.LoadBound(index="r1m", sched=1.5, stop=4, has_sched=True, has_stop=True)])
    ]  # fmt: skip
    assert (
        desk.type("bjobs", "-l").out
        == """
Job <1201>, Job Name <md_npt>, User <alice>, Project <default>, Status <RUN>, Qu
                     eue <normal>, Command <mpirun ./md npt.in>
Sat Nov 21 09:02:11: Submitted from host <login1>, CWD <$HOME/run>, Output File 
                     </home/alice/run/out.%J>, 4 Processors Requested, Requested
                      Resources <span[ptile=2] rusage[mem=2000]>;

 RUNLIMIT
 120.0 min

 MEMLIMIT
    4 G

Sat Nov 21 09:02:15: Started on 4 Hosts/Processors <n001> <n001> <n002> <n002>, 
                     Execution Home </home/alice>, Execution CWD </home/alice/ru
                     n>;
Sat Nov 21 09:29:48: Resource usage collected.
                     The CPU time used is 2804 seconds.
                     MEM: 2048 Mbytes;  SWAP: 4096 Mbytes
                     PGID: 4101;  PIDs: 4101 4102 4107

 MEMORY USAGE:
 MAX MEM: 2048 Mbytes;  AVG MEM: 1800 Mbytes

 SCHEDULING PARAMETERS:
           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem
 loadSched   -    1.5    -     -       -     -    -     -     -      -      -
 loadStop    -     4     -     -       -     -    -     -     -      -      -

 RESOURCE REQUIREMENT DETAILS:
 Combined: select[type == local] rusage[mem=2000.00] span[ptile=2]
 Effective: select[type == local] rusage[mem=2000.00] span[ptile=2]
"""
    )


def test_long_without_a_report_of_usage(desk: Desk) -> None:
    """Nothing is shown as collected before the first one: the master knows the process alone."""
    usage = common_pb2.Usage(pids=[4101])
    desk.client.jobs = [a_job([("n001", 1)], state=RUN, usage=usage, start_time=at("09:02:15"))]
    assert "collected" not in desk.type("bjobs", "-l", "1201").out


def test_long_form_shows_processes_of_every_host(desk: Desk) -> None:
    """A parallel job's usage is shown host by host."""
    parts = [
        common_pb2.Usage(host="n001", cpu_s=3, memory_mib=10, pids=[11, 12], process_groups=[11]),
        common_pb2.Usage(host="n002", cpu_s=4, memory_mib=20, pids=[21], process_groups=[21]),
    ]
    usage = common_pb2.Usage(cpu_s=7, memory_mib=30, pids=[11, 12, 21], collected_at=NOW)
    desk.client.jobs = [a_job(HOSTS, state=RUN, usage=usage, usage_by_host=parts, start_time=at("09:02:15"))]
    out = desk.type("bjobs", "-l").out
    assert "HOST: n001;  CPU_TIME: 3 seconds\n" in out
    assert "PGID: 11;  PIDs: 11 12\n" in out
    assert "PGID: 21;  PIDs: 21\n" in out


def test_unformatted_long_form_uses_lsf_words(desk: Desk) -> None:
    """lsf.md 1.3: -UF wraps nothing and says Task(s) and Slot(s)."""
    spec = jobs_pb2.JobSpec(command="./a.out", cwd="/scratch")
    desk.client.jobs = [a_job(HOSTS, state=RUN, spec=spec, slots_min=4, slots_max=4, start_time=at("09:02:15"))]
    lines = desk.type("bjobs", "-UF").out.splitlines()
    assert lines[2] == "Sat Nov 21 09:02:11: Submitted from host <login1>, CWD </scratch>, 4 Task(s);"
    assert lines[3] == (
        "Sat Nov 21 09:02:15: Started 4 Task(s) on Host(s) <2*n001> <2*n002>, "
        "Allocated 4 Slot(s) on Host(s) <2*n001> <2*n002>;"
    )


def test_long_form_shows_what_was_asked_for(desk: Desk) -> None:
    """lsf.md 1.3: limits as blocks, post-execution, and the start reason of a job that backfilled."""
    spec = jobs_pb2.JobSpec(
        command="./fit", cwd="/home/alice", requeue_exit_values="30 EXCLUDE(20)", resizable=True,
        resize_notify="./grown", dependency="done(7)", ends_orphan=True, runtime_estimate_s=300,
        rlimits=[
            jobs_pb2.Rlimit(name=name, soft=soft)
            for name, soft in {"cpu": 600, "core": 2048, "swap": 4096, "nproc": 20, "threads": 40}.items()
        ],
    )  # fmt: skip
    desk.client.jobs = [a_job(HOSTS, state=RUN, spec=spec, start_time=at("09:02:15"), start_reason="backfilled")]
    text = desk.type("bjobs", "-UF", "1201").out
    for piece in (
        ", Requeue Exit Values <30 EXCLUDE(20)>, Autoresizable, Resize Notification Command <./grown>,",
        ", Dependency Condition <done(7)>, Orphan Termination",
        "\n RUNTIME\n 5.0 min\n\n CPULIMIT\n 10.0 min\n\n CORELIMIT\n 2 K\n",
        "\n SWAPLIMIT\n 4 K\n\n PROCESSLIMIT\n 20\n\n THREADLIMIT\n 40\n",
        ", Start Reason <backfilled>;",
    ):
        assert piece in text, text
    assert desk.type("bjobs", "-noheader", "-o", "resize_cmd", "1201").out == "./grown\n"
    assert desk.type("bjobs", "-noheader", "-o", "swaplimit processlimit", "1201").out.split() == ["4", "K", "20"]


def test_long_form_names_priority_and_commands_around_the_job(desk: Desk) -> None:
    """lsf.md 1.3: the phrases of -l for -sp, -x, -r, -E and -Ep."""
    spec = jobs_pb2.JobSpec(
        command="./fit", cwd="/home/alice", exclusive=True, rerunnable=True, pre_exec="./stage in", post_exec="./clean"
    )
    desk.client.jobs = [a_job(HOSTS, state=RUN, spec=spec, start_time=at("09:02:15"), priority=50)]
    text = desk.type("bjobs", "-UF", "1201").out
    for piece in (
        ", Job Priority <50>,", ", Re-runnable", ", Exclusive Execution",
        ", Pre-execute Command <./stage in>", ", Post-execute Command <./clean>",
    ):  # fmt: skip
        assert piece in text, text


def test_long_forms_are_separated_by_dashes(desk: Desk) -> None:
    """lsf.md 1.3: 78 dashes between jobs, none before the first."""
    desk.client.jobs = [a_job(), a_job(job=1202)]
    out = desk.type("bjobs", "-l").out
    assert out.startswith("\nJob <1201>")
    assert f"\n{'-' * 78}\n\nJob <1202>" in out
    assert out.count("-" * 78) == 1


@pytest.mark.parametrize(
    ("state", "status", "reason", "expected"),
    [
        (DONE, 0, "", ["Done successfully. The CPU time used is 7200.1 seconds."]),
        (EXIT, 130 << 8, "", ["Exited with exit code 130. The CPU time used is 7200.1 seconds."]),
        (DONE, 3 << 8, "SUCCESS_EXIT_VALUES: exit code 3 means success.",
         ["Done successfully. The CPU time used is 7200.1 seconds.",
          "Completed <done>; SUCCESS_EXIT_VALUES: exit code 3 means success."]),
        (EXIT, 9, "", ["Exited by signal 9. The CPU time used is 7200.1 seconds."]),
        (EXIT, 140 << 8, "TERM_RUNLIMIT: job killed after reaching LSF run time limit",
         ["Exited with exit code 140. The CPU time used is 7200.1 seconds.",
          "Completed <exit>; TERM_RUNLIMIT: job killed after reaching LSF run time limit."]),
    ],
)  # fmt: skip
def test_long_form_of_an_ended_job(desk: Desk, state: int, status: int, reason: str, expected: list[str]) -> None:
    """lsf.md 1.3 and 2.4: exit status and reason."""
    usage = common_pb2.Usage(cpu_s=7200.1)
    desk.client.jobs = [
        a_job([("n001", 1)], state=state, exit_status=status, exit_reason=reason, usage=usage,
              start_time=at("09:02:15"), end_time=at("09:29:00"))
    ]  # fmt: skip
    out = desk.type("bjobs", "-UF", "1201").out
    assert [line for line in out.splitlines() if line.startswith("Sat Nov 21 09:29:00")] == [
        f"Sat Nov 21 09:29:00: {text}" for text in expected
    ]


def test_long_form_says_why_a_job_waits(desk: Desk) -> None:
    """lsf.md 1.3: a block of pending reasons, with lava's advice under the reason."""
    reason = jobs_pb2.PendingReason(text="Not enough job slot(s)", hosts=3, advice="ask for 2 hosts fewer")
    desk.client.jobs = [a_job(pending_reasons=[reason])]
    assert (
        "\n PENDING REASONS:\n Not enough job slot(s): 3 hosts;\n   (ask for 2 hosts fewer)\n"
        in desk.type("bjobs", "-l").out
    )


def test_a_remedy_says_what_it_gives_up(desk: Desk) -> None:
    """Below its command, which stays one that can be copied."""
    outlook = jobs_pb2.Outlook(
        remedies=["bmod -Rn 1201", "bmod -n 2 1201"], costs=["select[mem>9]", ""], is_for_later=True
    )
    reason = jobs_pb2.PendingReason(text="Job's resource requirements not satisfied", hosts=3)
    desk.client.jobs = [a_job(pending_reasons=[reason], outlook=outlook)]
    assert (
        " Could start after: bmod -Rn 1201;\n   (it gives up select[mem>9])\n Could start after: bmod -n 2 1201;\n"
        in desk.type("bjobs", "-l").out
    )


def test_control_characters_of_a_job_are_escaped(desk: Desk) -> None:
    """A job's name or command cannot move the reader's cursor or forge a line."""
    spec = jobs_pb2.JobSpec(command="echo a\necho \x1b[2Jb", name="x")
    desk.client.jobs = [a_job(name="evil\x1b[2J\n1202", spec=spec)]
    for options in (["-w"], ["-l"], ["-p"], ["-W"], ["-o", "job_name command"], ["-UF"], []):
        out = desk.type("bjobs", *options).out
        assert "\x1b" not in out
        assert "\n1202" not in out
    assert desk.type("bjobs", "-noheader", "-o", "command").out == "echo a;echo \\e[2Jb\n"


def test_format_without_widths_has_single_blanks(desk: Desk) -> None:
    """lsf-clients.md: parsl, snakemake and torchx split on one blank; no padding, none at the ends."""
    desk.client.jobs = three_jobs()
    assert desk.type("bjobs", "-noheader", "-o", "jobid stat", "1201").out == "1201 RUN\n1202 PEND\n1203 PEND\n"


def test_format_fields_are_case_insensitive_and_have_aliases(desk: Desk) -> None:
    """lsf-clients.md: batchspawner asks for "STAT EXEC_HOST", torchx for proj, name and id."""
    desk.client.jobs = [a_job([("n001", 1)], state=RUN)]
    assert desk.type("bjobs", "-a", "-noheader", "-o", "STAT EXEC_HOST", "1201").out == "RUN n001\n"
    assert desk.type("bjobs", "-o", "proj name id").out == "PROJ_NAME JOB_NAME JOBID\ndefault md_npt 1201\n"


def test_format_widths_justification_and_delimiter(desk: Desk) -> None:
    """lsf.md 1.3: field[:[-][width]] and delimiter; a bare colon is the recommended width."""
    desk.client.jobs = [a_job(name="train_resnet50")]
    out = desk.type("bjobs", "-o", "jobid:-6 stat: queue:4 job_name:8 delimiter='^'").out
    assert out == " JOBID^STAT ^QUEU^JOB_NAME\n  1201^PEND ^norm^*esnet50\n"


def test_format_exit_code_of_a_cancelled_job(desk: Desk) -> None:
    """lsf-clients.md: torchx knows a cancelled job by EXIT and 130; an unfinished job has no code."""
    desk.client.jobs = [a_job([("n001", 1)], state=EXIT, exit_status=130 << 8), a_job(), a_job(state=DONE)]
    assert desk.type("bjobs", "-noheader", "-o", "stat exit_code").out == "EXIT 130\nPEND -\nDONE 0\n"


def test_format_memory_units(desk: Desk) -> None:
    """lsf.md 1.3: memory fields have a unit of their own, or the requested one."""
    usage = common_pb2.Usage(memory_mib=512, memory_mib_max=2560)
    desk.client.jobs = [a_job([("n001", 1)], state=RUN, usage=usage)]
    assert desk.type("bjobs", "-noheader", "-o", "mem max_mem max_mem:M").out == "512 Mbytes 2.5 Gbytes 2560.0 M\n"


def test_format_of_every_field_answers(desk: Desk) -> None:
    """lsf.md 1.3: each field of LSF's table is known, and an empty one shows a dash."""
    desk.client.jobs = [a_job(HOSTS, state=RUN, start_time=at("09:02:15"))]
    header, row = desk.type("bjobs", "-o", "all delimiter='|'").out.splitlines()
    values = dict(zip(header.split("|"), row.split("|"), strict=True))
    assert values["ALLOC_SLOT"] == "2*n001:2*n002"
    assert values["APPLICATION"] == "-"
    assert values["RUN_TIME"] == "1665 second(s)"
    assert len(values) > 90
    assert all(values.values())


def test_unknown_field_exits_99(desk: Desk) -> None:
    """lsf.md 1.3: the sentence and the exit code for a field that does not exist."""
    result = desk.type("bjobs", "-o", "jobid bogus")
    assert (result.code, result.err) == (99, "bogus in the format string is not a valid field name.\n")


def test_format_from_the_environment(desk: Desk) -> None:
    """lsf.md 1.3: LSB_BJOBS_FORMAT is the default format."""
    desk.environ["LSB_BJOBS_FORMAT"] = "jobid stat"
    desk.client.jobs = [a_job()]
    assert desk.type("bjobs").out == "JOBID STAT\n1201 PEND\n"
    assert desk.type("bjobs", "-w").out.startswith(HEADER)


def test_json_has_one_record_a_job_and_an_error_for_an_unknown_id(desk: Desk) -> None:
    """lsf.md 1.3: the JSON shape; every value is a string."""
    desk.client.jobs = [a_job([("n001", 1), ("n002", 1)], state=RUN)]
    desk.client.missing = [common_pb2.JobRef(job=9)]
    result = desk.type("bjobs", "-json", "-o", "jobid stat exec_host", "1201", "9")
    assert result.out.startswith(
        '{"COMMAND":"bjobs","JOBS":2,"RECORDS":[{"JOBID":"1201","STAT":"RUN","EXEC_HOST":"n001:n002"}'
    )
    assert json.loads(result.out)["RECORDS"][1] == {"JOBID": "9", "ERROR": "Job <9> is not found"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "No unfinished job found"),
        (["-a"], "No job found"),
        (["-p"], "No pending job found"),
        (["-r"], "No running job found"),
        (["-s"], "No suspended job found"),
        (["-d"], "No DONE/EXIT job found"),
    ],
)
def test_nothing_found_is_said_on_stderr(desk: Desk, options: list[str], sentence: str) -> None:
    """lsf.md 1.0 and 1.3: the message goes to stderr, stdout stays empty, the exit code is 0."""
    result = desk.type("bjobs", *options)
    assert (result.code, result.out, result.err) == (0, "", sentence + "\n")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-u", "carol"], "carol: Unknown user"),
        (["-q", "nope"], "nope: No such queue"),
        (["-m", "nope"], "nope: Bad host name, host group name or cluster name"),
    ],
)
def test_a_name_that_does_not_exist_is_an_error(desk: Desk, options: list[str], sentence: str) -> None:
    """Bad input, unlike an empty list, is no success."""
    result = desk.type("bjobs", *options)
    assert (result.code, result.out, result.err) == (255, "", sentence + "\n")


def test_a_job_name_that_nobody_has(desk: Desk) -> None:
    """lsf.md 1.3: reported with the place searched, as a failure; a pattern without a match is no failure."""
    result = desk.type("bjobs", "-J", "nosuch")
    assert (result.code, result.out, result.err) == (255, "", "Job <nosuch> is not found\n")
    desk.client.queue_records = [cluster_pb2.QueueRecord(name="gpu")]
    desk.client.host_records = [cluster_pb2.HostRecord(facts=cluster_pb2.HostFacts(name="n001"))]
    result = desk.type("bjobs", "-a", "-J", "nosuch", "-q", "gpu", "-m", "n001")
    assert (result.code, result.err) == (255, "Job <nosuch> is not found in queue <gpu> on host/group <n001>\n")
    result = desk.type("bjobs", "-noheader", "-o", "jobid stat", "-aJ", "*UUID*")
    assert (result.code, result.err) == (0, "Job <*UUID*> is not found\n")


def test_unknown_id(desk: Desk) -> None:
    """lsf.md 1.0: `Job <N> is not found` on stderr, empty stdout, 0; portals take failures for a broken cluster."""
    desk.client.missing = [common_pb2.JobRef(job=123)]
    result = desk.type("bjobs", "123")
    assert (result.code, result.out, result.err) == (0, "", "Job <123> is not found\n")
    desk.environ["LSB_BJOBS_CONSISTENT_EXIT_CODE"] = "Y"
    assert desk.type("bjobs", "123").code == 255


def test_one_unknown_id_among_others_exits_0(desk: Desk) -> None:
    """lsf-clients.md: parsl drops a poll that exits non-zero, so one cleaned job must not hide the others."""
    desk.client.jobs = [a_job()]
    desk.client.missing = [common_pb2.JobRef(job=123)]
    assert desk.type("bjobs", "-noheader", "-o", "jobid stat", "1201", "123").code == 0
    desk.environ["LSB_BJOBS_CONSISTENT_EXIT_CODE"] = "Y"
    assert desk.type("bjobs", "1201", "123").code == 255


def test_ids_are_shown_in_any_state_and_of_any_user(desk: Desk) -> None:
    """lsf.md 1.3: with job ids any state, any user; indices go along."""
    desk.client.jobs = [a_job(state=DONE)]
    desk.type("bjobs", "1201", "7[1-9:2,20]")
    asked = desk.client.asked[-1].filter
    assert asked.user == "all"
    assert asked.finished_too
    assert [(ref.job, [(r.first, r.last, r.step) for r in ref.indices]) for ref in asked.refs] == [
        (1201, []),
        (7, [(1, 9, 2), (20, 20, 1)]),
    ]


def test_bundled_options_with_a_name_pattern(desk: Desk) -> None:
    """lsf-clients.md: snakemake calls `bjobs -noheader -o 'jobid stat' -aJ '*UUID*'`."""
    desk.client.jobs = [a_job(state=DONE)]
    result = desk.type("bjobs", "-noheader", "-o", "jobid stat", "-aJ", "*UUID*")
    assert result.out == "1201 DONE\n"
    assert desk.client.asked[-1].filter.name == "*UUID*"
    assert desk.client.asked[-1].filter.finished_too


def test_filters_reach_the_master(desk: Desk) -> None:
    """lsf.md 1.3: -u -q -m -J -P."""
    desk.client.jobs = [a_job()]
    desk.type("bjobs", "-u", "all", "-q", "gpu", "-m", "n001", "-J", "a*", "-P", "p1", "-r")
    asked = desk.client.asked[-1].filter
    assert (asked.user, asked.queue, asked.host, asked.name, asked.project) == ("all", "gpu", "n001", "a*", "p1")
    assert common_pb2.RUN in asked.states


@pytest.mark.parametrize("options", [["-l", "-A"], ["-noheader", "-l"], ["-o", ""], ["-o", "jobid:x"]])
def test_contradictions_are_refused(desk: Desk, options: list[str]) -> None:
    """Forms that exclude each other are one sentence and no listing."""
    result = desk.type("bjobs", *options)
    assert result.code in (255, 99)
    assert result.out == ""
    assert result.err
