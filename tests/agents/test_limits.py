"""Control groups: discovery from the kernel's files, version 2 on a directory of plain files, version 1 for real."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agents.shepherd.confinement import groups, hierarchy
from agents.shepherd.confinement.groups import MIB, OWN_GROWTH, GroupV2
from agents.shepherd.confinement.hierarchy import Base, discover
from agents.shepherd.confinement.task_groups import TaskGroups
from agents.shepherd.process import processes

V1_MEMBERSHIPS = "9:name=systemd:/\n8:pids:/\n4:memory:/box/7\n2:cpuacct:/\n1:cpu:/\n0::/\n"
V1_MOUNTS = """31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
33 31 0:30 / /cg/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
35 31 0:32 / /cg/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /cg/pids rw,relatime shared:4 - cgroup cgroup rw,pids
41 31 0:38 / /cg/unified rw,relatime - cgroup2 cgroup2 rw
"""


def v2_mounts(point: Path, root: str = "/") -> str:
    """A machine with version 2 alone."""
    return f"41 31 0:38 {root} {point} rw,relatime - cgroup2 cgroup2 rw\n"


def test_version_1_groups_are_below_our_own() -> None:
    """Each controller has a path of its own; an empty version 2 hierarchy is ignored."""
    base = discover("lava-x", V1_MEMBERSHIPS, V1_MOUNTS)
    assert base.version == 1
    assert dict(base.paths) == {
        "cpuacct": "/cg/cpuacct/lava-x",
        "memory": "/cg/memory/box/7/lava-x",
        "pids": "/cg/pids/lava-x",
    }
    assert base.slot_main(3) == "/cg/pids/lava-x/3"


def test_the_cpuset_controller_is_taken_along(tmp_path: Path) -> None:
    """A cpuset group copies its parent's CPUs and nodes; a parent without any is left out."""
    memberships, mounts = "3:cpuset:/\n" + V1_MEMBERSHIPS, V1_MOUNTS.replace("/cg/", f"{tmp_path}/")
    mounts += f"40 31 0:37 / {tmp_path}/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    base = discover("lava-x", memberships, mounts)
    assert dict(base.paths)["cpuset"] == f"{tmp_path}/cpuset/lava-x"
    above, own = tmp_path / "cpuset", tmp_path / "cpuset" / "lava-x"
    own.mkdir(parents=True)
    for name, text in (("cpuset.cpus", "0-3\n"), ("cpuset.mems", "0\n")):
        (above / name).write_text(text)
        (own / name).write_text("")
    assert hierarchy.prepare(base) == base
    assert (own / "cpuset.cpus").read_text() == "0-3"
    (above / "cpuset.cpus").unlink()
    assert "cpuset" not in dict(hierarchy.prepare(base).paths)


def test_a_mount_that_shows_only_a_part(tmp_path: Path) -> None:
    """In a container the mount begins at the container's own group."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    base = discover("lava", "0::/docker/abc\n", v2_mounts(tmp_path, "/docker/abc"))
    assert base.paths == (("", f"{tmp_path}/lava"),)


def test_without_controllers_there_are_no_groups(tmp_path: Path) -> None:
    """Some controllers are not enough, and neither is a version 2 without any."""
    (tmp_path / "cgroup.controllers").write_text("hugetlb\n")
    assert discover("lava", "0::/\n", v2_mounts(tmp_path)) == Base()
    assert discover("lava", V1_MEMBERSHIPS, V1_MOUNTS.replace("memory", "blkio")) == Base()


def test_groups_that_cannot_be_made_count_as_none() -> None:
    """An agent without the right to make groups does without."""
    assert hierarchy.prepare(Base(1, (("pids", "/proc/no/such/place"),))) == Base()


@pytest.fixture
def unified(tmp_path: Path) -> Path:
    """A file system that looks like version 2, with our own process in the top group."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "cgroup.procs").write_text("41\n")
    (tmp_path / "cgroup.subtree_control").write_text("")
    (tmp_path / hierarchy.SUPERVISOR).mkdir()
    (tmp_path / hierarchy.SUPERVISOR / "cgroup.procs").write_text("")
    (tmp_path / "lava").mkdir()
    (tmp_path / "lava" / "cgroup.subtree_control").write_text("")
    return tmp_path


