"""Bounds of requests, checked before anything else is done with them.

The core, the store and the agents rely on these checks: no text holds a NUL character, numbers fit their database
columns, and no request is so large that it delays other callers.
"""

import math
import re
import sys
from collections.abc import Iterable, Sequence

from lavad.api import texts
from lavad.api.texts import TEXT_MAX
from lavad.core.model import JobState
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from protos import cluster_pb2, common_pb2, file_copies, jobs_pb2

REASON_MAX = 4095  # of a command: LSF's own bound
SPEC_BYTES_MAX = 4 << 20
ROLES_MAX = 100
HOSTS_MAX = 10_000
PERIODS_MAX = 1200  # of a report of usage: a hundred years of months
QUEUES_MAX = 100
RLIMITS_MAX = 32
REFS_MAX = 10_000
BATCH_MAX = 1000
REQUEST_ID_MAX = 64  # bytes; the ids of the newest submissions all stay in memory
INDICES_MAX = 1_000_000  # written out one by one
GPUS_MAX = 10_000
HANG_MAX = 1e12
MEMORY_MAX_MIB = 1 << 40
HOST_SLOTS_MAX = 100_000
HOST_GPUS_MAX = 1000
AMOUNT_MAX = 1e12
PIDS_MAX = 10_000  # of one job on one host, for display
THREADS_MAX = 1 << 22  # the largest thread id of Linux
TIME_MAX = 1e11  # seconds since the epoch: the year 5138
STORED_MAX = (1 << 63) - 1  # the largest integer of a database column
UMASK_MAX = 0o777
TOPOLOGY_MAX = 100_000
HOST_BYTES_MAX = 256 << 10  # of one host's facts, which lists show beside those of other hosts
_TOPOLOGY = re.compile(r"\d{1,4} \d{1,6} \d{1,4} \d{1,4}(,\d{1,4} \d{1,6} \d{1,4} \d{1,4})*")
SIGNAL_MAX = 64

# Repeated fields of a job: name for users, and the most values. Those that are not listed are named by their option.
_COUNTED = {
    "roles": ("roles", ROLES_MAX),
    "hosts": ("-m", HOSTS_MAX),
    "queues": ("-q", QUEUES_MAX),
    "rlimits": ("limits", RLIMITS_MAX),
}
_UNCOUNTED = {"environment", "environment_unset", "array", *_COUNTED}
_COUNTED.update(
    (field.name, (f"-{field.name}", HOSTS_MAX))
    for field in jobs_pb2.JobSpec.DESCRIPTOR.fields
    if field.is_repeated and field.name not in _UNCOUNTED
)
_LAUNCHES = frozenset(common_pb2.Launch.values())


def check_spec(spec: jobs_pb2.JobSpec) -> None:
    """Refuse a job that the cluster could not handle; its texts are checked with the request.

    Raises:
        Refused: one sentence says what is wrong.
    """
    _check_command(spec)
    _check_numbers(spec)
    if b"\0" in b"".join(spec.environment):
        raise Refused("An environment variable can't hold a NUL character")
    _check_counts(spec)
    if spec.file_copies:
        _check_copies(spec)
    if spec.HasField("hang"):
        _check_hang(spec.hang)
    if spec.HasField("checkpoint"):
        _check_checkpoint(spec)
    if spec.HasField("host_file"):
        _check_host_file(spec.host_file)
    for role in spec.roles:
        if role.launch not in _LAUNCHES:
            raise Refused(f"Unknown way to launch a role: {role.launch}")
        if role.gpu.num > GPUS_MAX:
            raise Refused(f"-gpu: more than {GPUS_MAX} GPUs were requested")


INTERACTIVE = ("pipes", "terminal", "shell")


def check_interactive(spec: jobs_pb2.JobSpec) -> None:
    """Refuse what an interactive job cannot be: it has one command, one client and one life.

    Raises:
        Refused: one sentence says what is wrong.
    """
    if spec.interactive not in INTERACTIVE:
        raise Refused(f"An interactive job has the streams {', '.join(INTERACTIVE)}, not {spec.interactive[:20]}")
    if spec.array:
        raise Refused("A job array cannot be interactive")
    if spec.HasField("tasks") or len(spec.roles) > 1:
        raise Refused("A job of several roles cannot be interactive")
    if spec.rerunnable or spec.requeue_exit_values:
        raise Refused("An interactive job is not run again: -r and -Q are for batch jobs")


