"""Conversion of bsub's command line and job script to the job that is submitted.

Invariants: every option of LSF's bsub is either honoured or refused by name; the command line overrides ``#BSUB``
lines, option by option (``-o`` and ``-oo`` count as one), and the last of several wins, except that several -R are
and-ed; a relative path starts at the job's directory, a relative -cwd at the caller's.
"""

import os

from lavactl.errors import CommandError
from lavactl.files import DIRECTORY, FILE, PROGRAM
from lavactl.options import FLAG, VALUE, Grammar, Options, printable
from lavactl.submit import job_options, spooling
from lavactl.submit.hang_rule import hang_rule
from lavactl.submit.scripts import ORDER_MARK, SCRIPT_MAX, decode_script, made_ready, put_command
from lavactl.submit.words import WORD, directive_words, shell_line
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from lavactl.io import Io
    from lavactl.submit import esub
    from lavactl.submit.jsdl import options as jsdl

USAGE = """\
Usage: bsub [options] command [arguments]
       bsub [options] < script
       bsub [options] script
       bsub -yaml file | -json file [options]   (jobs of a job file; options given beside it win)
       bsub -jsdl file | -jsdl_strict file [options] [command]   (a job description in XML; what is typed wins)
       bsub -pack file   (each line has the options and the command of a job)
  -q "queue ..."  -n min[,max]  -R "requirement" (repeatable)  -W [h:]m  -We [h:]m  -M memory  -m "host ..."
  -J name | -J "name[1-10:2,15]%limit"  -Jd text  -P project  -G group  -sp priority  -U reservation
  -o file | -oo file  -e file | -eo file  -i file | -is file  -cwd dir  -outdir dir  -env "all | none | list"
  -L shell  -Zs  -gpu "num=N:..."  -nnodes N  -x  -H  -K  -r | -rn  -b date  -t date  -w "dependency"  -ti
  -I | -Ip | -Is (with S, as in -ISs: the same)  -tty
  -E "command before the job"  -Ep "command after it"
  -hl  -Q "exit codes"  -c [h:]m  -F kib  -D kib  -S kib  -C kib  -v kib  -p processes  -T threads  -ul
  -ar  -rnc command  -f "file op [file]" (repeatable)  -h  -V
  -a "esub[(argument,...)] ..."
"""

NOT_YET = "not supported yet."
NO_MAIL = "has no effect: the cluster's lsf.conf names no LSB_MAILPROG, so no mail is sent."
# Streams of an interactive job, by option. Those with an S are encrypted in LSF; lava's always are.
INTERACTIVE = {
    "I": "pipes", "IS": "pipes", "Ip": "terminal", "ISp": "terminal", "Is": "shell", "ISs": "shell",
}  # fmt: skip

# Options whose value is one field of the job as it is written: words, a text, or a flag. bmod changes the same fields.
WORDS = {"q": "queues", "m": "hosts"}
TEXTS = {
    "P": "project", "Jd": "description", "G": "user_group", "g": "job_group", "app": "application",
    "U": "reservation", "sla": "service_class", "w": "dependency",
    "Q": "requeue_exit_values", "L": "shell", "E": "pre_exec", "Ep": "post_exec", "rnc": "resize_notify",
    "wa": "warning_action", "u": "mail_user", "notify": "mail_events",
}  # fmt: skip
FLAGS = {
    "ti": "ends_orphan", "H": "hold", "x": "exclusive", "K": "notify_end", "ar": "resizable",
    "B": "mail_begin", "N": "mail_end", "Ne": "mail_failure",
}  # fmt: skip
FIELDS = {**WORDS, **TEXTS, **FLAGS}
# A line of the usage of bsub and bmod for each such option that the text above does not show.
FURTHER_USAGE: dict[str, str] = {
    "wa": "-wa signal | command | CHKPNT  -wt [h:]m | seconds with s",
    "g": "-g /job/group  -app profile  -sla service_class",
    "u": '-u "address ..."  -B  -N  -Ne  -notify "start done exit"',
    "hostfile": "-hostfile file  (its lines: host [slots])",
    "k": '-k "dir [init=minutes] [minutes] [method=name]"  (checkpoints)',
    "mig": "-mig minutes  (suspended for so long, it goes to another host)",
}
HANG_USAGE = '-hang time | "after=time:first=time:cpus=N:network=bytes/s:gpu-power=part:stacks=no"  (detect hangs)'
USAGE += "".join(f"  {text}\n" for text in (HANG_USAGE, *FURTHER_USAGE.values()))

