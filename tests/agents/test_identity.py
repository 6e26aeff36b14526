"""Processes of a user are started by a process that never takes that user's identity."""

import errno
import os
import platform
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.shepherd import messages
from agents.shepherd.process import exec_helper, identity
from agents.shepherd.process.identity import Identity
from tests.acceptance.personal import wait_for

pytestmark = pytest.mark.root
ENVIRONMENT = {b"PATH": b"/usr/bin:/bin"}
OF_THE_C_LIBRARY = 1 << 31 | 1 << 32  # signals 32 and 33, reserved by the C library
# Assembler sources of the helper for each processor.
ASSEMBLERS = {
    "x86_64": (exec_helper.X86_64, ("as", "x86_64-linux-gnu-as")),
    "aarch64": (exec_helper.AARCH64, ("as", "aarch64-linux-gnu-as")),
}


@pytest.fixture(params=["helper", "fork"])
def person(request: pytest.FixtureRequest, somebody: pwd.struct_passwd) -> Iterator[Identity]:
    """An identity that has opened files as a user, by each way of starting programs."""
    if request.param == "helper" and platform.machine() not in exec_helper.CODE:
        pytest.skip("no helper for this processor")
    one = Identity()
    if request.param == "fork":
        one._helper = -1
    before = os.getgroups(), os.getgid()
    one.open_files_as(somebody.pw_uid, somebody.pw_gid, (somebody.pw_gid,))
    yield one
    one.back()
    os.setresgid(before[1], before[1], before[1])
    os.setgroups(before[0])


def _output_of(person: Identity, *argv: str) -> str:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    pid = person.start(argv[0], argv, ENVIRONMENT, (null, writer, writer))
    os.close(writer)
    os.close(null)
    with open(reader, encoding="utf-8") as file:
        text = file.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, text
    return text


def _is_inherited(descriptor: int) -> bool:
    """True if a child of the tests would inherit it (beyond 0 to 2, and descriptors of the tests' own caller)."""
    try:
        return descriptor > 3 and os.get_inheritable(descriptor)
    except OSError:
        return False


def test_a_program_has_the_users_ids_and_nothing_else(person: Identity, somebody: pwd.struct_passwd) -> None:
    """All its ids are the user's; no capability, no blocked or ignored signal, no descriptor comes along."""
    status = _output_of(person, "/bin/cat", "/proc/self/status")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    assert fields["Uid"].split() == [str(somebody.pw_uid)] * 4
    assert fields["Gid"].split() == [str(somebody.pw_gid)] * 4
    assert int(fields["CapPrm"], 16) == int(fields["CapEff"], 16) == int(fields["CapAmb"], 16) == 0
    assert int(fields["SigBlk"], 16) == int(fields["SigIgn"], 16) & ~OF_THE_C_LIBRARY == 0
    inherited = {name for name in os.listdir("/proc/self/fd") if _is_inherited(int(name))}
    assert set(_output_of(person, "/bin/ls", "/proc/self/fd").split()) - inherited == {"0", "1", "2", "3"}
    assert os.getresuid() == (0, somebody.pw_uid, 0)


@pytest.mark.parametrize(("path", "number"), [("/no/such", errno.ENOENT), ("/etc/passwd", errno.EACCES)])
def test_what_cannot_be_executed_is_told(person: Identity, path: str, number: int) -> None:
    """At once, or when the process has ended."""
    with pytest.raises(OSError, match=os.strerror(number)) as told:
        person.start(path, (path,), ENVIRONMENT, (0, 1, 2))
    assert told.value.errno == number


def test_a_start_that_is_not_waited_for(person: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that takes too long to be found counts as started; the failure is reported at its end."""
    monkeypatch.setattr(identity, "_is_readable", lambda descriptor, limit_s: limit_s == 0)
    failed = person.start("/no/such", ("x",), ENVIRONMENT, (0, 1, 2))
    assert os.waitpid(failed, 0)[1] == identity.CANNOT_EXEC << 8
    assert person.late_failure(failed) == errno.ENOENT
    assert person.late_failure(failed) == 0
    started = person.start("/bin/true", ("true",), ENVIRONMENT, (0, 1, 2))
    assert os.waitpid(started, 0)[1] == 0
    assert person.late_failure(started) == 0


def test_a_site_that_forbids_programs_in_memory(
    person: Identity, somebody: pwd.struct_passwd, capfd: pytest.CaptureFixture[str]
) -> None:
    """The helper is disabled once, with a log line, and jobs start all the same."""
    person._helper = os.open("/etc/passwd", os.O_RDONLY | os.O_CLOEXEC)
    assert _output_of(person, "/usr/bin/id", "-u").strip() == str(somebody.pw_uid)
    assert _output_of(person, "/usr/bin/id", "-ru").strip() == str(somebody.pw_uid)
    assert capfd.readouterr().err.count("event=helper_not_executable") == 1


def test_something_is_done_as_the_user(person: Identity, somebody: pwd.struct_passwd) -> None:
    """A separate process takes the user's ids; this one keeps its own."""
    person.back()
    reader, writer = os.pipe()
    person.do_as_user(lambda: messages.write_all(writer, b"%d %d %d" % os.getresuid()))
    os.close(writer)
    with open(reader, "rb") as file:
        assert file.read().split() == [b"%d" % somebody.pw_uid] * 3
    os.waitpid(-1, 0)
    assert os.getresuid() == (0, 0, 0)


@pytest.mark.parametrize("processor", ASSEMBLERS)
def test_the_helper_is_what_its_source_says(processor: str, tmp_path: Path) -> None:
    """An assembler makes of the source just the code that is used."""
    source, names = ASSEMBLERS[processor]
    assembler = next((name for name in names[platform.machine() != processor :] if shutil.which(name)), "")
    if not assembler:
        pytest.skip(f"no assembler for {processor}")
    subprocess.run([assembler, "-o", tmp_path / "object"], input=source, text=True, check=True)
    prefix = assembler.removesuffix("as")
    words = [f"{prefix}objcopy", "-O", "binary", "-j", ".text", tmp_path / "object", tmp_path / "code"]
    subprocess.run(words, check=True)
    assert (tmp_path / "code").read_bytes().hex() == exec_helper.CODE[processor][1]


def test_a_processor_without_a_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor without a helper is no error."""
    known = os.uname()
    other = os.uname_result((known.sysname, known.nodename, known.release, known.version, "s390x"))
    monkeypatch.setattr(os, "uname", lambda: other)
    assert exec_helper.make() == -1


def test_a_program_does_not_outlive_who_started_it(person: Identity) -> None:
    """It is killed in the moment in which its shepherd is, so that no exit code is missed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # the shepherd
        pid = person.start("/bin/sleep", ("sleep", "300"), ENVIRONMENT, (0, 1, 2))
        os.write(writer, b"%d" % pid)
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(writer)
    with open(reader, "rb") as file:
        pid = int(file.read())
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    wait_for(lambda: not _lives(pid), 60, "the program to be killed", 0.02)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
