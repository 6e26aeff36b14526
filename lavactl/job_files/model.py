"""A job as a job file describes it: bsub's options, the roles and the rules, whatever form the file has.

``options`` are those of bsub's command line, value by value, so that a file says nothing that bsub could not, and what
is typed beside the file overrides them one by one. Roles and rules are the messages that are sent.
"""

from dataclasses import dataclass, field

from lavactl.job_files.text.fields import Fields, Note
from lavactl.job_files.text.nodes import Place
from lavactl.wire import messages

UNLIMITED = 1_000_000  # restarts: the most that the master takes

EVENTS = {
    "any": messages.TASK_ANY,
    "failed": messages.TASK_FAILED,
    "evicted": messages.TASK_EVICTED,
    "pending": messages.TASK_PENDING,
    "succeeded": messages.TASK_SUCCEEDED,
    "role-completed": messages.ROLE_COMPLETED,
    "role-failed": messages.ROLE_FAILED,
    "host-lost": messages.HOST_LOST,
    "hangs": messages.TASK_HANGS,
    "timeout": messages.TASK_TIMEOUT,
}
ACTIONS = {
    "ignore": messages.IGNORE,
    "restart-task": messages.RESTART_TASK,
    "restart-group": messages.RESTART_GROUP,
    "restart-role": messages.RESTART_ROLE,
    "restart-job": messages.RESTART_JOB,
    "abort": messages.ABORT_JOB,
    "terminate": messages.TERMINATE_JOB,
    "complete": messages.COMPLETE_JOB,
    "resume": messages.RESUME_JOB,
}
# Events that a job can meet while it is being aborted, at which a policy can resume it; its tasks are ending anyway.
RESUMING = ("any", "host-lost", "timeout")
LAUNCHES = {
    "each": messages.LAUNCH_EACH,
    "first": messages.LAUNCH_FIRST,
    "host": messages.LAUNCH_HOST,
    "none": messages.LAUNCH_NONE,
}
RESTARTS = {
    "never": messages.RESTART_NEVER,
    "on-failure": messages.RESTART_ON_FAILURE,
    "always": messages.RESTART_ALWAYS,
}
# What a job says about hosts that may be taken away, as a requirement.
REVOCABLE = {
    "only": "select[revocable]",
    "never": "select[!revocable]",
    "allowed": "select[revocable || !revocable]",
}
SPREADS = ("pack", "spread", "rack")


@dataclass
class JobFile:
    """One job of a job file.

    Attributes:
        kind: the form that it was written in, in words.
        options: (option of bsub without its dash, value), in order; an option of its command line wins.
        environment: NAME=VALUE over the caller's environment.
        rules: present in a job of tasks, which has roles; any other job has a command alone.
        after: names of jobs of the same file that must be done before.
        lacks: what the file leaves open and submission needs: a role's command.
        places: where the file has an option: its place and the path of its field.
        arguments: roles whose command is only the arguments of an image's own; one that is given beside the file wins.
        own_queue: False if its queue is another system's word for a default.
        labels: words of the shell for what the origin's controller would write on the pods of a role: by the role's
            name those of labels and annotations by their keys, and of ``metadata.name``.
    """

    file: str
    place: Place
    kind: str
    options: list[tuple[str, str]] = field(default_factory=list)
    command: str = ""
    is_script: bool = False
    environment: list[str] = field(default_factory=list)
    roles: list[messages.Role] = field(default_factory=list)
    rules: messages.TaskRules | None = None
    after: list[str] = field(default_factory=list)
    run_limit_s: int = 0
    umask: int | None = None
    submit_cwd: str = ""
    own_queue: bool = True
    places: dict[str, tuple[Place, str]] = field(default_factory=dict)
    arguments: set[str] = field(default_factory=set)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    lacks: list[Note] = field(default_factory=list)

    def add(self, name: str, value: str, fields: Fields, key: str) -> None:
        """Add an option that a field of the file says."""
        self.options.append((name, value))
        self.places[name] = fields.place(key), fields.path_of(key)

    def option(self, name: str) -> str:
        """Value of an option; empty if it is not given."""
        return next((value for option, value in reversed(self.options) if option == name), "")

    @property
    def name(self) -> str:
        """Name of the job."""
        return self.option("J")

    @property
    def tasks_rules(self) -> messages.TaskRules:
        """Rules of a job of tasks."""
        if self.rules is None:
            self.rules = messages.TaskRules(format=1)
        return self.rules


def role(name: str, tasks_max: int, tasks_min: int | None = None) -> messages.Role:
    """A role each of whose tasks has a command; a minimum of 0 lets the job start without it."""
    least = tasks_max if tasks_min is None else tasks_min
    return messages.Role(
        name=name,
        tasks_min=least,
        tasks_max=tasks_max,
        may_be_absent=least == 0,
        slots_per_task=1,
        launch=messages.LAUNCH_EACH,
    )


def success_of(role: messages.Role) -> int:
    """Successes without which the job fails at its end, of a role that does not say: its completions, or all that it
    starts with."""
    if role.completions:
        return role.completions
    return role.tasks_min if role.launch == messages.LAUNCH_EACH and not role.may_be_absent else 0


def gpus_per_task(count: int) -> messages.GpuRequest:
    """Request of devices for each task."""
    return messages.GpuRequest(num=count, per_task=True, text=f"num={count}/task")
