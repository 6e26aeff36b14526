"""TensorFlow's two strategies for several machines, from Volcano's files, with TensorFlow itself."""

from pathlib import Path

import pytest

from tests.frameworks.reporting import PROGRAMS, ends, note
from tests.seeds.site import Site

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root, pytest.mark.framework("tensorflow")]

HEAD = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: {name}
spec:
  minAvailable: {least}
  plugins: {{env: [], svc: [], tensorflow: []}}
  tasks:
"""
TASK = """
    - name: {name}
      replicas: {count}
      {policies}
      template:
        spec:
          containers:
            - name: main
              image: example/tensorflow
              env: [{{name: CUDA_VISIBLE_DEVICES, value: ""}}, {{name: TF_CPP_MIN_LOG_LEVEL, value: "2"}}]
              command: ["{python}", "{program}"]
          restartPolicy: Never
"""
COMPLETES = "policies: [{event: TaskCompleted, action: CompleteJob}]"


def volcano(name: str, program: str, programs: Path, **counts: int) -> str:
    """A job whose tasks of all roles run this program; it ends with its chief, or with its workers."""
    decisive = "chief" if "chief" in counts else "worker"
    tasks = (
        TASK.format(
            name=role,
            count=count,
            policies=COMPLETES if role == decisive else "policies: []",
            python=programs / "python",
            program=PROGRAMS / program,
        )
        for role, count in counts.items()
    )
    return HEAD.format(name=name, least=sum(counts.values())) + "".join(tasks)


def test_a_parameter_server_serves_two_workers(site: Site, programs: Path) -> None:
    """The chief ends the job; server and workers, which never end by themselves, are ended with it."""
    job = site.run(volcano("servers", "tf_servers.py", programs, ps=1, worker=2, chief=1))
    ends(site, job, 240)
    chief = site.log(job, "chief/0")
    assert "weight 3.00 on /job:ps/replica:0/task:0" in chief, chief
    shares = [site.log(job, f"worker/{index}").count("step from") for index in range(2)]
    assert min(shares) > 0, shares
    note("tensorflow", f"{chief.splitlines()[-1]}; steps of the workers: {shares}")


def test_workers_mirror_each_other(site: Site, programs: Path) -> None:
    """Two workers, each with its place in TF_CONFIG, add up their numbers in each step."""
    job = site.run(volcano("mirrored", "tf_workers.py", programs, worker=2))
    ends(site, job, 240)
    for index in range(2):
        said = site.log(job, f"worker/{index}")
        assert f"worker {index} of 2: sum 3, weight 1.50" in said, said
        note("tensorflow", said.splitlines()[-1])
