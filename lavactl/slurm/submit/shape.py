"""Tasks, hosts, GPUs and memory of a job in Slurm's words, as one role of lava's.

Invariant: what lava cannot place as it was asked for is refused with a sentence, never placed otherwise.
"""

from lavactl.slurm.submit.gpus import agreed, read_asked, whole
from lavactl.slurm.words import values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.slurm.submit.choices import Choices

COUNT = "a number of at least 1"
OF_TASKS, OF_EACH = "--gpus and --gpus-per-task", "the GPUs of each host and --gpus-per-task"
OF_HOSTS = "--gpus and the GPUs of each host"


class Shape:
    """Request for places.

    Attributes:
        tasks: least and most number of tasks.
        hosts: number of hosts where it is known; 0 elsewhere.
        per_host: tasks on a host where it is known; 0 elsewhere.
        slots: of each task.
    """

    def __init__(self, choices: "Choices") -> None:
        self._choices = choices
        self.slots = choices.read("cpus-per-task", values.read_count, COUNT) or 1
        self.asked_tasks = choices.read("ntasks", values.read_count, COUNT)
        self.asked_per_node = choices.read("ntasks-per-node", values.read_count, COUNT)
        self.nodes = choices.read("nodes", values.read_nodes, "a number of hosts, or a range such as 2-4")
        self.gpus = read_asked(choices)
        self._count_by_gpus()
        self.span = ""
        self.hosts = self.per_host = 0
        self.tasks = self._placed()
        self.sections = [f"rusage[{resource}={count}/host]" for resource, count in self.gpus.others]
        self.memory_limit_mib = 0
        self.takes_whole_hosts = False  # --mem=0: all of their memory
        self.gpu_text = self._gpu_text()
        self._memory()

    @property
    def is_counted(self) -> bool:
        """True if the number of tasks was said, by itself or by hosts."""
        return self.asked_tasks is not None or self.asked_per_node is not None

    def _placed(self) -> tuple[int, int]:
        if self.nodes is None:
            return self._without_nodes()
        least, most = self.nodes
        if self.asked_tasks is None:
            each = self.asked_per_node or 1
            self._spread(least if least == most else 0, each)
            return least * each, most * each
        return self._over_nodes(least, most, self.asked_tasks)

    def _without_nodes(self) -> tuple[int, int]:
        tasks, each = self.asked_tasks, self.asked_per_node
        if each and tasks:
            self._spread(-(-tasks // each) if tasks % each == 0 else 0, min(each, tasks))
        elif each:
            self._spread(1, each)
        number = tasks or each or 1
        if number == 1:
            self.hosts = self.per_host = 1
        return number, number

    def _over_nodes(self, least: int, most: int, tasks: int) -> tuple[int, int]:
        """Tasks over a number of hosts; fewer tasks than hosts take one host each."""
        least, most = min(least, tasks), min(most, tasks)
        each = -(-tasks // least)
        if self.asked_per_node and each > self.asked_per_node:
            each, least = self.asked_per_node, -(-tasks // self.asked_per_node)
            if least > most:
                raise self._choices.wrong(
                    f"{tasks} tasks do not fit on {most} hosts with --ntasks-per-node {self.asked_per_node}"
                )
        if -(-tasks // each) != least:
            raise self._choices.wrong(
                f"{tasks} tasks on {least} hosts: lava fills one host after the other, so that some hosts would have "
                "none; give a multiple of the number of hosts"
            )
        self._spread(least, each)
        return tasks, tasks

    def _spread(self, hosts: int, each: int) -> None:
        self.hosts, self.per_host = hosts, each
        self.span = "span[hosts=1]" if hosts == 1 else f"span[ptile={each}]"

    # GPUs and memory

    def _count_by_gpus(self) -> None:
        """Derive tasks and hosts from two options that count GPUs, as Slurm does."""
        choices, gpus = self._choices, self.gpus
        if gpus.of_job and gpus.per_task:
            tasks = whole(choices, gpus.of_job, gpus.per_task, OF_TASKS)
            self.asked_tasks = agreed(choices, self.asked_tasks, tasks, "tasks", OF_TASKS)
        if gpus.per_node and gpus.per_task:
            each = whole(choices, gpus.per_node, gpus.per_task, OF_EACH)
            self.asked_per_node = agreed(choices, self.asked_per_node, each, "tasks on each host", OF_EACH)
        if gpus.of_job and gpus.per_node:
            hosts = whole(choices, gpus.of_job, gpus.per_node, OF_HOSTS)
            least, most = self.nodes or (hosts, hosts)
            given = hosts if least <= hosts <= most else least
            self.nodes = (hosts, agreed(choices, given, hosts, "hosts", OF_HOSTS))

    def _gpu_text(self) -> str:
        """Value of -gpu; empty for none."""
        choices, gpus = self._choices, self.gpus
        if gpus.per_node and gpus.of_job:
            agreed(choices, self.hosts, gpus.of_job // gpus.per_node, "hosts", OF_HOSTS)
        if gpus.per_node and gpus.per_task:
            agreed(choices, self.per_host, gpus.per_node // gpus.per_task, "tasks on each host", OF_EACH)
        if gpus.per_task:
            return gpus.text(gpus.per_task, "/task")
        return gpus.text(gpus.per_node) if gpus.per_node else self._gpus_of_job(gpus.of_job)

    def _gpus_of_job(self, number: int) -> str:
        if not number:
            return ""
        if not self.hosts and self.asked_tasks is None:
            self.hosts, self.span = 1, "span[hosts=1]"
        if self.hosts and number % self.hosts == 0:
            return self.gpus.text(number // self.hosts)
        if not self.hosts and self.tasks[0] == self.tasks[1] and number % self.tasks[0] == 0:
            return self.gpus.text(number // self.tasks[0], "/task")
        raise self._choices.wrong(
            f"--gpus {number}: the hosts cannot have equal parts of them; use --gpus-per-node or --gpus-per-task"
        )

    def _memory(self) -> None:
        choices, size = self._choices, "a size such as 4G"
        name = choices.which("mem", "mem-per-cpu", "mem-per-gpu")
        mib = choices.read(name, values.read_mib, size) if name else 0
        if not mib:
            self.takes_whole_hosts = name == "mem"
            return
        most = self.per_host or self.tasks[1]
        if name == "mem-per-cpu":
            self.sections.append(f"rusage[mem={mib * self.slots}MB/task]")
            self.memory_limit_mib = mib * self.slots * most
            return
        if name == "mem-per-gpu":
            mib *= self._gpus_on_host(most)
        self.sections.append(f"rusage[mem={mib}MB/host]")
        self.memory_limit_mib = mib

    def _gpus_on_host(self, tasks: int) -> int:
        if not self.gpu_text:
            raise self._choices.wrong("--mem-per-gpu: the job asks for no GPUs")
        number, _, per = self.gpu_text.partition(":")[0].removeprefix("num=").partition("/")
        return int(number) * (tasks if per == "task" else 1)
