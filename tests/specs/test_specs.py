"""Job files of other systems' repositories, each submitted as it is and run to its end with stand-ins for its programs.

They stand beside this repository; where they do not, this is left out. ``-s`` prints the table of what became of each.
"""

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lavactl.job_files.dry_run import describe
from lavactl.job_files.understanding import understand_text
from tests.acceptance.conftest import _ended_in_order, open_directory
from tests.acceptance.personal import BIN, Cluster, a_cluster, wait_for
from tests.specs import image

__all__ = ["_ended_in_order", "open_directory"]

SHARED = Path(__file__).resolve().parents[3] / "shared" / "specs"
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(not SHARED.is_dir(), reason="the job files of other systems' repositories are not here"),
]

HOSTS, SLOTS, GPUS = 3, 16, 4
LIMIT_S = float(os.environ.get("LAVA_SPEC_LIMIT_S", "180"))
SETTINGS = {"LAVA_TERMINATE_INTERVAL": "1", "LAVA_HEARTBEAT": "1"}
QUEUE_NAMES = ("normal", "user-queue", "team-queue", "tas-user-queue", "vc1")
QUEUES = "".join(f"Begin Queue\nQUEUE_NAME = {name}\nEnd Queue\n" for name in QUEUE_NAMES)
MEMORY = re.compile(r'(memoryMB"?:\s*|memory:\s*)("?)\d+(Mi|Gi)?("?)')
SMALL = 24 << 10  # MiB: with less memory than this on the machine, jobs of 16 GiB a task are made smaller

Records = list[dict[str, Any]]


@dataclass
class Spec:
    """Expected fate of a file.

    Attributes:
        roles: tasks by role.
        command: given beside the file, where a role has that of its image.
        state: how it ends; RUN for a job that is ended by hand once all its tasks run.
        check: looks at the records of its programs.
        gpus: devices that a call of these programs sees, by role.
    """

    roles: dict[str, int]
    check: "Callable[[Records], None]" = lambda _: None
    command: str = ""
    state: str = "DONE"
    gpus: dict[str, int] = field(default_factory=dict)


def calls(records: Records, *names: str) -> Records:
    """Records of these programs."""
    return [one for one in records if one["program"] in names]


def told(records: Records, program: str, *names: str) -> list[tuple[str, ...]]:
    """Values of variables in each call of a program, sorted."""
    return sorted(tuple(one["environment"].get(name, "") for name in names) for one in calls(records, program))


def ranks(program: str, size: int, hosts: int = 1) -> "Callable[[Records], None]":
    """Check that a launcher's ranks ran, each once, on this number of hosts at least."""

    def check(records: Records) -> None:
        found = [one for one in calls(records, program) if "STUB_RANK" in one["environment"]]
        assert sorted(int(one["environment"]["STUB_RANK"]) for one in found) == list(range(size))
        assert {one["environment"]["STUB_SIZE"] for one in found} == {str(size)}
        assert len({one["host"] for one in found}) >= hosts

    return check


def volcano_cluster(records: Records) -> None:
    """A server and two workers with one cluster map, made of the files of the plugin svc."""
    configs = [json.loads(one["environment"]["TF_CONFIG"]) for one in calls(records, "python")]
    assert sorted((one["task"]["type"], one["task"]["index"]) for one in configs) == [
        ("ps", 0), ("worker", 0), ("worker", 1),
    ]  # fmt: skip
    name = "tensorflow-dist-mnist"
    cluster = {
        "ps": [f"{name}-ps-0.{name}:2222"],
        "worker": [f"{name}-worker-{index}.{name}:2222" for index in range(2)],
    }
    assert all({role: [x for x in found if x] for role, found in one["cluster"].items()} == cluster for one in configs)


