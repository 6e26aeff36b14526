"""Keys of lava's own job file, as tables: the reader, the writer, the schema and the reference page follow them.

Every option of bsub has its key: the table of the job is made from bsub's grammar, and an option without a name of its
own here has bsub's. The keys beside them are those of jobs of tasks.
"""

from typing import NamedTuple

from lavactl.job_files.model import ACTIONS, EVENTS, LAUNCHES, RESTARTS, REVOCABLE, SPREADS
from lavactl.options import FLAG, VALUE
from lavactl.submit.submission import KINDS, NOT_IN_FILES


class Key(NamedTuple):
    """One key.

    Attributes:
        kind: text, flag, count, duration, texts, lines (a text or several), pairs, codes, or the name of another table.
        option: option of bsub that it stands for, without its dash.
    """

    name: str
    kind: str
    meaning: str
    option: str = ""
    words: tuple[str, ...] = ()


# The options of bsub that take no part in a file: they name the file itself.
NAMED = {
    "q": ("queue", "candidate queues, in order"),
    "n": ("slots", "least and most slots, such as 4 or 2,8; in jobs without roles"),
    "R": ("requirement", "resource requirement; several are and-ed"),
    "W": ("run-limit", "run limit in [hours:]minutes, or in seconds as 90s"),
    "We": ("runtime-estimate", "estimate of the run time in [hours:]minutes"),
    "M": ("memory-limit", "memory limit on each host"),
    "m": ("hosts", "hosts or host groups that may be used"),
    "J": ("name", "name; with an index list and a limit a job array: sweep[1-10]%2"),
    "Jd": ("description", "description"),
    "P": ("project", "project"),
    "G": ("user-group", "user group"),
    "app": ("application", "application profile"),
    "g": ("job-group", "job group, by its full path"),
    "sp": ("priority", "priority of the user's jobs among each other"),
    "U": ("reservation", "advance reservation"),
    "sla": ("service-class", "service class whose guarantee it uses"),
    "o": ("output", "file that output is appended to"),
    "oo": ("output-overwrite", "file that output replaces"),
    "e": ("error", "file that standard error is appended to"),
    "eo": ("error-overwrite", "file that standard error replaces"),
    "i": ("input", "file that standard input is read from"),
    "is": ("input-spooled", "file that standard input is read from, as it is at submission"),
    "cwd": ("directory", "working directory"),
    "outdir": ("output-directory", "directory that is made for the output files"),
    "env": ("inherit", "variables taken over from the caller: all, none, or a list as of -env"),
    "L": ("login-shell", "login shell that sets the environment up"),
    "gpu": ("gpu", "GPU request; in jobs without roles"),
    "nnodes": ("nodes", "number of whole hosts; in jobs without roles"),
    "x": ("exclusive", "no other jobs on its hosts"),
    "H": ("hold", "wait in PSUSP until bresume"),
    "K": ("wait", "bsub waits for the end of the job"),
    "r": ("rerunnable", "run again when its host is lost"),
    "rn": ("not-rerunnable", "never run again by itself"),
    "b": ("begin-time", "earliest start: [[[year:]month:]day:]hour:minute"),
    "t": ("end-time", "time at which it is ended: [[[year:]month:]day:]hour:minute"),
    "w": ("dependency", "dependency condition on other jobs"),
    "ti": ("terminate-orphan", "end it when its dependency can never be met"),
    "Q": ("requeue-exit-values", "exit codes after which it is requeued"),
    "E": ("pre-exec", "command that runs before it on its first host"),
    "Ep": ("post-exec", "command that runs after it"),
    "c": ("cpu-limit", "CPU time in [hours:]minutes"),
    "F": ("file-size-limit", "largest file in KiB, or with a unit"),
    "D": ("data-limit", "data segment of each process in KiB, or with a unit"),
    "S": ("stack-limit", "stack of each process in KiB, or with a unit"),
    "C": ("core-limit", "core file of each process in KiB, or with a unit"),
    "v": ("swap-limit", "memory and swap of all its processes on a host in KiB, or with a unit"),
    "p": ("process-limit", "processes on a host"),
    "T": ("thread-limit", "threads on a host"),
    "ul": ("user-limits", "limits of the caller's shell (ulimit) that it names no other for"),
    "f": ("copy", "files copied before or after it, as of bsub -f: `in.dat > in.dat`"),
    "k": ("checkpoint", "directory and periods of its checkpoints, as of bsub -k: `saved init=5 30 method=dmtcp`"),
    "hl": ("limits-by-host", "memory limits hold on each host, as they always do"),
    "ar": ("resizable", "may grow and shrink; in jobs without roles"),
    "hang": ("hang", "time without activity after which it hangs, such as 5m, or parts as of bsub -hang"),
    "rnc": ("resize-notify", "command that runs when it has grown or is about to shrink"),
    "wa": ("warning-action", "signal, command or CHKPNT by which it is warned before it is ended"),
    "wt": ("warning-time", "time between that warning and the end: [hours:]minutes, or seconds as 30s"),
    "mig": ("migration-threshold", "minutes that the system may suspend it, before it goes to another host"),
    "u": ("mail-to", "address for mail"),
    "N": ("mail-report", "report by mail"),
    "Ne": ("mail-error", "report by mail if it fails"),
    "B": ("mail-begin", "mail at its start"),
    "notify": ("mail-when", "events that mail is sent for: words of start, done, exit"),
}  # fmt: skip
# Ways in which tasks are told of each other; the agents' own list is compared with this one by a test.
CONVENTIONS = (
    "env", "svc", "dns", "ssh", "tensorflow", "tfjob", "pytorch", "pytorchjob", "torchelastic", "mpi", "mpijob",
    "horovod", "deepspeed", "mindspore", "ray", "rayjob", "pai", "slurm", "jobset", "leaderworkerset", "indexed",
    "trainjob", "jaxjob", "hcclrank", "code",
)  # fmt: skip
OF_ONE_ROLE = ("n", "R", "gpu", "nnodes", "hostfile", "ar", "rnc")  # a role says it in jobs of tasks
SEVERAL = ("R", "env", "f")  # may be given several times


