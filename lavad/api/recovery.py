"""Recovery commands from a detailed hello: attempts that a host holds or that ended lately, for an older database.

An attempt, its hosts and the job's description are accepted only under the seal of a master of this cluster. The
submission is rebuilt from the agent's journal: spec, owner, queue and allocation. If it cannot be rebuilt (a
requirement that is no longer valid), the attempt runs on and an error is logged.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

from lavad.agent_links.seals import Seals
from lavad.agent_links.spec_cache import SpecShelf
from lavad.api import texts, translate
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.jobs.admission import combined_with_queue
from lavad.core.events import NewJob
from lavad.core.model import PARTS, HostShare, Key, ResourceShare
from lavad.core.model.reasons import Refused
from protos import agents_pb2 as pb
from protos import common_pb2
from protos.jobs_pb2 import JobSpec

log = logging.getLogger(__name__)

KeyOf = Callable[[common_pb2.AttemptKey], Key]


class Recovering:
    """Reads one hello; ``key_of`` converts a key from the wire."""

    def __init__(self, cluster: Cluster, shelf: SpecShelf, seals: Seals, hello: pb.Hello, key_of: KeyOf) -> None:
        self._cluster = cluster
        self._seals = seals
        self._shelf = shelf
        self._key_of = key_of
        by_version = sorted(hello.specs, key=lambda blob: blob.version, reverse=True)
        self._blobs = {blob.job: blob for blob in by_version}  # rather the array's than that of a changed element
        self._hello = hello

    def held(self) -> Iterator[c.RecoverAttempt]:
        """Yield commands for attempts that run there, or have ended without an acknowledged report."""
        for one in self._hello.held:
            yield from self._command(one)

    def ended(self) -> Iterator[tuple[c.RecoverAttempt | None, pb.Held]]:
        """Yield the newest end of each job or element, with the command that restores the attempt if it is missing."""
        newest: dict[tuple[int, int], pb.Held] = {}
        for one in self._hello.ended:
            if one.last.HasField("finished"):
                newest[one.key.job, one.key.index] = one
        for one in newest.values():
            yield next(self._command(one), None), one

    def unproven(self) -> list[Key]:
        """Return attempts that may have run here according to a log alone: no order, so no seal to check."""
        bare = [one for one in (*self._hello.held, *self._hello.ended) if not one.order.HasField("stage")]
        return [self._key_of(one.key) for one in bare]

    def _command(self, one: pb.Held) -> Iterator[c.RecoverAttempt]:
        key = self._key_of(one.key)
        if key in self._cluster.attempts:
            return
        stage, own = one.order.stage, self._hello.facts.name
        why = self._why_not(key, stage)
        if why:
            log.error("recovery=refused job=%d host=%s reason=%r", key.job, own, why)
            return
        new = None if key.job in self._cluster.jobs else self._new_job(key, stage)
        blob = self._blobs.get(key.job)
        yield c.RecoverAttempt(
            key=key,
            job=new,
            allocation=tuple(map(_share, stage.allocation)),
            submitted_at=blob.submit_time if blob is not None else 0.0,
            started_at=one.last.started.time or one.last.finished.started,
            lease_s=stage.lease_s,
        )

    def _why_not(self, key: Key, stage: pb.Stage) -> str:
        """Return why a host's attempt is not accepted; empty if a master of this cluster placed it there."""
        if not self._seals.is_own_stage(key, stage):
            return "no master of this cluster has staged it so"
        if all(share.host != self._hello.facts.name for share in stage.allocation):
            return "it speaks of other hosts"
        blob = self._blobs.get(key.job)
        if blob is not None and not self._seals.is_own_spec(blob):
            return "no master of this cluster has described the job so"
        return ""

    def _new_job(self, key: Key, stage: pb.Stage) -> NewJob | None:
        blob = self._blobs.get(key.job)
        if blob is None:
            return None
        spec = JobSpec()
        spec.CopyFrom(blob.spec)
        del spec.queues[:]
        spec.queues.append(blob.queue)
        spec.dependency, spec.begin_time = "", 0.0  # they are satisfied: the job has started
        owner = c.Caller(blob.user, blob.uid, False, blob.gid, spec.submit_host)
        try:
            cluster = self._cluster
            packed = self._shelf.pack(spec, blob.user)
            texts.check(spec)
            new = translate.new_job(spec, packed, b"", owner)
            shared = combined_with_queue(cluster, new.shared, translate.asked_of(spec))
        except Refused as error:
            log.error("recovery=impossible job=%d reason=%r", key.job, str(error))
            return None
        run_limit_s = int(stage.run_limit_s)
        shared = replace(shared, run_limit_s=run_limit_s, terminate_at=stage.deadline)
        return new._replace(id=key.job, shared=shared, hold=bool(new.indices))


def _share(share: common_pb2.HostShare) -> HostShare:
    return HostShare(
        share.host,
        share.slots,
        share.memory_mib,
        tuple(share.gpus),
        tuple(share.tasks_by_role),
        tuple(map(_resource, share.resources)),
        tuple(share.gpu_memory_mib),
        tuple(tuple(task.cpus) for task in share.cpus),
        gpu_roles=tuple(share.gpu_roles),
    )


def _resource(one: common_pb2.ResourceShare) -> ResourceShare:
    return ResourceShare(one.name, round(one.amount * PARTS), tuple(one.devices), tuple(one.device_roles))
