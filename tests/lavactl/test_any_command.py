"""Rules for every command: malformed arguments give one sentence, -h and -V answer, no heavy module is imported."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lavactl.main import COMMANDS, run
from protos import __version__
from tests.lavactl.scripted import Desk, a_job

ROOT = Path(__file__).resolve().parents[2]
OURS = [name for name in COMMANDS if name not in ("blaunch", "lavarun")]
NONSENSE = [
    ["-zzz"],
    ["--bogus", "x"],
    ["-o"],
    ["-\x1b[2J"],
    ["-é"],
    ["\x1b[31mred\nline"],
    ["999999999999999999999999999999"],
    ["1[2", "-J"],
    ["-u", "\udcff\udcfe"],
    ["-o", "%n%s{}", "-o", "jobid:99999999"],
    [""],
]


@pytest.mark.parametrize("argv", NONSENSE, ids=repr)
@pytest.mark.parametrize("name", [name for name in OURS if name != "bsub"])
def test_nonsense_is_one_sentence(desk: Desk, name: str, argv: list[str]) -> None:
    """Exit code not zero, a sentence on stderr and at most the usage after it, no control characters, no traceback."""
    result = desk.type(name, *argv)
    assert result.code in (99, 255) or not result.err or name == "bjobs"
    if result.code:
        assert result.err
    assert "Traceback" not in result.err
    assert "unexpected" not in result.err
    assert "\x1b" not in result.err + result.out
    sentence, _, rest = result.err.partition("\n")
    assert not sentence or sentence.isprintable()
    assert not rest or rest.startswith("Usage:") or "No such queue" in result.err or "host" in result.err


@pytest.mark.parametrize(
    "argv", [["-zzz"], ["-n", "x", "a"], ["-J", "\x1b[2J", "a"], ["-q"], ["-R"], ["-J", "\udcff", "a"]]
)
def test_nonsense_for_bsub(desk: Desk, argv: list[str]) -> None:
    """The sentence ends as LSF's."""
    result = desk.type("bsub", *argv)
    assert result.code == 255
    assert result.err.partition("\n")[0].endswith("Job not submitted.")
    assert "\x1b" not in result.err


@pytest.mark.parametrize("name", OURS)
def test_help_and_version(desk: Desk, name: str) -> None:
    """-h can be paged (LSF writes it to stderr), -V is one line."""
    shown = desk.type(name, "-h")
    assert shown.code == 0
    assert shown.out.startswith(f"Usage: {name}")
    assert (desk.type(name, "-V").code, desk.type(name, "-V").out) == (0, f"lava {__version__}\n")


@pytest.mark.parametrize("name", OURS)
def test_an_unknown_option_shows_the_usage(desk: Desk, name: str) -> None:
    """One sentence, then how to call it, exit code 255."""
    result = desk.type(name, "-zzz")
    assert result.code == 255
    assert result.err.startswith(f"{name}: illegal option -- zzz")
    assert f"\nUsage: {name}" in result.err


def test_lavactl_takes_the_command_as_its_first_word(desk: Desk) -> None:
    """`lavactl bjobs` is bjobs."""
    desk.client.jobs = [a_job()]
    assert desk.type("lavactl", "bjobs", "-noheader", "-o", "jobid").out == "1201\n"
    assert desk.type("lavactl", "nonsense").code == 255
    assert desk.type("lavactl").err.startswith("lavactl: no command is specified.\nUsage: lavactl")


def test_an_unforeseen_error_is_one_sentence(desk: Desk) -> None:
    """A bug of ours is no traceback, unless LAVA_DEBUG=1 asks for it."""

    class Broken:
        def info(self) -> None:
            raise RuntimeError("boom")

    result = desk.type("lsid", client=Broken())
    assert (result.code, result.err) == (255, "lsid: unexpected RuntimeError: boom\n")
    desk.environ["LAVA_DEBUG"] = "1"
    assert "Traceback" in desk.type("lsid", client=Broken()).err


def test_interrupt_is_130(desk: Desk) -> None:
    """Ctrl-C."""

    class Interrupted:
        def info(self) -> None:
            raise KeyboardInterrupt

    assert desk.type("lsid", client=Interrupted()).code == 130


def test_a_full_disk_is_reported(desk: Desk) -> None:
    """Output that cannot be written is a failure."""
    desk.type("lsid")
    io = desk.last_io
    assert io is not None
    with open("/dev/full", "wb") as full:
        io._stdout = full
        assert run("lsid", [], io) == 255
        io._stdout = None
        full.raw.close()


HEAVY = (
    "grpc", "google.protobuf", "asyncio", "argparse", "dataclasses", "inspect", "typing", "re", "enum", "socket",
    "subprocess", "logging", "json", "shlex", "pathlib", "threading", "collections",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("module", ["lavactl.commands.bsub", "lavactl.commands.bjobs", "lavactl.commands.bkill"])
def test_import_budget(module: str) -> None:
    """spike-cli.md: start-up is imports; each of these costs milliseconds in every call."""
    code = f"import sys, lavactl.main, {module}, lavactl.wire.client; print(' '.join(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert not set(HEAVY) & set(out)


def as_process(*argv: str, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run a command as a process of its own."""
    return subprocess.run([sys.executable, "-m", "lavactl", *argv], cwd=ROOT, env=env, capture_output=True, check=False)


@pytest.mark.slow
def test_without_an_agent_one_sentence_says_what_to_do(tmp_path: Path) -> None:
    """Without an agent the sentence says how to fix it."""
    result = as_process("bjobs", env={**os.environ, "LAVA_SOCKET": str(tmp_path / "none.sock")})
    assert result.returncode == 255
    assert result.stderr.startswith(b"Cannot reach the lava agent of this host at ")
    assert result.stderr.count(b"\n") == 1


@pytest.mark.slow
def test_a_reader_that_left_ends_the_command_quietly() -> None:
    """`command | head` dies by SIGPIPE and prints nothing."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "lavactl", "bkill", "-l"],
            cwd=ROOT,
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert result.returncode == -signal.SIGPIPE
    assert result.stderr == b""


@pytest.mark.slow
def test_the_jobs_environment_is_the_one_given_at_exec() -> None:
    """spike-cli.md: Python adds LC_CTYPE to its own environment; a job must not inherit it."""
    code = "from lavactl.io import Io; print(sorted(Io().raw_environ))"
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={"A": "1", "LC_ALL": "C"}, capture_output=True, check=True
    ).stdout
    assert out == b"[b'A=1', b'LC_ALL=C']\n"