def test_version_2_hands_its_controllers_down(unified: Path) -> None:
    """Our processes move to a leaf, and memory and pids are switched on at both levels."""
    base = discover("lava", "0::/\n", v2_mounts(unified))
    assert hierarchy.prepare(base) == base
    assert (unified / hierarchy.SUPERVISOR / "cgroup.procs").read_text() == "41"
    for group in (unified, unified / "lava"):
        assert (group / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_version_2_hands_cpuset_down_where_it_has_it(unified: Path) -> None:
    """cpuset is enabled separately, so that its refusal affects no other controller."""
    (unified / "cgroup.controllers").write_text("cpuset cpu memory pids\n")
    assert hierarchy.prepare(discover("lava", "0::/\n", v2_mounts(unified))).version == 2
    assert (unified / "cgroup.subtree_control").read_text().startswith("+cpuset")


def test_an_agent_started_in_the_leaf_finds_the_same_groups(unified: Path) -> None:
    """After a restart the agent may start in the group its predecessor had moved to."""
    base = discover("lava", f"0::/{hierarchy.SUPERVISOR}\n", v2_mounts(unified))
    assert base.paths == (("", f"{unified}/lava"),)


class Fake:
    """The files of one version 2 group."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        for name in ("cgroup.procs", "pids.max", "memory.max", "memory.swap.max"):
            self.write(name, "")
        self.write("memory.current", "3000000\n")
        self.write("memory.swap.current", "0\n")
        self.write("memory.peak", "9000000\n")
        self.stat(anon=1000000, shmem=0)
        self.write("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 2\noom_group_kill 0\n")
        self.cpu(1_000_000)

    def write(self, name: str, text: str) -> None:
        """Change a file, as the kernel would."""
        (self.path / name).write_text(text)

    def read(self, name: str) -> str:
        """Content written to a file."""
        return (self.path / name).read_text()

    def stat(self, **values: int) -> None:
        """Set memory.stat."""
        self.write("memory.stat", "".join(f"{name} {value}\n" for name, value in values.items()))

    def cpu(self, microseconds: int) -> None:
        """Set cpu.stat."""
        self.write("cpu.stat", f"usage_usec {microseconds}\nuser_usec 0\nsystem_usec 0\n")


@pytest.fixture
def fake(unified: Path) -> tuple[Fake, GroupV2]:
    """A group on plain files, joined."""
    files = Fake(unified / "lava" / "0")
    (unified / "supervisor" / "cgroup.procs").write_text("")
    group = GroupV2(str(files.path))
    group.join()
    return files, group


def test_version_2_limits_memory_for_the_job_alone(fake: tuple[Fake, GroupV2]) -> None:
    """The shepherd's part of the charges is added on top; swap is included; no limit is "max".

    The shepherd is beside the group meanwhile, which each new process is to enter by itself.
    """
    files, group = fake
    beside = files.path.parent.parent / "supervisor" / "cgroup.procs"
    assert files.read("cgroup.procs") == str(os.getpid())
    assert files.read("memory.max") == "max"
    assert (group.entrances, beside.read_text()) == ([], "")
    group.limit_memory(64)
    assert [os.readlink(f"/proc/self/fd/{one}") for one in group.entrances] == [str(files.path / "cgroup.procs")]
    assert beside.read_text() == str(os.getpid())
    assert files.read("memory.max") == str(64 * MIB + 3000000 + OWN_GROWTH)
    assert files.read("memory.swap.max").startswith("0")
    group.limit_memory(0)
    assert files.read("memory.max").startswith("max")
    assert group.entrances == []


def test_version_2_counts_the_job_alone(fake: tuple[Fake, GroupV2]) -> None:
    """CPU time and memory exclude the shepherd's own; OOM kills count from the start."""
    files, group = fake
    group.limit_memory(64)
    group.begin()
    files.cpu(6_000_000)
    files.stat(anon=5000000, shmem=250000)
    files.write("memory.events", "oom 1\noom_kill 3\n")
    assert 4.5 < group.cpu_s() <= 5
    assert group.memory().resident == 4250000
    assert group.oom_kills() == 1
    group.begin()
    files.cpu(7_000_000)
    assert 0.5 < group.cpu_s() <= 1


def test_version_2_kills_all_but_the_shepherd(fake: tuple[Fake, GroupV2]) -> None:
    """Forks are denied, and allowed again for the next job."""
    files, group = fake
    victim = subprocess.Popen(["sleep", "1000"])
    try:
        files.write("cgroup.procs", f"{os.getpid()}\n{victim.pid}\n")
        assert group.members() == [victim.pid]
        assert group.kill() == 1
        assert victim.wait(10) == -signal.SIGKILL
        assert files.read("pids.max").startswith("0")
        group.allow_forks()
        assert files.read("pids.max").startswith("max")
    finally:
        victim.kill()
        victim.wait()


def test_a_task_starts_where_it_can_have_no_group_of_its_own(unified: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of a host that lets none be made below a slot's: its processes are found by other marks, and the log says so."""
    files = Fake(unified / "lava" / "0")
    groups = TaskGroups(str(files.path), [])
    with groups.entered(7):  # files do not appear in a directory here, as they do in the kernel's
        assert groups.of(7) is None
    assert groups.members() == []
    assert not (files.path / "7").exists()
    assert "event=no_group_of_task" in capfd.readouterr().err
    with pytest.raises(KeyError), groups.entered(8):
        raise KeyError


def test_an_old_kernel_cannot_reset_the_peak(unified: Path) -> None:
    """Then the peak is unknown, not that of all jobs ever."""
    files = Fake(unified / "lava" / "1")
    (files.path / "memory.peak").unlink()
    assert GroupV2(str(files.path)).memory_peak() == 0


@pytest.mark.root
@pytest.mark.slow
def test_the_group_of_a_slot_for_real() -> None:
    """A process in a real group: counted, limited, killed, and the group removed.

    A shell that was killed while it forked ended with 2: it could not fork.
    """
    name = f"lava-test-{os.getpid()}"
    found = discover(name, Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    base = hierarchy.prepare(found)
    if not base.version:
        pytest.skip("no control groups on this machine")
    program = """
import os, subprocess, sys, time
from agents.shepherd.confinement import groups
from agents.shepherd.confinement.hierarchy import Base
from agents.shepherd.process.identity import Identity
version, *paths = sys.argv[1:]
group = groups.confinement(Base(int(version), tuple(tuple(path.split("=")) for path in paths)), 0)
group.join()
group.limit_memory(50)
group.begin()
hog = "x = bytearray(200 << 20)"
for way in "helper", "fork":
    identity = Identity(group.entrances)
    identity._helper = identity._helper if way == "helper" else -1
    pid = identity.start(sys.executable, (sys.executable, "-I", "-S", "-c", hog), dict(os.environb), (0, 1, 2))
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), group.oom_kills())
group.limit_memory(0)
group.begin()
spin = "import time\\nwhile time.process_time() < 0.3: pass"
subprocess.run([sys.executable, "-I", "-S", "-c", spin])
print(0.3 <= group.cpu_s() < 1, group.memory_peak() > 1 << 20)
child = subprocess.Popen(["sleep", "100"])
print(group.members() == [child.pid], group.kill(), child.wait())
group.allow_forks()
statuses = set()
for _ in range(100):
    forking = subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"])
    time.sleep(0.005)
    while group.kill():
        time.sleep(0.002)
    statuses.add(forking.wait())
    group.allow_forks()
print(*statuses)
group.leave()
"""
    try:
        argv = [sys.executable, "-c", program, str(base.version), *("=".join(pair) for pair in base.paths)]
        root = Path(__file__).resolve().parents[2]
        done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=120, check=False)
        assert done.stdout.split() == ["-9", "1", "-9", "2", "True", "True", "True", "1", "-9", "-9"], (
            done.stdout + done.stderr
        )
        assert not [path for path in base.slot(0).values() if os.path.exists(path)]
    finally:
        hierarchy.remove(base)


def test_processes_are_found_by_parent_session_and_mark() -> None:
    """A tree is what descends from its root; marks are found in the environment."""
    mark = f"LAVA_TEST_MARK={os.getpid()}"
    child = subprocess.Popen(
        ["/bin/sh", "-c", "sleep 1000 & echo $!; wait"],
        stdout=subprocess.PIPE,
        env={mark.split("=")[0]: mark.split("=")[1]},
    )
    try:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        found = processes.descendants(os.getpid())
        assert {child.pid, grandchild} <= set(found)
        assert found.index(child.pid) < found.index(grandchild)
        assert set(processes.marked([mark.encode()])) == {child.pid, grandchild}
        assert processes.have_children()
        entry = processes.stat(child.pid)
        assert entry is not None
        assert entry.parent == os.getpid()
    finally:
        processes.send([child.pid, *processes.descendants(child.pid)], signal.SIGKILL)
        child.wait()
        assert child.stdout is not None
        child.stdout.close()
    assert processes.stat(child.pid) is None


def test_values_are_found_by_their_whole_name() -> None:
    """`rss` is not `rss_huge`, and a missing value is 0."""
    value = groups._value
    text = b"rss_huge 7\nrss 5\ntotal_rss 9\n"
    assert (value(text, b"rss"), value(text, b"rss_huge"), value(text, b"total_rss"), value(text, b"no")) == (
        5,
        7,
        9,
        0,
    )
