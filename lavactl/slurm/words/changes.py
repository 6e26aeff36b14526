"""scontrol update: changes of jobs, hosts and queues, by the calls of bmod and badmin."""

import re

from lavactl.slurm.words import values
from lavactl.slurm.words.dependencies import Asker, condition
from lavactl.slurm.words.ids import read_id
from lavactl.slurm.words.options import fail
from lavactl.slurm.words.selection import split_ids
from lavactl.text import units
from lavactl.text.render import clean
from lavactl.views.job_details import Completion
from lavactl.wire import messages
from protos.slurm_words import expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

JOB_KEYS = (
    "TimeLimit, Dependency, Partition, JobName, Account, Comment, StartTime, ArrayTaskThrottle, ReqNodeList, Requeue"
)


def change(pairs: dict[str, str], io: "Io") -> "list[messages.SignalResult] | None":
    """Carry out one update; results for jobs, None for hosts and queues.

    Raises:
        CommandError: a key or value that cannot be changed so.
    """
    if (name := pairs.pop("jobid", None)) is not None:
        return _change_job(name, pairs, io)
    if (name := pairs.pop("nodename", None)) is not None:
        _change_hosts(name, pairs, io)
        return None
    if (name := pairs.pop("partitionname", None)) is not None:
        _change_queue(name, pairs, io)
        return None
    raise fail("scontrol", "update names JobId=, NodeName= or PartitionName= first.")


def _change_job(name: str, pairs: dict[str, str], io: "Io") -> "list[messages.SignalResult]":
    spec, fields = messages.JobSpec(), list[str]()
    refs = [read_id(word, "scontrol", io) for word in split_ids(name)]
    difference = pairs.get("timelimit", "")
    if difference[:1] in ("+", "-"):
        return _change_limits(refs, difference, pairs, io)
    about = _about(refs, io) if "singleton" in pairs.get("dependency", "") else ("", 0)
    for key, value in pairs.items():
        try:
            fields += _set(spec, key, value, about, io)
        except (ValueError, OverflowError):
            raise fail("scontrol", f"{key}={value}: the value is malformed.") from None
    if not fields:
        raise fail("scontrol", f"nothing to change is named: {JOB_KEYS}.")
    return list(io.client().modify(messages.ModifyRequest(refs=refs, spec=spec, fields=fields)).results)


def _about(refs: "list[messages.JobRef]", io: "Io") -> tuple[str, int]:
    job = next(iter(_records(refs, io)), None)
    return (job.name.partition("[")[0], job.job) if job is not None else ("", 0)


def _change_limits(
    refs: "list[messages.JobRef]", difference: str, pairs: dict[str, str], io: "Io"
) -> "list[messages.SignalResult]":
    """Make the run limits longer or shorter: those of several jobs may differ."""
    if len(pairs) > 1:
        raise fail("scontrol", "TimeLimit=+ and TimeLimit=- are changes of their own: name nothing beside them.")
    try:
        by_s = values.read_time_s(difference[1:]) * (1 if difference[0] == "+" else -1)
    except (ValueError, OverflowError):
        raise fail("scontrol", f"timelimit={difference}: the value is malformed.") from None
    found: dict[int, list[messages.JobRef]] = {}
    for job in _records(refs, io):
        ref = messages.JobRef(job=job.job)
        if job.index:
            ref.indices.add(first=job.index, last=job.index)
        if not job.spec.run_limit_s:
            raise fail("scontrol", f"job {job.job} has no time limit that could be changed by {difference}.")
        if job.spec.run_limit_s + by_s <= 0:
            raise fail("scontrol", f"job {job.job}: its time limit would be below 0.")
        found.setdefault(job.spec.run_limit_s + by_s, []).append(ref)
    results: list[messages.SignalResult] = []
    for limit_s, some in found.items():
        request = messages.ModifyRequest(refs=some, spec=messages.JobSpec(run_limit_s=limit_s), fields=["run_limit_s"])
        results += io.client().modify(request).results
    return results


