"""Shared code of bkill, bstop and bresume: job selection, the request, and one output line for each result.

Invariants: every id is tried, and the exit code is 0 only if all succeeded; without an id the options select the most
recently submitted job, with id 0 all that match; success goes to standard output, failure to standard error.
"""

from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import key_text, read_ref
from lavactl.options import Grammar, Options
from lavactl.text.render import clean
from lavactl.text.unknown import nothing_so_named, unknown_name
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from lavactl.io import Io

SELECTING = ("J", "m", "q", "u", "g", "app", "sla")
NO_ID = "Job ID or one of '-m', '-u' '-q' and '-J' must be specified"
REASON_MAX = 4095
NOTHING = "No unfinished job found"


def chosen_jobs(options: Options, grammar: Grammar, io: "Io") -> tuple[messages.JobFilter, bool, bool]:
    """(filter, only the newest match, True if a word that is no job id was reported)."""
    refs, bad = readable_refs(options.words, io)
    if not options.words and not any(name in options for name in SELECTING):
        raise grammar.wrong(NO_ID)
    every = any(ref.job == 0 for ref in refs)
    named = [ref for ref in refs if ref.job]
    user = options.last("u") or ("all" if named and not every else "")
    job_filter = messages.JobFilter(
        refs=[messages.JobRef()] if every else named,
        user=user,
        queue=options.last("q") or "",
        host=options.last("m") or "",
        name=options.last("J") or "",
        job_group=options.last("g") or "",
        application=options.last("app") or "",
        service_class=options.last("sla") or "",
    )
    return job_filter, not options.words, bad


def readable_refs(words: list[str], io: "Io") -> tuple[list[messages.JobRef], bool]:
    """Job ids among the words, and True if another word was reported; such a word does not keep the ids from being
    tried.
    """
    refs = []
    bad = False
    for word in words:
        try:
            refs.append(read_ref(word))
        except CommandError as error:
            io.error(str(error))
            bad = True
    return refs, bad


def carry_out(
    options: Options,
    grammar: Grammar,
    io: "Io",
    action: int,
    doing: str,
    number: int = 0,
    states: "Sequence[int]" = (),
    hold: bool = False,
    among: "Sequence[int]" = (),
    force: bool = False,
    ends: bool = False,
    hosts: "Sequence[str]" = (),
) -> int:
    """Send the request and print the result for each job.

    Args:
        doing: text printed on success: ``being terminated``.
        number: the signal, for the action SEND.
        states: job states to select, for the action REQUEUE.
        among: job states to select from where no job is named by its id.
        ends: jobs end with their checkpoints, for the action CHECKPOINT.
        hosts: jobs go to one of these, for the action MIGRATE.
    """
    job_filter, newest, bad = chosen_jobs(options, grammar, io)
    if bad and not job_filter.refs:
        return FAILURE
    job_filter.states.extend([*states, *among])  # type: ignore[list-item]
    request = messages.SignalRequest(filter=job_filter, signal=number, newest_only=newest, hold=hold)
    request.force, request.ends = force, ends
    request.hosts.extend(hosts)
    request.states.extend(states)  # type: ignore[arg-type]
    request.action = action  # type: ignore[assignment]
    request.reason = _reason(options, grammar)
    reply = io.client().signal(request)
    if reply.error:
        io.error(unknown_name(options, io) or nothing_so_named(options) or clean(reply.error))
        return FAILURE
    return tell(reply.results, "Job <{}> is " + doing, io, failed=bad)


def change(
    job_filter: messages.JobFilter, newest: bool, request: messages.ModifyRequest, options: Options, io: "Io"
) -> "Sequence[messages.SignalResult]":
    """Change the jobs of a filter; the results. Why there are none is printed."""
    request.refs.extend(ref for ref in job_filter.refs if ref.job)
    request.filter.CopyFrom(job_filter)
    request.newest_only = newest
    results = io.client().modify(request).results
    if not results:
        io.error(unknown_name(options, io) or nothing_so_named(options) or NOTHING)
    return results


def _reason(options: Options, grammar: Grammar) -> str:
    """The user's own reason (-C); empty without one."""
    text = options.last("C")
    if text is None:
        return ""
    if not text.strip() or len(text) > REASON_MAX:
        raise grammar.wrong(f"-C: a reason of 1 to {REASON_MAX} characters is expected, found {len(text)}")
    return text


def tell(
    results: "Sequence[messages.SignalResult]", success: str, io: "Io", *, failed: bool = False, ending: str = ""
) -> int:
    """Print one line for each result; the exit code.

    Args:
        success: text with ``{}`` for the job.
        ending: text appended to each failure reason.
    """
    if not results:
        io.error(NOTHING)
        return FAILURE
    lines = list[str]()
    for result in results:
        key = key_text(result.job, result.index)
        if result.error:
            failed = True
            io.print("".join(lines), end="")
            lines.clear()
            io.error(f"Job <{key}>: {clean(result.error).rstrip('.')}{ending}")
        else:
            lines.append(success.format(key) + (f" ({clean(result.note)})\n" if result.note else "\n"))
    io.print("".join(lines), end="")
    return FAILURE if failed else 0