def _check_hang(rule: jobs_pb2.HangRule) -> None:
    amounts = (rule.after_s, rule.first_s, rule.cpus, rule.network_bytes_s, rule.gpu_power)
    if not all(math.isfinite(one) and 0 <= one <= HANG_MAX for one in amounts):
        raise Refused("-hang: each part is a number, 0 or more")


def _check_counts(spec: jobs_pb2.JobSpec) -> None:
    for name, (what, most) in _COUNTED.items():
        if len(getattr(spec, name)) > most:
            raise Refused(f"{what}: more than {most} were given")


def check_size(spec: jobs_pb2.JobSpec) -> None:
    """Refuse a job that is too large to be passed on.

    Raises:
        Refused: one sentence says so.
    """
    if spec.ByteSize() > SPEC_BYTES_MAX:
        raise Refused(
            f"The job's script, spooled files and environment together are larger than {SPEC_BYTES_MAX >> 20} MiB"
        )


def _check_command(spec: jobs_pb2.JobSpec) -> None:
    if not spec.command.strip() and not spec.HasField("tasks"):  # its roles may have commands of their own
        raise Refused("No command is specified")
    if spec.is_script and "\0" in spec.command.partition("\n")[0]:
        raise Refused("Bad command: the first line of a script can't hold a NUL character")
    if len(spec.name) > TEXT_MAX:
        raise Refused(f"Bad job name: longer than {TEXT_MAX} characters")


def _check_numbers(spec: jobs_pb2.JobSpec) -> None:
    if spec.memory_limit_mib > MEMORY_MAX_MIB:
        raise Refused("-M: more memory than any host could have")
    if spec.umask_plus_one > UMASK_MAX + 1:
        raise Refused(f"A umask is at most {UMASK_MAX:o}")
    for what, moment in (("-t", spec.terminate_time), ("-b", spec.begin_time)):
        if not (math.isfinite(moment) and 0 <= moment <= TIME_MAX):
            raise Refused(f"{what}: not a time that can be reached")
    if any(limit.soft > STORED_MAX for limit in spec.rlimits):
        raise Refused("A process limit is too large")


def _check_copies(spec: jobs_pb2.JobSpec) -> None:
    for text in spec.file_copies:
        try:
            file_copies.read(text)
        except ValueError:
            raise Refused(f"-f {text[:80]}: expected file, op and file") from None


def _check_host_file(file: jobs_pb2.HostFile) -> None:
    if len(file.hosts) != len(file.slots):
        raise Refused("-hostfile: expected as many numbers of slots as hosts")


_EARLIER = re.compile(r"\d{1,18}(\[\d{1,18}\])?")
METHOD = re.compile(r"[A-Za-z0-9_.+-]{0,64}")  # of checkpoints


def _check_checkpoint(spec: jobs_pb2.JobSpec) -> None:
    one = spec.checkpoint
    if not one.directory.startswith("/") or (one.programs and not one.programs.startswith("/")):
        raise Refused("-k: the checkpoint directory must be an absolute path")
    if one.restarts_from and not _EARLIER.fullmatch(one.restarts_from):
        raise Refused("The checkpoint that a job goes on from is named by a job id")
    if not METHOD.fullmatch(one.method):
        raise Refused("-k: the method must be a name of letters, digits and _ . + -")
    if not all(math.isfinite(period) and 0 <= period <= TIME_MAX for period in (one.period_s, one.first_s)):
        raise Refused("-k: not a period that can be kept")
    if spec.interactive:
        raise Refused("-k and -I cannot be combined: an interactive job is not started again")
    if spec.HasField("tasks"):
        raise Refused("-k: no checkpoints are made of a job of tasks")


