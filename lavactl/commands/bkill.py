"""bkill: terminate or signal jobs."""

from lavactl.control import NOTHING, carry_out, tell
from lavactl.errors import FAILURE, CommandError
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.taskrefs import names_tasks, read_task_ref, task_text
from lavactl.text.render import clean
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.options import Options

USAGE = """\
Usage: bkill [-r | -d] [-s signal] [-J name] [-m host] [-q queue] [-u user | -u all] [-g /job/group]
             [-app profile] [-sla class] [-stat run | pend | susp] [-C reason] [job_id | "job_id[index]" | 0 ...]
       bkill [-s signal] "job_id[role]" | "job_id[role/task]" ...
       bkill -l | -h | -V
"""
GRAMMAR = Grammar(
    "bkill",
    USAGE,
    {
        **dict.fromkeys(("l", "r", "b", "d"), FLAG),
        **dict.fromkeys(("s", "J", "m", "q", "u", "g", "app", "sla", "stat", "C"), VALUE),
    },
)
STATES = {
    "run": (messages.STAGING, messages.RUN, messages.UNKWN),
    "pend": (messages.PEND,),
    "susp": (messages.PSUSP, messages.USUSP, messages.SSUSP),
}


def main(argv: list[str], io: "Io") -> int:
    """Run bkill."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if "l" in options:
        io.print(" ".join(names()))
        return 0
    name = options.last("s")
    if any(names_tasks(word) for word in options.words):
        return _kill_tasks(options, name, io)
    if "stat" in options:
        return _kill_in_state(options, io)
    if "r" in options:
        return carry_out(options, GRAMMAR, io, messages.REMOVE, "being terminated")
    if name is None:
        action = messages.TERMINATE_DONE if "d" in options else messages.TERMINATE
        return carry_out(options, GRAMMAR, io, action, "being terminated")
    if "C" in options:
        raise GRAMMAR.wrong("-C and -s cannot be used together: the reason is one for ending a job")
    number = signal_number(name)
    return carry_out(options, GRAMMAR, io, action_for(number), "being signaled", number)


def _kill_in_state(options: "Options", io: "Io") -> int:
    """Terminate only what is in the state of -stat: jobs, and elements of arrays."""
    name, others = options.last("stat") or "", [letter for letter in ("r", "s", "d") if letter in options]
    if name not in STATES:
        raise GRAMMAR.wrong(f"-stat is run, pend or susp, not {printable(name)}")
    if others:
        raise GRAMMAR.wrong(f"-stat and -{others[0]} cannot be used together")
    return carry_out(options, GRAMMAR, io, messages.TERMINATE_IN_STATES, "being terminated", states=STATES[name])


def _kill_tasks(options: "Options", name: str | None, io: "Io") -> int:
    """Signal tasks of jobs, or end them: lifecycle policies take that for an eviction."""
    others = [given for given, _ in options.items if given != "s"]
    if others or not all(names_tasks(word) for word in options.words):
        raise GRAMMAR.wrong("tasks of jobs are named by themselves, with no option but -s")
    code = 0
    for word in options.words:
        ref = read_task_ref(word)
        request = messages.SignalRequest(filter=messages.JobFilter(refs=[ref.job], user="all"), role=ref.role)
        request.task_plus_one = 0 if ref.index is None else ref.index + 1
        request.action, request.signal = messages.TERMINATE, 0
        if name is not None:
            request.action, request.signal = messages.SEND, signal_number(name)
        reply = io.client().signal(request)
        if reply.error or not reply.results:
            io.error(f"Job <{ref}>: {clean(reply.error or NOTHING).rstrip('.')}")
            code = FAILURE
            continue
        tasks = f"[{task_text(ref.role, ref.index)}]"
        doing = "being signaled" if name is not None else "being terminated"
        code = tell(reply.results, f"Job <{{}}{tasks}> is {doing}", io) or code
    return code


def action_for(number: int) -> int:
    """Action for a signal number: stop and continue change the job's state, so they are more than a signal."""
    from signal import SIGCONT, SIGSTOP, SIGTSTP

    if number in (SIGSTOP, SIGTSTP):
        return messages.STOP
    return messages.RESUME if number == SIGCONT else messages.SEND


def signal_number(name: str) -> int:
    """Number of ``9``, ``KILL`` or ``SIGKILL``.

    Raises:
        CommandError: unknown signal.
    """
    from signal import NSIG, Signals

    if name.isascii() and name.isdigit() and 0 < int(name) < NSIG:
        return int(name)
    full = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    known = Signals.__members__.get(full)
    if known is None:
        raise CommandError(f"{printable(name)}: Illegal signal value.")
    return int(known)


def names() -> list[str]:
    """Names of all signals, by number."""
    from signal import Signals

    return [one.name.removeprefix("SIG") for one in sorted(Signals)]
