"""blaunch: run a command on hosts of the surrounding job, as rsh would, without rsh.

MPI launchers call it as their remote shell. Invariants: the words of the command are joined with blanks and read by a
shell on the remote host, as rsh does; options of rsh and ssh without a meaning here are skipped; the exit code is the
command's own, with several tasks that of the first that failed.
"""

import os

from lavactl.errors import CommandError, UsageError
from lavactl.io import encode
from lavactl.options import FLAG, VALUE, Grammar, Ignored, answer_standard, printable
from lavactl.tasks.surrounding_job import job_around
from lavactl.tasks.task import Task
from lavactl.tasks.tasks import Tasks, carried_environment, connect, places_of
from lavactl.wire.connection import LostError
from lavactl.wire.messages import TaskStart
from protos import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.tasks.surrounding_job import JobKey

USAGE = """\
Usage: blaunch [-n] [-u host_file | -z "host ..." | host] [-use-login-shell | -no-shell] command [argument ...]
       blaunch -h | -V
Runs the command on the named hosts of this job; without a host, once for each slot.
"""

# Options of rsh and ssh that take a value, and those that take none: all are skipped.
_VALUE_LETTERS = "bcDEeFIiJLlmOopQRSWw"
_FLAG_LETTERS = "146AaCfGgKkMNqsTtvXxYy"
_OF_SSH = "an option of rsh and ssh, which launchers add."
GRAMMAR = Grammar(
    "blaunch",
    USAGE,
    {
        **dict.fromkeys(("n", "use-login-shell", "no-shell"), FLAG),
        **dict.fromkeys(("u", "z"), VALUE),
        **dict.fromkeys(_FLAG_LETTERS, Ignored(FLAG, _OF_SSH)),
        **dict.fromkeys(_VALUE_LETTERS, Ignored(VALUE, _OF_SSH)),
    },
    words_end=True,
)


class Request:
    """The parsed command line."""

    def __init__(self) -> None:
        self.no_input = False
        self.login_shell = False
        self.no_shell = False
        self.hosts: list[str] | None = None  # from -z or -u
        self.words: list[str] = []


def main(argv: "list[str]", io: "Io") -> int:
    """Run blaunch; its exit code."""
    answer = answer_standard(argv, USAGE)
    if answer is not None:
        io.print(answer)
        return 0
    request = parse(argv, io)
    job = job_around(io, "blaunch")
    hosts = choose_hosts(request, job, io)
    if not request.words:
        raise UsageError("blaunch: no command is specified.", USAGE)
    return launch(request, job, hosts, io)


def parse(argv: list[str], io: "Io") -> Request:
    """Parse the command line; options end at the first other word, but rsh's may follow the host as well.

    Raises:
        UsageError: an unknown option, or one that lacks its value.
    """
    request = Request()
    rest = list(argv)
    _take_options(request, rest, io)
    request.words = rest
    return request


def _take_options(request: Request, rest: list[str], io: "Io") -> None:
    while rest and len(rest[0]) > 1 and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            return
        match word:
            case "-n":
                request.no_input = True
            case "-use-login-shell":
                request.login_shell = True
            case "-no-shell":
                request.no_shell = True
            case "-z":
                request.hosts = _value(word, rest).split()
            case "-u":
                request.hosts = read_host_file(_value(word, rest), io)
            case _:
                _read_over(word, rest)


def _read_over(word: str, rest: list[str]) -> None:
    """Skip an option of rsh or ssh: flags may be bundled, a value may be glued to its letter."""
    for place, letter in enumerate(word[1:], 1):
        if letter in _VALUE_LETTERS:
            if place == len(word) - 1:
                _value(f"-{letter}", rest)
            return
        if letter not in _FLAG_LETTERS and letter != "n":
            raise GRAMMAR.wrong(f"illegal option -- {word[1:]}")


def _value(option: str, rest: list[str]) -> str:
    if not rest:
        raise GRAMMAR.wrong(f"option requires an argument -- {option[1:]}")
    return rest.pop(0)