def benchmark(records: Records) -> None:
    """The same by options, in the directory of the image."""
    found = calls(records, "python")
    assert {one["cwd"] for one in found} == {"/opt/tf-benchmarks/scripts/tf_cnn_benchmarks"}
    name = "tensorflow-benchmark"
    for one in found:
        assert f"--ps_hosts={name}-ps-0.{name}:2222" in [word.rstrip(",") for word in one["words"]]
        assert next(word for word in one["words"] if word.startswith("--worker_hosts=")).count(":2222") == 2
    assert sorted(word for one in found for word in one["words"] if word.startswith("--task_index")) == [
        "--task_index=0", "--task_index=0", "--task_index=1",
    ]  # fmt: skip


def indices(name: str, count: int) -> "Callable[[Records], None]":
    """Check that tasks were told their indices."""
    return lambda records: _assert_equal(told(records, "python", name), sorted((str(at),) for at in range(count)))


def _assert_equal(found: object, expected: object) -> None:
    assert found == expected


def plugin(records: Records) -> None:
    """Three workers know their indices and the files of the plugins."""
    assert told(records, "work", "VK_TASK_INDEX", "VC_TASK_INDEX") == [("0", "0"), ("1", "1"), ("2", "2")]
    hosts = {one["files"]["/etc/volcano/default_nginx.host"] for one in calls(records, "work")}
    assert len(hosts) == 1
    assert hosts.pop().split() == [f"test-job-plugin-default-nginx-{index}.test-job-plugin" for index in range(3)]
    assert told(records, "work", "VC_DEFAULT_NGINX_NUM") == [("3",)] * 3


def horovod_elastic(records: Records) -> None:
    """The launcher of the seed: the list of hosts has a line for each worker that runs, and names as there."""
    (launcher,) = calls(records, "horovodrun")
    found = launcher["files"]["/etc/mpi/discover_hosts.sh"].splitlines()
    assert found[0] == "#!/bin/sh"
    assert set(found[1:]) <= {f"echo tensorflow-mnist-elastic-worker-{index}:1" for index in range(3)}
    assert "tensorflow-mnist-elastic-worker-0 slots=1" in launcher["files"]["/etc/mpi/hostfile"]
    ranks("python", 2)(records)


def hostfile(text: str) -> "Callable[[Records], None]":
    """Check the file of hosts of an MPIJob, and its ranks."""

    def check(records: Records) -> None:
        (launcher,) = calls(records, "mpirun")
        lines = launcher["files"]["/etc/mpi/hostfile"].splitlines()
        assert lines == [text.format(index=index) for index in range(2)]
        assert launcher["environment"]["K_MPI_JOB_ROLE"] == "launcher"
        ranks("pi", 2)(records)

    return check


def tfjob(servers: int, workers: int) -> "Callable[[Records], None]":
    """Check a TFJob's TF_CONFIG: one cluster map, every address once."""

    def check(records: Records) -> None:
        configs = [json.loads(one["environment"]["TF_CONFIG"]) for one in calls(records, "python")]
        assert all(one["cluster"] == configs[0]["cluster"] and one["environment"] == "cloud" for one in configs)
        addresses = configs[0]["cluster"]
        assert {role: len(found) for role, found in addresses.items()} == {"ps": servers, "worker": workers}
        assert sorted((one["task"]["type"], one["task"]["index"]) for one in configs) == sorted(
            [("ps", at) for at in range(servers)] + [("worker", at) for at in range(workers)]
        )

    return check


def elastic_pytorch(records: Records) -> None:
    """Options of the rendezvous, the same for all."""
    names = ("PET_RDZV_BACKEND", "PET_NNODES", "PET_MAX_RESTARTS", "LOGLEVEL")
    assert set(told(records, "python", *names)) == {("c10d", "1:3", "100", "DEBUG")}
    assert len(set(told(records, "python", "PET_RDZV_ENDPOINT", "PET_RDZV_ID"))) == 1


