"""Jobs as squeue, sacct and scontrol show them: the value of each field. Pure but for the clock that is given."""

import os
import re

from lavactl.slurm.words import values
from lavactl.slurm.words.ids import job_id
from lavactl.slurm.words.states import ENDED, State, state_of
from lavactl.text.render import clean
from lavactl.text.units import index_text
from lavactl.wire import messages
from protos.slurm_words import compressed, expanded_name, names_of_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NONE = "(null)"
NOT_SET = "N/A"
WAITING = (messages.PEND, messages.PSUSP)
# Reasons of lava in Slurm's single words, by a part of lava's text, first match first.
REASONS = (
    ("never satisfied", "DependencyNeverSatisfied"),
    ("user suspended", "JobHeldUser"),
    ("suspended", "JobHeldUser"),
    ("dependency", "Dependency"),
    ("start time", "BeginTime"),
    ("begin", "BeginTime"),
    ("job array", "JobArrayTaskLimit"),
    ("array", "JobArrayTaskLimit"),
    ("limit", "AssocGrpJobsLimit"),
    ("queue", "PartitionDown"),
    ("reservation", "Reservation"),
    ("held", "JobHeldUser"),
)


class JobView:
    """One job, or consecutive pending elements of an array.

    Args:
        base: what the array's indices exceed Slurm's numbers by.
        indices: of several elements that are shown together.
    """

    def __init__(
        self, job: messages.JobRecord, base: int, now: float, indices: "list[int] | None" = None, limit: int = 0
    ) -> None:
        self.job, self.base, self.now = job, base, now
        self.indices, self.array_limit = indices, limit
        self.state: State = state_of(job)

    @property
    def id(self) -> str:
        """Id: 123, 123_4, 123_[4-9%2]."""
        if self.indices and len(self.indices) > 1:
            return f"{self.job.job}_[{self.elements}]"
        return job_id(self.job.job, self.job.index, self.base)

    @property
    def elements(self) -> str:
        """Numbers of the elements: 4-9%2; N/A for a plain job."""
        if not self.indices:
            return str(self.job.index - self.base) if self.job.index else NOT_SET
        numbers = [index - self.base for index in self.indices]
        limit = f"%{self.array_limit}" if self.array_limit else ""
        return index_text(_ranges(numbers)) + limit

    @property
    def is_waiting(self) -> bool:
        """True of a pending job."""
        return self.job.state in WAITING

    @property
    def hosts(self) -> list[str]:
        """Hosts of the allocation."""
        return [share.host for share in self.job.hosts]

    @property
    def nodes(self) -> int:
        """Number of hosts: for a pending job the least that it asks for, as far as it says so."""
        return len(self.job.hosts) or nodes_asked(self.job)

    @property
    def cpus(self) -> int:
        """Slots."""
        return sum(share.slots for share in self.job.hosts) or max(self.job.slots_min, 1)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, until the end."""
        job = self.job
        if not job.start_time:
            return 0.0
        return max(0.0, (job.end_time if job.state in ENDED and job.end_time else self.now) - job.start_time)

    @property
    def limit_s(self) -> int:
        """Run limit; 0 for none."""
        return self.job.spec.run_limit_s

    @property
    def end_time(self) -> float:
        """End, of a running job that by its run limit; 0 where there is none."""
        job = self.job
        if job.state in ENDED:
            return job.end_time
        return job.start_time + self.limit_s if job.start_time and self.limit_s else 0.0

    @property
    def reason(self) -> str:
        """Reason for its waiting, in one word as far as Slurm has one."""
        if self.is_waiting:
            if self.job.state == messages.PSUSP:
                return "JobHeldUser"
            text = self.job.pending_reasons[0].text.lower() if self.job.pending_reasons else ""
            if not text:
                return "None"
            return next((word for part, word in REASONS if part in text), "Resources")
        words = {"TO": "TimeLimit", "OOM": "OutOfMemory", "NF": "NodeFail", "F": "NonZeroExitCode"}
        return words.get(self.state.letters, "None")

    @property
    def reason_or_hosts(self) -> str:
        """Last column of squeue."""
        if self.hosts and self.job.state not in ENDED:
            return compressed(self.hosts)
        return f"({self.reason})"

    @property
    def exit_code(self) -> str:
        """CODE:SIGNAL."""
        status = self.job.exit_status
        if self.job.state not in ENDED:
            return "0:0"
        if os.WIFSIGNALED(status):
            return f"0:{os.WTERMSIG(status)}"
        code = os.WEXITSTATUS(status)
        return f"{code or (1 if self.job.state == messages.EXIT and self.state.letters != 'CA' else 0)}:0"

    @property
    def gpus(self) -> int:
        """GPUs that it has, or asks for."""
        held = sum(len(share.gpus) for share in self.job.hosts)
        if held:
            return held
        role = next(iter(self.job.spec.roles), None)
        if role is None or not role.gpu.num:
            return 0
        return role.gpu.num * (max(role.tasks_min, 1) if role.gpu.per_task else self.nodes)

    @property
    def memory_mib(self) -> int:
        """Memory asked for on a host; 0 for none."""
        found = re.search(r"rusage\[mem=(\d+)MB/host\]", self.job.spec.requirement_text)
        return int(found[1]) if found else self.job.spec.memory_limit_mib

    @property
    def hosts_asked(self) -> list[str]:
        """Hosts that it may choose from, if it names any."""
        return [host for host in self.job.spec.hosts if not host.startswith("~") and host != "others"]

    @property
    def hosts_excluded(self) -> list[str]:
        """Hosts that it must not have."""
        return [host[1:] for host in self.job.spec.hosts if host.startswith("~")]

    @property
    def licences(self) -> list[str]:
        """NAME:COUNT of the site's resources that it reserves."""
        found = re.findall(r"rusage\[([^\[\]/]*)\]", self.job.spec.requirement_text)
        pairs = [pair.partition("=") for text in found for pair in text.split(",")]
        return [f"{name}:{count}" for name, _, count in pairs if count.isdigit() and name not in ("mem", "swp", "tmp")]

    @property
    def tmp_mib(self) -> int:
        """Temporary space that each host must have free; 0 for none."""
        found = re.search(r"tmp>=(\d+)MB", self.job.spec.requirement_text)
        return int(found[1]) if found else 0

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        role = next(iter(self.job.spec.roles), None)
        return max(role.tasks_min, 1) if role is not None else 1

    @property
    def cpus_per_task(self) -> int:
        """Slots of each task."""
        role = next(iter(self.job.spec.roles), None)
        return max(role.slots_per_task, 1) if role is not None else 1

    @property
    def resources(self) -> str:
        """TRES: cpu=4,mem=4G,node=1,billing=4,gres/gpu=2."""
        parts = [f"cpu={self.cpus}"]
        if self.memory_mib:
            parts.append(f"mem={self.memory_mib * self.nodes}M")
        parts += [f"node={self.nodes}", f"billing={self.cpus}"]
        if self.gpus:
            parts.append(f"gres/gpu={self.gpus}")
        return ",".join(parts)

    def file(self, template: str, suffix: str = "") -> str:
        """Path of an output file; a pattern that only the job's start decides stays."""
        spec, job = self.job.spec, self.job
        template = template or suffix
        if not template:
            return ""
        number = job.index - self.base if job.index else None
        letters = names_of_job(job.job, number, self.name, job.user, self.hosts[0] if self.hosts else "%N")
        name = expanded_name(template, letters) if spec.HasField("slurm") else template
        return os.path.join(spec.output_dir or spec.cwd, name)

    @property
    def name(self) -> str:
        """Name without an element's index."""
        name = clean(self.job.name)
        return re.sub(r"\[\d+\]$", "", name) if self.job.index else name


