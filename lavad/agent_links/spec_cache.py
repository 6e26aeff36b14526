"""Specs of submitted jobs: packed for the store, unpacked for agents at dispatch.

An environment is stored as a difference to an earlier one of the same user: a site's environments are large and almost
equal. Only few whole specs are cached, so that a million pending jobs do not live in memory twice.
"""

import hashlib
import signal
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import NamedTuple

from lavad.core.model import BY_USER, LOAD, LOCK, PREEMPTION, WINDOW
from lavad.core.orders import SpecDefaults
from protos.agents_pb2 import JobControl, JobSpecBlob
from protos.jobs_pb2 import JobSpec
from protos.names import is_checkpoint

# Suspension causes as bits of lsbatch.h: SUSP_USER_STOP, SUSP_QUEUE_WINDOW, SUSP_LOAD_REASON and
# SUSP_MBD_PREEMPT.
CAUSE_BITS = {BY_USER: 0x2, WINDOW: 0x8, LOCK: 0x20, LOAD: 0x40, PREEMPTION: 0x80}
AT_HAND_BYTES = 32 << 20  # of whole specs in the cache
BASES_BYTES = 64 << 20
ENTRY_BYTES = 100  # of a variable in memory, beside its text

LoadSpec = Callable[[int], Awaitable[bytes]]
LoadEnvironment = Callable[[bytes], Awaitable[bytes]]


class Packed(NamedTuple):
    """A spec for the store.

    ``environment`` names the stored environment that the spec's own is a difference to; ``content`` is that
    environment, by its hash, as long as the store may lack it: it is stored with the job, so that a refused one leaves
    nothing.
    """

    spec: bytes
    environment: str
    content: tuple[bytes, bytes] | None


class _Base:
    """Environment that a user's next ones are stored as differences to."""

    __slots__ = ("content", "digest", "name", "size", "variables")

    def __init__(self, environment: Iterable[bytes], variables: dict[bytes, bytes]) -> None:
        content = b"\0".join(environment)
        self.content: bytes | None = content  # None once the store has it
        self.digest = hashlib.sha256(content).digest()
        self.name = self.digest.hex()
        self.variables = variables
        self.size = len(content) + ENTRY_BYTES * len(variables)


class SpecShelf:
    """Packer and cache of specs."""

    def __init__(self, load_spec: LoadSpec, load_environment: LoadEnvironment) -> None:
        self._load_spec = load_spec
        self._load_environment = load_environment
        self._bases: OrderedDict[str, _Base] = OrderedDict()  # by user
        self._bases_bytes = 0
        self._at_hand: OrderedDict[int, tuple[JobSpec, int]] = OrderedDict()  # with its size
        self._at_hand_bytes = 0
        self._changes = 0
        self._used: set[str] | None = None  # environments used since a sweep began

    def pack(self, spec: JobSpec, user: str) -> Packed:
        """Pack a spec for the store, with the shared environment if the store may lack it."""
        variables = _variables(spec.environment)
        base = self._bases.get(user)
        changed = _changed(base.variables, variables) if base is not None else []
        if base is None or 2 * len(changed) > len(variables):  # most of it is not in the base
            base, changed = self._new_base(user, spec.environment, variables), []
        if self._used is not None:
            self._used.add(base.name)
        known = base.variables
        stored = JobSpec()
        stored.CopyFrom(spec)
        del stored.environment[:]
        stored.environment_base = base.digest
        stored.environment.extend(changed)
        if not known.keys() <= variables.keys():
            stored.environment_unset.extend([name for name in known if name not in variables])
        content = None if base.content is None else (base.digest, base.content)
        return Packed(stored.SerializeToString(), base.name, content)

    def _new_base(self, user: str, environment: Iterable[bytes], variables: dict[bytes, bytes]) -> _Base:
        self._drop_base(user)
        base = self._bases[user] = _Base(environment, variables)
        self._bases_bytes += base.size
        while self._bases_bytes > BASES_BYTES and len(self._bases) > 1:
            self._drop_base(next(iter(self._bases)))
        return base

    def _drop_base(self, user: str) -> None:
        base = self._bases.pop(user, None)
        self._bases_bytes -= base.size if base is not None else 0

    def note_stored(self, user: str, environment: str) -> None:
        """Note that a job packed for this user with that environment is durable, and so is the environment."""
        base = self._bases.get(user)
        if base is not None and base.name == environment:
            base.content = None

    def begin_sweep(self) -> None:
        """Record the environments that jobs are packed with, until ``end_sweep``."""
        self._used = set()

    def end_sweep(self) -> None:
        """Stop recording."""
        self._used = None

    def is_used(self, environment: str) -> bool:
        """Return True if a job was packed with it since the sweep began."""
        return self._used is not None and environment in self._used

    def forget(self, environments: Collection[str]) -> None:
        """Drop environments that the store has deleted."""
        for user in [user for user, base in self._bases.items() if base.name in environments]:
            self._drop_base(user)

    def drop(self, job: int) -> None:
        """Drop the cached spec of a changed job."""
        self._changes += 1
        self._at_hand_bytes -= self._at_hand.pop(job, (None, 0))[1]

    async def spec(self, job: int) -> JobSpec:
        """Return the whole spec of that number, which is the job's id; not to be changed by the caller.

        Raises:
            KeyError: the store has no such job.
            NotNow: the store can't be read at the moment.
        """
        at_hand = self._at_hand.get(job)
        if at_hand is not None:
            return at_hand[0]
        changes, found = -1, JobSpec()
        while changes != self._changes:  # a spec changed during the read may be out of date
            changes = self._changes
            found = await self._unpack(await self._load_spec(job))
        self._keep(job, found)
        return found

    def _keep(self, job: int, spec: JobSpec) -> None:
        size = spec.ByteSize() + ENTRY_BYTES * len(spec.environment)
        self._at_hand_bytes += size - self._at_hand.pop(job, (None, 0))[1]
        self._at_hand[job] = spec, size
        while self._at_hand_bytes > AT_HAND_BYTES:
            self._at_hand_bytes -= self._at_hand.popitem(last=False)[1][1]

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
    """Return NAME=VALUE entries by name."""
    return {entry.partition(b"=")[0]: entry for entry in environment}


