"""Slurm's --dependency as lava's dependency condition."""

from typing import NamedTuple

from lavactl.slurm.words.ids import ids_text, read_id
from lavactl.slurm.words.options import fail
from lavactl.wire import messages
from lavactl.wire.listed import jobs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

CONDITIONS = {
    "after": "started", "afterany": "ended", "afterok": "done", "afternotok": "exit", "aftercorr": "done",
}  # fmt: skip
WAITING = (messages.PEND, messages.PSUSP)


class Asker(NamedTuple):
    """Job that the dependency is of: its name, for singleton, and its id (0: not yet known); the command that asks."""

    command: str
    name: str
    io: "Io"
    job: int = 0


def condition(text: str | None, asker: Asker) -> str:
    """Condition of the job; empty for none.

    Raises:
        CommandError: a malformed dependency, or one that lava lacks.
    """
    if text is None or not text.strip():
        return ""
    if "," in text and "?" in text:
        raise fail(asker.command, f"--dependency {text}: expected ',' or '?' between the parts, not both.")
    joiner, separator = (" || ", "?") if "?" in text else (" && ", ",")
    parts = [found for part in text.split(separator) if (found := _part(part.strip(), asker))]
    return joiner.join(parts)


def _part(part: str, asker: Asker) -> str:
    kind, _, rest = part.partition(":")
    if kind == "singleton" and not rest:
        return _singleton(asker)
    if kind not in CONDITIONS:
        known = ", ".join((*CONDITIONS, "singleton"))
        raise fail(asker.command, f"--dependency {part}: expected one of {known}, with job ids after colons.")
    found = []
    for word in rest.split(":"):
        if "+" in word:
            why = "a delay after another job's start is not supported; use --begin"
            raise fail(asker.command, f"--dependency {part}: {why}.")
        ref = read_id(word, asker.command, asker.io)
        target = f'"{ids_text(ref)}"' if ref.indices else str(ref.job)
        if kind == "aftercorr" and not ref.indices:
            target = f'"{ref.job}[*]"'
        found.append(f"{CONDITIONS[kind]}({target})")
    return f"({' && '.join(found)})" if len(found) > 1 else found[0]


def _singleton(asker: Asker) -> str:
    """Condition that all earlier jobs of the caller with this name have ended."""
    request = messages.ListJobsRequest(filter=messages.JobFilter(name=asker.name), columns=True)
    jobs = {job.job for page in asker.io.client().list_jobs(request) for job in jobs_of(page)}
    return " && ".join(f"ended({job})" for job in sorted(jobs) if not asker.job or job < asker.job)
