"""--signal as lava's warning action: a command beside the job that finds the processes Slurm would signal."""

import re

from lavactl.text import units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.slurm.submit.choices import Choices

DEFAULT_S, MOST_S = 60, 65535
# Steps are signalled through their srun, each of which has a file that is named by its process, in a directory of the
# user's own: another user may have made one of that name. A batch script is the shepherd's child that is no task.
STEPS = """d=/tmp/lava-steps-$(id -u)-"$LAVA_JOB_KEY-$LS_JOBPID"; [ -O "$d" ] && [ ! -h "$d" ] && \
for f in "$d"/pid.*; do [ -e "$f" ] && kill -s {} "${{f##*.}}"; done; :"""
SCRIPT = """for p in $(cat /proc/"$LS_JOBPID"/task/*/children); do [ "$p" = $$ ] || \
grep -qz ^LAVA_TASK_SERIAL= /proc/"$p"/environ || kill -s {} "$p"; done; :"""


def warning(text: str, choices: "Choices", io: "Io") -> tuple[str, float]:
    """(warning action, seconds before the end) of --signal=[{R|B}:]signal[@seconds].

    Raises:
        CommandError: it is malformed.
    """
    found = re.fullmatch(r"(?:([BRbr]{1,2}):)?([A-Za-z0-9]+)(?:@([0-9]{1,5}))?", text.strip())
    name = signal_name(found[2]) if found else ""
    seconds = int(found[3] or DEFAULT_S) if found else 0
    if not found or not name or not 0 < seconds <= MOST_S:
        raise choices.wrong(f"--signal {text}: expected [B:]signal[@seconds], such as USR1@120")
    marks = (found[1] or "").upper()
    if "R" in marks and "quiet" not in choices:
        io.error(f"{choices.command}: R of --signal has no effect: lava's reservations let no job overlap them.")
    return (SCRIPT if "B" in marks else STEPS).format(name), float(seconds)


def signal_name(text: str) -> str:
    """Name of a signal by its name or number, without SIG; empty for an unknown one."""
    from signal import NSIG, Signals

    if units.is_digits(text):
        return Signals(int(text)).name.removeprefix("SIG") if 0 < int(text) < NSIG and int(text) in set(Signals) else ""
    name = text.upper().removeprefix("SIG")
    return name if f"SIG{name}" in Signals.__members__ else ""