# Both read any job file: what it is shows in its content.
JOB_FILE_OPTIONS = ("yaml", "json")
JSDL_OPTIONS = ("jsdl", "jsdl_strict")
# Options that have no key in a job file: those, and the ones about bsub's own terminal.
NOT_IN_FILES = (*JOB_FILE_OPTIONS, *JSDL_OPTIONS, "pack", "hostfile", "Zs", "a", *INTERACTIVE, "tty")

KINDS: dict[str, int | str] = {
    **dict.fromkeys((*WORDS, *TEXTS), VALUE),
    **dict.fromkeys(FLAGS, FLAG),
    **dict.fromkeys(
        ("n", "R", "W", "We", "M", "J", "sp", "o", "oo", "e", "eo", "i", "is", "cwd", "outdir", "env", "gpu",
         "nnodes", "b", "t", "wt", "mig", "c", "F", "D", "S", "C", "v", "p", "T", "hang", "f", "k", "a", "hostfile"),
        VALUE,
    ),
    **dict.fromkeys(("r", "rn", "Zs", "hl", "ul"), FLAG),
    **dict.fromkeys((*JOB_FILE_OPTIONS, *JSDL_OPTIONS, "pack"), VALUE),
    **dict.fromkeys((*INTERACTIVE, "tty"), FLAG),
    **dict.fromkeys(("IX", "XF"), "X11 is not forwarded; -Is with a DISPLAY that the host can reach does it."),
    **dict.fromkeys(("data", "datachk", "stage"), "there is no data manager: lava expects a shared file system."),
    **dict.fromkeys(("ptl", "eptl"), "a pending job has no time limit; -t names a time at which it is ended."),
    "Lp": "there are no licence projects; a shared resource of lsf.shared counts licences (-R rusage).",
    "clusters": "there is one cluster only.",
    "s": "no signal is sent when a run window closes: the queue's JOB_CONTROLS says what is done to its jobs.",
    **dict.fromkeys(
        ("network", "freq",
         "smt", "jobaff", "rcacct", "rcalloc", "csm", "alloc_flags", "jsm", "ext", "extsched",
         "step_cgroup", "core_isolation", "cn_mem", "cn_cu", "ln_mem", "ln_slots"),
        NOT_YET,
    ),
}  # fmt: skip

GRAMMAR = Grammar("bsub", USAGE, KINDS, words_end=True, glued="q")
MAIL = ("u", "N", "Ne", "B", "notify")
NEVER_EMPTY = (
    "is", "u", "notify", "n", "q", "w", "m", "R", "P", "G", "g", "app", "U", "sla", "Q", "L", "f", "k", "hostfile",
)  # fmt: skip
RLIMITS = {"F": "fsize", "D": "data", "S": "stack", "C": "core", "v": "swap"}
COUNTS = {"p": "nproc", "T": "threads"}  # of the whole job on a host, as is the size of -v
HEAD = 4096  # bytes that tell a script from a program
DEFAULT_QUEUE, DEFAULT_PROJECT, DEFAULT_GROUP = "LSB_DEFAULTQUEUE", "LSB_DEFAULTPROJECT", "LSB_DEFAULT_USERGROUP"
DEFAULT_JOB_GROUP = "LSB_DEFAULT_JOBGROUP"
JOB_CWD = "LSB_JOB_CWD"
METHOD, METHOD_DIR = "LSB_ECHKPNT_METHOD", "LSB_ECHKPNT_METHOD_DIR"


