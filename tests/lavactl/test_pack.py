"""bsub -pack: many jobs of one file, each line a command line of bsub."""

from pathlib import Path

import pytest

from lavactl.wire import messages
from protos import jobs_pb2
from tests.lavactl.scripted import Desk


def pack(desk: Desk, directory: Path, text: str, *results: jobs_pb2.SubmitResult) -> tuple[int, str, str]:
    """Submit a file with this text; exit code, output and errors."""
    (directory / "jobs").write_text(text)
    if results:
        desk.client.submit_results = list(results)
    found = desk.type("bsub", "-pack", "jobs", cwd=str(directory))
    return found.code, found.out, found.err


def done(*jobs: int) -> list[jobs_pb2.SubmitResult]:
    """Results of accepted jobs."""
    return [jobs_pb2.SubmitResult(job=job, queue="normal") for job in jobs]


def test_a_line_is_a_job(desk: Desk, tmp_path: Path) -> None:
    """lsf.md 1.2: a line for each job behind its number, then the counts; comments and empty lines are no jobs."""
    text = '# a pack\n-q normal -J one sleep 10\n\n-n 2 -R "mem > 1" sh -c "echo a; echo b"\r\n'
    assert pack(desk, tmp_path, text, *done(1201, 1202)) == (
        0,
        "Line#2 Job <1201> is submitted to queue <normal>.\n"
        "Line#4 Job <1202> is submitted to queue <normal>.\n"
        "2 lines parsed, 2 jobs submitted, 0 errors found.\n",
        "",
    )
    first, second = (item.spec for item in desk.client.asked)
    assert (list(first.queues), first.name, first.command) == (["normal"], "one", "sleep 10")
    assert (second.roles[0].tasks_min, second.roles[0].requirement) == (2, "mem > 1")
    assert second.command == 'sh -c "echo a; echo b"'
    assert b"HOME=/home/alice" in first.environment
    assert first.environment == second.environment
    assert len({item.request_id for item in desk.client.asked}) == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("-I true", "-I cannot be used in a pack"),
        ("-K true", "-K cannot be used in a pack"),
        ("-pack other", "-pack cannot be used in a pack"),
        ("-n x true", "-n x: expected min[,max], such as 4 or 2,8"),
        ("-J 'open", "the quote ' is not closed"),
        ("-q normal", "No command is specified"),
        (
            "-Lp gold true",
            "bsub -Lp: there are no licence projects; a shared resource of lsf.shared counts licences (-R rusage)",
        ),
    ],
)
def test_a_wrong_line_ends_it(desk: Desk, tmp_path: Path, line: str, why: str) -> None:
    """lsf.md 6.6, LSB_PACK_SKIP_ERROR N: the lines before it are submitted, those behind it are not."""
    code, out, err = pack(desk, tmp_path, f"true\n{line}\ntrue\n", *done(7))
    assert code == 255
    assert out.splitlines()[-1] == "2 lines parsed, 1 jobs submitted, 1 errors found."
    assert err == f"Line#2 {why}. Job not submitted.\n"


def test_it_goes_on_behind_errors(desk: Desk, tmp_path: Path) -> None:
    """lsf.md 6.6, LSB_PACK_SKIP_ERROR Y: also behind a job that the master refuses."""
    desk.environ["LSB_PACK_SKIP_ERROR"] = "Y"
    results = [jobs_pb2.SubmitResult(error="q: No such queue"), *done(8)]
    code, out, err = pack(desk, tmp_path, "-q q true\n-W x true\ntrue\n", *results)
    assert (code, out.splitlines()) == (
        255,
        ["Line#3 Job <8> is submitted to queue <normal>.", "3 lines parsed, 1 jobs submitted, 2 errors found."],
    )
    assert err.splitlines() == [
        "Line#2 -W x: expected [hours:]minutes, such as 90 or 1:30. Job not submitted.",
        "Line#1 q: No such queue. Job not submitted.",
    ]


def test_portions(desk: Desk, tmp_path: Path) -> None:
    """lsf.md 6.6, LSB_MAX_PACK_JOBS: jobs of one request; an error in one leaves the next unsent; 0 is never."""
    desk.environ["LSB_MAX_PACK_JOBS"] = "2"
    results = [*done(1), jobs_pb2.SubmitResult(error="Bad host name"), *done(3)]
    code, out, err = pack(desk, tmp_path, "true\ntrue\ntrue\n", *results)
    assert (code, out.splitlines()[-1]) == (255, "2 lines parsed, 1 jobs submitted, 1 errors found.")
    assert err == "Line#2 Bad host name. Job not submitted.\n"
    assert len(desk.client.asked) == 2
    desk.environ["LSB_MAX_PACK_JOBS"] = "0"
    why = "Packs of jobs are switched off here: LSB_MAX_PACK_JOBS is 0. Job not submitted.\n"
    assert pack(desk, tmp_path, "true\n") == (255, "", why)


def test_lines_with_files_fit_their_requests(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request ends before the line that would make it too large; one that no request holds is a wrong line."""
    desk.environ["LSB_PACK_SKIP_ERROR"] = "Y"
    (tmp_path / "data").write_bytes(bytes(3 << 20))
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n" + "#" * (3 << 20))
    requests: list[int] = []

    def submit_all(items: list[jobs_pb2.SubmitItem]) -> list[jobs_pb2.SubmitResult]:
        requests.append(len(messages.SubmitBatch(items=items).SerializeToString()))
        return [jobs_pb2.SubmitResult(job=len(requests), queue="normal") for _ in items]

    monkeypatch.setattr(desk.client, "submit_all", submit_all)
    lines = "true\n-is data cat\n-is data cat\n-is data -Zs job.sh\nfalse\n"
    code, out, err = pack(desk, tmp_path, lines)
    assert (code, out.splitlines()[-1]) == (255, "5 lines parsed, 4 jobs submitted, 1 errors found.")
    assert err == "Line#4 The job, its files and its environment are larger than 4 MiB. Job not submitted.\n"
    assert [size >> 20 for size in requests] == [3, 3]


def test_a_refusal_for_now(desk: Desk, tmp_path: Path) -> None:
    """lsf.md 1.2: pending-job limit, then again; only what was refused is sent again, with its request id."""
    later = jobs_pb2.SubmitResult(error="Pending job threshold reached", retry_later=True, retry_s=5)
    code, out, err = pack(desk, tmp_path, "true\nfalse\n", *done(1), later, *done(2))
    assert (code, out.splitlines()[-1]) == (0, "2 lines parsed, 2 jobs submitted, 0 errors found.")
    assert err == "Pending job threshold reached. Retrying in 5 seconds...\n"
    assert desk.slept == [5]
    first, again = desk.client.asked[1:]
    assert (first.request_id, first.retry, again.request_id, again.retry) == (first.request_id, False,
                                                                              first.request_id, True)  # fmt: skip


def test_what_cannot_be_read(desk: Desk, tmp_path: Path) -> None:
    """A sentence each; nothing is submitted."""
    assert desk.type("bsub", "-pack", "/nowhere").err == "/nowhere: the file cannot be read. Job not submitted.\n"
    found = desk.type("bsub", "-q", "normal", "-pack", "x")
    why = "-pack takes a file and nothing beside it, found -q: each line has its own options. Job not submitted.\n"
    assert (found.code, found.err) == (255, why)
    assert not desk.client.asked
