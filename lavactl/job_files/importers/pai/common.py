"""Parts that both of OpenPAI's formats share: resources, retries by exit code, what tasks are told."""

from lavactl.job_files.model import JobFile, gpus_per_task
from lavactl.job_files.text.fields import Fields
from lavactl.wire import messages

# Exit codes as OpenPAI classes them: after some a job is always run again and not counted, after others never.
FREE_CODES = (130, 131, 137, 143, 223, 250, 251, 253)
FINAL_CODES = (
    132, 135, 136, 141, 220, 221, 222, 224, 225, 226, *range(228, 236), 249, 252, 254,
)  # fmt: skip
# Every role has these, whether it asks for them or not.
PORTS = ("http", "ssh")


def start(fields: Fields, kind: str, origin: str, name: str, user: str, cluster: Fields) -> JobFile:
    """A job of tasks with its name, and its queue: the virtual cluster that ``cluster`` names, if it names one."""
    job = JobFile(fields.reading.file, fields.place(), kind, own_queue=False)
    job.options.append(("J", name))
    if queue := cluster.text("virtualCluster"):
        job.add("q", queue, cluster, "virtualCluster")
    rules = job.tasks_rules
    rules.origin = origin
    rules.owner_name = f"{user}~{name}" if user else name
    return job


def fill_resources(role: messages.Role, slots: int, memory_mib: int, gpus: int) -> None:
    """Fill in what each task of a role gets."""
    role.slots_per_task = slots
    role.requirement = f"rusage[mem={memory_mib}MB/task]"
    role.memory_limit_mib = memory_mib
    if gpus:
        role.gpu.CopyFrom(gpus_per_task(gpus))


def add_ports(role: messages.Role) -> None:
    """Add the ports that every role has."""
    for name in PORTS:
        if all(port.name != name for port in role.ports):
            role.ports.add(name=name, count=1)


def pause(given: "messages.Role | messages.TaskRules") -> None:
    """Let restarts wait: a pod that is made anew takes its time there, a process here would take none."""
    given.restart_pause_s, given.restart_pause_max_s, given.stable_s = 10.0, 300.0, 600.0


def resources_told(role: messages.Role, shm_mib: int) -> list[str]:
    """Options of the convention: resources and counts of a role as its tasks are told of them."""
    amounts = {
        "cpu": role.slots_per_task,
        "mem": role.memory_limit_mib,
        "gpu": role.gpu.num,
        "shm": shm_mib,
    }
    return [f"{role.name}.{key}={amount}" for key, amount in amounts.items()]


def read_retries(job: JobFile, retries: int) -> None:
    """Read how often a failed job is run again; negative numbers are without end."""
    rules = job.tasks_rules
    rules.restarts_when_failed = True
    rules.restarts_max = retries if retries >= 0 else 1_000_000
    pause(rules)
    if retries != -2:
        rules.free_codes.extend(FREE_CODES)
        rules.final_codes.extend(FINAL_CODES)
