"""The surrounding job of a command, from its environment: number, attempt, and the host of each slot."""

from lavactl.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


class JobKey:
    """Job of this process, with the hosts of its allocation, one entry for each slot."""

    def __init__(self, job: int, index: int, attempt: int, slots: list[str]) -> None:
        self.job = job
        self.index = index
        self.attempt = attempt
        self.slots = slots

    @property
    def hosts(self) -> list[str]:
        """Distinct hosts, in the order of the allocation."""
        return list(dict.fromkeys(self.slots))


def job_around(io: "Io", command: str) -> JobKey:
    """Job that this process belongs to.

    Raises:
        CommandError: the process runs in no job.
    """
    numbers = []
    for variable, default in (("LSB_JOBID", ""), ("LSB_JOBINDEX", "0")):
        text = io.environ.get(variable, default)
        if not (text.isascii() and text.isdigit()):
            raise CommandError(f"{command}: this command works only inside a job: {variable} is {text or 'not set'}.")
        numbers.append(int(text))
    slots = slots_now(io) or slots_of(io.environ.get("LSB_MCPU_HOSTS", "")) or io.environ.get("LSB_HOSTS", "").split()
    slots = with_tasks(slots, io.environ.get("LAVA_TASKS_FILE", ""))
    if not slots:
        raise CommandError(f"{command}: the hosts of the job are not known: LSB_MCPU_HOSTS is not set.")
    return JobKey(numbers[0], numbers[1], attempt_of(io.environ.get("LAVA_JOB_KEY", ""), numbers), slots)


def with_tasks(slots: list[str], path: str) -> list[str]:
    """Slots of a job of tasks after a resize: without hosts that its table lacks, and with the tasks of new ones."""
    import json

    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            hosts = [task["host"] for task in json.load(file)["tasks"]]
    except (OSError, ValueError, KeyError, TypeError):
        return slots  # no job of tasks
    return [host for host in slots if host in hosts] + [host for host in hosts if host not in slots]


def attempt_of(key: str, numbers: list[int]) -> int:
    """Attempt number in JOB.INDEX.ATTEMPT if the key is of this job; otherwise 0, which means the newest."""
    job, _, rest = key.partition(".")
    index, _, attempt = rest.partition(".")
    return int(attempt) if [job, index] == [str(number) for number in numbers] and attempt.isdecimal() else 0


def slots_now(io: "Io") -> list[str]:
    """Host of each slot of a resizable job, from its host file: the variables show the allocation at its start."""
    path = io.environ.get("LSB_DJOB_HOSTFILE", "") if io.environ.get("LSB_RESIZABLE") == "Y" else ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().split()
    except OSError:
        return []


def slots_of(text: str) -> list[str]:
    """Host of each slot from LSB_MCPU_HOSTS ("n001 2 n002 1"); empty if the text is malformed."""
    words = text.split()
    slots: list[str] = []
    for host, count in zip(words[::2], words[1::2], strict=False):
        if not (count.isascii() and count.isdigit()):
            return []
        slots += [host] * int(count)
    return slots if len(words) % 2 == 0 else []
