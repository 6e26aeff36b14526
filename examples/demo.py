"""Demo: a cluster of three hosts on this machine, three kinds of jobs, every result checked, and everything taken down.

`make demo` runs it. It needs no root; as root the hosts are the same, only jobs could be of any user. It fails if
anything is left behind: it looks for processes, network links, mounts and control groups of its own.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
COMMANDS = Path(sys.executable).parent

HOSTS = 3
SLOTS = 4
ELEMENTS = 10
# Far longer than any step takes on a busy machine of two cores; reached only when something is broken.
PATIENCE_S = 120.0
LOOK_AGAIN_S = 0.2

HEAT_SCRIPT = """\
#!/bin/sh
#BSUB -J heat
#BSUB -n 4
#BSUB -R "span[ptile=2]"
#BSUB -o {output}
mpirun {python} {program} --hold 12
"""


class DemoFailed(Exception):
    """Unexpected result; the sentence describes it."""


@dataclass
class Demo:
    """A user's session: the cluster's directory, the environment of the shell, and the submitted jobs."""

    home: Path
    environment: dict[str, str]

    @property
    def cluster(self) -> Path:
        """Cluster directory that `lavactl up` made."""
        return self.home / "cluster"

    def run(self, *command: str, text: str | None = None, quiet: bool = False) -> str:
        """Run a command, and show it with its output. A non-zero exit ends the demo."""
        if not quiet:
            show(f"$ {shlex.join(command)}" + (" <<'END'\n" + text.rstrip() + "\nEND" if text else ""))
        done = subprocess.run(
            command,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
            cwd=self.home,
            timeout=PATIENCE_S,
            check=False,
        )
        if not quiet or done.returncode:
            show(done.stdout.rstrip() + "\n")
        if done.returncode:
            raise DemoFailed(f"{command[0]} ended with {done.returncode}")
        return done.stdout

    def submit(self, *command: str, text: str | None = None) -> str:
        """Submit a job; returns its id."""
        answer = self.run("bsub", *command, text=text)
        found = re.search(r"Job <(\d+)> is submitted", answer)
        if found is None:
            raise DemoFailed("bsub did not say which job it submitted")
        return found.group(1)

    def states(self, job: str) -> list[str]:
        """The states of a job, or of each element of an array."""
        return self.run("bjobs", "-a", "-noheader", "-o", "stat", job, quiet=True).split()

    def wait_for_end(self, job: str) -> None:
        """Wait until no part of the job is unfinished; every part must be DONE."""
        until(f"job {job} to end", lambda: set(self.states(job)) <= {"DONE", "EXIT"})
        failed = [state for state in self.states(job) if state != "DONE"]
        check(f"job {job} ended with exit code 0", not failed)


def show(text: str) -> None:
    """Print at once, so that a log shows how far the demo came."""
    print(text, flush=True)


def check(claim: str, holds: object) -> None:
    """Print a check; end the demo if it fails."""
    if not holds:
        raise DemoFailed(f"this should hold but does not: {claim}")
    show(f"ok: {claim}")


def until(what: str, happened: Callable[[], object]) -> None:
    """Poll until it happened."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        if time.monotonic() > deadline:
            raise DemoFailed(f"waited {PATIENCE_S:.0f} s in vain for {what}")
        time.sleep(LOOK_AGAIN_S)


def traces(identity: str, home: Path) -> dict[str, list[str]]:
    """Remaining links, namespaces, mounts, directories and control groups of a cluster on this machine."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=False).stdout
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    places = [path for pattern in ("*", "*/*") for path in Path("/sys/fs/cgroup").glob(pattern) if path.is_dir()]
    found = {
        "network links": re.findall(r"^\d+: ([^:@]+)", links, re.MULTILINE),
        "network namespaces": os.listdir("/run/netns") if Path("/run/netns").is_dir() else [],
        "mounts": [line.split()[1] for line in mounts],
        "directories": [*map(str, Path("/run").iterdir()), *map(str, Path(tempfile.gettempdir()).iterdir())],
        "control groups": list(map(str, places)),
    }
    return {kind: [name for name in names if identity in name or str(home) in name] for kind, names in found.items()}


def processes_of(home: Path) -> list[str]:
    """Processes with the demo's directory in their arguments or environment, except this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if any(str(home).encode() in (entry / part).read_bytes() for part in ("cmdline", "environ")):
                found.append(
                    f"{entry.name} {(entry / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}".strip()
                )
    return found


def trap_ssh(home: Path) -> Path:
    """Put an ssh and an rsh first on PATH that only record their calls; the path of the record."""
    called = home / "ssh-was-called"
    traps = home / "traps"
    traps.mkdir()
    for name in ("ssh", "rsh"):
        (traps / name).write_text(f'#!/bin/sh\necho "$0 $*" >>{called}\nexit 255\n', encoding="utf-8")
        (traps / name).chmod(0o755)
    return called


