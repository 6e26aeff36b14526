"""What a job was submitted with, as agents need it: packed for the store, unpacked again when it is dispatched.

An environment is stored as a difference to one the same user submitted with before: a site's environments are large and
almost equal. Only few whole specs are kept at hand, so that a million pending jobs do not live in memory twice.
"""

import hashlib
import signal
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable

from lavad.core.model import BY_USER, LOAD, PREEMPTION, WINDOW, Shared
from lavad.core.policy import Queue
from protos.agents_pb2 import JobControl, JobSpecBlob
from protos.jobs_pb2 import JobSpec

# Causes of a suspension as LSF's numbers have them: SUSP_USER_STOP, SUSP_QUEUE_WINDOW, SUSP_LOAD_REASON and
# SUSP_MBD_PREEMPT of lsbatch.h.
CAUSE_BITS = {BY_USER: 0x2, WINDOW: 0x8, LOAD: 0x40, PREEMPTION: 0x80}
SPECS_AT_HAND = 256
BASES_KEPT = 1024

LoadSpec = Callable[[int], Awaitable[bytes]]
LoadEnvironment = Callable[[bytes], Awaitable[bytes]]
PutEnvironment = Callable[[bytes, bytes], None]


class SpecShelf:
    """Packs specs for the store and hands them out again."""

    def __init__(self, load_spec: LoadSpec, load_environment: LoadEnvironment, put_environment: PutEnvironment) -> None:
        self._load_spec = load_spec
        self._load_environment = load_environment
        self._put_environment = put_environment
        self._bases: OrderedDict[str, tuple[bytes, dict[bytes, bytes]]] = OrderedDict()  # user -> hash, variables
        self._at_hand: OrderedDict[int, JobSpec] = OrderedDict()
        self._changes = 0

    def pack(self, spec: JobSpec, user: str) -> bytes:
        """The spec for the store; a new shared environment goes there first."""
        variables = _variables(spec.environment)
        base = self._bases.get(user)
        if base is None or 2 * _common(base[1], variables) < len(variables):
            base = self._new_base(user, spec.environment, variables)
        stored = JobSpec()
        stored.CopyFrom(spec)
        del stored.environment[:]
        stored.environment_base = base[0]
        stored.environment.extend(entry for name, entry in variables.items() if base[1].get(name) != entry)
        stored.environment_unset.extend(name for name in base[1] if name not in variables)
        return stored.SerializeToString()

    def _new_base(
        self, user: str, environment: Iterable[bytes], variables: dict[bytes, bytes]
    ) -> tuple[bytes, dict[bytes, bytes]]:
        blob = b"\0".join(environment)
        digest = hashlib.sha256(blob).digest()
        self._put_environment(digest, blob)
        self._bases[user] = (digest, variables)
        self._bases.move_to_end(user)
        if len(self._bases) > BASES_KEPT:
            self._bases.popitem(last=False)
        return self._bases[user]

    def drop(self, job: int) -> None:
        """The spec was changed."""
        self._changes += 1
        self._at_hand.pop(job, None)

    async def spec(self, job: int) -> JobSpec:
        """The whole spec; not to be changed by the caller.

        Raises:
            KeyError: the store has no such job.
            NotNow: the store can't be read at the moment.
        """
        at_hand = self._at_hand.get(job)
        if at_hand is not None:
            return at_hand
        changes, found = -1, JobSpec()
        while changes != self._changes:  # one that was changed while it was read may be out of date
            changes = self._changes
            found = await self._unpack(await self._load_spec(job))
        self._at_hand[job] = found
        if len(self._at_hand) > SPECS_AT_HAND:
            self._at_hand.popitem(last=False)
        return found

    async def _unpack(self, stored: bytes) -> JobSpec:
        spec = JobSpec.FromString(stored)
        if not spec.environment_base:
            return spec
        blob = await self._load_environment(spec.environment_base)
        variables = _variables(blob.split(b"\0") if blob else [])
        for name in spec.environment_unset:
            variables.pop(name, None)
        variables.update(_variables(spec.environment))
        del spec.environment[:], spec.environment_unset[:]
        spec.environment_base = b""
        spec.environment.extend(variables.values())
        return spec


def _variables(environment: Iterable[bytes]) -> dict[bytes, bytes]:
    """NAME=VALUE entries by name."""
    return {entry.partition(b"=")[0]: entry for entry in environment}


def _common(base: dict[bytes, bytes], variables: dict[bytes, bytes]) -> int:
    return len(base.items() & variables.items())


def as_admitted(spec: JobSpec, shared: Shared, queue: Queue | None) -> JobSpec:
    """The spec with what the queue adds to it: size, memory limit and limits of processes where the job names none."""
    limits = {name: default or most for name, default, most in queue.defaults.rlimits} if queue is not None else {}
    for limit in spec.rlimits:
        limits.pop(limit.name, None)
    sizes = shared.request.roles  # an agent takes no size for one task
    is_sized = all(role.tasks_max or size.tasks_max == 1 for role, size in zip(spec.roles, sizes, strict=False))
    if not limits and is_sized and spec.memory_limit_mib == shared.memory_limit_mib:
        return spec
    admitted = JobSpec()
    admitted.CopyFrom(spec)
    admitted.memory_limit_mib = shared.memory_limit_mib
    for name, soft in limits.items():
        admitted.rlimits.add(name=name, soft=soft)
    for role, size in zip(admitted.roles, sizes, strict=False):
        role.tasks_min, role.tasks_max = role.tasks_min or size.tasks_min, role.tasks_max or size.tasks_max
    return admitted


def control_of(kind: str, action: str) -> JobControl:
    """One of a queue's JOB_CONTROLS: the name of a signal, or a command."""
    number = signal.Signals.__members__.get(action)
    return JobControl(kind=kind, signal=number) if number is not None else JobControl(kind=kind, command=action)


def blob_of(spec: JobSpec, job: int, user: str, uid: int, gid: int, queue: str, cluster: str, at: float) -> JobSpecBlob:
    """What an agent gets before its first order for a job."""
    return JobSpecBlob(job=job, spec=spec, user=user, uid=uid, gid=gid, submit_time=at, queue=queue, cluster=cluster)