def _changed(base: dict[bytes, bytes], variables: dict[bytes, bytes]) -> list[bytes]:
    """Return the entries that the base has not, or has otherwise."""
    return [entry for name, entry in variables.items() if base.get(name) != entry]


def as_admitted(spec: JobSpec, defaults: SpecDefaults) -> JobSpec:
    """Add the queue's defaults to a spec: size, memory limit and process limits that the job does not set.

    Tasks with secrets leave no core file, in which these would stand, unless the job itself asks for one.
    """
    given = {limit.name for limit in spec.rlimits}
    own = [("core", 0)] if spec.tasks.secrets and "core" not in given else []
    given |= {name for name, _ in own}
    limits = [*own, *(one for one in defaults.process_limits if one[0] not in given)]
    sizes = defaults.sizes  # an agent takes no size for one task
    is_sized = all(role.tasks_max or most == 1 for role, (_, most) in zip(spec.roles, sizes, strict=False))
    if not limits and is_sized and spec.memory_limit_mib == defaults.memory_limit_mib:
        return spec
    admitted = JobSpec()
    admitted.CopyFrom(spec)
    admitted.memory_limit_mib = defaults.memory_limit_mib
    for name, soft in limits:
        admitted.rlimits.add(name=name, soft=soft)
    for role, (least, most) in zip(admitted.roles, sizes, strict=False):
        role.tasks_min, role.tasks_max = role.tasks_min or least, role.tasks_max or most
    return admitted


def control_of(kind: str, action: str) -> JobControl:
    """Convert one of a queue's JOB_CONTROLS: the name of a signal, a command, or CHKPNT.

    An agent of an earlier version, whose jobs have no checkpoints, uses the signal.
    """
    if is_checkpoint(action):
        in_place = signal.SIGSTOP if kind == "SUSPEND" else signal.SIGTERM
        return JobControl(kind=kind, signal=in_place, checkpoint=True)
    number = signal.Signals.__members__.get(action)
    return JobControl(kind=kind, signal=number) if number is not None else JobControl(kind=kind, command=action)


def blob_of(
    spec: JobSpec, job: int, user: str, uid: int, gid: int, queue: str, cluster: str, at: float, version: int = 0
) -> JobSpecBlob:
    """Build the description of a job that an agent gets before its first order for it."""
    blob = JobSpecBlob(job=job, spec=spec, user=user, uid=uid, gid=gid, submit_time=at, queue=queue, cluster=cluster)
    blob.version = version
    return blob
