"""GPU use of jobs, with real processes on a host whose GPUs are reported by a fake NVML that changes while they run."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for
from tests.fakes.nvml import FakeNvml

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]


QUEUES = """
    Begin Queue
    QUEUE_NAME = normal
    PRIORITY = 30
    GPU_IDLE_TIME = 1
    End Queue
    Begin Queue
    QUEUE_NAME = strict
    PRIORITY = 20
    GPU_IDLE_TIME = 1
    GPU_IDLE_LIMIT = 3
    End Queue
"""


class Site:
    """One host with three GPUs, the state of each as lines of the fake."""

    def __init__(self, cluster: Cluster, nvml: FakeNvml, outputs: Path) -> None:
        self.cluster = cluster
        self.outputs = outputs
        self._nvml = nvml
        self._lines: dict[int, tuple[str, ...]] = {}

    def gpu(self, index: int, *lines: str) -> None:
        """Replace what is known of one GPU: ``memory_mib 900``."""
        self._lines[index] = lines
        told = [f"gpu {gpu} {line}" for gpu, said in self._lines.items() for line in said]
        self._nvml.describe("devices 3", *told)

    def clean(self) -> None:
        """Make all GPUs idle."""
        self._lines.clear()
        self._nvml.describe("devices 3")

    def describe(self, *lines: str) -> None:
        """Replace all that is known of the hardware."""
        self._nvml.describe(*lines)

    def divide(self, *lines: str) -> None:
        """Replace the hardware, and then the agent."""
        self.describe(*lines)
        agent = f"agent-{self.cluster.hosts()[0]}"
        self.cluster.kill(agent)
        wait_for(lambda: not self.cluster.is_running(agent), 60, "the agent to end")
        self.cluster.up()

    def submit(self, gpu: str, *options: str) -> int:
        """Submit a job that reports its pid and its devices."""
        command = 'echo "pid $$ sees $CUDA_VISIBLE_DEVICES"; exec sleep 300'
        return self.cluster.submit("-gpu", gpu, *options, "-o", f"{self.outputs}/%J", command)

    def seen(self, job: int) -> tuple[int, str]:
        """Process and devices of a job as it names them, once it runs."""
        path = self.outputs / str(job)
        wait_for(lambda: path.exists() and "sees" in path.read_text(), 60, f"job {job} to run")
        found = re.search(r"^pid (\d+) sees (\S*)$", path.read_text(), re.MULTILINE)
        assert found, path.read_text()
        return int(found[1]), found[2]

    def began(self, job: int) -> tuple[int, tuple[int, ...]]:
        """Process and devices of a job, once it runs."""
        pid, devices = self.seen(job)
        return pid, tuple(map(int, devices.split(",")))

    def figures(self, job: int) -> dict[str, str]:
        """The fields of bjobs -o about GPU use."""
        fields = "gpu_util gpu_util_max gpu_mem gpu_mem_max gpu_power gpu_power_max gpu_energy"
        rows = json.loads(self.cluster.says("bjobs", "-a", "-json", "-o", fields, str(job)))
        record: dict[str, str] = rows["RECORDS"][0]
        return record

    def long(self, job: int) -> str:
        """Output of bjobs -l, in one line."""
        return " ".join(self.cluster.says("bjobs", "-l", str(job)).split())

    def energy_j(self, job: int) -> int:
        return int(self.figures(job)["GPU_ENERGY"].removesuffix("J") or 0)


@pytest.fixture(scope="module")
def site(open_directory: Path) -> Iterator[Site]:
    """The host, with short times."""
    tools, outputs = open_directory / "gpu-use-tools", open_directory / "gpu-use-out"
    tools.mkdir()
    outputs.mkdir()
    nvml = FakeNvml(tools)
    nvml.describe("devices 3")
    settings = {
        "LAVA_USAGE_INTERVAL": "0.3", "LAVA_TERMINATE_INTERVAL": "0.3", "LAVA_GPU_CLEAR_TIME": "1",
        "LAVA_HEARTBEAT": "0.5",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in nvml.environment.items():
            patch.setenv(name, value)
        with a_cluster(open_directory / "U", 1, 8, lsf_files={"lsb.queues": QUEUES}, **settings) as made:
            yield Site(made, nvml, outputs)


@pytest.fixture(autouse=True)
def _emptied(site: Site) -> Iterator[None]:
    yield
    site.clean()
    site.cluster.clear()


def test_use_is_counted_across_agents_and_told_after_the_end(site: Site) -> None:
    """Use, memory, power and energy of the job's own processes, through a restart of the agent, until after the end."""
    job = site.submit("num=1")
    pid, (gpu,) = site.began(job)
    site.gpu(gpu, "gpu_percent 80", "memory_mib 1500", "milliwatts 400000", f"process {pid}:1400:75", "celsius 61")
    wait_for(lambda: site.energy_j(job) >= 200, 60, "energy to be counted")
    host = site.cluster.hosts()[0]
    site.cluster.kill(f"agent-{host}")
    wait_for(lambda: not site.cluster.is_running(f"agent-{host}"), 60, "the agent to end")
    before = site.energy_j(job)
    site.cluster.up()
    wait_for(lambda: site.energy_j(job) > before + 100, 60, "energy to be counted by the next agent")
    told = site.cluster.says("bjobs", "-l", "-gpu", str(job))
    assert f"GPU ID: {gpu}" in told
    assert f"PID {pid}: SM 75%, Memory 1400 Megabytes" in told
    site.cluster.run("bkill", "-s", "KILL", str(job))
    site.cluster.becomes(job, "EXIT")
    site.clean()
    wait_for(lambda: site.cluster.says("bhosts", "-noheader", "-o", "njobs") == "0", 60, "the host to be free")
    after = site.figures(job)
    assert (after["GPU_UTIL_MAX"], after["GPU_MEM_MAX"], after["GPU_POWER_MAX"]) == ("80%", "1400M", "400W")
    assert int(after["GPU_ENERGY"].removesuffix("J")) >= before
    history = site.cluster.says("bhist", "-l", "-gpu", str(job))
    assert re.search(r"SM Utilization \(%\): Avg \d+, Max 80", history)
    assert "GPU Energy Consumed: " in history