class Submission:
    """A job ready to be sent, with bsub's own settings. ``by_default``: the environment named its queue.

    ``has_unique_name``: the master refuses it while another job of the user and of its name has not ended. ``esub``:
    what the site's programs made of it; None where there are none.
    """

    def __init__(self, spec: messages.JobSpec, notes: list[str], wait: bool, quiet: bool, by_default: bool) -> None:
        self.spec = spec
        self.notes = notes
        self.wait = wait
        self.quiet = quiet
        self.by_default = by_default
        self.has_unique_name = False
        self.esub: esub.Outcome | None = None


class Choices:
    """Options of the command line over those of the script."""

    def __init__(self, line: Options, script: Options) -> None:
        self._line = line
        self._script = script
        # Of each option the place and the value that it was given last: a later place wins.
        self._last = {name: (place, value) for place, (name, value) in enumerate([*script.items, *line.items])}

    def last(self, *names: str) -> tuple[str, str] | None:
        """(name, value) of the winning one of these options."""
        given = [(*self._last[name], name) for name in names if name in self._last]
        if not given:
            return None
        _, value, name = max(given)
        return name, value

    def value(self, name: str) -> str | None:
        """Value of the winning option; None if it was not given."""
        found = self._last.get(name)
        return found[1] if found else None

    def all(self, name: str) -> list[str]:
        """Values of a repeatable option, from the command line if it is given there at all."""
        return self._line.all(name) or self._script.all(name)

    def __contains__(self, name: str) -> bool:
        return name in self._last

    def changed(self, replaced: list[str], added: list[tuple[str, str]]) -> "Choices":
        """Choices without the replaced options, wherever they were given, and with the added ones."""
        line, script = Options(), Options()
        line.items = [item for item in self._line.items if item[0] not in replaced] + added
        script.items = [item for item in self._script.items if item[0] not in replaced]
        return Choices(line, script)


def read_submission(argv: list[str], io: "Io") -> Submission:
    """Job of a bsub command line; reads the script from standard input or a file.

    Raises:
        CommandError: a malformed option or script.
    """
    return submission_of(GRAMMAR.parse(argv), io)


def submission_of(line: Options, io: "Io") -> Submission:
    """Job of a parsed command line."""
    spooled = spooling.command_file(line.words, io) if "Zs" in line else ""
    described = described_by(line, io)
    if described is not None and described.command and not line.words:
        command, is_script, script_text = described.command, False, ""
    else:
        command, is_script, script_text = find_command(line.words, io)
    if spooled:
        command, is_script = spooled, True
    notes = described.notes if described is not None else []
    script_text, to_run, about_script = made_ready(script_text, is_script)
    command = to_run if is_script and script_text else command
    notes += about_script
    script = script_options(script_text)
    if described is not None:
        script.items = [*described.options.items, *script.items]
    choices = Choices(line, script)
    ran = ask_site(choices, command, io)
    if ran is not None:
        choices, command = ran.choices, ran.command
    refuse_empty(choices)
    spec = messages.JobSpec(is_script=is_script, interactive=streams(choices))
    put_command(spec, command)
    spec.script_arguments.extend(line.words[1:] if is_script else ())
    place(spec, choices, io)
    if described is not None and "env" not in choices:
        job_options.replace_variables(spec.environment, described.environment)
    describe(spec, choices)
    by_default = fill_from_environment(spec, io)
    if is_script and line.words and not spec.name:
        spec.name = line.words[0]
    limit(spec, choices, io)
    request(spec, choices, io)
    notes += [*mail_notes(choices, io), *unit_notes(choices, io), *unscaled_notes(choices)]
    submission = Submission(check_text(spec), notes, "K" in choices, "BSUB_QUIET" in io.environ, by_default)
    take_outcome(submission, ran)
    spec.success_exit_values = job_options.success_values(spec, io.environ)
    return submission


def name_programs(item: messages.SubmitItem, environ: "Mapping[str, str]") -> None:
    """Tell which programs make checkpoints, should the job's queue or profile want some: variables with these names
    are not passed on to the job."""
    method, programs = (environ.get(name, "").encode("utf-8", "backslashreplace") for name in (METHOD, METHOD_DIR))
    item.checkpoint_method, item.checkpoint_programs = method.decode(), programs.decode()


