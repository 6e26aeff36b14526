"""JOB_NEW and JOB_FINISH: records that tell of a whole submission."""

from collections.abc import Callable
from dataclasses import dataclass

from lavad.core.model import FINAL, JobState, Shared, unpack_text
from lavad.core.model.gpu_use import GpusByHost, GpuUse
from lavad.core.model.ranges import Ranges
from lavad.store.lsf_logs import fields as f
from lavad.store.lsf_logs.fields import quoted
from lavad.store.reading.accounts import Ended
from lavad.store.rows import values as v
from protos import names
from protos.jobs_pb2 import JobSpec

_NOTHING = quoted("")


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission as the database has it; ``indices`` are those of an array."""

    job: int
    submitted_at: float
    shared: Shared
    words: bytes
    spec: JobSpec
    indices: str = ""

    @property
    def texts(self) -> dict[str, str]:
        """Texts by name: command, working directory, files."""
        return unpack_text(self.words)

    def name(self, texts: dict[str, str]) -> str:
        """Return the job's name, or its command, with the index list of an array."""
        name = texts["name"] or names.of_command(texts["command"])
        return f"{name}[{self.indices}]" if self.indices else name

    @property
    def job_file(self) -> str:
        """Name that LSF gives the job's script."""
        return f"{int(self.submitted_at)}.{self.job}"


def job_new(one: Submission) -> bytes:
    """Return the JOB_NEW record of a submission."""
    spec, shared, texts = one.spec, one.shared, one.texts
    options = f.options_of(spec) | (f.WITH_POST_EXEC if spec.post_exec else 0)
    parts = [
        *map(str, (one.job, shared.uid, options, shared.request.slots_min, int(one.submitted_at))),
        *map(str, (int(spec.begin_time), int(spec.terminate_time), 0, 0, 0)),
        quoted(shared.user),
        *f.limits_of(spec, shared.run_limit_s),
        _NOTHING,
        "0.0",
        str(f.umask_of(spec)),
        *map(quoted, (shared.queue, spec.requirement_text, shared.from_host, texts["cwd"] or texts["submit_cwd"], "")),
        *map(quoted, (texts["input"], texts["output"], texts["error"], "", one.job_file)),
        *f.listed(spec.hosts),
        *map(quoted, (spec.dependency, spec.pre_exec)),
        *([quoted(spec.post_exec)] if spec.post_exec else []),
        *map(quoted, (one.name(texts), texts["command"])),
        "0",
        *map(quoted, ("", shared.project)),
        str(shared.request.slots_max),
        _NOTHING,
        quoted(spec.shell),
        "0",
        "0",
        *(_NOTHING,) * 3,
        str(spec.priority or -1),
        *map(quoted, (texts["description"], texts["cwd"])),
    ]
    return f.line("JOB_NEW", f.EVENTS_VERSION, one.submitted_at, parts)


def job_finish(one: Submission, end: Ended, factor_of: Callable[[str], float], is_short: bool) -> bytes:
    """Return the JOB_FINISH record of an ended attempt, or of a job that was killed before it was dispatched."""
    spec, shared, texts = one.spec, one.shared, one.texts
    allocation = v.decode_hosts(end.hosts)
    factor = factor_of(allocation[0].host) if allocation else 0.0
    parts = [
        *map(str, (one.job, shared.uid, f.options_of(spec), shared.request.slots_min, int(end.submitted_at))),
        *map(str, (int(spec.begin_time), int(spec.terminate_time), int(end.dispatched_at))),
        *map(quoted, (shared.user, shared.queue, spec.requirement_text, spec.dependency, spec.pre_exec)),
        *map(quoted, (shared.from_host, texts["cwd"] or texts["submit_cwd"])),
        *map(quoted, (texts["input"], texts["output"], texts["error"], one.job_file)),
        *f.listed(spec.hosts),
        *f.host_list(allocation, is_short),
        str(f.DONE if end.is_done else f.EXIT),
        f"{factor:3.1f}",
        *map(quoted, (one.name(texts), texts["command"])),
        *f.usage(*f.cpu_parts(end.cpu_s, end.system_s)),
        *map(quoted, ("", shared.project)),
        *map(str, (end.status, shared.request.slots_max)),
        *map(quoted, (spec.shell, "")),
        *map(str, (end.index, end.memory_mib_max << 10, -1)),
        *map(quoted, ("", "", spec.reservation, "")),
        "0",
        _NOTHING,
        str(f.term_of(end.reason)),
        quoted(spec.warning_action),
        str(int(spec.warning_time_s) or -1),
        *map(quoted, ("", "", spec.application, spec.post_exec)),
        str(spec.runtime_estimate_s),
        *map(quoted, (spec.job_group, spec.requeue_exit_values)),
        "0",
        quoted(spec.resize_notify),
        "0",
        *map(quoted, (spec.reservation, texts["description"])),
        *_tail(one, end, is_short),
    ]
    return f.line("JOB_FINISH", f.ACCT_VERSION, end.ended_at, parts)


def _tail(one: Submission, end: Ended, is_short: bool) -> list[str]:
    """Return the fields from submitEXT on."""
    shared, spec, texts = one.shared, one.spec, one.texts
    run_s = int(end.ended_at) - int(end.dispatched_at) if end.dispatched_at else 0
    is_requeued = JobState(end.state) not in FINAL
    return [
        *("0", "0", "0", str(shared.run_limit_s), str(int(end.memory_mib_mean * 1024))),
        quoted(shared.requirement),
        *(_NOTHING, "0", _NOTHING, "0", "0", _NOTHING, "-1", "-1"),
        quoted(spec.output_dir),
        str(max(0, run_s)),
        quoted(texts["submit_cwd"]),
        *("0", _NOTHING, "0.0", "0.0", "0.0", "0.0", "0.0"),
        *f.host_list(v.decode_hosts(end.hosts), is_short),
        "-1",
        *_ranges(one.indices),
        str(int(end.ended_at) if is_requeued else 0),
        *_gpus(v.decode_gpus(end.gpus)),
        *("0", "0", "0"),
    ]


def _ranges(text: str) -> list[str]:
    parts = Ranges.parse(text).parts() if text else ()
    return [str(len(parts)), *(str(number) for part in parts for number in (part.start, part[-1], part.step))]


def _gpus(used: GpusByHost) -> list[str]:
    """Return the use of GPUs by host as keys and values."""
    parts = [str(len(used))]
    for host, uses in used:
        pairs = [(f"gpu{one.index}_{name}", text) for one in uses for name, text in _figures(one)]
        parts += [quoted(host), str(len(pairs))]
        parts += [quoted(text) for pair in pairs for text in pair]
    return parts


def _figures(one: GpuUse) -> list[tuple[str, str]]:
    return [
        ("exec_time", f"{one.seconds:.0f}"),
        ("energy", f"{one.energy_j:.0f}"),
        ("memory_max", f"{one.memory_mib_max}"),
        ("sm_avg", f"{100 * one.utilisation_s / one.seconds if one.seconds else 0.0:.0f}"),
    ]