def pai_lists(role: str, workers: int) -> "Callable[[Records], None]":
    """Check that servers and workers of OpenPAI have the same lists of addresses, ip:port."""

    def check(records: Records) -> None:
        found = [one for one in calls(records, "python") if any("--job_name" in word for word in one["words"])]
        lists = {
            tuple(word for word in one["words"] if word.startswith(("--ps_hosts", "--worker_hosts"))) for one in found
        }
        assert len(lists) == 1
        for text in lists.pop():
            addresses = text.partition("=")[2].split(",")
            assert len(addresses) == len(set(addresses)) == workers
            assert all(re.fullmatch(r"[\d.]+:\d+", address) for address in addresses)
        names = told(found, "python", "PAI_CURRENT_TASK_ROLE_NAME", "PAI_TASK_INDEX")
        assert names == sorted((one, str(at)) for one in (role, "worker") for at in range(workers))

    return check


def jupyter(records: Records) -> None:
    """The notebook listens at the port that was reserved for it."""
    (one,) = calls(records, "jupyter")
    port = one["environment"]["PAI_CONTAINER_HOST_jupyter_PORT_LIST"]
    assert port.isdigit()
    assert f"--port={port}" in one["words"]


def rendered(records: Records) -> None:
    """The templates of a role, of its prerequisites and of the deployment are filled in."""
    pai_lists("psserver", 1)(records)
    worker = next(one for one in calls(records, "python") if "--job_name=worker" in one["words"])
    assert {"--data_name=cifar10", "--model=resnet20", "--batch_size=32"} <= set(worker["words"])
    assert worker["cwd"].endswith("script_tensorflow_cnnbenchmarks/scripts/tf_cnn_benchmarks")
    assert ["clone", "https://github.com/MaggieQi/benchmarks", "script_tensorflow_cnnbenchmarks"] in [
        one["words"] for one in calls(records, "git")
    ]