def described_by(line: Options, io: "Io") -> "jsdl.Described | None":
    """Job of the description that -jsdl or -jsdl_strict names; None without one."""
    if not any(name in line for name in JSDL_OPTIONS):
        return None
    from lavactl.submit.jsdl.options import described_by as described

    return described(line, io)


def has_esubs(names: str | None, io: "Io") -> bool:
    """True if the site may have programs that look at a submission, or the caller names one."""
    settings = ("LSF_SERVERDIR", "LSB_ESUB_METHOD")
    return names is not None or "LSB_ESUB_METHOD" in io.environ or any(io.site_setting(name) for name in settings)


def ask_site(choices: Choices, command: str, io: "Io") -> "esub.Outcome | None":
    """Run the site's esub programs on a submission; None where there are none.

    Raises:
        CommandError: one of them refuses it, or is missing.
    """
    if not has_esubs(choices.value("a"), io):
        return None
    from lavactl.submit import esub

    return esub.before(choices, command, io)


def take_outcome(submission: Submission, ran: "esub.Outcome | None") -> None:
    """Give a submission the variables that esub programs changed, and the programs that run after it."""
    submission.esub = ran
    if ran is not None:
        job_options.replace_variables(submission.spec.environment, ran.environment)
        submission.spec.esub_output = ran.output


def streams(choices: Choices) -> str:
    """Streams of an interactive job; empty for a batch job. What contradicts itself is refused."""
    chosen = choices.last(*INTERACTIVE)
    if chosen is None:
        if "tty" in choices:
            raise CommandError("-tty is for interactive jobs: -I makes one.")
        return ""
    if "K" in choices:
        raise CommandError(f"-K and -{chosen[0]} cannot be combined: bsub waits for an interactive job anyway.")
    if "r" in choices:
        raise CommandError(f"-r and -{chosen[0]} cannot be combined: an interactive job is not run again.")
    if "tty" in choices and choices.last("o", "oo", "e", "eo"):
        raise CommandError("-tty beside -o or -e is not supported: output goes to the file or to the terminal.")
    return INTERACTIVE[chosen[0]]


def fill_from_environment(spec: messages.JobSpec, io: "Io") -> bool:
    """Fill in queue, project and groups from the user's environment; True if the queue comes from there."""
    spec.project = spec.project or io.environ.get(DEFAULT_PROJECT, "")
    spec.user_group = spec.user_group or io.environ.get(DEFAULT_GROUP, "")
    spec.job_group = spec.job_group or io.environ.get(DEFAULT_JOB_GROUP, "")
    if spec.queues:
        return False
    spec.queues.extend(io.environ.get(DEFAULT_QUEUE, "").split())
    return bool(spec.queues)


def find_command(words: list[str], io: "Io") -> tuple[str, bool, str]:
    """(command, True if it is a script, text that may hold directives)."""
    if not words:
        text = read_script(io)
        return text, True, text
    parse = (io.setting("LSB_BSUB_PARSE_SCRIPT") or "").upper()
    text = script_file(words, parse == "Y", io) if parse != "N" else ""
    if text and len(words) == 1:
        return text, True, text
    return shell_line(words), False, text


def read_script(io: "Io") -> str:
    """Job script from standard input: prompted for on a terminal, otherwise read to the end of input."""
    stdin = io.stdin
    if io.is_terminal(stdin):
        data = prompt(io)
    else:
        try:
            data = stdin.read(SCRIPT_MAX + 1)
        except OSError as error:
            raise CommandError(f"The job script cannot be read: {error.strerror}.") from None
    text = decode_script(data)
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.split("\n")):
        raise CommandError("Empty job.")
    return text


def prompt(io: "Io") -> bytes:
    """Lines typed at the prompt, up to end of input."""
    lines: list[bytes] = []
    while True:
        io.print("bsub> ", end="")
        io.flush()
        line = io.stdin.readline()
        if not line:
            io.print()
            return b"".join(lines)
        lines.append(line)


