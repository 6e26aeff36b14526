"""Booted Debian hosts on one machine: systemd as process 1, a network namespace each on one bridge, a shared /home.

Made of one debootstrap for each release of Debian and one installation of lava, with a writable overlay for each host.
Needs root, debootstrap, systemd-nspawn and, the first time, a Debian mirror and a package index. What these gave is
kept in .cache.
"""

import configparser
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("LAVA_REAL_HOSTS_CACHE", REPOSITORY / ".cache" / "real-hosts"))
PACKAGES = "systemd,systemd-sysv,dbus,python3,python3-venv,iproute2,procps,passwd,libpam-runtime,make"
MIRROR = "http://deb.debian.org/debian"
USER = "alice"
BOOT_S = 120.0
# A mirror's package with a program of the same name as one of lava's commands: it must survive the installation.
FOREIGN = "/usr/bin/btop"


class Release(NamedTuple):
    """A release of Debian: its name, number, version of Python, and the network of its hosts."""

    name: str
    number: int
    python: str
    network: str

    @property
    def bridge(self) -> str:
        """Name of the bridge of its hosts, with which those of their interfaces begin."""
        return f"lvrh{self.number}"


BOOKWORM = Release("bookworm", 12, "3.11", "10.117.3")
TRIXIE = Release("trixie", 13, "3.13", "10.117.4")


def run(*words: str | Path, check: bool = True, **more: object) -> subprocess.CompletedProcess[str]:
    """A program, its output as text."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]
    assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


@contextlib.contextmanager
def _alone(name: str) -> Iterator[None]:
    """Hold what is kept under a name: two runs must not make it at once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def base(release: Release) -> Path:
    """The files of a bare Debian, made once."""
    root, ready = CACHE / release.name, CACHE / f"{release.name}.ready"
    with _alone(release.name):
        if not ready.exists() or ready.read_text() != PACKAGES:
            shutil.rmtree(root, ignore_errors=True)
            run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", release.name, root, MIRROR)
            shutil.rmtree(root / "var/cache/apt")
            shutil.rmtree(root / "var/lib/apt/lists")
            ready.write_text(PACKAGES)
    return root