def test_a_gpu_is_handed_on_when_its_memory_is_free(site: Site) -> None:
    """The next job on a GPU waits for memory that the last one left, although that has ended for its user."""
    first = site.submit("num=3")
    pid, gpus = site.began(first)
    site.gpu(1, "memory_mib 9000", f"process {pid}:9000")
    second = site.submit("num=3")
    site.gpu(1, "memory_mib 9000")
    site.cluster.run("bkill", str(first))
    site.cluster.becomes(first, "EXIT")
    assert site.cluster.state(second) == "PEND"
    site.gpu(1, "memory_mib 400")
    assert site.began(second)[1] == gpus


def test_a_gpu_that_keeps_memory_is_taken_out_of_use(site: Site) -> None:
    """After a while the host is free without it, says why, and uses its other GPUs; the GPU returns with its memory."""
    cluster = site.cluster
    first = site.submit("num=3")
    pid, _ = site.began(first)
    site.gpu(1, "memory_mib 9000", f"process {pid}:9000")
    site.gpu(1, "memory_mib 9000")
    cluster.run("bkill", str(first))
    second = site.submit("num=2")
    assert site.began(second)[1] == (0, 2)
    kept = "it holds 9000 MiB of memory without a process"
    wait_for(lambda: kept in cluster.says("bhosts", "-l", "-gpu"), 60, "the reason to be told")
    third = site.submit("num=1")
    wait_for(lambda: "Not enough GPUs" in cluster.run("bjobs", "-p", str(third)).stdout, 60, "a reason to be told")
    agent = f"agent-{cluster.hosts()[0]}"
    cluster.kill(agent, signal.SIGTERM)
    wait_for(lambda: not cluster.is_running(agent), 60, "the agent to end")
    cluster.up()
    wait_for(lambda: "it holds 9000" in cluster.says("bhosts", "-l", "-gpu"), 60, "the next agent to say the same")
    assert cluster.state(third) == "PEND"
    site.gpu(1, "memory_mib 0")
    assert site.began(third)[1] == (1,)


def test_a_lost_gpu_is_given_to_no_job(site: Site) -> None:
    """It leaves placement with NVML's sentence; the others are used, and it is back once it answers."""
    site.gpu(0, "error 15")
    wait_for(lambda: "GPU is lost" in site.cluster.says("bhosts", "-l", "-gpu"), 60, "the loss to be told")
    assert site.began(site.submit("num=2"))[1] == (1, 2)