def read_host_file(name: str, io: "Io") -> list[str]:
    """Host names of a file, one in a line; text after # is a comment.

    Raises:
        CommandError: the file cannot be read.
    """
    try:
        with open(io.path(name), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise CommandError(f"blaunch: {printable(name)}: {error.strerror}.") from None
    return [words[0] for line in lines if (words := line.partition("#")[0].split())]


def choose_hosts(request: Request, job: "JobKey", io: "Io") -> list[str]:
    """Host of each task; a host named as the first word is removed from the command.

    Raises:
        CommandError: a host is not of this job.
    """
    if request.hosts is not None:
        if not request.hosts:
            raise CommandError("blaunch: no host is specified.")
        return [_of_the_job(name, job) for name in request.hosts]
    if request.words and (host := match_host(request.words[0], job)) is not None:
        del request.words[0]
        _take_options(request, request.words, io)
        return [host]
    if len(request.words) > 1 and _only_names_a_host(request.words[0], io.environ.get("PATH", "")):
        _of_the_job(request.words[0], job)
    return job.slots


def match_host(name: str, job: "JobKey") -> str | None:
    """The job's host of this name, with or without its domain."""
    host, wanted = names.host_meant(name, job.hosts), name.lower().rstrip(".")
    return host if host is not None and (host.lower() == wanted or _is_name(wanted)) else None


def _of_the_job(name: str, job: "JobKey") -> str:
    host = match_host(name, job)
    if host is None:
        raise CommandError(f"blaunch: host <{printable(name)}> is not in the allocation of job <{job.job}>.")
    return host


def _is_name(word: str) -> bool:
    return bool(word) and all(part.replace("-", "").replace("_", "").isalnum() for part in word.split("."))


def _only_names_a_host(word: str, path: str) -> bool:
    """True if the first of several words looks like a host name and is no program on PATH."""
    return _is_name(word) and not any(os.access(f"{directory}/{word}", os.X_OK) for directory in path.split(":"))


def launch(request: Request, job: "JobKey", hosts: list[str], io: "Io") -> int:
    """Start the tasks, pass on their output, wait for their end; the exit code."""
    with_input = 0 if not request.no_input else -1
    tasks = Tasks(io, connect(io, "blaunch"), job, by_line=len(hosts) > 1)
    failed: list[Task] = []

    def ended(task: Task) -> None:
        if task.error:
            tasks.note(f"blaunch: {task.host}: {task.error}")
        if task.code:
            failed.append(task)

    tasks.on_end = ended
    environment = carried_environment(io)
    try:
        for number, (host, place) in enumerate(zip(hosts, places_of(hosts), strict=True)):
            start = task_start(request, number, len(hosts) > 1, io, environment)
            start.place, start.places = place
            task = tasks.start(host, start)
            if number == with_input:
                tasks.feed(task)
        left = tasks.run()
    except LostError as error:
        raise CommandError(f"blaunch: the agent of this host has gone, the tasks are killed: {error}.") from None
    if left:
        return 128 + left
    return failed[0].code if failed else 0


def task_start(request: Request, number: int, several: bool, io: "Io", environment: list[bytes]) -> TaskStart:
    """Description of one task. The first reads standard input, the others read none."""
    start = TaskStart(cwd=encode(io.cwd), task=number + 1 if several else 0)
    start.umask_plus_one = io.umask + 1
    start.no_input = request.no_input or number > 0
    start.environment.extend(environment)
    start.environment.append(b"LSF_PM_TASKID=%d" % (number + 1))
    if request.no_shell:
        start.argv.extend(map(encode, request.words))
    elif request.login_shell:
        start.argv.extend(map(encode, [io.environ.get("SHELL", "/bin/sh"), "-l", "-c", " ".join(request.words)]))
    elif has_functions(environment):
        start.argv.extend([b"/bin/bash", b"-c", encode(" ".join(request.words))])
    else:
        start.command = encode(" ".join(request.words))
    return start


def has_functions(environment: list[bytes]) -> bool:
    """True if bash functions are exported (`module`, conda's), which another shell removes from the environment."""
    return os.path.exists("/bin/bash") and any(entry.startswith(b"BASH_FUNC_") for entry in environment)
