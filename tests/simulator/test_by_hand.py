"""``lavactl simulate`` as typed, on schedules worked out by hand, and its error messages."""

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lavactl.commands import simulate
from lavactl.io import Io
from lavad.simulator.replay.main import main

TRACES = Path(__file__).parent / "traces"
NINE, OVERRUN = str(TRACES / "nine-jobs.swf"), str(TRACES / "overrun.swf")
KEYS = [
    "jobs_kept", "mean_wait_s", "max_wait_s", "mean_turnaround_s", "mean_bounded_slowdown", "utilisation",
    "utilisation_while_submitted", "makespan_s", "sim_jobs_per_s",
]  # fmt: skip
# Job 2 is blocked until 10. Under fcfs no job passes it. Else 3 ends by 10, and so starts in the gap at once; 4 would
# not end by then, nor find a processor beside 2; 5 takes the gap from 7 on, which 3 leaves before its time.
# From 100 on: 7 is blocked until 110 and leaves one processor free, on which 9 starts at once under easy, although that
# holds up 8, which needs all four. Under conservative 8 has a reservation at 120, so 9 waits for the end of 8.
SCHEDULES = {
    "fcfs": {1: 0, 2: 10, 3: 20, 4: 20, 5: 20, 6: 100, 7: 110, 8: 120, 9: 130},
    "easy": {1: 0, 2: 10, 3: 2, 4: 20, 5: 7, 6: 100, 7: 110, 8: 133, 9: 103},
    "conservative": {1: 0, 2: 10, 3: 2, 4: 20, 5: 7, 6: 100, 7: 110, 8: 120, 9: 130},
}


def starts(directory: Path, *arguments: str) -> dict[int, int]:
    """Start times written by ``--starts``."""
    path = directory / "starts"
    assert main([*arguments, "--starts", str(path)]) == 0
    return {int(job): int(start) for job, start in (line.split() for line in path.read_text().splitlines())}


@pytest.mark.parametrize("policy", SCHEDULES)
@pytest.mark.parametrize("machine", [(), ("--procs", "4"), ("--hosts", "4"), ("--hosts", "2", "--slots", "2")])
def test_nine_jobs(policy: str, machine: tuple[str, ...], tmp_path: Path) -> None:
    """The same on any four slots, however they are spread."""
    assert starts(tmp_path, NINE, "--policy", policy, *machine) == SCHEDULES[policy]


@pytest.mark.parametrize(("overrun", "second"), [("kill", 10), ("extend", 20), ("runon", 20)])
def test_a_run_past_its_estimate(overrun: str, second: int, tmp_path: Path) -> None:
    """It is cut there, or it takes as long as it takes."""
    assert starts(tmp_path, OVERRUN, "--policy", "easy", "--overrun", overrun) == {1: 0, 2: second}


def test_the_limit_is_in_lines(tmp_path: Path) -> None:
    """The first three jobs only."""
    assert starts(tmp_path, NINE, "--policy", "fcfs", "--limit", "3") == {1: 0, 2: 10, 3: 20}


