"""Stand-in for the programs of the images: records how it was called, and does what the job needs of it.

Run as `python`, `mpirun`, `git` and so on by a link of that name. Ranks are started over `ssh`, as by a real launcher.
A record is a file of JSON in $SPEC_RECORDS.
"""

import glob
import json
import os
import socket
import subprocess
import sys
import time
import uuid

NAME, WORDS = os.path.basename(sys.argv[0]), sys.argv[1:]


def read(path: str, size: int = -1) -> str:
    """Return the text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read(size)


FILES = ("/etc/volcano/*", "/etc/mpi/*", "/job/hostfile")
ONE = {"-n", "-np", "-H", "--host", "-host", "-bind-to", "--bind-to", "-map-by", "--map-by", "-x", "--hostfile",
       "-hostfile", "--prefix", "--min-np", "--max-np", "--host-discovery-script"}  # fmt: skip
TWO = {"-mca", "--mca"}
LAUNCHERS = ("mpirun", "mpiexec", "horovodrun")


def record() -> None:
    """Write down the call, its surroundings and the files that the job was given."""
    found = {path: read(path) for pattern in FILES for path in sorted(glob.glob(pattern))}
    text = json.dumps(
        {
            "program": NAME,
            "words": WORDS,
            "cwd": os.getcwd(),
            "host": socket.gethostname(),
            "environment": dict(os.environ),
            "files": found,
        }
    )
    path = os.path.join(os.environ["SPEC_RECORDS"], uuid.uuid4().hex)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(f"{path}.part", f"{path}.json")


def hosts_of(options: dict[str, str]) -> list[str]:
    """Hosts of a launcher, once for each slot: from its options, or the file that the environment names."""
    given = options.get("-H") or options.get("--host") or options.get("-host")
    if given:
        parts = [word.partition(":") for word in given.strip(",").split(",")]
        return [host for host, _, slots in parts for _ in range(int(slots or 1))]
    if script := options.get("--host-discovery-script"):
        lines = subprocess.run([script], stdout=subprocess.PIPE, check=True).stdout.decode().split()
        return [line.partition(":")[0] for line in lines]
    names = ("I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile")  # each job has the last
    path = next(os.environ[name] for name in names if name in os.environ)
    found = []
    for line in read(path).splitlines():
        host, _, slots = line.replace(" slots=", ":").partition(":")
        found += [host] * int(slots or 1)
    return found


def launch() -> int:
    """Start the ranks of an MPI program; the first failure is the launcher's."""
    options: dict[str, str] = {}
    at = 0
    while at < len(WORDS) and WORDS[at].startswith("-"):
        width = 2 if WORDS[at] in TWO else 1 if WORDS[at] in ONE else 0
        options[WORDS[at]] = " ".join(WORDS[at + 1 : at + 1 + width])
        at += 1 + width
    hosts = hosts_of(options)
    size = int(options.get("-np") or options.get("-n") or len(hosts))
    if len(hosts) < size:
        print(f"There are not enough slots available: {size} wanted, {len(hosts)} found", file=sys.stderr)
        return 1
    ranks = [
        subprocess.Popen(["ssh", "-x", hosts[rank], "env", f"STUB_RANK={rank}", f"STUB_SIZE={size}", *WORDS[at:]])
        for rank in range(size)
    ]
    return max(one.wait() for one in ranks)


def behave() -> int:
    """Behave as the job needs it of the program; returns the exit code."""
    if NAME in LAUNCHERS:
        return launch()
    if NAME == "sleep":
        if WORDS == ["infinity"]:
            os.execv("/bin/sleep", ["sleep", "infinity"])
        time.sleep(0.1)
    elif NAME in ("git", "tar"):
        target = WORDS[2:] if WORDS[:1] == ["clone"] else []
        folder = target[0] if target else WORDS[1].rpartition("/")[2] if WORDS[:1] == ["clone"] else ""
        folders = [f"{folder}/research/slim", f"{folder}/scripts/tf_cnn_benchmarks"] if folder else []
        for one in [*folders, *(["cifar-10-batches-py"] if NAME == "tar" else [])]:
            os.makedirs(one, exist_ok=True)
    elif NAME == "mkdir" and not any("sshd" in word for word in WORDS):
        os.execv("/bin/mkdir", ["mkdir", *WORDS])
    elif NAME.startswith("python"):
        meet(peers())
        if is_server():
            os.execv("/bin/sleep", ["sleep", "infinity"])
    return 0


def peers() -> int:
    """Number of processes of the cluster that this one belongs to."""
    cluster = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {})
    lists = [
        word.partition("=")[2].strip(",").split(",")
        for word in WORDS
        if word.startswith(("--ps_hosts=", "--worker_hosts="))
    ]
    return sum(map(len, [*cluster.values(), *lists]))


def meet(count: int) -> None:
    """Wait until all of them have been called: a training begins when all are connected."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        texts = [read(path, 60) for path in glob.glob(os.environ["SPEC_RECORDS"] + "/*.json")]
        if sum(text.startswith('{"program": "python') for text in texts) >= count:
            return
        time.sleep(0.05)


def is_server() -> bool:
    """Return True for a parameter server, which never ends by itself."""
    task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {})
    return NAME.startswith("python") and (task.get("type") == "ps" or "--job_name=ps" in WORDS)


record()
sys.stdout.flush()
sys.exit(behave())
