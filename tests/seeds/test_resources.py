"""Seed rows 16 and 46: MindSpore's dynamic cluster, resources that each role declares; and roles in their order."""

import pytest

from tests.seeds.site import Site
from tests.seeds.test_openpai import first, role

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

MINDSPORE = """
name: dynamic
conventions: {mindspore: {}}
roles:
  scheduler: {tasks: 1, command: env, ports: {mindspore: 1}}
  worker: {tasks: 4, command: env}
"""


def test_row_16_a_mindspore_cluster_has_one_scheduler(site: Site) -> None:
    """One scheduler and four workers with the indices 0 to 3, which all know the same address."""
    job = site.run(MINDSPORE)
    site.ends(job)
    told = [site.environment(job, one) for one in ("scheduler/0", *(f"worker/{index}" for index in range(4)))]
    assert [one["MS_ROLE"] for one in told] == ["MS_SCHED", *["MS_WORKER"] * 4]
    assert [one.get("MS_NODE_ID") for one in told] == [None, "0", "1", "2", "3"]
    assert {one["MS_WORKER_NUM"] for one in told} == {"4"}
    assert len({(one["MS_SCHED_HOST"], one["MS_SCHED_PORT"]) for one in told}) == 1
    assert told[0]["MS_SCHED_PORT"] == told[0]["LAVA_PORT_MINDSPORE"]
    assert told[0]["MS_SCHED_HOST"] == told[0]["LAVA_TASK_ADDRESS"]


def test_row_46_each_role_gets_what_it_declares(site: Site) -> None:
    """Two processors for the server, two devices for the worker; the system finds the hosts."""
    text = first("declared", role("ps", 1, "env", cpuNumber=2), role("worker", 1, "env", gpuNumber=2, memoryMB=128))
    job = site.run(text, name="declared.json")
    site.ends(job)
    server, worker = site.environment(job, "ps/0"), site.environment(job, "worker/0")
    assert (server["PAI_RESOURCE_ps"], server["PAI_RESOURCE_worker"]) == ("0,2,64,64", "2,1,128,64")
    assert len(worker["CUDA_VISIBLE_DEVICES"].split(",")) == 2
    assert server.get("CUDA_VISIBLE_DEVICES", "") in ("", "-1", "NoDevFiles")
    assert site.tasks(job)["ps/0"]["HOST"] != site.tasks(job)["worker/0"]["HOST"]  # two slots a host, three asked for


def test_a_role_begins_when_another_has_succeeded(site: Site) -> None:
    """`after-done`: the evaluation finds what all workers of the training have left."""
    done = site.folder / "done"
    train = f"sleep 0.$LAVA_ROLE_INDEX; echo $LAVA_ROLE_INDEX >> {done}"
    job = site.run(
        f"name: stages\nroles:\n  train: {{tasks: 2, command: '{train}'}}\n"
        f"  evaluate: {{tasks: 1, after-done: [train], command: 'test $(wc -l < {done}) = 2'}}\n"
    )
    site.ends(job)