def test_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """Waits 0 9 18 17 16 0 9 18 27; 227 slot seconds in 160 seconds on four slots."""
    assert main([NINE, "--policy", "fcfs", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert list(values) == KEYS
    assert values.pop("sim_jobs_per_s") > 0
    assert values == {
        "jobs_kept": 9,
        "mean_wait_s": pytest.approx(114 / 9),
        "max_wait_s": 27,
        "mean_bounded_slowdown": pytest.approx((1 + 1.9 + 2.3 + 1.85 + 1.8 + 1 + 1.9 + 2.8 + 1.9) / 9),
        "mean_turnaround_s": pytest.approx((114 + 107) / 9),
        "utilisation": pytest.approx(227 / (4 * 160)),
        "utilisation_while_submitted": pytest.approx(106 / (4 * 103)),
        "makespan_s": 160,
    }


def test_figures_without_json_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """KEY=VALUE in plain decimals, in the same order."""
    assert main([NINE, "--policy", "easy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("=")[0] for line in lines] == KEYS
    assert "mean_wait_s=7.6667" in lines


def test_an_elastic_job_has_the_same_work_at_any_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of half of the jobs it is job 2: on the one slot that job 1 leaves, then on all four. 10 of 40 slot seconds are
    done at 10, the rest takes 7.5 more.
    """
    trace = tmp_path / "two.swf"
    trace.write_text(
        "".join(f"{number} 100 -1 {run} {slots}{' -1' * 13}\n" for number, run, slots in ((1, 10, 3), (2, 20, 2)))
    )
    assert main([str(trace), "--procs", "4", "--elastic", "50", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["makespan_s"] == pytest.approx(17.5)
    assert values["utilisation"] == pytest.approx(70 / (4 * 17.5))
    with pytest.raises(SystemExit):
        main([str(trace), "--procs", "4", "--elastic", "50", "--policy", "easy"])


def test_a_picture(tmp_path: Path) -> None:
    """One SVG file without external references."""
    path = tmp_path / "picture.svg"
    assert main([NINE, "--policy", "easy", "--plot", str(path)]) == 0
    text = path.read_text()
    assert text.startswith("<svg ")
    assert all(words in text for words in ("nine-jobs.swf, easy, 4 processors", "utilisation", "jobs waiting"))


def test_dropped_jobs_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """With their number and why, apart from the figures."""
    assert main([NINE, "--policy", "easy", "--procs", "3"]) == 0
    said = capsys.readouterr()
    assert said.err == "dropped 2 of 9 jobs: wider than the machine\n"
    assert said.out.startswith("jobs_kept=7\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "one trace, or --from-history without one, is needed"),
        ([NINE, "--from-history", "x"], "one trace, or --from-history without one, is needed"),
        ([NINE, "--procs", "0"], "'0' is not a positive whole number"),
        ([NINE, "--procs", "9" * 5000], "'99999999999999999999' is not a positive whole number of at most 15 digits"),
        ([NINE, "--hosts", "9" * 5000], "'99999999999999999999' is not a number of hosts from 1 to 100000"),
        ([NINE, "--hosts", "2", "--slots", "9" * 16], "is not a positive whole number of at most 15 digits"),
        (["/none/x", "--starts", "/none/../none/x"], "the trace, --starts and --plot are different files"),
        ([NINE, "--starts", "/none/x", "--plot", "/none/x"], "the trace, --starts and --plot are different files"),
        ([NINE, "--hosts", "4", "--procs", "4"], "--hosts and --procs are two ways to say the same"),
        ([NINE, "--slots", "4"], "--slots goes with --hosts"),
        ([NINE, "--hosts", "1000000000"], "is not a number of hosts from 1 to 100000"),
        ([NINE, "--hosts", "+1"], "--hosts +N goes with --from-history"),
        ([NINE, "--policy", "easy", "--conf", "x"], "--conf goes with --policy lava"),
        ([NINE, "--policy", "best"], "invalid choice: 'best'"),
        (["--from-history", "x", "--overrun", "kill"], "--overrun goes with a trace"),
    ],
)
def test_wrong_arguments(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence and exit code 2."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    said = capsys.readouterr()
    assert (caught.value.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert complaint in said.err


def test_what_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence and exit code 1: no trace, no configuration, no place for the answer."""
    for arguments in ([str(tmp_path / "none")], [NINE, "--conf", str(tmp_path)], [NINE, "--starts", "/none/starts"]):
        assert main(arguments) == 1
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert said.err.startswith("lavactl simulate: ")


@pytest.mark.parametrize("option", ["--starts", "--plot"])
def test_a_replay_that_fails_leaves_no_file_behind(option: str, tmp_path: Path) -> None:
    """Nor does it touch one that was there: the answer takes its place when all of it is written."""
    (tmp_path / "lsb.hosts").write_text("Begin Host\nHOST_NAME MXJ\ndefault 1\nEnd Host\n")
    before = sorted(os.listdir(tmp_path))
    failing = [NINE, "--conf", str(tmp_path)]
    assert main([*failing, option, str(tmp_path / "new")]) == 1
    assert sorted(os.listdir(tmp_path)) == before
    old = tmp_path / "old"
    old.write_text("what was found before")
    old.chmod(0o640)
    assert main([*failing, option, str(old)]) == 1
    assert old.read_text() == "what was found before"
    assert main([NINE, "--policy", "easy", option, str(old)]) == 0
    assert old.read_text() != "what was found before"
    assert old.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == [*before, "old"]


def test_a_trace_on_standard_input(tmp_path: Path) -> None:
    """Plain or gzipped; complaints name it so."""
    program = [sys.executable, "-m", "lavad.simulator", "-", "--policy", "easy"]
    plain = Path(NINE).read_bytes()
    for data in (plain, gzip.compress(plain)):
        done = subprocess.run(program, input=data, capture_output=True, check=True, timeout=60)
        assert done.stdout.startswith(b"jobs_kept=9\n")
    odd = subprocess.run(program, input=b"1 2\n", capture_output=True, check=False, timeout=60)
    assert odd.returncode == 1
    assert odd.stderr.startswith(b"lavactl simulate: standard input:1: a job has 18 columns")


@pytest.mark.parametrize("option", ["--starts", "--plot"])
def test_a_full_disk_is_named(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And there are no figures that look as if all went well."""
    assert main([NINE, "--policy", "easy", option, "/dev/full"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "lavactl simulate: /dev/full: No space left on device\n")


def test_a_picture_of_a_trace_whose_name_is_no_text(tmp_path: Path) -> None:
    """The title shows the printable part."""
    trace, path = tmp_path / os.fsdecode(b"a\xff\x01<b>"), tmp_path / "picture.svg"
    trace.write_bytes(Path(NINE).read_bytes())
    assert main([str(trace), "--policy", "easy", "--plot", str(path)]) == 0
    assert "a??&lt;b&gt;, easy" in path.read_text("utf-8")


def test_an_open_file_is_a_trace() -> None:
    """As a shell makes it of <(zcat nine-jobs.swf.gz)."""
    with open(NINE, "rb") as file:
        os.set_inheritable(file.fileno(), True)
        out, err = io.BytesIO(), io.BytesIO()
        surroundings = Io(io.BytesIO(), out, err)
        assert simulate.main([f"/dev/fd/{file.fileno()}", "--policy", "easy"], surroundings) == 0, err.getvalue()
    assert out.getvalue().startswith(b"jobs_kept=9\n")