def check_facts(facts: cluster_pb2.HostFacts) -> None:
    """Refuse host facts beyond what a host can have: sums over hosts must fit 64 bits.

    Raises:
        Refused: one sentence says what is wrong.
    """
    sizes = (facts.memory_mib, facts.swap_mib, facts.tmp_mib)
    if max(sizes) > MEMORY_MAX_MIB or facts.slots > HOST_SLOTS_MAX or len(facts.gpus) > HOST_GPUS_MAX:
        raise Refused("The host says that it is larger than any host can be.")
    if facts.ByteSize() > HOST_BYTES_MAX:
        raise Refused("The host says more of itself than there could be to say.")
    if not (math.isfinite(facts.cpu_factor) and facts.cpu_factor >= 0):
        raise Refused("The host's CPU factor is no number.")


def words_of(said: str) -> str:
    """Return a reported text, cut to the length that is shown: lists of many hosts must stay transmissible."""
    return said[:TEXT_MAX]


def topology_of(text: str) -> str:
    """Return the reported CPU topology; empty if it is malformed, and then no CPU binding is done on the host."""
    if len(text) > TOPOLOGY_MAX or not _TOPOLOGY.fullmatch(text):
        return ""
    return sys.intern(text)  # many hosts have the same topology


def moment_of(said: float, now: float) -> float:
    """Return a reported time if it is plausible, else ``now``."""
    return said if math.isfinite(said) and 0 < said <= TIME_MAX else now


def amount_of(said: float, most: float = AMOUNT_MAX) -> float:
    """Return a reported amount, clamped to what the database can store."""
    return min(max(said, 0.0), most) if math.isfinite(said) else 0.0


def tidy_load(load: cluster_pb2.Load) -> None:
    """Clamp load indices, and set those that are not numbers to 0: they are compared, sorted and shown."""
    for field, value in load.ListFields():
        if field.type == field.TYPE_DOUBLE and not field.is_repeated:
            setattr(load, field.name, amount_of(value))
        elif field.type == field.TYPE_UINT64:
            setattr(load, field.name, min(value, MEMORY_MAX_MIB))
    if load.ByteSize() > HOST_BYTES_MAX:
        load.ClearField("gpus")
        load.ClearField("external")


def check_batch(batch: jobs_pb2.SubmitBatch) -> None:
    """Refuse a batch so large that it would delay other callers or exceed memory.

    Raises:
        Refused: one sentence says what is wrong.
    """
    if len(batch.items) > BATCH_MAX:
        raise Refused(f"More than {BATCH_MAX} jobs in one message")
    if any(len(item.request_id) > REQUEST_ID_MAX for item in batch.items):
        raise Refused(f"A request id is longer than {REQUEST_ID_MAX} bytes")


def check_refs(refs: Sequence[common_pb2.JobRef]) -> None:
    """Refuse too many job ids, or ids beyond the database's integers.

    Raises:
        Refused: one sentence says what is wrong.
    """
    if len(refs) > REFS_MAX:
        raise Refused(f"More than {REFS_MAX} jobs were named at once")
    for ref in refs:
        if ref.job > STORED_MAX:
            raise Refused(f"Job <{ref.job}> is not found")
    if sum(_size(part) for ref in refs for part in ref.indices) > INDICES_MAX:
        raise Refused(f"More than {INDICES_MAX} array elements were named at once")


def check_filter(wanted: jobs_pb2.JobFilter) -> None:
    """Refuse a filter with unknown states, or with too many or too long values.

    Raises:
        Refused: one sentence says what is wrong.
    """
    texts.check(wanted)
    check_refs(wanted.refs)
    if len(wanted.name) > TEXT_MAX:
        raise Refused(f"Bad job name: longer than {TEXT_MAX} characters")
    unknown = [state for state in wanted.states if state not in common_pb2.JobState.values()]
    if unknown:
        raise Refused(f"Unknown job state: {unknown[0]}")


def _check_named(request: "jobs_pb2.AccountsRequest | jobs_pb2.UsageRequest", fields: tuple[str, ...]) -> None:
    """Refuse too many or too long names."""
    for field in fields:
        words = getattr(request, field)
        if len(words) > HOSTS_MAX:
            raise Refused(f"More than {HOSTS_MAX} {field} were named at once")
        for word in words:
            check_filter(jobs_pb2.JobFilter(user=word))


