"""Jobs of tasks for acceptance tests: submitted as messages through the local agent, as commands do it."""

import os
import time
from pathlib import Path

from lavactl.wire.client import Client
from protos.common_pb2 import LAUNCH_EACH, Role
from protos.jobs_pb2 import JobSpec, SubmitItem, TaskRules
from tests.acceptance.personal import Cluster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Desk:
    """Surroundings of a client."""

    def __init__(self, cluster: Cluster) -> None:
        self.environ: Mapping[str, str] = cluster.environment

    def setting(self, name: str, /) -> str | None:
        """Return a variable of the environment."""
        return self.environ.get(name)

    def error(self, text: str, /) -> None:
        """Fail: nothing is retried here."""
        raise AssertionError(text)

    def sleep(self, seconds: float, /) -> None:
        """Wait between two tries."""
        time.sleep(seconds)


def role(name: str, command: str, tasks: int = 1, **fields: object) -> Role:
    """A role whose command runs in each task, one slot each."""
    given: dict[str, object] = {"tasks_min": tasks, "tasks_max": tasks, "launch": LAUNCH_EACH}
    return Role(name=name, command=command, **{**given, **fields})  # type: ignore[arg-type]


def submit(cluster: Cluster, cwd: Path, *roles: Role, rules: TaskRules | None = None, **fields: object) -> int:
    """Submit a job of tasks; its number."""
    spec = JobSpec(
        name="tasks",
        cwd=str(cwd),
        submit_cwd=str(cwd),
        environment=[b"PATH=" + os.environb[b"PATH"]],
        roles=roles,
        tasks=rules or TaskRules(),
        **fields,  # type: ignore[arg-type]
    )
    spec.tasks.format = 1
    client = Client(Desk(cluster))
    try:
        result = client.submit(SubmitItem(request_id=os.urandom(16), spec=spec))
    finally:
        client.close()
    assert not result.error, result.error
    return int(result.job)
