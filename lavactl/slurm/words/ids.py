"""Job ids in Slurm's writing: 123, 123_4, 123_[1-3,7]; an array that begins at 0 is one index behind lava's."""

from typing import NamedTuple

from lavactl.errors import CommandError
from lavactl.options import printable
from lavactl.slurm.words.options import FAILURE
from lavactl.text import units
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from lavactl.io import Io

JOB_ID_MAX = 2**63 - 1


def read_id(word: str, command: str, io: "Io") -> messages.JobRef:
    """Job or elements that a word names; of its own array a job names its own element.

    Raises:
        CommandError: it is no job id.
    """
    text = word.strip()
    try:
        number, underscore, indices = text.partition("_")
        ref = messages.JobRef(job=units.read_count(number, 1, JOB_ID_MAX))
        if underscore:
            listed = indices[1:-1] if indices.startswith("[") and indices.endswith("]") else indices
            _add_indices(ref, listed.partition("%")[0], io)
        elif own := own_index(ref.job, io):
            ref.indices.add(first=own, last=own)
    except ValueError:
        raise CommandError(f"{command}: error: Invalid job id {printable(word)}", FAILURE) from None
    return ref


def own_index(job: int, io: "Io") -> int:
    """Index of the element of this array in which the command runs; 0 elsewhere."""
    environ = io.environ
    if environ.get("LSB_JOBID") != str(job) or environ.get("SLURM_ARRAY_JOB_ID") != str(job):
        return 0
    index = environ.get("LSB_JOBINDEX", "")
    return int(index) if units.is_digits(index) else 0


def _add_indices(ref: messages.JobRef, text: str, io: "Io") -> None:
    base = bases([ref.job], io).get(ref.job, 0)
    for part in text.split(","):
        span, colon, step = part.partition(":")
        first, dash, last = span.partition("-")
        low = units.read_count(first, 0, units.INDEX_MAX)
        high = units.read_count(last, low, units.INDEX_MAX) if dash else low
        ref.indices.add(first=low + base, last=high + base, step=units.read_count(step, 1) if colon else 1)


class Array(NamedTuple):
    """Excess of an array's indices over Slurm's numbers, and its limit of running elements (0: none)."""

    base: int
    limit: int


def bases(jobs: "Iterable[int]", io: "Io") -> dict[int, int]:
    """Excess of these arrays' indices over Slurm's numbers; jobs that are no arrays are left out."""
    return {job: found.base for job, found in arrays(jobs, io).items()}


def arrays(jobs: "Iterable[int]", io: "Io") -> dict[int, Array]:
    """Terms of these arrays; jobs that are no arrays are left out."""
    wanted = messages.JobFilter(refs=[messages.JobRef(job=job) for job in jobs], user="all", finished_too=True)
    if not wanted.refs:
        return {}
    known = (
        job for page in io.client().list_jobs(messages.ListJobsRequest(filter=wanted, arrays=True)) for job in page.jobs
    )
    refs = [_first_element(job.job, job.array.spec) for job in known]
    if not refs:
        return {}
    wanted = messages.JobFilter(refs=refs, user="all", finished_too=True)
    request = messages.ListJobsRequest(filter=wanted, details=True, basic_too=True)
    found = (job for page in io.client().list_jobs(request) for job in page.jobs)
    return {job.job: Array(job.spec.slurm.array_base, job.spec.array_limit) for job in found if job.HasField("spec")}


def _first_element(job: int, spec: str) -> messages.JobRef:
    """Element of an array from its name with the index list: wrap[1-10:2,15]%2."""
    digits = spec.rpartition("[")[2].split("]")[0].replace("-", ",").replace(":", ",").split(",")[0]
    ref = messages.JobRef(job=job)
    if units.is_digits(digits):
        ref.indices.add(first=int(digits), last=int(digits))
    return ref


def ids_text(ref: messages.JobRef) -> str:
    """Reference in lava's writing: 123[5]."""
    return f"{ref.job}[{units.index_text((one.first, one.last, one.step) for one in ref.indices)}]"


def job_id(job: int, index: int, base: int) -> str:
    """Id in Slurm's writing."""
    return f"{job}_{index - base}" if index else str(job)
