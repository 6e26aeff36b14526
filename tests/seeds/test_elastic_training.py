"""Seed rows 17 to 31: MPI jobs and elastic training, as the MPI operator and elastic Horovod expect them."""

import time

import pytest

from tests.seeds.site import Site

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

# A trainer that counts steps, and notes before each which hosts the discovery script names.
TRAINER = """
while [ ! -e {folder}/stop ]; do
  step=$((step + 1)); echo "step $step of $$: $(/etc/mpi/discover_hosts.sh | tr '\\n' ' ')"; sleep 0.1
done
"""


def mpijob(name: str, launcher: str, workers: int = 2, version: str = "v2beta1", extra: str = "") -> str:
    """An MPIJob with a launcher and some workers."""
    command = launcher.strip().replace("\n", "\n                  ")
    return f"""
apiVersion: kubeflow.org/{version}
kind: MPIJob
metadata:
  name: {name}
spec:
  slotsPerWorker: 1
{extra}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
            - name: mpi
              image: example/mpi
              command: [sh, -c]
              args:
                - |
                  {command}
    Worker:
      replicas: {workers}
      template:
        spec:
          containers:
            - name: mpi
              image: example/mpi
"""


def test_row_25_launcher_and_workers(site: Site) -> None:
    """The launcher's end is the job's; its output is the job's."""
    job = site.run(mpijob("pi", "echo pi is near; cat /etc/mpi/hostfile"))
    site.ends(job)
    said = site.log(job, "launcher/0").splitlines()
    assert said == ["pi is near", "pi-worker-0.pi.default.svc slots=1", "pi-worker-1.pi.default.svc slots=1"]


def test_row_25_a_failing_launcher_fails_the_job(site: Site) -> None:
    """With the launcher's exit code, and without a retry where none is allowed."""
    job = site.run(mpijob("bad", "exit 4", extra="  runPolicy: {backoffLimit: 0}"))
    site.ends(job, "EXIT")
    assert site.cluster.states(job)[0] == ("EXIT", 4)


def test_row_26_workers_are_reached_without_ssh_keys(site: Site) -> None:
    """ssh by the names of the hostfile goes through blaunch."""
    job = site.run(mpijob("reach", "for i in 0 1; do ssh reach-worker-$i hostname; done"))
    site.ends(job)
    hosts = [site.tasks(job)[f"worker/{index}"]["HOST"] for index in range(2)]
    assert site.log(job, "launcher/0").split() == hosts


def elastic(name: str, site: Site, most: int = 3) -> str:
    """An elastic job as the seed has it: version 1, with the range of workers in the launcher's own options."""
    plain = mpijob(name, TRAINER.format(folder=site.folder), version="v1")
    words = ("horovodrun", "--min-np", "'1'", "--max-np", f"'{most}'")
    options = "".join(f"                - {word}\n" for word in words)
    return plain.replace("    Worker:\n", f"{options}    Worker:\n", 1)


def workers(site: Site, job: int) -> list[str]:
    """Workers that have a place."""
    return sorted(name for name, row in site.tasks(job).items() if "worker" in name and row["HOST"] != "-")


def steps(site: Site, job: int) -> list[str]:
    """Lines of the trainer so far."""
    return [line for line in site.log(job, "launcher/0").splitlines() if line.startswith("step ")]


def listed(site: Site, job: int) -> int:
    """Hosts in the newest line of the trainer."""
    lines = steps(site, job)
    return len(lines[-1].partition(": ")[2].split()) if lines else 0


def test_row_29_replicas_go_from_two_to_three_to_one_while_training_goes_on(site: Site) -> None:
    """The replay of the seed: the discovery list has 2, 3, 1 entries, the same launcher never stops its steps."""
    job = site.run(elastic("elastic", site))
    site.runs(job)
    site.cluster.says("lavactl", "scale", str(job), "worker=2")
    site.wait(lambda: listed(site, job) == 2, "two workers in the list")
    site.cluster.says("lavactl", "scale", str(job), "worker=3")
    site.wait(lambda: listed(site, job) == 3, "three workers in the list")
    site.cluster.says("lavactl", "scale", str(job), "worker=1")
    site.wait(lambda: listed(site, job) == 1, "one worker in the list")
    site.wait(lambda: workers(site, job) == ["worker/0"], "two workers to leave")
    (site.folder / "stop").touch()
    site.ends(job)
    lines = steps(site, job)
    assert [int(line.split()[1]) for line in lines] == list(range(1, len(lines) + 1))
    assert len({line.split()[3] for line in lines}) == 1


def test_row_27_what_a_shrink_releases_is_free_for_others(site: Site) -> None:
    """A pending job starts in the released slot."""
    job = site.run(elastic("wide", site, 5))
    site.runs(job)
    waiting = site.cluster.submit("sleep", "600")
    time.sleep(1)
    assert site.cluster.state(waiting) == "PEND"
    site.cluster.says("lavactl", "scale", str(job), "worker=4")
    site.cluster.becomes(waiting, "RUN")


def test_row_31_the_instance_to_go_is_named(site: Site) -> None:
    """The others keep their index."""
    job = site.run(elastic("chosen", site))
    site.runs(job)
    site.cluster.says("lavactl", "scale", str(job), "--remove", "worker-1")
    site.wait(lambda: workers(site, job) == ["worker/0", "worker/2"], "worker 1 to leave")