def _records(refs: "list[messages.JobRef]", io: "Io") -> "list[messages.JobRecord]":
    """Records of jobs with their submissions."""
    request = messages.ListJobsRequest(filter=messages.JobFilter(refs=refs, user="all"), details=True, basic_too=True)
    completion = Completion()
    return [job for page in io.client().list_jobs(request) for job in completion.complete(list(page.jobs))]


def _set(spec: messages.JobSpec, key: str, value: str, about: tuple[str, int], io: "Io") -> list[str]:
    """Set one field of the job; the names of the fields that change. ``about``: its name and id."""
    match key:
        case "timelimit":
            spec.run_limit_s = values.read_time_s(value)
            return ["run_limit_s"]
        case "dependency":
            spec.dependency = condition(value, Asker("scontrol", about[0], io, about[1]))
            return ["dependency"]
        case "partition":
            spec.queues.extend(re.split(r"[,\s]+", value))
            return ["queues"]
        case "name" | "jobname":
            spec.name = value
            return ["name"]
        case "account":
            spec.project = value
            return ["project"]
        case "comment":
            spec.description = value
            return ["description"]
        case "starttime":
            spec.begin_time = max(values.read_moment(value, io.now()), 0.0)
            return ["begin_time"]
        case "arraytaskthrottle":
            spec.array_limit = units.read_count(value, 0)
            return ["array_limit"]
        case "reqnodelist":
            spec.hosts.extend(expanded(value))
            return ["hosts"]
        case "requeue":
            if value not in ("0", "1"):
                raise ValueError(value)
            spec.rerunnable, spec.not_rerunnable = value == "1", value == "0"
            return ["rerunnable", "not_rerunnable"]
    raise fail("scontrol", f"{key} cannot be changed by scontrol: it changes {JOB_KEYS}; bmod changes more.")


def _change_hosts(name: str, pairs: dict[str, str], io: "Io") -> None:
    from protos import cluster_pb2

    reason, state = pairs.pop("reason", ""), pairs.pop("state", "").upper()
    actions = {"DRAIN": cluster_pb2.CLOSE_HOST, "DOWN": cluster_pb2.CLOSE_HOST, "RESUME": cluster_pb2.OPEN_HOST,
               "IDLE": cluster_pb2.OPEN_HOST, "UNDRAIN": cluster_pb2.OPEN_HOST}  # fmt: skip
    if pairs or state not in actions:
        raise fail("scontrol", "of a node only State=DRAIN, DOWN or RESUME can be changed, with Reason=.")
    try:
        names = expanded(name)
    except ValueError:
        raise fail("scontrol", f"Invalid hostlist: {name}") from None
    _control(cluster_pb2.ControlRequest(action=actions[state], names=names, comment=reason), io)


def _change_queue(name: str, pairs: dict[str, str], io: "Io") -> None:
    from protos import cluster_pb2

    state = pairs.pop("state", "").upper()
    changes = {
        "UP": (cluster_pb2.OPEN_QUEUE, cluster_pb2.ACTIVATE_QUEUE),
        "DOWN": (cluster_pb2.OPEN_QUEUE, cluster_pb2.INACTIVATE_QUEUE),
        "DRAIN": (cluster_pb2.CLOSE_QUEUE, cluster_pb2.ACTIVATE_QUEUE),
        "INACTIVE": (cluster_pb2.CLOSE_QUEUE, cluster_pb2.INACTIVATE_QUEUE),
    }
    if pairs or state not in changes:
        raise fail("scontrol", "of a partition only State=UP, DOWN, DRAIN or INACTIVE can be changed.")
    for action in changes[state]:
        _control(cluster_pb2.ControlRequest(action=action, names=[name]), io)


def _control(request: object, io: "Io") -> None:
    reply = io.client().control(request)  # type: ignore[arg-type]
    if failed := [result for result in reply.results if result.error]:
        raise fail("scontrol", f"{failed[0].name}: {clean(failed[0].error)}")
