"""Ray itself: a cluster for each job, no larger than its allocation, from a RayJob and from lava's own file."""

from pathlib import Path

import pytest

from tests.frameworks.reporting import PROGRAMS, ends, note
from tests.seeds.site import Site

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root, pytest.mark.framework("ray")]

RAYJOB = """
apiVersion: ray.io/v1
kind: RayJob
metadata: {{name: squares}}
spec:
  entrypoint: {python} {program} 3
  shutdownAfterJobFinishes: true
  rayClusterSpec:
    rayVersion: "2.60.0"
    headGroupSpec:
      rayStartParams: {{num-cpus: "0"}}
      template:
        spec:
          containers: [{{name: head, image: example/ray, resources: {{requests: {{cpu: 1}}}}}}]
    workerGroupSpecs:
      - groupName: small
        replicas: 2
        minReplicas: 2
        maxReplicas: 2
        template:
          spec:
            containers: [{{name: worker, image: example/ray, resources: {{requests: {{cpu: 2}}}}}}]
"""
OWN = """
name: own
conventions: {{ray: {{}}}}
environment: {{RAY_AUTH_MODE: disabled}}
policies: [{{on: failed, do: abort}}]
roles:
  head:
    tasks: 1
    ports: {{ray: 1, ray-dashboard: 1, ray-client: 1}}
    command: exec $LAVA_RAY_START --object-store-memory=100000000
  worker:
    tasks: 2
    slots: 2
    after: [head]
    restart: on-failure
    restarts: 20
    command: exec $LAVA_RAY_START --object-store-memory=100000000
  driver:
    tasks: 1
    after: [worker]
    restart: on-failure
    restarts: 20
    command: exec ray job submit -- {python} {program} 3
    policies: [{{on: role-completed, do: complete}}]
"""
SYMMETRIC = """
name: symmetric
conventions: {{ray: {{head: worker}}}}
environment: {{RAY_AUTH_MODE: token}}
secrets: {{RAY_AUTH_TOKEN: 5d2c8a6e1f0b4937a4e2c1d09b7f6835}}
roles:
  worker:
    tasks: 2
    requirement: "span[ptile=1]"
    ports: {{ray: 1}}
    policies: [{{on: succeeded, do: complete, task: 0}}, {{on: failed, do: terminate, task: 0}}]
    command: >-
      exec env -u RAY_ADDRESS RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=240
      ray symmetric-run --address "$RAY_ADDRESS" --min-nodes 2 --num-cpus 1
      -- {python} {program} 2
"""


# Ray keeps its sockets in /tmp/ray, which the hosts of this cluster share and real hosts do not. A ray that another one
# calls, as symmetric-run does, has the same: there the second finds the cluster that the first has started.
WRAPPER = """#!/bin/sh
[ -z "$RAY_HAS_ITS_OWN" ] || exec {ray} "$@"
export RAY_HAS_ITS_OWN=1
mkdir -p /tmp/ray
exec unshare --mount sh -c 'mount -t tmpfs ray /tmp/ray && exec "$@"' ray {ray} "$@"
"""


@pytest.fixture
def ray_site(site: Site, programs: Path) -> Site:
    """The cluster, for jobs that find ray in their PATH."""
    (site.folder / "ray").write_text(WRAPPER.format(ray=programs / "ray"))
    (site.folder / "ray").chmod(0o755)
    path = f"{site.folder}:{site.cluster.environment['PATH']}:{programs}"
    return Site(site.cluster.with_environment(PATH=path, RAY_USAGE_STATS_ENABLED="0"), site.folder)


def script(text: str, programs: Path) -> str:
    """The job file."""
    return text.format(python=programs / "python", program=PROGRAMS / "ray_sum.py")


def said_by(site: Site, job: int, task: str) -> list[str]:
    """Lines of the program of a task."""
    lines = site.log(job, task).splitlines()
    found = [line for line in lines if line.startswith(("Ray ", "sum of"))]
    assert found, lines[-30:]
    return found


def test_a_rayjob_has_no_more_than_its_slots(ray_site: Site, programs: Path) -> None:
    """A head that takes no work and two workers of two slots; the job ends with its entry point."""
    job = ray_site.run(script(RAYJOB, programs))
    ends(ray_site, job, 280)
    said = said_by(ray_site, job, "submitter/0")
    assert said[0].endswith("3 nodes, CPUs [0, 2.0, 2.0], ran on 2 nodes"), said
    assert said[1] == "sum of squares 506"
    note("ray", f"RayJob: {said[0]}")


def test_head_workers_and_driver_of_ones_own(ray_site: Site, programs: Path) -> None:
    """Every node has the slots of its task."""
    job = ray_site.run(script(OWN, programs))
    ends(ray_site, job, 280)
    said = said_by(ray_site, job, "driver/0")
    assert "3 nodes, CPUs [1.0, 2.0, 2.0], ran on" in said[0], said
    note("ray", f"own roles: {said[0]}")


def test_one_command_on_every_host(ray_site: Site, programs: Path) -> None:
    """`ray symmetric-run`: the task whose address is the head's runs the program, and the job ends with it."""
    job = ray_site.run(script(SYMMETRIC, programs))
    ends(ray_site, job, 280)
    said = said_by(ray_site, job, "worker/0")
    assert "2 nodes, CPUs [1.0, 1.0], ran on" in said[0], said
    note("ray", f"symmetric-run: {said[0]}")
