"""A personal cluster from `up` to `down`, with the real daemons, as root and as an ordinary user."""

import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.personal.people import Person, record, table
from tests.personal.traces import all_namespaces, look, namespaces_of

pytestmark = [pytest.mark.slow, pytest.mark.acceptance]

PATIENCE_S = 60


def until(what: str, happened: Callable[[], object]) -> None:
    """Wait, for a bounded time, until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def kept(short_directory: Callable[[Person], Path]) -> Iterator[Callable[[Person, int], Path]]:
    """Bring up a cluster of that person and size, made under a strict umask; tests that leave it whole share it."""
    made: dict[tuple[str, int], tuple[Person, Path]] = {}

    def whole(person: Person, hosts: int) -> Path:
        if (person.name, hosts) not in made:
            owner = Person(person.name, person.home, person.commands, person.become)
            made[person.name, hosts] = owner, short_directory(owner) / "D"
        owner, directory = made[person.name, hosts]
        before = os.umask(0o077)
        try:
            owner.up(directory, *(() if directory.exists() else ("--hosts", str(hosts), "--slots", "1")))
        finally:
            os.umask(before)
        return directory

    yield whole
    for owner, _ in made.values():
        owner.purge()


def bhosts(person: Person, environment: dict[str, str]) -> dict[str, str]:
    """Host name to status, as bhosts shows them."""
    done = person.run("bhosts", env=environment)
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()[1:]}


def test_a_cluster_comes_up_runs_a_job_and_leaves_nothing(person: Person, directory: Path) -> None:
    """Processes, namespaces, links, mounts, control groups and sockets are gone after `down`, a running job's too."""
    before = all_namespaces()
    person.up(directory, "--hosts", "2", "--slots", "2")
    identity = record(directory)["id"]
    environment = person.shell_environment(directory)
    assert bhosts(person, environment) == {"lava1": "ok", "lava2": "ok"}
    done = person.run("bsub", "-K", "-o", str(directory / "out"), "hostname", env=environment)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^lava[12]$", (directory / "out").read_text(), re.MULTILINE)
    marker = directory / "running"
    command = f"setsid sh -c 'trap \"\" TERM; touch {marker}; while :; do sleep 1; done' & wait"
    assert person.run("bsub", "-o", "/dev/null", command, env=environment).returncode == 0
    until("the stubborn job to run", marker.exists)
    up = look(directory, identity)
    own = namespaces_of([pid for pid, _ in up.processes])
    assert len(up.processes) > 6
    assert own
    asked = time.time()
    person.lavactl("down", "--dir", str(directory))
    down = look(directory, identity)
    assert down.processes == frozenset()
    assert all_namespaces(asked) & own <= before
    assert (down.links, down.mounts, down.groups) == (frozenset(), frozenset(), frozenset())
    assert not [name for name in down.sockets if "lava-t-" not in name]
    assert not list(directory.glob("*.pid"))


def test_jobs_that_can_be_rerun_run_again_after_down_and_up(
    user: Person, short_directory: Callable[[Person], Path]
) -> None:
    """The others have ended, and their history shows the reason."""
    directory = short_directory(user) / "D"
    user.up(directory, "--hosts", "1", "--slots", "2")
    environment, ran = user.shell_environment(directory), directory / "ran"
    for options in (["-r"], ["-rn"]):
        command = f"echo $LSB_JOBID >>{ran}; while ! test -e {directory}/end; do sleep 0.1; done"
        assert user.run("bsub", *options, "-o", "/dev/null", command, env=environment).returncode == 0
    until("both jobs to run", lambda: ran.exists() and len(ran.read_text().split()) == 2)
    user.lavactl("down", "--dir", str(directory))
    user.up(directory)
    until("the first job to run again", lambda: ran.read_text().split().count("1") == 2)
    environment = user.shell_environment(directory)
    again, ended = ("".join(user.run("bhist", "-l", job, env=environment).stdout.split()) for job in ("1", "2"))
    assert "Pending:Jobhasbeenrequeued" in again  # lines break anywhere
    assert "TERM_ADMIN:jobkilledbyrootorLSFadministrator.Itshostwastakendown" in ended
    (directory / "end").touch()
    until("it to end", lambda: "DONE" in user.run("bjobs", "-a", "1", env=environment).stdout)
    assert ran.read_text().split().count("2") == 1
    user.lavactl("down", "--dir", str(directory))


def test_a_stopped_cluster_goes_on_with_its_state(user: Person, short_directory: Callable[[Person], Path]) -> None:
    """Job numbers, history and size survive; a second `up` changes nothing and exits with 0."""
    directory = short_directory(user) / "D"
    user.up(directory, "--hosts", "1", "--slots", "1")
    environment = user.shell_environment(directory)
    assert user.run("bsub", "-K", "-o", "/dev/null", "true", env=environment).returncode == 0
    user.lavactl("down", "--dir", str(directory))
    assert user.run("lavactl", "env", "--dir", str(directory)).returncode != 0
    user.up(directory)
    pids = table(directory)
    done = user.run("lavactl", "up", "--dir", str(directory), "--hosts", "3")
    assert done.returncode == 0
    assert done.stderr == "The cluster exists and keeps its size: --hosts 1, not 3.\n"
    assert table(directory) == pids
    environment = user.shell_environment(directory)
    assert "<1>" in user.run("bhist", "-l", "1", env=environment).stdout
    answer = user.run("bsub", "-o", "/dev/null", "true", env=environment)
    assert "Job <2> is submitted" in answer.stdout
    user.lavactl("down", "--purge", "--dir", str(directory))
    assert not directory.exists()


