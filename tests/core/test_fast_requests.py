"""Requests that the fast paths take: those equal to a minimal one but for the fields that the path knows."""

from dataclasses import fields, replace
from typing import Any

import pytest

from lavad.core.model import Alternative, Launch, Request, RoleRequest
from lavad.core.model.rules.queues import QueueHosts
from tests.builders import a_role

OTHERS: dict[str, Any] = {
    "tasks_min": 2, "tasks_max": 3, "slots_per_task": 2, "memory_mib": 100, "gpus": 1, "gpus_per_task": True,
    "one_host": True, "ptile": 2, "select": "mem>1", "order": "mem", "same": "type", "rusage": "lic=1",
    "gpu": "num=1:mode=shared", "cu": "type=rack", "affinity": "core(1)", "ptile_by": (("fast", 2),), "block": 2,
    "stripe": 2, "launch": Launch.EACH, "name": "ps", "command": "serve", "resizable": True, "spares": 1,
}  # fmt: skip
ANYWHERE = {"tasks_max", "one_host", "gpus_per_task", "launch", "name", "command", "resizable"}
ONE_TASK = {"slots_per_task", "memory_mib", "gpus", "one_host", "ptile", "gpus_per_task"}
OF_JOB: dict[str, Any] = {
    "hosts": ("n1",), "exclusive": True, "same": "type", "cu": "type=rack", "reservation": "r1",
    "alternatives": (Alternative((RoleRequest(),)),), "queue_hosts": QueueHosts(frozenset({"n1"})),
    "avoids": frozenset({"big"}), "is_of_tasks": True, "service_class": "gold",
}  # fmt: skip


def test_every_field_has_a_case() -> None:
    """A new field is added here, and with that its author decides."""
    assert set(OTHERS) == {one.name for one in fields(RoleRequest) if one.init}
    assert set(OF_JOB) == {one.name for one in fields(Request) if one.init} - {"roles"}


@pytest.mark.parametrize("name", OTHERS)
def test_a_field_of_a_role_closes_the_fast_path(name: str) -> None:
    """Unless the path can do what it says."""
    role = replace(a_role(), **{name: OTHERS[name], **({"tasks_max": 2} if name == "tasks_min" else {})})
    request = Request((role,))
    assert request.is_slots_only == (name in ANYWHERE | {"tasks_min"})
    assert (request.task_size is not None) == (name in (ANYWHERE | ONE_TASK) - {"tasks_max"})


@pytest.mark.parametrize("name", OF_JOB)
def test_a_field_of_the_job_closes_the_fast_path(name: str) -> None:
    """An advance reservation is looked at by the bucket's key, a service class by the pools."""
    request = Request((a_role(),), **{name: OF_JOB[name]})
    assert request.task_size is None
    assert request.is_slots_only == (name in ("reservation", "service_class"))