def script_file(words: list[str], always: bool, io: "Io") -> str:
    """Text of the file that the command names, if bsub is to read it for directives; otherwise empty.

    An executable file is a program, and read only if LSB_BSUB_PARSE_SCRIPT=Y; so is one followed by arguments.
    """
    path = io.path(words[0])
    if io.is_binary(path):
        return ""
    kind, data = io.look_at(path, HEAD)
    if kind not in (FILE, PROGRAM) or data is None:
        return ""
    if kind == PROGRAM:
        refuse_windows_program(path, data)
    if not always and (len(words) > 1 or kind == PROGRAM):
        return ""
    if b"\0" in data:
        return ""
    if len(data) == HEAD:
        data = io.read_file(path, SCRIPT_MAX + 1) or b""
    if not (data.removeprefix(ORDER_MARK.encode()).startswith(b"#!") or WORD.encode() in data):
        return ""
    return decode_script(data)


def refuse_windows_program(path: str, head: bytes) -> None:
    """Refuse an executable script whose ``#!`` line ends in CR LF, or has a byte order mark before it: the kernel would
    not find its interpreter."""
    first, newline, _ = head.partition(b"\n")
    if first.startswith(ORDER_MARK.encode() + b"#!"):
        raise CommandError(
            f"{printable(path)}: it begins with a byte order mark (EF BB BF), so nothing could start it; "
            "sed -i '1s/^...//' mends that in the C locale."
        )
    if newline and first.startswith(b"#!") and first.endswith(b"\r"):
        raise CommandError(
            f"{printable(path)}: its first line ends in CR LF, so nothing could start it; sed -i 's/\\r$//' mends that."
        )


def script_options(script: str) -> Options:
    """Options of a script's directives, in order."""
    options = Options()
    for number, words in directive_words(script):
        try:
            found = GRAMMAR.parse(words)
            refuse_job_file(found)
        except CommandError as error:
            raise CommandError(f"Line {number} of the job script: {error}") from None
        if found.words:
            word = printable(found.words[0])
            raise CommandError(f"Line {number} of the job script: {word} is no option; quote a value that has blanks.")
        options.items += found.items
    return options


def refuse_job_file(found: Options) -> None:
    """Refuse options that name a job file among the directives of a script."""
    given = next((name for name in (*JOB_FILE_OPTIONS, *JSDL_OPTIONS, "pack") if name in found), None)
    if given:
        kind = {"pack": "pack of jobs", **dict.fromkeys(JSDL_OPTIONS, "job description")}.get(given, "job file")
        raise CommandError(f"-{given} names a {kind} and belongs on the command line.")
    if "Zs" in found:
        raise CommandError("-Zs spools the command file of the command line; this script is spooled already.")


def refuse_empty(choices: Choices) -> None:
    """Refuse empty values: an unset variable in a script must not turn four slots into one or drop a dependency."""
    for option in NEVER_EMPTY:
        if option in choices and not all(value.strip() for value in choices.all(option)):
            raise CommandError(f"-{option}: expected a value, found an empty one.")


def place(spec: messages.JobSpec, choices: Choices, io: "Io") -> None:
    """Fill in directories, files and environment."""
    spec.submit_cwd = io.cwd
    spec.cwd = os.path.normpath(os.path.join(io.cwd, choices.value("cwd") or io.environ.get(JOB_CWD) or ""))
    spec.umask_plus_one = io.umask + 1
    spec.environment.extend(io.job_environment(choices.all("env")))
    if spec.interactive in ("terminal", "shell") and not any(one.startswith(b"TERM=") for one in spec.environment):
        spec.environment.extend(entry for entry in io.raw_environ if entry.startswith(b"TERM="))
    if (output_dir := choices.value("outdir")) is not None:
        spec.output_dir = os.path.normpath(os.path.join(io.cwd, output_dir))
    source = choices.last("i", "is")
    spec.input, spec.input_spooled = (source[1], source[0] == "is") if source else ("", False)
    spec.file_copies.extend(file_copies(choices, io))
    spec.input_data = spooling.input_of(spec.input, io) if spec.input_spooled else b""
    start = spec.output_dir or spec.cwd
    if output := choices.last("o", "oo"):
        spec.output, spec.output_overwrite = output_path(start, output[1], "out", choices, io), output[0] == "oo"
    if error := choices.last("e", "eo"):
        spec.error, spec.error_overwrite = output_path(start, error[1], "err", choices, io), error[0] == "eo"


