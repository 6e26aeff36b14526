"""esub and epsub programs of the site: run before and after a submission, with the rights of who submits.

Invariants: only the master's lsf.conf names their directory (LSF_SERVERDIR); a user's environment and files have no say
in it. The programs run in the full command, never in the process that serves commands. First ``esub``, then those of
LSB_ESUB_METHOD (the master's, then the caller's own), then those of -a; each one sees what those before it changed.
"""

import re
from typing import NamedTuple

from lavactl.errors import CommandError
from lavactl.files import NOTHING, PROGRAM, read_whole
from lavactl.options import Options, printable
from lavactl.submit import esub_parameters as told
from lavactl.submit import job_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.submit.submission import Choices

ABORT = 97  # exit code by which an esub refuses the job
METHOD, DIRECTORY = "LSB_ESUB_METHOD", "LSF_SERVERDIR"
ABORTED = "Request aborted by esub"
OUTPUT_MAX = 1 << 20  # bytes for eexec
_NAMED = re.compile(r"[\s,]*([A-Za-z0-9_.-]+)(?:\(([^()]*)\))?")


class Named(NamedTuple):
    """One of the site's programs by its name, ``esub.NAME``; empty for ``esub`` itself."""

    name: str
    arguments: tuple[str, ...] = ()


class Programs(NamedTuple):
    """The programs of one submission, in their order."""

    directory: str
    named: tuple[Named, ...]
    has_plain: bool  # a program named esub without a suffix
    has_plain_after: bool  # epsub

    def path(self, kind: str, name: str) -> str:
        """Path of a program."""
        return f"{self.directory}/{kind}.{name}" if name else f"{self.directory}/{kind}"


class Outcome:
    """Submission as the programs have changed it.

    Attributes:
        environment: variables that they changed.
        output: what they printed, for eexec.
        parameters: the submission's, as epsub is told them.
    """

    def __init__(self, programs: Programs, choices: "Choices", command: str) -> None:
        self.programs = programs
        self.choices = choices
        self.command = command
        self.environment: dict[str, str] = {}
        self.output = b""
        self.parameters: dict[str, str] = {}


def programs_for(names: str | None, io: "Io") -> Programs | None:
    """Programs that the site, the environment and -a ask for; None if there is none.

    Raises:
        CommandError: a named one is missing, or a name is malformed.
    """
    directory = io.site_setting(DIRECTORY) or ""
    site, own = io.site_setting(METHOD) or "", io.environ.get(METHOD, "")
    wanted = dict.fromkeys([*read_names(site), *read_names(own), *read_names(names or "")])
    if not directory:
        if wanted:
            name = next(iter(wanted)).name
            raise CommandError(f"{ABORTED}: esub.{name} is asked for, but the cluster's lsf.conf has no {DIRECTORY}.")
        return None
    found = Programs(
        directory,
        tuple(wanted),
        is_program(f"{directory}/esub", io),
        is_program(f"{directory}/epsub", io),
    )
    for name in (one.name for one in wanted):
        if not any([is_program(found.path(kind, name), io) for kind in ("esub", "epsub")]):
            raise CommandError(f"{ABORTED}: there is neither esub.{name} nor epsub.{name} in {directory}.")
    return found if found.named or found.has_plain or found.has_plain_after else None


def is_program(path: str, io: "Io", aborted: str = ABORTED) -> bool:
    """True for a program, False where there is nothing. ``aborted``: beginning of the sentence of a refusal.

    Raises:
        CommandError: the file cannot be executed by its user: what the site wants to see is not left out.
    """
    kind = io.kind_of(path)
    if kind not in (PROGRAM, NOTHING):
        raise CommandError(f"{aborted}: {path} is no program that you may execute.")
    return kind == PROGRAM


def read_names(text: str) -> list[Named]:
    """Names with their arguments: ``fluent openmpi(a,b)``."""
    found, place = [], 0
    text = text.strip().strip("\"'").strip()
    while place < len(text):
        match = _NAMED.match(text, place)
        if match is None:
            raise CommandError(f'-a {printable(text)}: expected "name[(argument,...)] ...".')
        arguments = [word.strip().strip("\"'") for word in (match[2] or "").split(",")]
        found.append(Named(match[1], tuple(arguments) if match[2] else ()))
        place = match.end()
    return found


def before(choices: "Choices", command: str, io: "Io") -> Outcome | None:
    """Run the esub programs of a submission; None where the site has none.

    Raises:
        CommandError: one of them refuses the job, fails, or wants what cannot be.
    """
    programs = programs_for(choices.value("a"), io)
    if programs is None:
        return None
    io.stay()
    outcome = Outcome(programs, choices, command)
    for one in esubs(programs, io):
        unit = job_options.unit_of(io)
        outcome.parameters = told.parameters(outcome.choices, outcome.command, io.now(), unit)
        changes = _run(programs, one, outcome, {"LSF_INVOKE_CMD": "bsub"}, io)
        replaced, added = told.as_options(changes, outcome.choices, _title(one))
        outcome.choices = outcome.choices.changed(replaced, added)
        outcome.command = changes.get(told.COMMAND, outcome.command)
    unit = job_options.unit_of(io)
    outcome.parameters = told.parameters(outcome.choices, outcome.command, io.now(), unit)
    return outcome


