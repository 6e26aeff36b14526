"""Job ids as users type them: ``123``, ``"123[5]"``, ``"123[1-10:2,15]"``, ``0``."""

from lavactl.errors import CommandError
from lavactl.options import printable
from lavactl.text import units
from lavactl.wire import messages

JOB_ID_MAX = 2**63 - 1


def read_refs(words: list[str]) -> list[messages.JobRef]:
    """Job references of a command line.

    Raises:
        CommandError: a word is no job id.
    """
    return [read_ref(word) for word in words]


def read_ref(word: str) -> messages.JobRef:
    """One job reference; job 0 means every job that the other options select."""
    number, bracket, indices = word.strip().partition("[")
    try:
        ref = messages.JobRef(job=units.read_count(number, 0, JOB_ID_MAX))
        if bracket:
            if not indices.endswith("]") or not ref.job:
                raise ValueError(word)
            for first, last, step in units.read_index_list(indices[:-1]):
                ref.indices.add(first=first, last=last, step=step)
    except ValueError:
        every = " Job ID 0 means all jobs." if word.lower() == "all" else ""
        raise CommandError(f"{printable(word)}: Illegal job ID.{every}") from None
    return ref


def ref_text(ref: messages.JobRef) -> str:
    """A reference as the user typed it, ranges in their normal form."""
    if not ref.indices:
        return str(ref.job)
    return f"{ref.job}[{units.index_text((r.first, r.last, r.step) for r in ref.indices)}]"


def key_text(job: int, index: int) -> str:
    """``123``, or ``123[5]`` for an array element."""
    return f"{job}[{index}]" if index else str(job)