def file_copies(choices: Choices, io: "Io") -> list[str]:
    """Copies of -f, those of the submission host by absolute paths."""
    given = choices.all("f")
    if not given:
        return []
    from protos import file_copies as copies

    found = []
    for text in given:
        try:
            one = copies.read(text)
        except ValueError:
            expected = 'file, op and perhaps file, with op one of > < << >< <>, as in "in.dat > in.dat"'
            raise job_options.bad("f", text, expected) from None
        found.append(one._replace(submission=os.path.normpath(os.path.join(io.cwd, one.submission))).text)
    return found


def output_path(start: str, name: str, suffix: str, choices: Choices, io: "Io") -> str:
    """Path of an output file as given; in a directory the file is named by the job id."""
    if not name:
        raise CommandError("An output file has an empty name.")
    if not name.endswith("/") and io.kind_of(os.path.join(start, name)) != DIRECTORY:
        return name
    is_array = "[" in (choices.value("J") or "")
    return os.path.join(name, f"%J.%I.{suffix}" if is_array else f"%J.{suffix}")


def mail_notes(choices: Choices, io: "Io", of_tasks: bool = False) -> list[str]:
    """A note for each option of mail, where none is sent: at this site, or about a job of tasks."""
    given = [option for option in MAIL if option in choices]
    if not given or (io.site_setting("LSB_MAILPROG") and not of_tasks):
        return []
    why = "has no effect: no mail is sent about jobs of tasks." if of_tasks else NO_MAIL
    return [f"-{option} {why}" for option in given]


def describe(spec: messages.JobSpec, choices: Choices) -> None:
    """Fill in the name, and the options that are fields as they are written: queue, project, dependency and others."""
    name = choices.value("J")
    if name is not None:
        spec.name, ranges, spec.array_limit = job_options.job_name(name)
        spec.array.extend(ranges)
    for option, field in WORDS.items():
        if option in choices:
            getattr(spec, field).extend((choices.value(option) or "").split())
    for option, field in TEXTS.items():
        if option in choices:
            setattr(spec, field, choices.value(option) or "")
    for option, field in FLAGS.items():
        if option in choices:
            setattr(spec, field, True)
    job_options.check_mail(spec.mail_user, spec.mail_events)


def limit(spec: messages.JobSpec, choices: Choices, io: "Io") -> None:
    """Fill in times and limits."""
    if (text := choices.value("W")) is not None:
        spec.run_limit_s = job_options.run_limit_s(text)
    if (text := choices.value("We")) is not None:
        spec.runtime_estimate_s = job_options.run_limit_s(text, "We")
    if (text := choices.value("M")) is not None:
        spec.memory_limit_mib = job_options.memory_mib(text, job_options.unit_of(io))
    if (text := choices.value("wt")) is not None:
        spec.warning_time_s = job_options.warning_time_s(text)
    if (text := choices.value("mig")) is not None:
        spec.migration_min_plus_one = job_options.migration_min(text) + 1
    job_options.check_warning_action(spec.warning_action)
    if (text := choices.value("b")) is not None:
        spec.begin_time = job_options.date("b", text, io.now())
    if (text := choices.value("t")) is not None:
        spec.terminate_time = job_options.date("t", text, io.now())
    if spec.begin_time and spec.terminate_time and spec.terminate_time <= spec.begin_time:
        raise CommandError("Start time is later than termination time.")
    if (text := choices.value("c")) is not None:
        spec.rlimits.add(name="cpu", soft=job_options.run_limit_s(text, "c"))
    if (text := choices.value("k")) is not None:
        from lavactl.submit.checkpoints import checkpoint

        start = io.cwd if "%" in spec.cwd else spec.cwd or io.cwd
        spec.checkpoint.CopyFrom(checkpoint(text, start, io.environ))
    if (text := choices.value("hang")) is not None:
        spec.hang.CopyFrom(hang_rule(text))
    for option, name in RLIMITS.items():
        if (text := choices.value(option)) is not None:
            spec.rlimits.add(name=name, soft=job_options.limit_bytes(text, option, job_options.unit_of(io)))
    for option, name in COUNTS.items():
        if (text := choices.value(option)) is not None:
            spec.rlimits.add(name=name, soft=job_options.count(option, text))
    if "ul" in choices:
        given = {one.name for one in spec.rlimits}
        for name, soft in io.process_limits:
            if name not in given:
                spec.rlimits.add(name=name, soft=soft)


