"""elims: their output format, restarts of failed ones, and their end with the agent."""

import time
from pathlib import Path

import pytest

from agents.sensors.elim import ElimError, Elims, parse

LIMIT_S = 60.0


def test_lines() -> None:
    """A count and that number of pairs, nothing else."""
    assert parse(b"2 scratch 12.5 lic 3\n") == {"scratch": 12.5, "lic": 3.0}
    for line in (b"", b"2 scratch 1", b"scratch 1", b"1 scratch nan", b"1 scratch x", b"1 scratch 1e300"):
        with pytest.raises(ElimError):
            parse(line)


def _until(elims: Elims, expected: dict[str, float]) -> None:
    end = time.monotonic() + LIMIT_S
    while elims.values() != expected:
        assert time.monotonic() < end, elims.values()
        time.sleep(0.01)


def test_programs_report_what_they_are_asked_for(tmp_path: Path) -> None:
    """Names come in LSF_RESOURCES; other names are ignored; a program that ends is restarted."""
    program = tmp_path / "elim.own"
    program.write_text('#!/bin/sh\necho x >> "$0.runs"\necho "3 $LSF_RESOURCES 7 other 1 more 2"\n')
    program.chmod(0o755)
    elims = Elims(tmp_path)
    elims.expect(("scratch",))
    try:
        _until(elims, {"scratch": 7.0})
        end = time.monotonic() + LIMIT_S
        while (tmp_path / "elim.own.runs").read_text().count("x") < 2:
            assert time.monotonic() < end, "it was not started again"
            time.sleep(0.05)
    finally:
        elims.close()


def test_the_sites_programs_are_started_too(tmp_path: Path) -> None:
    """L3: an elim in LSF_SERVERDIR, where LSF has it, never ran; one of the same name in the host's own goes before."""
    for place, name, value in (("own", "elim", 1), ("site", "elim", 2), ("site", "elim.more", 3)):
        program = tmp_path / place / name
        program.parent.mkdir(exist_ok=True)
        resource = "scratch" if name == "elim" else "fast"
        program.write_text(f"#!/bin/sh\necho 1 {resource} {value}\nexec sleep 60\n")
        program.chmod(0o755)
    elims = Elims(tmp_path / "own")
    elims.look_in(str(tmp_path / "site"))
    elims.expect(("scratch", "fast"))
    try:
        _until(elims, {"scratch": 1.0, "fast": 3.0})
    finally:
        elims.close()


def test_a_program_that_others_may_write_is_not_run(tmp_path: Path) -> None:
    """It would run with the agent's rights."""
    program = tmp_path / "elim"
    program.write_text("#!/bin/sh\necho 1 scratch 7\n")
    program.chmod(0o777)
    elims = Elims(tmp_path)
    elims.expect(("scratch",))
    assert not elims._running
    elims.close()