@contextlib.contextmanager
def cluster() -> Iterator[Demo]:
    """Running cluster in a fresh directory; taken down in any case, with a check that nothing is left of it."""
    home = Path(tempfile.mkdtemp(prefix="lava-demo-"))
    # A job must be able to enter its directory, whichever user runs the demo.
    home.chmod(0o755)
    path = f"{home / 'traps'}:{COMMANDS}:{os.environ.get('PATH', os.defpath)}"
    demo = Demo(home, {**os.environ, "PATH": path})
    identity = str(home)
    try:
        called = trap_ssh(home)
        demo.run("lavactl", "up", "--hosts", str(HOSTS), "--slots", str(SLOTS), "--dir", str(demo.cluster))
        # Everything the cluster makes on the machine has its six-character id in its name.
        identity = json.loads((demo.cluster / "personal.json").read_text(encoding="utf-8"))["id"]
        shell = 'eval "$(lavactl env --dir "$1")" && PATH="$2:$PATH" exec env -0'
        settings = demo.run("sh", "-c", shell, "sh", str(demo.cluster), str(home / "traps"), quiet=True)
        demo.environment = dict(line.split("=", 1) for line in settings.split("\0") if "=" in line)
        yield demo
        check("neither ssh nor rsh was called", not called.exists())
    except BaseException:
        show_logs(demo.cluster)
        raise
    finally:
        try:
            if demo.cluster.exists():
                demo.run("lavactl", "down", "--dir", str(demo.cluster))
        finally:
            shutil.rmtree(home)
    for kind, present in traces(identity, home).items():
        check(f"no {kind} are left", not present)
    check("no processes are left", not processes_of(home))


def show_logs(directory: Path) -> None:
    """Print the end of each daemon's log, for diagnosis."""
    for log in sorted(directory.rglob("*.log")):
        show(f"--- {log.name}\n" + "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]))


def serial_job(demo: Demo) -> None:
    """Run one process on one host."""
    output = demo.home / "serial.out"
    job = demo.submit("-J", "serial", "-o", str(output), "echo the answer is $((6 * 7))")
    demo.wait_for_end(job)
    check("the serial job computed 42", "the answer is 42" in output.read_text(encoding="utf-8"))


def array_job(demo: Demo) -> None:
    """Run ten elements, each of which squares its index."""
    output = demo.home / "square.%I"
    job = demo.submit("-J", f"squares[1-{ELEMENTS}]", "-o", str(output), "echo square=$((LSB_JOBINDEX * LSB_JOBINDEX))")
    demo.wait_for_end(job)
    for index in range(1, ELEMENTS + 1):
        text = (demo.home / f"square.{index}").read_text(encoding="utf-8")
        if f"square={index * index}\n" not in text:
            raise DemoFailed(f"element {index} did not write its square")
    check(f"all {ELEMENTS} elements wrote their squares", True)


def hosts_with_processes(listing: str) -> int:
    """Number of hosts on which `bjobs -l` shows processes."""
    return len(re.findall(r"PIDs:\s+\d", listing))


def heat_job(demo: Demo) -> None:
    """Solve the heat equation on two hosts with two ranks each, started by a plain mpirun."""
    output = demo.home / "heat.out"
    script = HEAT_SCRIPT.format(output=output, python=sys.executable, program=EXAMPLES / "heat2d.py")
    job = demo.submit(text=script)
    until(
        "the ranks of both hosts to be seen",
        lambda: hosts_with_processes(demo.run("bjobs", "-l", job, quiet=True)) >= 2 or "RUN" not in running(demo, job),
    )
    check("bjobs -l shows the processes of both hosts", hosts_with_processes(demo.run("bjobs", "-l", job)) >= 2)
    demo.run("bhosts")
    demo.wait_for_end(job)
    text = output.read_text(encoding="utf-8")
    show(text)
    ranks = re.findall(r"^rank (\d+) of 4 on ([^\s:]+)", text, re.MULTILINE)
    hosts = [host for _, host in ranks]
    check("the heat equation's numbers are right", "the result is right" in text)
    check("four ranks ran, two on each of two hosts", sorted(hosts.count(host) for host in set(hosts)) == [2, 2])
    demo.run("bhist", "-l", job)


def running(demo: Demo, job: str) -> set[str]:
    """States of an unfinished job; a pending one counts as running."""
    return {"RUN" if state in {"PEND", "RUN"} else state for state in demo.states(job)}


def main() -> int:
    """Run the demo; returns the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    try:
        with cluster() as demo:
            demo.run("lsid")
            demo.run("bhosts")
            serial_job(demo)
            array_job(demo)
            heat_job(demo)
            demo.run("bjobs", "-a")
    except (DemoFailed, subprocess.TimeoutExpired) as failure:
        show(f"demo: {failure}")
        return 1
    show(f"demo: everything as it should be, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
