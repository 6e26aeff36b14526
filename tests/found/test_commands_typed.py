"""Command lines that were misread; no cluster is needed to show it."""

from pathlib import Path

import pytest

from protos import common_pb2, jobs_pb2
from tests.lavactl.scripted import NOW, Desk, a_job


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["sleep", "60"], "sleep 60"),
        (["a; b"], "a; b"),
        (["sh", "-c", "echo a; echo b"], 'sh -c "echo a; echo b"'),
        (["bash", "-c", "exit 7"], 'bash -c "exit 7"'),
        (["awk", "{print $2}", "f"], "awk '{print $2}' f"),
        (["python3", "-c", "print(1); print(2)"], 'python3 -c "print(1); print(2)"'),
        (["python3", "-c", 'print("x")'], 'python3 -c print\\(\\"x\\"\\)'),
        (["sh", "-c", 'echo "a b"'], "sh -c 'echo \"a b\"'"),
        (["echo", "it's $5"], "echo 'it'\\''s $5'"),
        (["echo", "a\\ b `id`"], "echo 'a\\ b `id`'"),
        (["echo", "a\\b"], "echo a\\\\b"),
        (["prog", "$LSB_JOBID", "*.dat", ">", "out"], "prog $LSB_JOBID *.dat > out"),
        (["printf", "%s|", "", "x"], 'printf %s| "" x'),
        (["sh", "-c", "a\nb"], 'sh -c "a\nb"'),
    ],
)
def test_words_that_hold_blanks_stay_words(desk: Desk, words: list[str], line: str) -> None:
    """commands-by-clients 1: ``bsub bash -c 'exit 7'`` was ``bash -c exit 7``."""
    assert desk.type("bsub", *words).code == 0
    assert desk.spec.command == line


def test_bsub_stderr_moves_the_line(desk: Desk) -> None:
    """everyday 3: BSUB_STDERR was ignored."""
    desk.environ["BSUB_STDERR"] = "1"
    result = desk.type("bsub", "-q", "normal", "-o", "out", "true")
    assert (result.out, result.err) == ("", "Job <1201> is submitted to queue <normal>.\n")


def test_defaults_of_the_environment(desk: Desk) -> None:
    """everyday 4, 23, 24: LSB_DEFAULTQUEUE, LSB_DEFAULTPROJECT and LSB_DEFAULT_USERGROUP were ignored."""
    desk.environ |= {"LSB_DEFAULTQUEUE": "short", "LSB_DEFAULTPROJECT": "envproj", "LSB_DEFAULT_USERGROUP": "chem"}
    desk.client.submit_results = [jobs_pb2.SubmitResult(job=7, queue="short")] * 2
    assert desk.type("bsub", "true").out == "Job <7> is submitted to default queue <short>.\n"
    spec = desk.spec
    assert (list(spec.queues), spec.project, spec.user_group) == (["short"], "envproj", "chem")
    assert {b"LSB_DEFAULTQUEUE=short", b"LSB_DEFAULTPROJECT=envproj"} <= set(spec.environment)
    assert desk.type("bsub", "-q", "long", "-P", "p", "-G", "g", "true").code == 0
    assert (list(desk.spec.queues), desk.spec.project, desk.spec.user_group) == (["long"], "p", "g")


def test_several_env_options_count_as_one(desk: Desk) -> None:
    """commands-by-clients 12: ``-env all -env A=1`` dropped the inherited variables."""
    desk.environ["MINE"] = "here"
    assert desk.type("bsub", "-env", "all", "-env", "A=1", "true").code == 0
    assert {b"MINE=here", b"A=1"} <= set(desk.spec.environment)


def test_a_parsed_script_is_named_as_typed(desk: Desk, tmp_path: Path) -> None:
    """commands-by-clients 13: the job was called ``set -e``."""
    script = tmp_path / "exe"
    script.write_text("#!/bin/sh\n#BSUB -W 5\nset -e\ndate\n")
    script.chmod(0o755)
    desk.environ["LSB_BSUB_PARSE_SCRIPT"] = "Y"
    assert desk.type("bsub", "./exe", cwd=str(tmp_path)).code == 0
    assert (desk.spec.name, desk.spec.run_limit_s) == ("./exe", 300)
    desk.client.submit_results = [jobs_pb2.SubmitResult(job=7, queue="normal")]
    assert desk.type("bsub", "./exe", "in put", cwd=str(tmp_path)).code == 0
    assert (desk.spec.command, desk.spec.run_limit_s) == ('./exe "in put"', 300)


def test_a_glued_queue_is_taken(desk: Desk) -> None:
    """everyday 1: ``-n2`` was taken, ``-qshort`` was not; an option that is misspelt stays one."""
    assert desk.type("bsub", "-qshort", "-n2", "true").code == 0
    assert list(desk.spec.queues) == ["short"]
    assert "illegal option -- outdirr" in desk.type("bsub", "-outdirr", "x", "true").err


