"""JOB_NEW and JOB_FINISH: records that tell of a whole submission."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

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


@dataclass(frozen=True, slots=True, eq=False)  # so that records are known by it
class Submission:
    """A submission as the database has it; ``indices`` are those of an array.

    ``has_parts``: elements of it may have been changed by themselves.
    """

    job: int
    submitted_at: float
    shared: Shared
    words: bytes
    spec: JobSpec
    indices: str = ""
    has_parts: bool = False

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
    spec, shared, texts = one.spec, one.shared, unpack_text(one.words)
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
    known = _known_of(one)
    allocation = v.decode_hosts(end.hosts)
    factor = factor_of(allocation[0].host) if allocation else 0.0
    hosts = f.host_list(allocation, is_short)
    run_s = int(end.ended_at) - int(end.dispatched_at) if end.dispatched_at else 0
    is_requeued = JobState(end.state) not in FINAL
    parts = [
        known.numbers,
        str(int(end.submitted_at)),
        known.times,
        str(int(end.dispatched_at)),
        known.from_user_to_hosts,
        *hosts,
        str(f.DONE if end.is_done else f.EXIT),
        f"{factor:3.1f}",
        known.name,
        *f.usage(*f.cpu_parts(end.cpu_s, end.system_s)),
        known.project,
        str(end.status),
        known.from_slots_to_shell,
        *map(str, (end.index, end.memory_mib_max << 10, -1)),
        known.from_mail_to_reservation,
        str(f.term_of(end.reason)),
        known.from_warning_to_run_limit,
        str(int(end.memory_mib_mean * 1024)),
        known.from_requirement_to_output,
        str(max(0, run_s)),
        known.from_cwd_on,
        *hosts,
        "-1",
        known.indices,
        str(int(end.ended_at) if is_requeued else 0),
        *_gpus(v.decode_gpus(end.gpus)),
        *("0", "0", "0"),
    ]
    return f.line("JOB_FINISH", f.ACCT_VERSION, end.ended_at, parts)


class _Known(NamedTuple):
    """Fields of JOB_FINISH that all elements of an array have in common, neighbours in one text."""

    numbers: str
    times: str
    from_user_to_hosts: str
    name: str
    project: str
    from_slots_to_shell: str
    from_mail_to_reservation: str
    from_warning_to_run_limit: str
    from_requirement_to_output: str
    from_cwd_on: str
    indices: str


@lru_cache(maxsize=64)
def _known_of(one: Submission) -> _Known:
    """Return what is written once for all elements of an array."""
    spec, shared, texts = one.spec, one.shared, unpack_text(one.words)
    places = (shared.from_host, texts["cwd"] or texts["submit_cwd"])
    files = (texts["input"], texts["output"], texts["error"], one.job_file)
    return _Known(
        numbers=f"{one.job} {shared.uid} {f.options_of(spec)} {shared.request.slots_min}",
        times=f"{int(spec.begin_time)} {int(spec.terminate_time)}",
        from_user_to_hosts=" ".join(
            (
                *map(quoted, (shared.user, shared.queue, spec.requirement_text, spec.dependency, spec.pre_exec)),
                *map(quoted, (*places, *files)),
                *f.listed(spec.hosts),
            )
        ),
        name=f"{quoted(one.name(texts))} {quoted(texts['command'])}",
        project=f"{_NOTHING} {quoted(shared.project)}",
        from_slots_to_shell=f"{shared.request.slots_max} {quoted(spec.shell)} {_NOTHING}",
        from_mail_to_reservation=" ".join(
            (_NOTHING, _NOTHING, quoted(spec.reservation), quoted(spec.service_class), "0", _NOTHING)
        ),
        from_warning_to_run_limit=_from_warning_to_run_limit(one, texts),
        from_requirement_to_output=" ".join(
            (
                quoted(shared.requirement),
                *(_NOTHING, "0", _NOTHING, "0", "0", _NOTHING, "-1", "-1"),
                quoted(spec.output_dir),
            )
        ),
        from_cwd_on=" ".join((quoted(texts["submit_cwd"]), "0", _NOTHING, *["0.0"] * 5)),
        indices=" ".join(_ranges(one.indices)),
    )


def _from_warning_to_run_limit(one: Submission, texts: dict[str, str]) -> str:
    spec = one.spec
    return " ".join(
        (
            quoted(spec.warning_action),
            str(int(spec.warning_time_s) or -1),
            *map(quoted, ("", "", spec.application, spec.post_exec)),
            str(spec.runtime_estimate_s),
            *map(quoted, (spec.job_group, spec.requeue_exit_values)),
            "0",
            quoted(spec.resize_notify),
            "0",
            *map(quoted, (spec.reservation, texts["description"])),
            *("0", "0", "0", str(one.shared.run_limit_s)),
        )
    )


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