def test_an_idle_gpu_is_warned_of_and_ends_the_job_at_the_limit(site: Site) -> None:
    """100 % busy at idle power is idle: the user is told, and the job ended; one at work goes on whatever it shows."""
    at_work = ("gpu_percent 5", "milliwatts 350000")
    for gpu in range(3):
        site.gpu(gpu, *at_work)  # so that no job is idle before all of it is set up
    idle, busy = site.submit("num=1", "-q", "strict"), site.submit("num=1", "-q", "strict")
    (_, (of_idle,)), (pid, (of_busy,)) = site.began(idle), site.began(busy)
    site.gpu(of_busy, *at_work, "memory_mib 100", f"process {pid}:100")
    told = site.submit("num=1", "-q", "normal")  # which has no limit
    _, (of_told,) = site.began(told)
    for gpu in (of_idle, of_told):
        site.gpu(gpu, "gpu_percent 100", "milliwatts 75000")
    wait_for(lambda: "has been idle" in site.long(told), 60, "a warning in bjobs -l")
    site.cluster.becomes(idle, "EXIT")
    history = " ".join(site.cluster.history(idle).split())
    assert re.search(rf"Warning: GPU {of_idle} of \S+ has been idle for", history)
    assert "TERM_GPU_IDLE: job killed because all its GPUs were idle for too long" in history
    report = (site.outputs / str(idle)).read_text()
    assert re.search(
        r"GPU usage:\n\n +\S+ GPU \d : +\d+ sec\.\n +SM utilization : +\d+% on average, 100% at most", report
    )
    assert (site.cluster.state(busy), "has been idle" in site.long(busy)) == ("RUN", False)


def test_a_process_of_no_job_is_seen_and_told(site: Site) -> None:
    """A process that computes on a GPU outside of any job is named by bhosts -l -gpu, with its user and memory."""
    me = os.getpid()
    site.gpu(2, "memory_mib 700", f"process {me}:650")
    line = f"2 {me} root"

    def told() -> str:
        return " ".join(site.cluster.says("bhosts", "-l", "-gpu").split())

    wait_for(lambda: line in told(), 60, "the process to be told")
    assert f"{line} 650" in told()


def test_the_commands_of_the_page_about_gpus(site: Site) -> None:
    """docs/howto/gpus.md as a reader types it: the job's figures, its history and report, and the host's GPUs."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "gpus.md").read_text(encoding="utf-8")
    script = "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=site.cluster.environment, cwd=site.outputs, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    said = ("GPU_ALLOCATION:", "GPU_ENERGY", "GPU Energy Consumed:", "GPU usage:", "DYNAMIC ATTRIBUTES", "gpu_mused")
    for words in said:
        assert words in done.stdout, (words, done)


def test_mig_devices_are_given_out_by_their_size(site: Site) -> None:
    """Jobs share a card by its MIG devices, each sees its own alone, and its memory is counted there; the others wait.

    lsf.md 3.9: mig=GI[/CI]; a job without it has a whole GPU. After a GPU has been divided the agent is restarted, as
    docs/howto/gpus.md has it.
    """
    cluster = site.cluster
    card = ("gpu 0 mig 1", "mig 0 0 slices 3", "mig 0 1 slices 3", "mig 0 2 slices 1")
    site.divide("devices 2", *card)
    try:
        jobs = [site.submit(gpu) for gpu in ("num=1:mig=3", "num=1:mig=3", "num=1:mig=1", "num=1")]
        pids, named = zip(*(site.seen(job) for job in jobs), strict=True)
        assert [uuid[:4] for uuid in named] == ["MIG-", "MIG-", "MIG-", "GPU-"]
        assert len({*named}) == 4
        large, whole = site.submit("num=1:mig=3"), site.submit("num=1")
        for waiting in (large, whole):
            told = partial(cluster.run, "bjobs", "-p", str(waiting))
            wait_for(lambda told=told: "Not enough GPUs" in told().stdout, 60, "a reason to be told")  # type: ignore[misc]
        site.describe("devices 2", *card, f"mig 0 2 process {pids[2]}:650", "mig 0 2 memory_mib 700")
        wait_for(lambda: site.figures(jobs[2])["GPU_MEM_MAX"] == "650M", 60, "the memory to be counted")
        rows = [line.split() for line in cluster.says("bhosts", "-l", "-gpu").splitlines()]
        assert [(row[0], row[-2]) for row in rows if "Nvidia" in row] == [
            ("0", "Y"),
            ("1", "Y"),
            ("2", "Y"),
            ("3", "N"),
        ]
        assert [row[:3] for row in rows if row[1:2] == ["Y"]] == [
            [str(at), "Y", str(job)] for at, job in enumerate(jobs)
        ]
        models = [row.split()[-5] for row in cluster.says("lshosts", "-gpu", cluster.hosts()[0]).splitlines()[1:]]
        assert [model.partition("MIG")[2][:3] for model in models] == ["3g.", "3g.", "1g.", ""]
        cluster.run("bkill", str(jobs[1]))
        assert site.seen(large)[1] == named[1]
        assert cluster.state(whole) == "PEND"
    finally:
        cluster.clear()
        site.divide("devices 3")
