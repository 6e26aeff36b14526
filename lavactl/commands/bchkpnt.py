"""bchkpnt: make checkpoints of running and suspended jobs, or change how often they are made."""

from lavactl.control import carry_out, change, chosen_jobs, tell
from lavactl.errors import FAILURE
from lavactl.options import FLAG, VALUE, Grammar, Options, answered
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bchkpnt [-f] [-k] [-J name] [-m host] [-q queue] [-u user | -u all] [-g /job/group] [-app profile]
               [job_id | "job_id[index]" | 0 ...]
       bchkpnt -p minutes | -p 0 [-J name] [-m host] [-q queue] [-u user | -u all] [-g /job/group] [-app profile]
               [job_id | 0 ...]
       bchkpnt -h | -V
"""
GRAMMAR = Grammar(
    "bchkpnt",
    USAGE,
    {
        **dict.fromkeys(("f", "k"), FLAG),
        **dict.fromkeys(("J", "m", "q", "u", "g", "app", "p"), VALUE),
    },
)
RUNNING = (messages.STAGING, messages.RUN, messages.USUSP, messages.SSUSP)
PERIOD = "checkpoint.period_s"  # as lavad.core.decide.jobs.submit names it


def main(argv: list[str], io: "Io") -> int:
    """Run bchkpnt."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    force, ends = "f" in options, "k" in options
    if (text := options.last("p")) is not None:
        if force or ends:
            raise GRAMMAR.wrong("-p changes the period and makes no checkpoint: -f and -k do not go with it")
        return change_period(text, options, io)
    doing = "being checkpointed"
    return carry_out(options, GRAMMAR, io, messages.CHECKPOINT, doing, among=RUNNING, force=force, ends=ends)


def change_period(text: str, options: Options, io: "Io") -> int:
    """Change the period of waiting and running jobs."""
    from lavactl.submit.checkpoints import MINUTES_MAX
    from lavactl.text import units

    try:
        minutes = units.read_count(text, 0, MINUTES_MAX)
    except ValueError:
        raise GRAMMAR.wrong(f"-p: minutes from 0, which is none, to {MINUTES_MAX} are expected") from None
    job_filter, newest, bad = chosen_jobs(options, GRAMMAR, io)
    if bad and not job_filter.refs:
        return FAILURE
    spec = messages.JobSpec(checkpoint=messages.Checkpoint(period_s=60.0 * minutes))
    results = change(job_filter, newest, messages.ModifyRequest(spec=spec, fields=[PERIOD]), options, io)
    return tell(results, f"Job <{{}}>: Checkpoint period is now {minutes} min.", io, failed=bad) if results else FAILURE
