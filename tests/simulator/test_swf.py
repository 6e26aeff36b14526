"""Traces in practice: comments, missing fields, unknown values, odd order; and messages on files that are no trace."""

import gzip
from pathlib import Path

import pytest

from lavad.simulator.replay.swf import Trace, TraceError, read_trace

HEADER = "; Version: 2.2\n; MaxProcs: 8\n\n"


def written(directory: Path, text: str) -> Path:
    """A file with that text."""
    path = directory / "some.swf"
    path.write_text(text)
    return path


def a_line(number: int, submit: int, run: str = "10", allocated: int = 2, requested: int = -1, limit: int = -1) -> str:
    """A job of 18 columns."""
    return f"{number} {submit} -1 {run} {allocated} -1 -1 {requested} {limit} -1 1 3 4 -1 5 -1 -1 -1\n"


def numbers(trace: Trace) -> list[int]:
    """The jobs that are replayed, in their order."""
    return [job.number for job in trace.jobs]


def test_fields_that_are_unknown_are_taken_from_others(tmp_path: Path) -> None:
    """Processors: as requested, else as allocated; the estimate: as requested, else the run time."""
    lines = a_line(1, 0, requested=4, limit=60) + a_line(2, 0)
    first, second = read_trace(written(tmp_path, HEADER + lines)).jobs
    assert (first.processors, first.estimate_s) == (4, 60)
    assert (second.processors, second.estimate_s) == (2, 10)
    assert (first.user, first.group, first.queue) == (3, 4, 5)


def test_a_line_may_end_after_the_requested_time(tmp_path: Path) -> None:
    """The fields after it are unknown then."""
    (job,) = read_trace(written(tmp_path, "7 3 -1 10 2 -1 -1 -1 20\n")).jobs
    assert job == (7, 3, 10, 2, 20, -1, -1, -1)


def test_jobs_that_cannot_run_are_dropped_and_counted(tmp_path: Path) -> None:
    """Never ran, without processors, wider than the machine."""
    lines = a_line(1, 0, run="0") + a_line(2, 0, run="-1") + a_line(3, 0, allocated=0) + a_line(4, 0, allocated=9)
    trace = read_trace(written(tmp_path, HEADER + lines + a_line(5, 0)))
    assert numbers(trace) == [5]
    assert trace.dropped == {"never ran": 2, "without processors": 1, "wider than the machine": 1}


def test_the_limit_counts_lines_before_any_is_dropped(tmp_path: Path) -> None:
    """Comments and empty lines do not count."""
    lines = a_line(1, 0, run="0") + "; a remark\n\n" + a_line(2, 0) + a_line(3, 0)
    trace = read_trace(written(tmp_path, HEADER + lines), limit=2)
    assert (numbers(trace), trace.lines) == ([2], 2)


def test_jobs_come_in_order_of_submission_then_line(tmp_path: Path) -> None:
    """Regardless of their numbers."""
    trace = read_trace(written(tmp_path, a_line(9, 5) + a_line(8, 0) + a_line(2, 5) + a_line(1, 3)))
    assert numbers(trace) == [8, 1, 9, 2]


def test_the_machine_is_as_asked_or_as_the_header_says_or_as_wide_as_the_widest_job(tmp_path: Path) -> None:
    """In that order."""
    path = written(tmp_path, HEADER + a_line(1, 0, allocated=3))
    assert read_trace(path, 5).processors == 5
    assert read_trace(path).processors == 8
    assert read_trace(written(tmp_path, "; MaxProcs: -1\n" + a_line(1, 0, allocated=3))).processors == 3


def test_a_packed_trace_is_the_same_trace(tmp_path: Path) -> None:
    """Known by its first bytes, not by its name."""
    text = HEADER + a_line(1, 0) + a_line(2, 1)
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_trace(packed) == read_trace(written(tmp_path, text))


@pytest.mark.parametrize("text", ["", "\n\n", HEADER, (HEADER + a_line(1, 0)).replace("\n", "\r")])
def test_a_file_without_jobs_is_no_trace(text: str, tmp_path: Path) -> None:
    """Rather than figures that are all zero."""
    with pytest.raises(TraceError, match="expected lines of 18 columns, one for each job, there are none"):
        read_trace(written(tmp_path, text))


@pytest.mark.parametrize(
    ("header", "processors"),
    [
        (";MaxProcs:12", 12),
        (";  maxprocs :\t12 (two racks)", 12),
        ("; MaxProcs: 1,024", 1024),
        ("; MaxProcs: -1\n; MaxNodes: 7.0", 7),
        ("; MaxProcs: unknown\n; MaxProcs: 9", 9),
        (f"; Checksum: {'9' * 5000}", 2),
        ("\xef\xbb\xbf; MaxProcs: 9", 9),
    ],
)
def test_headers_in_odd_forms(header: str, processors: int, tmp_path: Path) -> None:
    """Headers as programs write them today, among them a byte order mark."""
    path = tmp_path / "some.swf"
    path.write_bytes(f"{header}\n{a_line(1, 0)}".encode("latin-1"))
    assert read_trace(path).processors == processors


def test_a_header_beyond_all_machines_counts_only_when_it_is_needed(tmp_path: Path) -> None:
    """Also one longer than Python's limit for numbers."""
    path = written(tmp_path, f"; MaxProcs: {'9' * 5000}\n" + a_line(1, 0))
    assert read_trace(path, 4).processors == 4
    with pytest.raises(TraceError, match="the number of processors in its header is larger than"):
        read_trace(path)


def test_columns_that_do_not_count_may_hold_anything(tmp_path: Path) -> None:
    """Unlimited memory, unmeasured times, names of programs."""
    line = f"1 0 nan 10 2 nan ? 4 60 {2**64 - 1} done 3 4 a.out 5 - - -\n"
    assert read_trace(written(tmp_path, line)).jobs == ((1, 0, 10, 4, 60, 3, 4, 5),)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("1 2 3\n", "some.swf:2: a job has 18 columns, the first 9 are needed, here are 3"),
        ("1 0 -1 ten 2 -1 -1 -1 -1\n", "some.swf:2: column 4 is 'ten', expected a number"),
        ("1 0 -1 nan 2 -1 -1 -1 -1\n", "some.swf:2: column 4 is 'nan', expected a number"),
        ("1 inf -1 1 2 -1 -1 -1 -1\n", "some.swf:2: column 2 is 'inf', expected a number"),
        ("1 0 -1 1e300 2 -1 -1 -1 -1\n", "some.swf:2: column 4 is 1e300, expected at most 1e+15"),
    ],
)
def test_a_line_that_is_no_job_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    """File, line, column and what was expected."""
    with pytest.raises(TraceError) as caught:
        read_trace(written(tmp_path, "; first\n" + line))
    assert str(caught.value).endswith(complaint)


def test_a_damaged_or_missing_file_is_named(tmp_path: Path) -> None:
    """In one sentence."""
    packed = tmp_path / "cut.gz"
    packed.write_bytes(gzip.compress(a_line(1, 0).encode() * 1000)[:-40])
    for path, words in ((packed, "the file is damaged"), (tmp_path / "none", "there is no such file")):
        with pytest.raises(TraceError, match=f"{path.name}: {words}"):
            read_trace(path)
    with pytest.raises(TraceError, match="directory"):
        read_trace(tmp_path)
