"""Conditions of bjobs on what only the details of a job tell: -G -Jd -U -x -pe -pi."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lavactl.options import Options
    from lavactl.wire import messages

    Condition = Callable[[messages.JobRecord], bool]

ELIGIBLE = {"pe": "EPEND", "pi": "IPEND"}
OPTIONS = ("G", "Jd", "U", "x", *ELIGIBLE)


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
    if "x" in options:
        found.append(lambda job: bool(job.hangs_since or job.warnings))
    wanted = {state for name, state in ELIGIBLE.items() if name in options}
    if wanted:
        from lavactl.views.job_fields import pendstate

        found.append(lambda job: pendstate(job, now) in wanted)
    return found
