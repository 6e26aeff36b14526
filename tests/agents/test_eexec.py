"""The site's eexec around a job's own commands, lsf.md 5.4: what esub printed is its input, LS_EXEC_T says when."""

import asyncio
import subprocess
import threading
from pathlib import Path

import pytest

from agents.job_setup.commands import eexec


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """File to which the program below writes."""
    program = tmp_path / "eexec"
    program.write_text(f'#!/bin/sh\necho "$LS_EXEC_T:$(cat)" >> "{tmp_path}/seen"\nexit ${{EEXEC_CODE:-0}}\n')
    program.chmod(0o755)
    (tmp_path / "printed").write_text("token")
    return tmp_path / "seen"


def run(line: str, **environment: str) -> int:
    """Exit code of a command line, run as a job's pre-execution command is."""
    path = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(["/bin/sh", "-c", line], env={**path, **environment}, check=False).returncode


def test_around_the_jobs_own_commands(seen: Path) -> None:
    """First eexec, then the job's command; after the job in the reverse order; the job's exit codes stay."""
    place = seen.parent
    program, printed = eexec.program_in(str(place)), str(place / "printed")
    assert run(eexec.before(program, printed, f"echo own >> {seen}; exit 4")) == 4
    assert run(eexec.after(program, printed, f"echo own >> {seen}; exit 5")) == 5
    assert seen.read_text().splitlines() == ["START:token", "own", "own", "END:token"]


def test_alone(seen: Path) -> None:
    """A job without commands of its own, and one without output of an esub."""
    program = eexec.program_in(str(seen.parent))
    assert run(eexec.before(program, "", "")) == 0
    assert run(eexec.after(program, "", "")) == 0
    assert seen.read_text().splitlines() == ["START:", "END:"]


def test_a_failure_keeps_the_job_from_starting(seen: Path) -> None:
    """Its exit code is that of the command before the job, and the job's own is not run."""
    program = eexec.program_in(str(seen.parent))
    assert run(eexec.before(program, "", f"echo own >> {seen}"), EEXEC_CODE="7") == 7
    assert seen.read_text() == "START:\n"


def test_a_site_without_it(tmp_path: Path) -> None:
    """No directory, no program, or a file that is none: the job's own commands stay as they are."""
    (tmp_path / "eexec").write_text("")
    assert eexec.program_in("") == eexec.program_in(str(tmp_path)) == eexec.program_in("/nonexistent") == ""
    assert eexec.before("", "", "own") == eexec.after("", "", "own") == "own"


def test_a_file_server_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop goes on; the first answer is waited for, after that the last one holds, and one thread waits."""
    answers, asked = threading.Event(), []

    def hangs(directory: str) -> str:
        asked.append(directory)
        assert answers.wait(60)
        return f"{directory}/{len(asked)}"

    async def story() -> None:
        look_up = eexec.LookUp()
        first = asyncio.create_task(look_up.look("/tools"))
        await asyncio.sleep(0.05)
        assert not first.done()
        answers.set()
        assert await first == "/tools/1"
        answers.clear()
        assert [await look_up.look("/tools"), await look_up.look("/tools")] == ["/tools/1", "/tools/1"]
        assert asked == ["/tools"] * 2
        answers.set()
        async with asyncio.timeout(60):
            while (found := await look_up.look("/tools")) == "/tools/1":  # that of a thread which is not done yet
                pass
        assert found in ("/tools/2", "/tools/3")

    monkeypatch.setattr(eexec, "program_in", hangs)
    monkeypatch.setattr(eexec, "LOOK_UP_S", 0.1)
    asyncio.run(story())
