"""Conditions of bjobs on what only the details of a job tell: -G -Jd -U -rusage -x -pe -pi -pei."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from lavactl.options import Options
    from lavactl.wire import messages

    Condition = Callable[[messages.JobRecord], bool]

ELIGIBLE = {"pe": "EPEND", "pi": "IPEND"}
OPTIONS = ("G", "Jd", "U", "rusage", "x", *ELIGIBLE, "pei")
NO_RESOURCES = {"duration", "decay"}


def conditions(options: "Options", now: float) -> "list[Condition]":
    """Conditions that the options state; a job is listed if all hold."""
    found: list[Condition] = []
    if (group := options.last("G")) is not None:
        found.append(lambda job: job.spec.user_group == group)
    if (reservation := options.last("U")) is not None:
        found.append(lambda job: job.spec.reservation == reservation)
    if (text := options.last("Jd")) is not None:
        import re  # bjobs starts quicker without

        pattern = re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
        found.append(lambda job: pattern.fullmatch(job.spec.description) is not None)
    if (names := options.last("rusage")) is not None:
        asked = {name.strip() for name in names.split(",")}
        found.append(lambda job: any(asked <= one for one in reserved(job.effective_requirement)))
    if "x" in options:
        found.append(lambda job: bool(job.hangs_since or job.warnings))
    wanted = [state for name, state in ELIGIBLE.items() if name in options]
    if wanted:
        found.append(has_pendstate(wanted, now))
    return found


def has_pendstate(wanted: "Collection[str]", now: float) -> "Condition":
    """Condition that a pending job may be considered for a start (EPEND), or that it may not (IPEND)."""
    from lavactl.views.job_fields import pendstate

    return lambda job: pendstate(job, now) in wanted


def reserved(requirement: str) -> list[set[str]]:
    """Resources that rusage sections name, for each alternative of a requirement or of a section."""
    import re

    found = []
    for part in re.split(r"\}\s*(?:@\w+\s*)?\|\|\s*\{", requirement):
        alternatives: list[set[str]] = [set()]
        for body in re.findall(r"rusage\s*\[([^\]]*)\]", part, re.IGNORECASE):
            names = [set(re.findall(r"([A-Za-z_]\w*)\s*=", one)) - NO_RESOURCES for one in body.split("||")]
            alternatives = [one | more for one in alternatives for more in names]
        found += alternatives
    return found
