"""Slurm's --dependency as lava's dependency condition."""

from lavactl.slurm.words.ids import ids_text, read_id
from lavactl.wire import messages
from lavactl.wire.listed import jobs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.slurm.submit.choices import Choices

CONDITIONS = {
    "after": "started", "afterany": "ended", "afterok": "done", "afternotok": "exit", "aftercorr": "done",
}  # fmt: skip
WAITING = (messages.PEND, messages.PSUSP)


def condition(choices: "Choices", name: str, io: "Io") -> str:
    """Condition of the job; empty for none.

    Args:
        name: of the job, for singleton.

    Raises:
        CommandError: a malformed dependency, or one that lava lacks.
    """
    text = choices.last("dependency")
    if text is None or not text.strip():
        return ""
    if "," in text and "?" in text:
        raise choices.wrong(f"--dependency {text}: expected ',' or '?' between the parts, not both")
    joiner, separator = (" || ", "?") if "?" in text else (" && ", ",")
    parts = [found for part in text.split(separator) if (found := _part(part.strip(), choices, name, io))]
    return joiner.join(parts)


def _part(part: str, choices: "Choices", name: str, io: "Io") -> str:
    kind, _, rest = part.partition(":")
    if kind == "singleton" and not rest:
        return _singleton(name, io)
    if kind not in CONDITIONS:
        known = ", ".join((*CONDITIONS, "singleton"))
        raise choices.wrong(f"--dependency {part}: expected one of {known}, with job ids after colons")
    found = []
    for word in rest.split(":"):
        if "+" in word:
            raise choices.wrong(f"--dependency {part}: a delay after another job's start is not supported; use --begin")
        ref = read_id(word, choices.command, io)
        target = f'"{ids_text(ref)}"' if ref.indices else str(ref.job)
        if kind == "aftercorr" and not ref.indices:
            target = f'"{ref.job}[*]"'
        found.append(f"{CONDITIONS[kind]}({target})")
    return f"({' && '.join(found)})" if len(found) > 1 else found[0]


def _singleton(name: str, io: "Io") -> str:
    """Condition that all earlier jobs of the caller with this name have ended."""
    request = messages.ListJobsRequest(filter=messages.JobFilter(name=name), columns=True)
    jobs = {job.job for page in io.client().list_jobs(request) for job in jobs_of(page)}
    return " && ".join(f"ended({job})" for job in sorted(jobs))
