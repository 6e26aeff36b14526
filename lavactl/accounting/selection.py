"""Filters of bacct: as the master is asked, as they are printed, applied to records of a file; bhist has its times."""

import re

from lavactl.errors import CommandError
from lavactl.jobrefs import read_refs
from lavactl.options import printable
from lavactl.text.intervals import read_interval
from lavactl.text.render import long_time
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from lavactl.io import Io
    from lavactl.options import Options
    from protos import jobs_pb2

INTERVALS = (("S", "submitted", "submit_time"), ("D", "dispatched", "start_time"), ("C", "completed", "end_time"))


def request_of(options: "Options", form: "jobs_pb2.AccountForm", io: "Io") -> messages.AccountsRequest:
    """The master's request for these options.

    Raises:
        CommandError: a job id or a time interval cannot be read.
    """
    states = [state for letter, state in (("d", messages.DONE), ("e", messages.EXIT)) if letter in options]
    intervals = {name: interval(options, letter, "bacct", io) for letter, name, _ in INTERVALS if letter in options}
    return messages.AccountsRequest(
        refs=read_refs(options.words),
        users=words(options, "u"),
        queues=words(options, "q"),
        projects=words(options, "P"),
        hosts=words(options, "m"),
        name=options.last("J") or "",
        states=states,
        reservation=options.last("U") or "",
        application=options.last("app") or "",
        service_class=options.last("sla") or "",
        hung="x" in options,
        normalized_to=options.last("N") or "",
        form=form,
        **intervals,
    )


def own_records(options: "Options") -> None:
    """Read ``-f -``, LSF's word for the site's own logs, as no file: the database has what they have."""
    options.items = [item for item in options.items if item != ("f", "-")]


def words(options: "Options", letter: str) -> list[str]:
    """Names of an option that takes several."""
    return (options.last(letter) or "").split()


def interval(options: "Options", letter: str, command: str, io: "Io") -> messages.TimeRange:
    """Times of an option of a command.

    Raises:
        CommandError: they cannot be read.
    """
    text = options.last(letter) or ""
    try:
        first, last = read_interval(text, io.now())
    except (ValueError, OverflowError):
        form = "[yyyy/][mm/]dd/hh:mm,[yyyy/][mm/]dd/hh:mm"
        raise CommandError(f"{command} -{letter} {printable(text)}: expected a time interval, as {form}.") from None
    return messages.TimeRange(first=first, last=last)


def filters(request: messages.AccountsRequest, user: str) -> list[str]:
    """Lines of the output's head; ``user`` is the caller."""
    users = list(request.users) or (["all"] if request.refs else [user])
    done, exited = messages.DONE in request.states, messages.EXIT in request.states
    state = "completed normally" if done and not exited else "exited" if exited and not done else ""
    of_class = request.service_class
    lines = [
        "submitted by all users." if "all" in users else f"submitted by users {_names(users)}",
        f"accounted on projects {_names(request.projects)}" if request.projects else "accounted on all projects.",
        state or "completed normally or exited",
        f"executed on hosts {_names(request.hosts)}" if request.hosts else "executed on all hosts.",
        f"submitted to queues {_names(request.queues)}" if request.queues else "submitted to all queues.",
        f"accounted on service classes {_names([of_class])}" if of_class else "accounted on all service classes.",
        "accounted to all RC accounts.",
    ]
    if request.reservation:
        lines.append(f"accounted on advance reservation {printable(request.reservation)}.")
    if request.application:
        lines.append(f"accounted on application profile {printable(request.application)}.")
    if request.name:
        lines.append(f"named {printable(request.name)}.")
    if request.hung:
        lines.append("associated with job exceptions.")
    for _, name, _ in INTERVALS:
        if request.HasField(name):
            lines.append(_between(name, getattr(request, name)))
    if request.normalized_to:
        lines.append(f"with CPU times normalized to {printable(request.normalized_to)}.")
    return lines


def _between(word: str, times: messages.TimeRange) -> str:
    if not times.first:
        return f"{word} until {long_time(times.last)}."
    if not times.last:
        return f"{word} since {long_time(times.first)}."
    return f"{word} between {long_time(times.first)} and {long_time(times.last)}."


def _names(names: "Iterable[str]") -> str:
    return " ".join(f"{printable(name)}," for name in names)


class FileSelection:
    """Selection of a file's records by the filters of a request; groups are not known there."""

    def __init__(self, request: messages.AccountsRequest, user: str) -> None:
        self._request = request
        self._users = list(request.users) or (["all"] if request.refs else [user])
        self._refs = _by_job(request.refs)
        self._name = _pattern(request.name)
        self._times = [(getattr(request, name), field) for _, name, field in INTERVALS if request.HasField(name)]

    def admits(self, job: "jobs_pb2.JobRecord") -> bool:
        """True if the record is selected."""
        request = self._request
        return (
            (not self._refs or self._is_named(job))
            and ("all" in self._users or job.user in self._users)
            and (not request.queues or job.queue in request.queues)
            and (not request.projects or job.project in request.projects)
            and (not request.hosts or "all" in request.hosts or any(one.host in request.hosts for one in job.hosts))
            and (not request.states or job.state in request.states)
            and (not request.reservation or job.spec.reservation == request.reservation)
            and (not request.service_class or job.spec.service_class == request.service_class)
            and (not request.application or job.spec.application == request.application)
            and (self._name is None or self._name.match(_base(job.name)) is not None)
            and all(_is_within(getattr(job, field), times) for times, field in self._times)
        )

    def _is_named(self, job: "jobs_pb2.JobRecord") -> bool:
        return any(
            not ref.indices
            or any(
                one.first <= job.index <= one.last and not (job.index - one.first) % (one.step or 1)
                for one in ref.indices
            )
            for ref in self._refs.get(job.job, ())
        )


def _by_job(refs: "Iterable[messages.JobRef]") -> "dict[int, list[messages.JobRef]]":
    """References to each job; there may be several to elements of one array."""
    found: dict[int, list[messages.JobRef]] = {}
    for ref in refs:
        found.setdefault(ref.job, []).append(ref)
    return found


def _pattern(text: str) -> "re.Pattern[str] | None":
    return re.compile(".*".join(map(re.escape, text.split("*"))) + r"\Z", re.DOTALL) if text else None


def _base(name: str) -> str:
    """Name without an index list: an array's records have it."""
    return name.partition("[")[0] if name.endswith("]") else name


def _is_within(moment: float, times: messages.TimeRange) -> bool:
    return bool(moment) and moment >= times.first and (not times.last or moment <= times.last)