def _ranges(numbers: list[int]) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for number in numbers:
        if found and found[-1][1] + 1 == number:
            found[-1] = (found[-1][0], number, 1)
        else:
            found.append((number, number, 1))
    return found


def nodes_asked(job: messages.JobRecord) -> int:
    """Hosts that a pending job asks for by its tasks on each; 1 where it does not say."""
    found = re.search(r"span\[ptile=(\d+)\]", job.spec.requirement_text)
    role = next(iter(job.spec.roles), None)
    return -(-max(role.tasks_min, 1) // int(found[1])) if found and role is not None else 1


def time_or_na(moment: float) -> str:
    """Time of a field; N/A for none."""
    return values.moment_text(moment, NOT_SET)


def limit_text(seconds: int) -> str:
    """Run limit of a field."""
    return values.time_text(seconds) if seconds else "UNLIMITED"


def long_limit_text(seconds: int) -> str:
    """Run limit of a field that shows hours even if there are none."""
    return values.long_time_text(seconds) if seconds else "UNLIMITED"


def group_of(user: str) -> tuple[str, str]:
    """(name, number) of a user's first group; N/A where it is unknown here."""
    import grp
    import pwd

    try:
        number = pwd.getpwnam(user).pw_gid
        return grp.getgrgid(number).gr_name, str(number)
    except (KeyError, UnicodeEncodeError, ValueError):
        return NOT_SET, NOT_SET


class Waiting:
    """Consecutive pending elements of one array, which are one line; only the first record is kept."""

    def __init__(self) -> None:
        self._first: JobView | None = None
        self._limit = 0
        self._indices: list[int] = []

    def takes(self, job: messages.JobRecord) -> bool:
        """True if an element is of the same array and state as those before, if there are any."""
        first = self._first
        return first is None or (first.job.job, first.job.state) == (job.job, job.state)

    def add(self, view: JobView, limit: int) -> None:
        """Add an element."""
        self._first, self._limit = self._first or view, limit
        self._indices.append(view.job.index)

    def drained(self) -> "Iterator[JobView]":
        """Yield the elements as one, and forget them."""
        if (first := self._first) is not None:
            yield JobView(first.job, first.base, first.now, self._indices, self._limit)
        self._first, self._indices = None, []


def user_id(user: str) -> str:
    """Number of a user; the name where it is unknown here."""
    import pwd

    try:
        return str(pwd.getpwnam(user).pw_uid)
    except (KeyError, UnicodeEncodeError, ValueError):
        return user
