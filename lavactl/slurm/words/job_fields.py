"""Fields of squeue: name, title, letter of -o, width of -O, and reader of each."""

import math
import re
from typing import NamedTuple

from lavactl.slurm.words import values
from lavactl.slurm.words.jobs import NONE, NOT_SET, JobView, group_of, limit_text, time_or_na, user_id
from lavactl.text.render import clean, clean_script
from protos.slurm_words import compressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 20  # of a field of -O without a width


class Field(NamedTuple):
    """One field. ``light``: it needs no details of the job. ``size``: number that it is sorted by."""

    title: str
    letter: str
    read: "Callable[[JobView], str]"
    light: bool = False
    size: "Callable[[JobView], float] | None" = None


def _limit_s(view: JobView) -> float:
    return view.limit_s or math.inf


def _left_s(view: JobView) -> float:
    return max(0.0, _limit_s(view) - view.elapsed_s)


def _left(view: JobView) -> str:
    return values.time_text(_left_s(view)) if view.limit_s else "UNLIMITED"


def _start_time(view: JobView) -> float:
    return view.job.start_time or view.job.estimated_start


def _end_time(view: JobView) -> float:
    return view.end_time


def _submit_time(view: JobView) -> float:
    return view.job.submit_time


def _late(read: "Callable[[JobView], float]") -> "Callable[[JobView], float]":
    """Time of a field for sorting: one that is not known is behind all others."""
    return lambda view: read(view) or math.inf


def _elapsed_s(view: JobView) -> float:
    return view.elapsed_s


def _gres(view: JobView) -> str:
    return f"gres/gpu:{view.gpus // max(view.nodes, 1) or view.gpus}" if view.gpus else NOT_SET


