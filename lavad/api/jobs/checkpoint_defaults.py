"""Checkpoints of jobs by their application profile or queue, filled into the job when it is submitted."""

import os

from lavad.agent_links.spec_cache import Packed
from lavad.api import checks, translate
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.jobs.admission import admitted, combined_with_queue
from lavad.core.model.checkpoints import NO_TERMS, CheckpointTerms
from lavad.core.model.reasons import Refused
from protos import jobs_pb2 as pb

_DIGITS = 10  # more than any number of minutes has
_UNPACKED = Packed(b"", "", None)


def fill_in(cluster: Cluster, item: pb.SubmitItem, caller: c.Caller, queues: tuple[str, ...]) -> None:
    """Make the job checkpointable if its profile or else its queue says so; what ``bsub -k`` says comes first.

    Args:
        item: the submission, with what the caller's environment says of the programs.
        queues: those that the job may go to; it goes to the first one that accepts it.

    Raises:
        Refused: no queue accepts the job, where it depends on the queue; or its environment names no program.
    """
    spec = item.spec
    if spec.interactive or spec.HasField("tasks"):
        return
    profile = cluster.policy.applications.get(spec.application)
    terms = profile.checkpoints if profile is not None else NO_TERMS
    if spec.HasField("checkpoint"):
        merge(cluster, spec)
        return
    terms = terms if terms.directory else _of_queue(cluster, spec, caller, queues)
    if terms.directory:
        spec.checkpoint.directory = _directory(spec, terms)
        spec.checkpoint.method, spec.checkpoint.programs = item.checkpoint_method, item.checkpoint_programs
        _check(spec.checkpoint)
        _add(spec.checkpoint, terms)


def merge(cluster: Cluster, spec: pb.JobSpec) -> None:
    """Complete what ``-k`` says by the application profile; a job of brestart stays as the earlier one was."""
    one, profile = spec.checkpoint, cluster.policy.applications.get(spec.application)
    terms = profile.checkpoints if profile is not None else NO_TERMS
    number = os.path.basename(one.directory)
    if one.names_minutes and terms.directory and number.isascii() and number.isdigit() and len(number) < _DIGITS:
        one.period_s = 60.0 * int(number)
        one.no_period = not one.period_s
        one.directory = _directory(spec, terms)
    one.names_minutes = False
    if not one.restarts_from:
        _add(one, terms)


def _directory(spec: pb.JobSpec, terms: CheckpointTerms) -> str:
    start = spec.submit_cwd if "%" in spec.cwd else spec.cwd or spec.submit_cwd
    return os.path.normpath(os.path.join(start, terms.directory))


def _check(one: pb.Checkpoint) -> None:
    """Check what the environment says, which a queue's checkpoints make a part of the job."""
    if not checks.METHOD.fullmatch(one.method):
        raise Refused("LSB_ECHKPNT_METHOD: expected a name of letters, digits and _ . + -")
    if one.programs and not one.programs.startswith("/"):
        raise Refused("LSB_ECHKPNT_METHOD_DIR: expected an absolute path")


def _add(one: pb.Checkpoint, terms: CheckpointTerms) -> None:
    """Add the terms that the job has none of its own of."""
    if not one.no_period:  # it asks for no checkpoint by itself, so that the profile's first one isn't made, either
        one.period_s = one.period_s or terms.period_s
        one.first_s = one.first_s or terms.first_s
    one.method = one.method or terms.method


def _of_queue(cluster: Cluster, spec: pb.JobSpec, caller: c.Caller, queues: tuple[str, ...]) -> CheckpointTerms:
    if len(queues) == 1:  # as of nearly all jobs
        queue = cluster.policy.queue(queues[0])
        return NO_TERMS if queue is None else queue.checkpoints
    known = {name: queue.checkpoints for name in queues if (queue := cluster.policy.queue(name)) is not None}
    if len({*known.values()}) > 1:
        submitted, asked = translate.new_job(spec, _UNPACKED, b"", caller).shared, translate.asked_of(spec, queues)
        return known[admitted(cluster, submitted, combined_with_queue(cluster, submitted, asked), caller, asked).queue]
    return next(iter(known.values()), NO_TERMS)