def wheels(release: Release) -> Path:
    """The wheels with which pip installs this repository in a release without a network; fetched once."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(REPOSITORY / "setup.cfg")
    wanted = [line for line in settings["options"]["install_requires"].splitlines() if line and line[0] != "#"]
    wanted += ["setuptools>=77", "wheel"]
    place = CACHE / f"wheels-{release.python}-{hashlib.sha256(str(wanted).encode()).hexdigest()[:12]}"
    with _alone(place.name):
        if not place.exists():
            begun = place.with_suffix(".new")
            shutil.rmtree(begun, ignore_errors=True)
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download", "--only-binary=:all:"]
            run(*pip, "--python-version", release.python, "--dest", begun, *wanted)
            begun.rename(place)
    return place


@contextlib.contextmanager
def overlay(place: Path, *lower: Path) -> Iterator[Path]:
    """Writable view of some directories, the first one uppermost; changes are in ``place``/upper."""
    for name in ("upper", "work", "root"):
        (place / name).mkdir(parents=True, exist_ok=True)
    under = ":".join(map(str, lower))
    options = f"lowerdir={under},upperdir={place / 'upper'},workdir={place / 'work'}"
    run("mount", "-t", "overlay", "overlay", "-o", options, place / "root")
    try:
        yield place / "root"
    finally:
        run("umount", "-l", place / "root", check=False)


@contextlib.contextmanager
def image(place: Path, release: Release, script: str) -> Iterator[Path]:
    """Debian with a user and this repository, in which a script has run as root; gives the layer over the base."""
    with overlay(place, base(release)) as root:
        files = run("git", "-C", REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
        for name in filter(None, files.split("\0")):
            if (REPOSITORY / name).is_file():
                (root / "srv/lava" / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / name, root / "srv/lava" / name)
        shutil.copytree(wheels(release), root / "srv/wheels", dirs_exist_ok=True)
        (root / FOREIGN[1:]).write_text("#!/bin/sh\necho the monitor\n")
        (root / FOREIGN[1:]).chmod(0o755)
        run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", USER)
        with mounted(root):
            environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
            environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/srv/wheels"}
            run("chroot", root, "sh", "-e", "-c", f"cd /srv/lava\n{script}", env=environment, timeout=600)
    yield place / "upper"


@contextlib.contextmanager
def mounted(root: Path) -> Iterator[None]:
    """/proc and /dev in a directory that is entered by chroot."""
    run("mount", "-t", "proc", "proc", root / "proc")
    run("mount", "--bind", "/dev", root / "dev")
    try:
        yield
    finally:
        run("umount", "-l", root / "dev", check=False)
        run("umount", "-l", root / "proc", check=False)


@dataclass
class Host:
    """A booted host; ``leader`` is its process 1 as this machine sees it."""

    name: str
    root: Path
    process: "subprocess.Popen[bytes]"
    leader: int

    def run(self, script: str, user: str = "root", check: bool = True) -> subprocess.CompletedProcess[str]:
        """A script in a login shell of that user, as after ``su -``."""
        enter = ["nsenter", "-t", str(self.leader), "-a"]
        words = [*enter, "su", "-", user, "-c", f"set -e\n{script}"]
        return run(*words, check=check, timeout=300, stdin=subprocess.DEVNULL)

    def power_off(self) -> None:
        """Switch it off, and kill it after a timeout."""
        run("nsenter", "-t", str(self.leader), "-a", "systemctl", "--no-block", "poweroff", check=False)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def network(release: Release, names: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """A bridge, and a network namespace for each host; gives the addresses."""
    addresses = {name: f"{release.network}.{number}" for number, name in enumerate(names, start=1)}
    bridge = release.bridge
    try:
        run("ip", "link", "add", bridge, "type", "bridge")
        run("ip", "link", "set", bridge, "up")
        for number, (name, address) in enumerate(addresses.items(), start=1):
            space = f"{bridge}-{name}"
            run("ip", "netns", "add", space)
            run("ip", "link", "add", f"{bridge}-{number}", "type", "veth", "peer", "name", "host0", "netns", space)
            run("ip", "link", "set", f"{bridge}-{number}", "master", bridge, "up")
            run("ip", "-n", space, "addr", "add", f"{address}/24", "dev", "host0")
            run("ip", "-n", space, "link", "set", "host0", "up")
            run("ip", "-n", space, "link", "set", "lo", "up")
        yield addresses
    finally:
        for number, name in enumerate(names, start=1):
            run("ip", "link", "del", f"{bridge}-{number}", check=False)
            run("ip", "netns", "del", f"{bridge}-{name}", check=False)
        run("ip", "link", "del", bridge, check=False)


@contextlib.contextmanager
def booted(place: Path, release: Release, layer: Path, names: tuple[str, ...]) -> Iterator[dict[str, Host]]:
    """Hosts by name, all on one bridge and with one /home; switched off at the end."""
    with contextlib.ExitStack() as stack:
        addresses = stack.enter_context(network(release, names))
        home = place / "home"
        shutil.copytree(layer / "home", home, symlinks=True)
        uid = (layer / "home" / USER).stat().st_uid
        run("chown", "-R", f"{uid}:{uid}", home / USER)
        hosts = {}
        for name in names:
            root = stack.enter_context(overlay(place / name, layer, base(release)))
            (root / "etc/hostname").write_text(f"{name}\n")
            lines = [f"{address} {other}\n" for other, address in addresses.items()]
            (root / "etc/hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))
            (root / "etc/machine-id").write_text("")
            hosts[name] = _boot(release, name, root, home, place)
            stack.callback(_clear_groups, release, name)
            stack.callback(hosts[name].power_off)
        for host in hosts.values():
            _wait_until_running(host)
        yield hosts


def _groups(release: Release, name: str) -> list[Path]:
    """Control groups of the host's own, in the hierarchies that systemd manages."""
    found = [Path("/sys/fs/cgroup", kind) for kind in ("systemd", "unified")]
    return [one / f"{release.bridge}-{name}" for one in found if one.is_dir()] or [
        Path("/sys/fs/cgroup") / f"{release.bridge}-{name}"
    ]


def _clear_groups(release: Release, name: str) -> None:
    for group in _groups(release, name):
        for path in sorted(group.rglob("*"), key=lambda one: -len(one.parts)):
            if path.is_dir():
                with contextlib.suppress(OSError):
                    path.rmdir()
        with contextlib.suppress(OSError):
            group.rmdir()


def _boot(release: Release, name: str, root: Path, home: Path, place: Path) -> Host:
    for group in _groups(release, name):
        group.mkdir(exist_ok=True)
    enter = "; ".join(f"echo $$ >{group}/cgroup.procs" for group in _groups(release, name))
    words = f"systemd-nspawn -q --register=no --keep-unit --machine={release.bridge}-{name} --hostname={name}"
    words += f" --network-namespace-path=/run/netns/{release.bridge}-{name}"
    command = f"{enter}; exec {words} --bind={home}:/home -D {root} -b"
    with (place / f"{name}.console").open("wb") as console:
        process = subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=console, stderr=console)
    end = time.monotonic() + BOOT_S
    while not (found := run("pgrep", "-P", str(process.pid), check=False).stdout.split()):
        assert process.poll() is None, (place / f"{name}.console").read_text(errors="replace")
        assert time.monotonic() < end, f"{name} does not boot"
        time.sleep(0.2)
    return Host(name, root, process, int(found[0]))


def _wait_until_running(host: Host) -> None:
    end = time.monotonic() + BOOT_S
    said = ""
    while said not in ("running", "degraded"):
        assert time.monotonic() < end, f"{host.name} does not come up: {said}"
        time.sleep(0.3)
        words = ("nsenter", "-t", str(host.leader), "-a", "systemctl", "is-system-running")
        said = run(*words, check=False).stdout.strip()