def _key_of(option: str, kind: int | str) -> Key:
    name, meaning = NAMED.get(option, (option, f"as bsub -{option}"))
    return Key(name, "flag" if kind == FLAG else "lines" if option in SEVERAL else "text", meaning, option)


OPTION_KEYS = tuple(
    _key_of(option, kind)
    for option, kind in KINDS.items()
    if kind in (FLAG, VALUE) and option not in NOT_IN_FILES
)  # fmt: skip
JOB_KEYS = (
    Key("command", "lines", "command line of the job, or its words as a list; in jobs of tasks of roles without one"),
    Key("script", "text", "script of the job, in place of a command"),
    Key("environment", "pairs", "variables over those of the caller"),
    Key("umask", "text", "file mode creation mask, such as 0022; the caller's without it"),
    Key("submission-directory", "text", "directory that relative paths start from; the caller's without it"),
    Key("roles", "roles", "roles by their names: it is a job of tasks"),
    Key("revocable", "word", "on hosts that may be taken away; in jobs without roles", words=tuple(REVOCABLE)),
)
RULE_KEYS = (
    Key("policies", "policies", "lifecycle policies for tasks of all roles, after those of the role"),
    Key("restarts", "count", "restarts of the whole job"),
    Key("restart-when-failed", "flag", "a failed job is restarted, too"),
    Key("success-min", "count", "at the end the job failed if fewer tasks succeeded"),
    Key("succeeded-enough", "count", "the job is done as soon as this number of tasks succeeded"),
    Key(
        "needs-each",
        "flag",
        "the job is done when each role with `succeeded-enough` has reached it, not with the first of them",
    ),
    Key("final-codes", "codes", "exit codes of a task after which the job is never restarted"),
    Key("free-codes", "codes", "exit codes of a task after which the job is restarted without counting"),
    Key("replace-within", "duration", "wait for other hosts in place of lost ones, 5m without it; 0: requeue at once"),
    Key(
        "restart-pause",
        "duration",
        "pause before a failed task starts anew in place, doubled with each failure in a row; any end counts that"
        " a task is started anew after",
    ),
    Key("restart-pause-max", "duration", "longest such pause; 5m without it"),
    Key("stable-after", "duration", "run after which a failure is the first of a row again; 10m without it"),
    Key("ttl", "duration", "the ended job leaves the lists after this time"),
    Key("conventions", "conventions", "words in which tasks are told of each other, with options"),
    Key("told-name", "text", "name of the job as its tasks know it"),
    Key("origin", "text", "form of the file that it was first written in"),
    Key("secrets", "pairs", "variables that tasks get and that are never shown"),
    Key("autoscale", "autoscale", "the size of an elastic role follows a metric"),
)
ROLE_KEYS = (
    Key("tasks", "text", "number of tasks, or least and most: 4, 2-8; 0-3 may be absent at the start"),
    Key(
        "completions",
        "count",
        "its tasks in all: each runs to its end, as soon as one of the places that `tasks` names is free",
    ),
    Key("slots", "count", "slots of each task"),
    Key("spares", "count", "places for so many more tasks, which stay idle until a host is lost"),
    Key("requirement", "lines", "resource requirement; several are and-ed"),
    Key("gpu", "text", "GPU request as of bsub -gpu, such as num=2/task"),
    Key("memory-limit", "text", "memory limit of each task"),
    Key("command", "text", "line of the shell that each task runs"),
    Key("argv", "texts", "program and arguments, run without a shell"),
    Key(
        "launch", "word", "where the command runs: in each task, the first, once a host, or none", words=tuple(LAUNCHES)
    ),
    Key("image", "text", "container image or root directory"),
    Key("directory", "text", "working directory"),
    Key("environment", "pairs", "variables over those of the job"),
    Key("ports", "ports", "ports of each task by name: how many, or count and number"),
    Key("after", "texts", "roles that must be ready before its tasks start"),
    Key("after-any", "flag", "one of them is enough"),
    Key("after-done", "texts", "roles all of whose tasks must have succeeded before its tasks start"),
    Key("policies", "policies", "lifecycle policies for its tasks"),
    Key("restart", "word", "restart of its tasks in place", words=tuple(RESTARTS)),
    Key("restarts", "count", "restarts in place of all its tasks together, or of those of a group"),
    Key("group", "count", "its tasks 0 to this number less 1 are a group, and so on: `restart-group`"),
    Key("restart-pause", "duration", "as of the job, for tasks of this role"),
    Key("restart-pause-max", "duration", "as of the job"),
    Key("stable-after", "duration", "as of the job"),
    Key(
        "success-min",
        "count",
        "at the end the job failed if fewer of its tasks succeeded; else its completions, or all it starts with",
    ),
    Key("failed-enough", "count", "the job fails as soon as this number of its tasks failed"),
    Key("succeeded-enough", "count", "the job is done as soon as this number of its tasks succeeded"),
    Key("run-limit", "duration", "run limit of each task"),
    Key("spread", "word", "placement of its tasks", words=SPREADS),
    Key("revocable", "word", "on hosts that may be taken away", words=tuple(REVOCABLE)),
)
POLICY_KEYS = (
    Key("on", "words", "event, or several", words=tuple(EVENTS)),
    Key("exit-codes", "codes", "exit codes of a task"),
    Key(
        "do",
        "word",
        "action; `resume` of a job that is being aborted, at host-lost, timeout or any",
        words=tuple(ACTIONS),
    ),
    Key("after", "duration", "time that the action waits for; it is dropped if the task runs again before"),
    Key("task", "count", "this task of the role only"),
    Key("uncounted", "flag", "its restarts do not count"),
)
PORT_KEYS = (
    Key("count", "count", "how many"),
    Key("number", "count", "first port, which the program names itself: a host has it once; any without it"),
    Key("preferred", "flag", "the number is only a wish: another one will do where it is taken"),
    Key("own", "flag", "of the task's own address, as a `containerPort` is; else of the host's, as a `hostPort`"),
)
METRICS = ("script", "pending-slots")
AUTOSCALE_KEYS = (
    Key("metric", "word", "what a script prints, or the slots that pending jobs of the queue ask for", words=METRICS),
    Key("command", "text", "of a script: prints the wanted number of tasks; runs on the first host as the job's user"),
    Key("role", "text", "the role; may be left out where only one has a range of tasks"),
    Key("min", "count", "least size; else the role's"),
    Key("max", "count", "largest size; else the role's"),
    Key("cooldown", "duration", "time between two changes, 60 s"),
    Key("interval", "duration", "time between two runs of the script, 15 s"),
    Key("limit", "duration", "time after which a run of the script is killed, 10 s"),
    Key("target", "count", "pending slots for each task, 1"),
)
TABLES = {
    "job": (*JOB_KEYS, *OPTION_KEYS, *RULE_KEYS),
    "roles": ROLE_KEYS,
    "policies": POLICY_KEYS,
    "ports": PORT_KEYS,
    "autoscale": AUTOSCALE_KEYS,
}
BY_OPTION = {key.option: key for key in OPTION_KEYS}