def before_change(options: Options, io: "Io") -> Options:
    """Run the esub programs of a bmod; its options as they have changed them."""
    from lavactl.submit.submission import Choices

    programs = programs_for(options.last("a"), io)
    plain = Options()
    plain.words = options.words
    plain.items = [(name, value) for name, value in options.items if name != "a"]
    if programs is None:
        return plain
    io.stay()
    outcome = Outcome(programs, Choices(plain, Options()), options.last("Z") or "")
    for one in esubs(programs, io):
        outcome.parameters = told.of_change(plain, io.now(), job_options.unit_of(io))
        changes = _run(programs, one, outcome, {"LSF_INVOKE_CMD": "bmod", "LSB_SUB_MODIFY": "Y"}, io)
        plain = _changed(plain, changes, one)
    return plain


def _changed(options: Options, changes: dict[str, str], one: Named) -> Options:
    """Options of bmod with the changes of one program; what it resets gets its n."""
    from lavactl.submit.submission import Choices

    replaced, added = told.as_options(changes, Choices(options, Options()), _title(one))
    made = Options()
    made.words = options.words
    gone = {form for option in replaced for form in (option, f"{option}n")}
    made.items = [(name, value) for name, value in options.items if name not in gone] + added
    for name, value in changes.items():
        if value == told.RESET and name in told.PARAMETERS:
            made.items.append((f"{told.PARAMETERS[name].options[0]}n", ""))
    if told.COMMAND in changes:
        made.items.append(("Z", changes[told.COMMAND]))
    return made


def esubs(programs: Programs, io: "Io") -> list[Named]:
    """The programs that run before the submission; a name may have one for after it alone."""
    plain = [Named("")] if programs.has_plain else []
    return [*plain, *(one for one in programs.named if is_program(programs.path("esub", one.name), io))]


def after(outcome: Outcome, job: int, queue: str, code: int, io: "Io") -> None:
    """Run the epsub programs of a submission; ``job`` is 0 and ``code`` 255 if it was refused.

    A failure of one is told and changes nothing: the job is submitted.
    """
    programs = outcome.programs
    plain = [Named("")] if programs.has_plain_after else []
    named = [one for one in programs.named if is_program(programs.path("epsub", one.name), io)]
    extra = {
        "LSF_INVOKE_CMD": "bsub",
        "LSB_SUB_JOB_ID": str(job),
        "LSB_SUB_JOB_QUEUE": queue,
        "LSB_SUB_JOB_ERR": str(code),
    }
    for one in [*plain, *named]:
        try:
            _execute(programs.path("epsub", one.name), one, outcome, extra, io, False)
        except CommandError as error:
            io.error(str(error))


def _title(one: Named, kind: str = "esub") -> str:
    return f"{kind}.{one.name}" if one.name else kind


def _run(programs: Programs, one: Named, outcome: Outcome, extra: dict[str, str], io: "Io") -> dict[str, str]:
    """Run an esub and return the parameters that it changes; variables and output are added to the outcome."""
    changes, variables, output = _execute(programs.path("esub", one.name), one, outcome, extra, io, True)
    if len(outcome.output) + len(output) > OUTPUT_MAX:
        raise CommandError(f"{_title(one)} printed more than {OUTPUT_MAX >> 20} MiB for eexec.")
    outcome.output += output
    outcome.environment |= told.assignments(variables, _title(one))
    return told.assignments(changes, _title(one))


def _execute(
    path: str, one: Named, outcome: Outcome, extra: dict[str, str], io: "Io", is_before: bool
) -> tuple[str, str, bytes]:
    """Run a program in a directory of its own; (changed parameters, changed variables, what it printed).

    Raises:
        CommandError: it refuses the job, or cannot be run, or a signal ended it.
    """
    import subprocess
    import tempfile

    io.flush()
    with tempfile.TemporaryDirectory(prefix="lava-esub-") as place:
        files = {name: f"{place}/{name}" for name in ("PARM_FILE", "MODIFY_FILE", "MODIFY_ENVFILE")}
        for name, file in files.items():
            with open(file, "wb") as stream:
                stream.write(_bytes(told.written(outcome.parameters)) if name == "PARM_FILE" else b"")
        variables = {**io.environ, **outcome.environment, **extra, "LSB_SUB_ABORT_VALUE": str(ABORT)}
        variables |= {f"LSB_SUB_{name}": file for name, file in files.items() if is_before or name == "PARM_FILE"}
        try:
            done = subprocess.run(
                [path, *one.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if is_before else None,
                env=variables,
                cwd=io.cwd,
                check=False,
            )
        except OSError as error:
            raise CommandError(f"{path} cannot be run: {error.strerror}.") from None
        _judge(done.returncode, one, is_before, io)
        changed = [_text(files[name]) for name in ("MODIFY_FILE", "MODIFY_ENVFILE")]
    return changed[0], changed[1], done.stdout or b""


def _judge(code: int, one: Named, is_before: bool, io: "Io") -> None:
    title = _title(one, "esub" if is_before else "epsub")
    if is_before and code == ABORT:
        raise CommandError(f"{ABORTED}.")
    if code < 0:
        raise CommandError(f"{title} was ended by signal {-code}.")
    if code and "BSUB_QUIET" not in io.environ:
        refusal = f"; only {ABORT} ($LSB_SUB_ABORT_VALUE) refuses the job" if is_before else ""
        io.error(f"{title} ended with exit code {code}{refusal}.")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(path: str) -> str:
    """Content of a file that a program may have removed."""
    return (read_whole(path) or b"").decode("utf-8", "surrogateescape")