@pytest.mark.root
def test_what_was_killed_is_started_again_by_up_and_by_nothing_else(
    root: Person, kept: Callable[[Person, int], Path]
) -> None:
    """Pid files name the daemons; `up` starts missing ones and leaves the others alone."""
    directory = kept(root, 2)
    before = table(directory)
    for name in ("lavad", "agent-lava2"):
        pid = int((directory / f"{name}.pid").read_text())
        assert pid == before[name.replace("-", " ", 1)]
        os.kill(pid, signal.SIGKILL)
        until(f"{name} to be gone", lambda pid=pid: not Path(f"/proc/{pid}/exe").exists())
    root.lavactl("up", "--dir", str(directory))
    after = table(directory)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"lavad", "agent lava2"}
    assert bhosts(root, root.shell_environment(directory)) == {"lava1": "ok", "lava2": "ok"}


def test_a_crashed_host_is_made_anew(person: Person, kept: Callable[[Person, int], Path]) -> None:
    """After the death of the process that holds a host's namespaces, `up` ends remaining processes and rebuilds the
    host.
    """
    directory = kept(person, 2)
    before = table(directory)
    os.kill(before["host lava1"], signal.SIGKILL)
    until("the host to be gone", lambda: not Path(f"/proc/{before['host lava1']}/exe").exists())
    person.lavactl("up", "--dir", str(directory))
    after = table(directory)
    assert {name for name in before if before[name] != after[name]} == {"host lava1", "agent lava1"}
    assert not Path(f"/proc/{before['agent lava1']}/exe").exists()
    assert bhosts(person, person.shell_environment(directory)) == {"lava1": "ok", "lava2": "ok"}


@pytest.mark.root
def test_two_clusters_live_side_by_side(root: Person, short_directory: Callable[[Person], Path]) -> None:
    """Each with its own network; taking one down leaves the other running."""
    directory = short_directory(root) / "D"
    other = short_directory(root) / "E"
    root.up(directory, "--hosts", "1", "--slots", "1")
    root.up(other, "--hosts", "1", "--slots", "1")
    assert record(directory)["subnet"] != record(other)["subnet"]
    first, second = root.shell_environment(directory), root.shell_environment(other)
    assert root.run("bsub", "-K", "-o", str(directory / "out"), "hostname", env=first).returncode == 0
    root.lavactl("down", "--dir", str(directory))
    done = root.run("bsub", "-K", "-o", str(other / "out"), "hostname", env=second)
    assert done.returncode == 0, done.stderr
    assert "lava1" in (other / "out").read_text()


def test_hosts_are_apart_in_name_and_network_and_together_in_files(
    person: Person, kept: Callable[[Person, int], Path]
) -> None:
    """Each has its own name, address and /dev/shm, knows the others by name, and shares /tmp."""
    directory = kept(person, 2)
    environment = person.shell_environment(directory)
    script = (
        "hostname; getent hosts lava1 lava2 | awk '{print $2}'; touch /dev/shm/mine-$(hostname); ls /dev/shm;"
        " wc -c < /etc/resolv.conf; ls -d " + str(directory)
    )
    for host in ("lava1", "lava2"):
        out = directory / f"out-{host}"
        done = person.run("bsub", "-K", "-m", host, "-o", str(out), script, env=environment)
        assert done.returncode == 0, done.stderr
        text = out.read_text()
        assert f"{host}\nlava1\nlava2\nmine-{host}\n0\n{directory}\n" in text


@pytest.mark.root
def test_roots_cluster_serves_every_user_and_shows_no_secret(
    root: Person, user: Person, kept: Callable[[Person, int], Path]
) -> None:
    """Another user submits through root's cluster and runs as himself; the cluster's secrets stay closed to him."""
    directory = kept(root, 1)
    exports = root.shell_environment(directory)
    out = user.home / "out"
    done = user.run("bsub", "-K", "-o", str(out), "id -un; hostname", env={**exports, "HOME": str(user.home)})
    assert done.returncode == 0, done.stderr
    assert f"{user.name}\nlava1\n" in out.read_text()
    assert out.stat().st_uid != 0
    for name in ("master.key", "ca/ca.key", "ticket", "tickets", "hosts/lava1/identity/agent.pem", "state/lava.db"):
        assert user.run("cat", str(directory / name)).returncode != 0, name
    assert user.run("lavactl", "down", "--dir", str(directory)).returncode != 0
    assert bhosts(root, exports) == {"lava1": "ok"}