FIELDS = {
    "jobarrayid": Field("JOBID", "i", lambda view: view.id, True),
    "jobid": Field("JOBID", "A", lambda view: str(view.job.job), True),
    "arrayjobid": Field("ARRAY_JOB_ID", "F", lambda view: str(view.job.job), True),
    "arraytaskid": Field("ARRAY_TASK_ID", "K", lambda view: view.elements, True),
    "name": Field("NAME", "j", lambda view: view.name, True),
    "username": Field("USER", "u", lambda view: view.job.user, True),
    "userid": Field("UID", "U", lambda view: user_id(view.job.user), True),
    "account": Field("ACCOUNT", "a", lambda view: view.job.project or "default", True),
    "partition": Field("PARTITION", "P", lambda view: view.job.queue, True),
    "statecompact": Field("ST", "t", lambda view: view.state.letters, True),
    "state": Field("STATE", "T", lambda view: view.state.word, True),
    "timeused": Field("TIME", "M", lambda view: values.time_text(view.elapsed_s), True, _elapsed_s),
    "timelimit": Field("TIME_LIMIT", "l", lambda view: limit_text(view.limit_s), False, _limit_s),
    "timeleft": Field("TIME_LEFT", "L", _left, False, _left_s),
    "submittime": Field("SUBMIT_TIME", "V", lambda view: time_or_na(_submit_time(view)), True, _submit_time),
    "starttime": Field("START_TIME", "S", lambda view: time_or_na(_start_time(view)), True, _late(_start_time)),
    "endtime": Field("END_TIME", "e", lambda view: time_or_na(_end_time(view)), False, _late(_end_time)),
    "numnodes": Field("NODES", "D", lambda view: str(view.nodes)),
    "numcpus": Field("CPUS", "C", lambda view: str(view.cpus), True),
    "numtasks": Field("TASKS", "", lambda view: str(view.tasks)),
    "mincpus": Field("MIN_CPUS", "c", lambda view: str(view.cpus_per_task)),
    "minmemory": Field("MIN_MEMORY", "m", lambda view: f"{view.memory_mib}M"),
    "nodelist": Field("NODELIST", "N", lambda view: compressed(view.hosts), True),
    "batchhost": Field("EXEC_HOST", "B", lambda view: view.hosts[0] if view.hosts else NOT_SET, True),
    "reason": Field("REASON", "r", lambda view: view.reason),
    "reasonlist": Field("NODELIST(REASON)", "R", lambda view: view.reason_or_hosts),
    "priority": Field("PRIORITY", "p", lambda view: f"{view.job.priority / 2**32:.14f}", True),
    "prioritylong": Field("PRIORITY", "Q", lambda view: str(view.job.priority), True),
    "dependency": Field("DEPENDENCY", "E", lambda view: clean(view.job.spec.dependency) or NONE),
    "command": Field("COMMAND", "o", lambda view: clean_script(view.job.spec.command)),
    "comment": Field("COMMENT", "k", lambda view: clean(view.job.spec.description) or NONE),
    "workdir": Field("WORK_DIR", "Z", lambda view: clean(view.job.spec.cwd)),
    "feature": Field("FEATURES", "f", lambda view: NONE),
    "reservation": Field("RESERVATION", "v", lambda view: view.job.spec.reservation or NONE),
    "reqnodes": Field("REQ_NODES", "n", lambda view: ",".join(view.hosts_asked)),
    "exc_nodes": Field("EXC_NODES", "x", lambda view: ",".join(view.hosts_excluded)),
    "schednodes": Field("SCHEDNODES", "Y", lambda view: NONE),
    "groupname": Field("GROUP", "g", lambda view: group_of(view.job.user)[0], True),
    "groupid": Field("GROUP", "G", lambda view: group_of(view.job.user)[1], True),
    "licenses": Field("LICENSES", "W", lambda view: ",".join(view.licences) or NONE),
    "mintmpdisk": Field("MIN_TMP_DISK", "d", lambda view: str(view.tmp_mib)),
    "wckey": Field("WCKEY", "w", lambda view: NONE, True),
    "nice": Field("NICE", "y", lambda view: "0", True),
    "contiguous": Field("CONTIGUOUS", "O", lambda view: "0", True),
    "corespec": Field("CORE_SPEC", "X", lambda view: NOT_SET, True),
    "sockets": Field("SOCKETS_PER_NODE", "H", lambda view: "*", True),
    "cores": Field("CORES_PER_SOCKET", "I", lambda view: "*", True),
    "threads": Field("THREADS_PER_CORE", "J", lambda view: "*", True),
    "sct": Field("S:C:T", "z", lambda view: "*:*:*", True),
    "selectjobinfo": Field("SELECT_JOBINFO", "s", lambda view: NONE, True),
    "oversubscribe": Field("OVER_SUBSCRIBE", "h", lambda view: "NO" if view.job.spec.exclusive else "OK"),
    "tres-per-node": Field("TRES_PER_NODE", "b", _gres),
    "tres-alloc": Field("TRES_ALLOC", "", lambda view: view.resources),
    "qos": Field("QOS", "q", lambda view: "normal", True),
    "restartcnt": Field("RESTART_COUNT", "", lambda view: str(max(0, view.job.attempt - 1)), True),
    "exit_code": Field("EXIT_CODE", "", lambda view: view.exit_code, True),
    "stdout": Field("STDOUT", "", lambda view: view.file(view.job.spec.output)),
    "stderr": Field("STDERR", "", lambda view: view.file(view.job.spec.error, view.job.spec.output)),
    "stdin": Field("STDIN", "", lambda view: view.file(view.job.spec.input, "/dev/null")),
}
ALIASES = {
    "user": "username", "jobname": "name", "nodes": "numnodes", "cpus": "numcpus", "st": "statecompact",
    "gres": "tres-per-node",     "exitcode": "exit_code", "nodelist(reason)": "reasonlist", "tasks": "numtasks",
}  # fmt: skip
LETTERS = {field.letter: name for name, field in FIELDS.items() if field.letter}
TITLES = {name: field.title for name, field in FIELDS.items()}
BY_NAME = TITLES | {alias: TITLES[name] for alias, name in ALIASES.items()}


def reader(name: str) -> "Callable[[JobView], str]":
    """Reader of a field by its name or another name of it."""
    return FIELDS[ALIASES.get(name, name)].read


def sort_key(letter: str) -> "Callable[[JobView], list[tuple[int, float, str]]]":
    """Key by which the field of a letter is sorted: its number, or its text with the numbers in it by their size."""
    field = FIELDS[LETTERS[letter]]
    if (size := field.size) is not None:
        return lambda view: [(0, size(view), "")]
    return lambda view: _parts(field.read(view))


def _parts(value: str) -> list[tuple[int, float, str]]:
    found = re.findall(r"([0-9]{1,300}(?:\.[0-9]{1,99})?)|([^0-9]+)", value)
    return [(1, 0.0, text) if text else (0, float(number), "") for number, text in found]


def needs_details(names: set[str]) -> bool:
    """True if one of these fields needs the details of a job."""
    return not all(FIELDS[ALIASES.get(name, name)].light for name in names)