TF, PI, PI_WORKERS = "python dist_mnist.py", "pi-worker-{index}.pi.default.svc", {"launcher": 1, "worker": 2}
SPECS = {
    "volcano/cronjob.yaml": Spec({"task-1": 1}),
    "volcano/elastic-job.yaml": Spec({"worker": 9, "master": 1}, command="sleep infinity", state="RUN"),
    "volcano/job-plugin.yaml": Spec({"default-nginx": 3}, plugin, command="work"),
    "volcano/lm-horovod-tf-mnist-v0.5.yaml": Spec({"master": 1, "worker": 3}, ranks("python", 3)),
    "volcano/mindspore-cpu.yaml": Spec({"pod": 8}, indices("VK_TASK_INDEX", 8)),
    "volcano/mindspore-gpu.yaml": Spec(
        {"mpimaster": 1, "mpiworker": 2}, ranks("python", 2), gpus={"mpiworker": 1, "mpimaster": 0}
    ),
    "volcano/mpi-example.yaml": Spec({"mpimaster": 1, "mpiworker": 2}, ranks("mpi_hello_world", 2)),
    "volcano/task-start-dependency-job.yaml": Spec({"job-nginx1": 1, "job-nginx2": 5, "job-nginx3": 5}, command="work"),
    "volcano/tf-benchmark-example.yaml": Spec({"ps": 1, "worker": 2}, benchmark),
    "volcano/tf-dist-mnist-example.yaml": Spec({"ps": 1, "worker": 2}, volcano_cluster),
    "mpijob/pytorchjob-elastic-imagenet.yaml": Spec({"worker": 3}, elastic_pytorch),
    "mpijob/tfjob-dist-mnist.yaml": Spec({"ps": 2, "worker": 4}, tfjob(2, 4), command=TF),
    "mpijob/v1-mxnet-mnist.yaml": Spec(PI_WORKERS, ranks("python", 8, 2), gpus={"worker": 4}),
    "mpijob/v1-tensorflow-mnist-elastic.yaml": Spec({"launcher": 1, "worker": 3}, horovod_elastic),
    "mpijob/v2beta1-horovod-tensorflow-mnist.yaml": Spec(PI_WORKERS, ranks("python", 2)),
    "mpijob/v2beta1-pi-intel.yaml": Spec(PI_WORKERS, hostfile(f"{PI}:1")),
    "mpijob/v2beta1-pi-mpich.yaml": Spec(PI_WORKERS, hostfile(f"{PI}:1")),
    "mpijob/v2beta1-pi.yaml": Spec(PI_WORKERS, hostfile(f"{PI} slots=1")),
    "mpijob/v2beta1-tensorflow-benchmarks.yaml": Spec(PI_WORKERS, ranks("python", 2), gpus={"worker": 1}),
    "kueue/quick-start-job.yaml": Spec({"job": 3}),
    "kueue/sample-job-partial-admission.yaml": Spec({"job": 20}),
    "kueue/sample-mpijob.yaml": Spec(PI_WORKERS, hostfile(f"{PI} slots=1")),
    "kueue/sample-tfjob.yaml": Spec({"ps": 1, "worker": 2}, tfjob(1, 2), command=TF),
    "kueue/shared-quota-sample-job.yaml": Spec({"job": 1}),
    "kueue/tas-sample-job-required.yaml": Spec({"job": 10}),
    "openpai/v1-horovod.json": Spec({"main": 1, "worker": 1}, ranks("python", 2), gpus={"main": 2}),
    "openpai/v1-jupyter.json": Spec({"jupyter": 1}, jupyter, gpus={"jupyter": 1}),
    "openpai/v1-tensorflow-mpi.json": Spec(
        {"ps_server": 2, "worker": 2}, pai_lists("ps_server", 2), gpus={"ps_server": 0, "worker": 4}
    ),
    "openpai/v1-tensorflow.distributed-cifar10.json": Spec(
        {"ps_server": 2, "worker": 2}, pai_lists("ps_server", 2), gpus={"ps_server": 0, "worker": 4}
    ),
    "openpai/v2-cifar10-single-mul-DDP-nccl.yaml": Spec({"worker": 2}, gpus={"worker": 2}),
    "openpai/v2-hello-world-job.yaml": Spec({"taskrole": 1}, gpus={"taskrole": 1}),
    "openpai/v2-hived-itc-gang.yaml": Spec({"train": 6}, gpus={"train": 1}),
    "openpai/v2-hived-itc-oppo.yaml": Spec({"train": 6}, gpus={"train": 1}),
    "openpai/v2-horovod-pytorch-synthetic-benchmark.yaml": Spec(
        {"master": 1, "worker": 1}, ranks("python", 8, 2), gpus={"master": 4}
    ),
    "openpai/v2-tensorflow-cifar10.yaml": Spec(
        {"worker": 1, "psserver": 1}, rendered, gpus={"worker": 4, "psserver": 1}
    ),
}
# A part of the names of the files to try; `make test-specs` tries all, for which `make test` has no time.
ONLY = os.environ.get("LAVA_SPEC_FILES", "volcano/t")
TRIED = [name for name in SPECS if ONLY in name]
LATER = pytest.mark.skip(reason="make test-specs runs all job files of other systems, which takes minutes")
PARAMETERS = [pytest.param(name, marks=() if name in TRIED else LATER) for name in SPECS]
NO_JOBS = {
    "kueue/quick-start-setup.yaml": "ResourceFlavor is no job",
    "kueue/shared-quota-setup.yaml": "ResourceFlavor is no job",
    "volcano/hierarchical-queues.yaml": "Queue is no job",
    "openpai/hived-config-3.yaml": "this is a configuration of HiveD, no job",
}
CODE = "mpirun -np 2 -H main-0:1,worker-0:1 python cifar.py\n"


@dataclass
class Outcome:
    """Fate of a file.

    Attributes:
        tasks: rows of ``lavactl tasks`` by task.
    """

    job: int
    state: str
    code: int
    tasks: dict[str, dict[str, str]]
    records: Records
    ignored: list[str]
    account: str