@pytest.mark.root
def test_only_sockets_and_commands_are_open_to_others(root: Person, kept: Callable[[Person, int], Path]) -> None:
    """Every file with a secret is closed, every socket of the run directory is open."""
    directory = kept(root, 1)
    run = Path(record(directory)["run_dir"])
    assert run.stat().st_mode & 0o777 == 0o755
    for path in run.iterdir():
        if stat.S_ISSOCK(path.stat().st_mode):
            assert path.stat().st_mode & 0o777 == 0o666
    for path in directory.rglob("*"):
        if path.suffix == ".key" or path.name in ("agent.pem", "ticket", "tickets"):
            assert path.stat().st_mode & 0o077 == 0, path


@contextmanager
def closed_to_namespaces(person: Person) -> Iterator[Person]:
    """The same person on a machine without user namespaces: inside one whose limit admits no more."""
    script = "echo 0 > /proc/sys/user/max_user_namespaces && echo $$ && exec sleep 600"
    command = [*person.become, "unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        pid = holder.stdout.readline().strip()
        if not pid:
            pytest.skip("user namespaces cannot be limited on this machine")
        enter = ("nsenter", "--target", pid, "--user", "--preserve-credentials")
        try:
            yield Person(person.name, person.home, person.commands, (*person.become, *enter), person.directories)
        finally:
            os.kill(int(pid), signal.SIGKILL)


def test_without_namespaces_hosts_are_loopback_addresses(
    user: Person, short_directory: Callable[[Person], Path]
) -> None:
    """One line reports that MPI is left out; jobs run all the same, and `down` leaves nothing."""
    with closed_to_namespaces(user) as closed:
        directory = short_directory(user) / "D"
        said = closed.up(directory, "--hosts", "2", "--slots", "1")
        assert "MPI over several hosts is left out" in said
        environment = closed.shell_environment(directory)
        assert bhosts(closed, environment) == {"lava1": "ok", "lava2": "ok"}
        marker = directory / "running"
        command = f"touch {marker}; sleep 600"
        assert closed.run("bsub", "-o", "/dev/null", command, env=environment).returncode == 0
        until("the job to run", marker.exists)
        closed.lavactl("down", "--dir", str(directory))
        assert look(directory, record(directory)["id"]).processes == frozenset()


def test_a_daemon_that_cannot_start_is_one_sentence_with_its_log(
    user: Person, kept: Callable[[Person, int], Path]
) -> None:
    """No process is left of the attempt."""
    directory = kept(user, 1)
    user.lavactl("down", "--dir", str(directory))
    (directory / "master.key").chmod(0o644)
    done = user.run("lavactl", "up", "--dir", str(directory))
    assert done.returncode != 0
    assert done.stdout == ""
    assert re.fullmatch(rf"lavad ended at once: .*chmod 600.* \(see {directory}/log/lavad\.log\)\.\n", done.stderr)
    assert look(directory, record(directory)["id"]).processes == frozenset()
    (directory / "master.key").chmod(0o600)
    user.lavactl("up", "--dir", str(directory))


def test_two_commands_at_once_do_not_meet(user: Person, kept: Callable[[Person, int], Path]) -> None:
    """Of two `up` of one cluster one works and the other is refused; afterwards there is one of each daemon."""
    directory = kept(user, 1)
    user.lavactl("down", "--dir", str(directory))
    command = [*user.become, str(user.commands / "lavactl"), "up", "--dir", str(directory)]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    ends = [(one.communicate(timeout=PATIENCE_S)[1], one.returncode) for one in both]
    assert any(code == 0 for _, code in ends)
    for said, code in ends:
        assert code == 0 or said == f"Another lavactl up or down is at work on {directory}.\n"
    assert len(look(directory, record(directory)["id"]).processes) >= 3


def test_without_iproute2_the_answer_is_one_sentence(
    user: Person, short_directory: Callable[[Person], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The missing package is named."""
    from lavactl.errors import CommandError
    from lavactl.personal.hosts import network

    monkeypatch.setattr(network, "SYSTEM_PATH", "/nonexistent")
    with pytest.raises(CommandError, match="install the package iproute2"):
        network.ip_program()


@pytest.mark.parametrize(
    "argv",
    [
        ["up", "--hosts", "0"],
        ["up", "--hosts", "251"],
        ["up", "--hosts", "two"],
        ["up", "--slots", "-1"],
        ["up", "--simulate-gpus", "x"],
        ["up", "--db", "mysql://x"],
        ["up", "--dir", ""],
        ["up", "--dir", "/proc/x"],
        ["up", "extra"],
        ["up", "--dir"],
        ["up", "--nonsense"],
        ["down", "--dir", "/nonexistent"],
        ["down", "--purge=1"],
        ["down", "extra"],
        ["env", "--dir", "/etc/passwd"],
        ["env", "extra"],
    ],
)
def test_nonsense_is_answered_with_a_sentence(user: Person, argv: list[str]) -> None:
    """No traceback, nothing on standard output that a shell would run, nothing created."""
    done = user.run("lavactl", *argv, env={"XDG_DATA_HOME": str(user.home / "none")})
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr
    assert not (user.home / "none").exists()
