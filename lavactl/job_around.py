"""The job that a command runs in, as its environment tells: number, attempt, and the hosts of its slots."""

from lavactl.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


class JobKey:
    """The job this process belongs to, and the hosts of its allocation, one entry for each slot."""

    def __init__(self, job: int, index: int, attempt: int, slots: list[str]) -> None:
        self.job = job
        self.index = index
        self.attempt = attempt
        self.slots = slots

    @property
    def hosts(self) -> list[str]:
        """Each host once, in the order of the allocation."""
        return list(dict.fromkeys(self.slots))


def job_around(io: "Io", command: str) -> JobKey:
    """The job whose process we are.

    Raises:
        CommandError: we are in none.
    """
    numbers = []
    for variable, default in (("LSB_JOBID", ""), ("LSB_JOBINDEX", "0")):
        text = io.environ.get(variable, default)
        if not (text.isascii() and text.isdigit()):
            raise CommandError(f"{command}: this command works only inside a job: {variable} is {text or 'not set'}.")
        numbers.append(int(text))
    slots = slots_now(io) or slots_of(io.environ.get("LSB_MCPU_HOSTS", "")) or io.environ.get("LSB_HOSTS", "").split()
    if not slots:
        raise CommandError(f"{command}: the hosts of the job are not known: LSB_MCPU_HOSTS is not set.")
    return JobKey(numbers[0], numbers[1], attempt_of(io.environ.get("LAVA_JOB_KEY", ""), numbers), slots)


def attempt_of(key: str, numbers: list[int]) -> int:
    """The attempt in JOB.INDEX.ATTEMPT, when it is of this job; else 0, which means the newest."""
    job, _, rest = key.partition(".")
    index, _, attempt = rest.partition(".")
    return int(attempt) if [job, index] == [str(number) for number in numbers] and attempt.isdecimal() else 0


def slots_now(io: "Io") -> list[str]:
    """Hosts slot by slot of a resizable job, from its host file: its variables are those of its start."""
    path = io.environ.get("LSB_DJOB_HOSTFILE", "") if io.environ.get("LSB_RESIZABLE") == "Y" else ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().split()
    except OSError:
        return []


def slots_of(text: str) -> list[str]:
    """Hosts slot by slot from LSB_MCPU_HOSTS ("n001 2 n002 1"); empty when it is not of that form."""
    words = text.split()
    slots: list[str] = []
    for host, count in zip(words[::2], words[1::2], strict=False):
        if not (count.isascii() and count.isdigit()):
            return []
        slots += [host] * int(count)
    return slots if len(words) % 2 == 0 else []
