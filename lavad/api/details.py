"""Details of jobs as clients are shown them: whole specs, read together, without environments.

What the elements of an array share is sent with the first of them only, if the client can share it.
"""

from collections.abc import Collection

from lavad.agent_links.spec_cache import as_admitted
from lavad.api.slices import Slices
from lavad.core.language.requirements import gpu
from lavad.core.language.requirements.gpu import GpuRequirement
from lavad.core.model import Request
from lavad.core.model.policy import Policy
from lavad.core.orders import spec_defaults
from lavad.core.state.pools import Pools
from lavad.core.state.records import ArrayRecord, Job
from lavad.store.store import Store
from protos.common_pb2 import GpuRequest
from protos.jobs_pb2 import JobRecord, JobSpec

READ_AT_ONCE = 200  # jobs whose specs are read by one query


async def read_specs(store: Store, numbers: Collection[int], slices: Slices) -> dict[int, JobSpec]:
    """Return the specs, without environments, of those numbers that exist."""
    found: dict[int, JobSpec] = {}
    for number, stored in (await store.specs(numbers)).items():
        await slices.check()
        found[number] = shown_spec(stored)
    return found


def shown_spec(stored: bytes) -> JobSpec:
    """Parse a stored spec and leave out its environment, and of its secrets all but their names."""
    spec = JobSpec.FromString(stored)
    spec.ClearField("environment")
    spec.ClearField("environment_base")
    spec.ClearField("input_data")
    spec.ClearField("esub_output")
    spec.ClearField("environment_unset")
    if spec.HasField("tasks"):
        names = [entry.partition(b"=")[0] + b"=" for entry in spec.tasks.secrets]
        spec.tasks.ClearField("secrets")
        spec.tasks.secrets.extend(names)
    return spec


def known_spec(record: Job | ArrayRecord) -> JobSpec:
    """Build the spec fields that memory keeps of a job."""
    shared, words = record.shared, record.words
    return JobSpec(
        name=words["name"],
        command=words["command"],
        project=shared.project,
        job_group=shared.job_group,
        application=shared.application,
        service_class=shared.request.service_class,
        cwd=words["cwd"],
        submit_cwd=words["submit_cwd"] or words["cwd"],
        input=words["input"],
        output=words["output"],
        error=words["error"],
        description=words["description"],
        run_limit_s=shared.run_limit_s,
        memory_limit_mib=shared.memory_limit_mib,
        rerunnable=shared.rerunnable,
        interactive=shared.special.interactive,
        exclusive=shared.request.exclusive,
        hosts=shared.request.hosts,
    )


def _show_gpus(spec: JobSpec, request: Request) -> None:
    """Show each role's GPUs as the scheduler counts them: of its queue, of LSB_GPU_REQ, of rusage[ngpus_physical=]."""
    if len(spec.roles) != len(request.roles):
        return  # terms of one compound -R
    for shown, role in zip(spec.roles, request.roles, strict=True):
        if role.gpus and shown.gpu.text in gpu.DEFAULTS:
            wanted = gpu.parse(role.gpu) if role.gpu else GpuRequirement(num=role.gpus, per_task=role.gpus_per_task)
            shown.gpu.CopyFrom(GpuRequest(num=wanted.num, per_task=wanted.per_task, text=gpu.text_of(wanted)))


class Details:
    """Details for the records of one answer, one after the other."""

    def __init__(self, policy: Policy, shares: bool) -> None:
        self._policy = policy
        self._shares = shares
        self._pools = Pools(policy) if policy.service_classes else None
        self._last, self._spec = 0, JobSpec()

    def add(self, message: JobRecord, record: Job | ArrayRecord, spec: JobSpec | None) -> None:
        """Add the whole spec; for an array's further elements only if they are not to share that of the first.

        Without a spec those of its fields are added that memory keeps.
        """
        if record.spec_number != self._last:
            queue = self._policy.queue_for(record.shared.queue, record.shared.application)
            defaults = spec_defaults(record.shared, queue)
            known = as_admitted(spec, defaults) if spec is not None else known_spec(record)
            known.run_limit_s = record.shared.run_limit_s  # includes the queue's default
            _show_gpus(known, record.shared.request)
            if self._pools is not None:
                known.service_class = self._pools.service_class_of(record.shared)
            self._last, self._spec = record.spec_number, known
        elif self._shares:
            message.ClearField("spec")
            return
        message.spec.CopyFrom(self._spec)
        message.effective_requirement = record.shared.requirement

    def left_out(self) -> None:
        """Note a record without details: the next one has its own."""
        self._last = 0