def test_help_can_be_paged(desk: Desk) -> None:
    """real-hosts 3: ``bjobs -h | less`` was empty."""
    for command in ("bsub", "bjobs", "badmin", "lsid"):
        result = desk.type(command, "-h")
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith(f"Usage: {command}")
    assert desk.type("bjobs", "-zz").out == ""


def test_help_lists_what_works(desk: Desk) -> None:
    """real-hosts 3: ``bsub -h`` listed an option that is refused, and lacked -ar and -rnc."""
    words = desk.type("bsub", "-h").out.split()
    assert "-ar" in words
    assert "-rnc" in words
    assert "-E" in words  # refused then, and taken since
    assert "-k" in words  # the same


def test_a_format_in_the_environment_is_enough_for_json(desk: Desk) -> None:
    """commands-by-clients 3: LSB_BJOBS_FORMAT with -json was a usage error."""
    desk.client.jobs = [jobs_pb2.JobRecord(job=5, state=common_pb2.RUN)]
    desk.environ["LSB_BJOBS_FORMAT"] = "jobid stat"
    assert '"JOBID":"5"' in desk.type("bjobs", "-json", "-u", "all").out
    del desk.environ["LSB_BJOBS_FORMAT"]
    plain = desk.type("bjobs", "-json")
    assert (plain.code, plain.out.split()[0]) == (0, "JOBID")


def test_brun_says_what_it_lacks(desk: Desk) -> None:
    """everyday 74: -b and -c were refused with a message about checkpoints."""
    assert "checkpoint" in desk.type("brun", "-b", "-m", "lava1", "5").err
    assert "slots by free processors" in desk.type("brun", "-c", "-m", "lava1", "5").err


def test_lsid_has_the_lines_that_clients_count(desk: Desk) -> None:
    """commands-by-clients 5: four lines where IBM's lsid has six."""
    assert [line.partition(" is ")[0] for line in desk.type("lsid").out.splitlines()][3:] == [
        "",
        "My cluster name",
        "My master name",
    ]


def running(**spec: int) -> jobs_pb2.JobRecord:
    """A job that has run for ten minutes."""
    return a_job(
        [("n001", 1)],
        state=common_pb2.RUN,
        start_time=NOW - 600,
        spec=jobs_pb2.JobSpec(**spec),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ({"runtime_estimate_s": 1200}, "0:10 E|Nov 21 09:40 E|50.00% E"),
        ({"runtime_estimate_s": 1200, "run_limit_s": 2400}, "0:10 E|Nov 21 09:40 E|50.00% E"),
        ({"runtime_estimate_s": 300, "run_limit_s": 2400}, "0:30 X|Nov 21 10:00 X|25.00% X"),
        ({"runtime_estimate_s": 300}, "-|-|-"),
        ({"run_limit_s": 1200}, "0:10 L|Nov 21 09:40 L|50.00% L"),
    ],
)
def test_what_is_left_by_an_estimate(desk: Desk, spec: dict[str, int], shown: str) -> None:
    """everyday 15: of a job with only -We the fields were ``-``."""
    desk.client.jobs = [running(**spec)]
    assert desk.type("bjobs", "-noheader", "-o", "time_left finish_time %complete delimiter='|'").out == f"{shown}\n"


def test_usage_is_one_line_of_uf(desk: Desk) -> None:
    """everyday 59: the paragraph was four lines, indented, without semicolons."""
    job = running()
    job.usage.cpu_s, job.usage.memory_mib, job.usage.collected_at = 5, 2, NOW
    job.usage.pids.append(77)
    desk.client.jobs = [job]
    (line,) = (line for line in desk.type("bjobs", "-UF", "1201").out.splitlines() if "Resource usage" in line)
    assert line.endswith(
        "Resource usage collected. The CPU time used is 5 seconds; MEM: 2 Mbytes; SWAP: 0 Mbytes; PIDs: 77;"
    )


def test_the_main_reason_alone(desk: Desk) -> None:
    """everyday 53: LSB_BJOBS_PENDREASON_LEVEL was ignored; -p0 shows all reasons, -p1 the main one."""
    desk.client.jobs = [a_job()]
    for text in ("first", "second"):
        desk.client.jobs[0].pending_reasons.add(text=text)
    assert " second;" in desk.type("bjobs", "-p").out
    assert " second;" not in desk.type("bjobs", "-p1").out
    desk.environ["LSB_BJOBS_PENDREASON_LEVEL"] = "1"
    assert " second;" not in desk.type("bjobs", "-p").out
    assert " second;" in desk.type("bjobs", "-p0").out


def test_the_mode_of_devices_is_the_one_asked_for(desk: Desk) -> None:
    """everyday 56: gpu_mode showed ``shared`` for ``mode=exclusive_process``."""
    job = running()
    request = job.spec.roles.add().gpu
    request.num, request.text = 1, "num=1:mode=exclusive_process"
    desk.client.jobs = [job]
    assert desk.type("bjobs", "-noheader", "-o", "gpu_mode").out == "exclusive_process\n"
