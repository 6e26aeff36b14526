"""`door`: starts a clean daemon in the right namespaces, or reports a sentence with the reason."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavactl.errors import CommandError
from lavactl.personal.hosts.namespace_exec import Passage
from lavactl.personal.starting import INSTALLATION, confirm, start
from tests.personal.people import Person

REPORT = """
import json, os, signal, sys
fields = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(json.dumps({
    "fds": [number for number in range(256) if os.path.exists(f"/proc/self/fd/{number}")],
    "environment": sorted(os.environb[name].decode() and name.decode() for name in os.environb),
    "cwd": os.getcwd(), "umask": os.umask(0), "leader": os.getsid(0) == os.getpid(),
    "ignored": fields["SigIgn"].strip(), "blocked": fields["SigBlk"].strip(), "capabilities": fields["CapEff"].strip(),
    "inheritable": fields["CapInh"].strip(), "ambient": fields["CapAmb"].strip(),
    "host": os.uname().nodename, "uid": os.getuid(), "gid": os.getgid(),
    "hosts": open("/etc/hosts").read(), "shm": os.listdir("/dev/shm"),
    "links": sorted(os.listdir("/proc/sys/net/ipv4/conf")),
}))
"""


@pytest.fixture
def noise() -> Iterator[None]:
    """A caller in disarray: an open inheritable file, an ignored and a blocked signal, a strict umask."""
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    umask = os.umask(0o077)
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    yield
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    signal.signal(signal.SIGHUP, previous)
    os.umask(umask)
    os.close(reader)
    os.close(writer)


def report(tmp_path: Path, passage: dict[str, object]) -> dict[str, object]:
    """Attributes that a process started by `door` sees of itself."""
    log = tmp_path / "log"
    argv = [sys.executable, "-S", "-c", REPORT]
    starting = start("The report", Passage(argv=argv, log=str(log), **passage))  # type: ignore[arg-type]
    confirm(starting)
    assert starting.process.wait(20) == 0, log.read_text()
    found: dict[str, object] = json.loads(log.read_text())
    return found


@pytest.mark.usefixtures("noise")
def test_a_daemon_inherits_nothing(tmp_path: Path) -> None:
    """No descriptor, variable, signal, directory, umask or terminal of the caller."""
    seen = report(tmp_path, {"environment": {"PATH": "/usr/bin", "LC_CTYPE": "C.UTF-8"}})
    assert seen["fds"] == [0, 1, 2]
    assert seen["environment"] == ["LC_CTYPE", "PATH"]
    assert (seen["cwd"], seen["umask"], seen["leader"]) == ("/", 0o022, True)
    # Python itself ignores SIGPIPE and SIGXFSZ; 32 and 33 are glibc's own, which its posix_spawn may leave ignored.
    harmless = sum(1 << number - 1 for number in (signal.SIGPIPE, signal.SIGXFSZ, 32, 33))
    assert int(str(seen["ignored"]), 16) & ~harmless == 0
    assert int(str(seen["blocked"]), 16) == 0


@pytest.mark.root
def test_a_host_has_its_own_name_files_network_and_shared_memory(tmp_path: Path) -> None:
    """And the machine keeps its own."""
    (tmp_path / "hosts").write_text("10.0.0.1 somewhere\n")
    own = os.uname().nodename, Path("/etc/hosts").read_text()
    seen = report(
        tmp_path,
        {
            "environment": {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            "unshare": ["net", "mnt", "uts"],
            "hostname": "elsewhere",
            "binds": [(str(tmp_path / "hosts"), "/etc/hosts")],
            "own_shared_memory": True,
            "steps": [(["ip", "-batch", "-"], "link set lo up\n")],
        },
    )
    assert seen["host"] == "elsewhere"
    assert seen["hosts"] == "10.0.0.1 somewhere\n"
    assert seen["shm"] == []
    assert seen["links"] == ["all", "default", "lo"]
    assert (os.uname().nodename, Path("/etc/hosts").read_text()) == own


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        ({"argv": ["/nonexistent/program"]}, "The thing cannot be started: .*No such file"),
        ({"argv": ["/bin/true"], "steps": [(["/bin/false"], "")]}, "cannot be started: /bin/false failed"),
        ({"argv": ["/bin/true"], "steps": [(["/nonexistent"], "")]}, "cannot be started: /nonexistent cannot be run"),
        ({"argv": ["/bin/true"], "enter_pid": 2**22 + 1, "enter": ["net"]}, "cannot find the net namespace"),
        ({"argv": ["/bin/true"], "log": "/nonexistent/log"}, "cannot be started: .*No such file"),
        ({"argv": ["/bin/true"], "groups": ["/nonexistent"]}, "cannot enter the control group /nonexistent"),
    ],
)
def test_whatever_fails_on_the_way_is_told(passage: dict[str, object], sentence: str) -> None:
    """One sentence, and no process."""
    starting = start("The thing", Passage(environment={}, **passage))  # type: ignore[arg-type]
    with pytest.raises(CommandError, match=sentence):
        confirm(starting)
    assert starting.process.poll() == 127


def test_an_ordinary_user_is_the_same_user_inside_and_just_as_powerless(user: Person) -> None:
    """In a namespace of the own, jobs run under the user's own ids and without a single capability."""
    script = (
        "import sys\n"
        "from lavactl.personal.hosts.namespace_exec import Passage\n"
        "from lavactl.personal.starting import confirm, start\n"
        f"report = {REPORT!r}\n"
        "passage = Passage([sys.executable, '-S', '-c', report], {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'},\n"
        "    unshare=['user', 'net', 'mnt', 'uts'], hostname='mine', own_shared_memory=True,\n"
        "    steps=[(['ip', '-batch', '-'], 'link add b0 type bridge\\n')], log=sys.argv[1])\n"
        "starting = start('x', passage)\nconfirm(starting)\nsys.exit(starting.process.wait())\n"
    )
    probe = user.run("unshare", "--user", "--net", "--mount", "true")
    if probe.returncode != 0:
        pytest.skip("user namespaces are closed on this machine")
    log = user.home / f"door-{os.getpid()}.log"
    done = user.run(str(user.commands / "python"), "-c", script, str(log), env={"PYTHONPATH": str(INSTALLATION)})
    try:
        assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
        seen = json.loads(log.read_text())
    finally:
        log.unlink(missing_ok=True)
    ids = subprocess.run(["id", "-u", user.name], capture_output=True, text=True, check=True).stdout
    assert seen["uid"] == int(ids)
    assert seen["host"] == "mine"
    assert "b0" in seen["links"]
    assert {seen[name] for name in ("capabilities", "inheritable", "ambient")} == {"0000000000000000"}