def check_usage(request: jobs_pb2.UsageRequest) -> None:
    """Refuse a request of busage with unknown keys, periods that don't ascend, or too many or too long values.

    Raises:
        Refused: one sentence says what is wrong.
    """
    _check_named(request, ("users", "groups", "projects", "queues"))
    unknown = [key for key in request.keys if key not in jobs_pb2.UsageKey.values()]
    if unknown:
        raise Refused(f"Unknown key of a report: {unknown[0]}")
    bounds = list(request.bounds)
    if len(bounds) < 2 or not all(0 <= one <= TIME_MAX for one in bounds) or bounds != sorted(set(bounds)):
        raise Refused("Bad periods: expected two or more times, each later than the one before")
    if len(bounds) > PERIODS_MAX + 1:
        raise Refused(f"More than {PERIODS_MAX} periods")


def check_accounts(request: jobs_pb2.AccountsRequest) -> None:
    """Refuse a request of bacct with unknown states or forms, or with too many or too long values.

    Raises:
        Refused: one sentence says what is wrong.
    """
    _check_named(request, ("users", "queues", "projects", "hosts"))
    named = jobs_pb2.JobFilter(
        refs=request.refs,
        name=request.name,
        states=request.states,
        queue=request.reservation,
        host=request.normalized_to,
    )
    check_filter(named)
    if request.form not in jobs_pb2.AccountForm.values():
        raise Refused(f"Unknown form of an answer: {request.form}")
    times = (request.submitted, request.dispatched, request.completed)
    if not all(0 <= moment <= TIME_MAX for one in times for moment in (one.first, one.last)):
        raise Refused("Bad time interval")


def check_signal(request: jobs_pb2.SignalRequest) -> None:
    """Refuse a request with an unknown action, job state or signal.

    Raises:
        Refused: one sentence says what is wrong.
    """
    check_filter(request.filter)
    if request.action not in jobs_pb2.SignalAction.values():
        raise Refused(f"Unknown action: {request.action}")
    if any(state not in common_pb2.JobState.values() for state in request.states):
        raise Refused("Unknown job state")
    if request.action == jobs_pb2.SEND and not 1 <= request.signal <= SIGNAL_MAX:
        raise Refused(f"Unknown signal: {request.signal}")
    if len(request.reason) > REASON_MAX:
        raise Refused(f"Bad reason: longer than {REASON_MAX} characters")


def forced_hosts(hosts: Sequence[common_pb2.HostShare]) -> tuple[tuple[str, int], ...]:
    """Return the hosts of brun with the slots wanted on each.

    Raises:
        Refused: none, too many, or one twice.
    """
    names = [share.host for share in hosts]
    if not names:
        raise Refused("No host is named")
    if len(names) > HOSTS_MAX or len(set(names)) < len(names):
        raise Refused("A host is named twice, or too many are")
    if any(share.slots > HOST_SLOTS_MAX for share in hosts):
        raise Refused("More slots than any host has")
    return tuple((share.host, share.slots) for share in hosts)


def states_of(wanted: jobs_pb2.JobFilter) -> frozenset[JobState]:
    """Return the states of a checked filter."""
    return frozenset(JobState(state) for state in wanted.states if state)


def ranges_of(array: Iterable[common_pb2.IndexRange]) -> tuple[range, ...]:
    """Return the ranges of an index list.

    Raises:
        Refused: an empty or backward range, or overlapping ones that would take too long to sort out.
    """
    parts = []
    for part in array:
        if not 1 <= part.first <= part.last:
            raise Refused("Job array index error: an index range must ascend and start at 1 or above")
        parts.append(range(part.first, part.last + 1, part.step or 1))
    if len(parts) > 1 and sum(map(len, parts)) > INDICES_MAX:
        raise Refused(f"Job array index error: more than {INDICES_MAX} indices in several ranges")
    return tuple(parts)


def indices_of(ref: common_pb2.JobRef) -> Ranges | None:
    """Return the elements that a reference names; None for the whole job."""
    return Ranges(ranges_of(ref.indices)) if ref.indices else None


def _size(part: common_pb2.IndexRange) -> int:
    return len(range(part.first, part.last + 1, part.step or 1))