def unscaled_notes(choices: Choices) -> list[str]:
    """Remarks on limits that name a host or host model."""
    given = [(option, choices.value(option)) for option in ("W", "We", "c")]
    return [note for option, text in given if text and (note := job_options.unscaled_note(option, text))]


def unit_notes(choices: Choices, io: "Io") -> list[str]:
    """A note if the environment names another unit than the site: only the site's holds for requirements."""
    own = io.environ.get(job_options.UNIT)
    if own is None or not any(name in choices for name in ("R", "gpu")) or own == io.site_setting(job_options.UNIT):
        return []
    return [f"{job_options.UNIT}={own} of the environment holds for limits; -R and -gpu count in the site's unit."]


def rank(spec: messages.JobSpec, choices: Choices) -> None:
    """Fill in the priority and what happens after a loss of its host."""
    if rerun := choices.last("r", "rn"):
        spec.rerunnable, spec.not_rerunnable = rerun[0] == "r", rerun[0] == "rn"
    if (text := choices.value("sp")) is not None:
        spec.priority = job_options.count("sp", text)


def request(spec: messages.JobSpec, choices: Choices, io: "Io") -> None:
    """Fill in the resource request: slots, requirement, GPUs and priority."""
    rank(spec, choices)
    if spec.resize_notify and not spec.resizable:
        raise CommandError("-rnc is for resizable jobs: -ar makes one.")
    requirements = choices.all("R")
    tasks_min, tasks_max = job_options.slots(choices.value("n") or "1")
    if (path := choices.value("hostfile")) is not None:
        tasks_min, requirements = listed_hosts(path, spec, choices, io)
        tasks_max = tasks_min
    elif (text := choices.value("nnodes")) is not None:
        tasks_min, tasks_max, span = whole_hosts(text, choices.value("n"))
        requirements = [*requirements, span]
        spec.exclusive = True
    elif choices.value("n") is None:
        tasks_min = tasks_max = 0  # the queue's default
    role = spec.roles.add(tasks_min=tasks_min, tasks_max=tasks_max, slots_per_task=1)
    if requirements:
        role.requirement = job_options.requirement(requirements)
        spec.requirement_text = role.requirement
    if (text := choices.value("gpu")) is not None:
        role.gpu.CopyFrom(job_options.gpu_request(text))


def listed_hosts(path: str, spec: messages.JobSpec, choices: Choices, io: "Io") -> tuple[int, list[str]]:
    """-hostfile as slots and requirement; its hosts become those of -m."""
    from lavactl.submit import host_file

    beside = choices.last("n", "m", "nnodes")
    if beside is not None:
        raise CommandError(f"-hostfile and -{beside[0]} cannot be combined: the file names hosts and slots.")
    return host_file.fill_in(spec, path, choices.all("R"), io)


def whole_hosts(text: str, slots_text: str | None) -> tuple[int, int, str]:
    """-nnodes as slots and a span: exclusive hosts, with the slots of -n spread evenly over them."""
    hosts = job_options.count("nnodes", text, 1 << 20)
    slots = job_options.slots(slots_text)[0] if slots_text is not None else hosts
    if slots < hosts:
        raise CommandError(f"-nnodes {hosts} needs -n of at least {hosts}.")
    return slots, slots, f"span[ptile={-(-slots // hosts)}]"


def check_text(spec: messages.JobSpec) -> messages.JobSpec:
    """The job itself, after a check that it has a command."""
    if not spec.command.strip():
        raise CommandError("No command is specified.")
    return spec