@pytest.fixture(scope="module")
def cluster(open_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three hosts with the programs and paths of the images."""
    folder = tmp_path_factory.mktemp("image")
    programs = image.build(folder)
    inside = image.commands_inside(folder, BIN)
    options = ("--simulate-gpus", str(GPUS))
    rack = "Begin ComputeUnit\nNAME MEMBER TYPE\nr1 (lava1 lava2 lava3) rack\nEnd ComputeUnit\n"
    types = "Begin Parameters\nDEFAULT_QUEUE = normal\nCOMPUTE_UNIT_TYPES = rack\nEnd Parameters\n"
    files = {"lsb.queues": QUEUES, "lsb.params": types, "lsb.hosts": rack}
    with a_cluster(open_directory / "P", HOSTS, SLOTS, *options, commands=inside, lsf_files=files, **SETTINGS) as made:
        made.environment["PATH"] = f"{programs}:{made.environment['PATH']}:{os.defpath}"
        yield made


def sized(text: str) -> str:
    """The file, with less memory for each task where this machine has little."""
    mib = int(re.findall(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[0]) >> 10
    return (
        text
        if mib >= SMALL
        else MEMORY.sub(lambda found: f"{found[1]}{found[2]}512{(found[3] and 'Mi') or ''}{found[4]}", text)
    )


def code_of_openpai(folder: Path) -> str:
    """Files that the jobs of OpenPAI's first protocol have on their file system; its address."""
    scripts = folder / "root" / "examples" / "horovod" / "code" / "start.sh"
    scripts.parent.mkdir(parents=True)
    scripts.write_text(CODE)
    (folder / "examples" / "tensorflow" / "distributed-cifar-10" / "code" / "benchmarks").mkdir(parents=True)
    return f"file://{folder}"


class Run:
    """All files at once on one cluster."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.jobs: dict[str, int] = {}
        self.ignored: dict[str, list[str]] = {}
        self.rows: dict[str, dict[str, dict[str, str]]] = {}  # of jobs that were ended by hand
        self.environment = {"PAI_DEFAULT_FS_URI": code_of_openpai(folder / "fs")}

    def submit(self, name: str) -> None:
        """Submit a file, from a directory of its own."""
        place = self.folder / name.replace("/", "-")
        (place / "records").mkdir(parents=True)
        file = place / Path(name).name
        file.write_text(sized((SHARED / name).read_text(encoding="utf-8-sig")), encoding="utf-8")
        said = describe(understand_text(file.read_text(encoding="utf-8"), file.name, "root"))
        names = re.findall(r"^\S+: (?:\S*?[.\]])?([\w/.-]+): ignored", said, re.MULTILINE)
        self.ignored[name] = sorted(set(names))
        variables = {**self.environment, "SPEC_RECORDS": str(place / "records")}
        inside = self.cluster.with_environment(**{**self.cluster.environment, **variables}).at(place)
        done = inside.run(
            "bsub", "-json" if file.suffix == ".json" else "-yaml", str(file), *SPECS[name].command.split()
        )
        found = re.findall(r"Job <(\d+)> is submitted", done.stdout)
        assert len(found) == 1, done
        self.jobs[name] = int(found[0])

    def tasks(self, name: str) -> dict[str, dict[str, str]]:
        """Rows of the tasks of a job."""
        done = self.cluster.run("lavactl", "tasks", "-json", str(self.jobs[name]))
        return {row["TASK"]: row for row in json.loads(done.stdout)["RECORDS"]} if not done.returncode else {}

    def wait(self) -> None:
        """Wait until all jobs have ended; those without an end are ended when all their tasks run."""
        endless = {name for name in self.jobs if SPECS[name].state == "RUN"}

        def have_ended() -> bool:
            for name in [one for one in endless if self._all_run(one)]:
                self.rows[name] = self.tasks(name)
                self.cluster.run("bkill", str(self.jobs[name]))
                endless.remove(name)
            done = self.cluster.run("bjobs", "-u", "all", "-noheader", "-o", "jobid")
            return not endless and not done.stdout.split()

        with contextlib.suppress(AssertionError):  # told by the tests of the files that did not end
            wait_for(have_ended, LIMIT_S, "the end of all jobs", pause_s=1)

    def outcome(self, name: str) -> Outcome:
        """Return the fate of a file."""
        job, wanted = self.jobs[name], SPECS[name].state
        rows = self.rows.get(name) or self.tasks(name)
        state, code = self.cluster.states(job)[0]
        state, code = ("RUN", 0) if name in self.rows else (state, code)
        place = self.folder / name.replace("/", "-") / "records"
        records = [json.loads(path.read_text()) for path in sorted(place.glob("*.json"))]
        shown = (("bjobs", "-l"), ("lavactl", "tasks"), ("lavactl", "logs"), ("bhist", "-l"))
        account = "" if state == wanted else "".join(self.cluster.run(*one, str(job)).stdout for one in shown)
        return Outcome(job, state, code, rows, records, self.ignored[name], account)

    def _all_run(self, name: str) -> bool:
        rows = self.tasks(name)
        return bool(rows) and all(row["STAT"] == "RUN" for row in rows.values())


@pytest.fixture(scope="module")
def outcomes(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Outcome]]:
    """Fate of each file: all are submitted at once; at the end the table of them is printed."""
    run = Run(cluster, tmp_path_factory.mktemp("specs"))
    for name in TRIED:
        run.submit(name)
    run.wait()
    found = {name: run.outcome(name) for name in TRIED}
    yield found
    print("\n| spec | roles | hosts | state | programs | ignored |\n| --- | --- | --- | --- | --- | --- |")
    for name, one in found.items():
        roles = ", ".join(f"{role} {count}" for role, count in SPECS[name].roles.items())
        hosts = len({row["HOST"] for row in one.tasks.values()} - {"-"})
        programs = ", ".join(sorted({record["program"] for record in one.records}))
        print(f"| {name} | {roles} | {hosts} | {one.state} | {programs} | {', '.join(one.ignored)} |")


def test_no_file_is_forgotten() -> None:
    """Each file is run here, or said to hold no job."""
    files = {path.relative_to(SHARED).as_posix() for path in SHARED.glob("*/*") if path.suffix in (".yaml", ".json")}
    assert files == set(SPECS) | set(NO_JOBS)


@pytest.mark.parametrize("name", NO_JOBS)
def test_files_without_a_job_say_so(cluster: Cluster, name: str) -> None:
    """Configurations of queues."""
    done = cluster.run("lavactl", "run", "-f", str(SHARED / name))
    assert done.returncode == 255
    assert NO_JOBS[name] in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_file_runs(name: str, outcomes: dict[str, Outcome]) -> None:
    """Its roles, where they ran, what their programs were told, and how it ended."""
    spec, found = SPECS[name], outcomes[name]
    assert (found.state, found.code) == (spec.state, 0), found.account
    roles: dict[str, int] = {}
    for task in found.tasks:
        roles[task.rpartition("/")[0]] = roles.get(task.rpartition("/")[0], 0) + 1
    assert roles == spec.roles
    assert {row["HOST"] for row in found.tasks.values()} <= {"-", *(f"lava{at}" for at in range(1, HOSTS + 1))}
    spec.check(found.records)
    for record in found.records:
        variables = record["environment"]
        if variables["LAVA_ROLE"] in spec.gpus:
            seen = variables.get("CUDA_VISIBLE_DEVICES", "")
            count = len([word for word in seen.split(",") if word.isdigit()])
            assert count == spec.gpus[variables["LAVA_ROLE"]], (record["program"], variables["LAVA_ROLE"], seen)
