"""bmod: change submission parameters of jobs. Options are those of bsub; with an n appended an option is reset."""

from lavactl.control import readable_refs, tell
from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import ref_text
from lavactl.options import FLAG, VALUE, Grammar, Options, answered
from lavactl.submit import job_options, spooling, submission
from lavactl.submit.scripts import put_command
from lavactl.submit.words import split_words
from lavactl.wire import messages
from lavactl.wire.listed import jobs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bmod [bsub options | -optionn] [-Z "command" | -Zs "script [arguments]"] job_id ...
       bmod -J "%limit" job_id
       bmod -aps "system=value" | -aps "admin=value" | -apsn job_id ...
       bmod -h | -V
  -q "queue ..."  -n min[,max]  -R "requirement"  -gpu "num=N:..."  -m "host ..."  -x  -W [h:]m  -We [h:]m  -M memory
  -We+ [h:]m | -Wep percent (of a running job: what is left, what is done)
  -J name  -Jd text  -P project  -G group  -sp priority  -b date  -t date  -w "dependency"  -ti  -Q "exit codes"
  -U reservation  -r | -rn  -i file | -is file  -o file | -oo file  -e file | -eo file  -cwd dir  -outdir dir  -L shell
  -E "command"  -Ep "command"  -c -F -D -S -C limit  -a "esub[(argument,...)] ..."
"""
USAGE += "".join(f"  {text}\n" for text in submission.FURTHER_USAGE.values())
SLOTS = ("roles.tasks", "roles.requirement", "requirement_text")
INPUT = ("input", "input_spooled", "input_data")
COMMAND = ("command", "command_bytes", "is_script")
AS_SUBMITTED = ("H", "K", "ar", "rnc")
# Job parameters changed by each option; parts of its only role are named individually.
FIELDS = {
    **{option: (field,) for option, field in submission.FIELDS.items() if option not in AS_SUBMITTED},
    "n": ("roles.tasks",), "R": ("roles.requirement", "requirement_text"), "gpu": ("roles.gpu",),
    "W": ("run_limit_s",), "We": ("runtime_estimate_s",), "M": ("memory_limit_mib",), "J": ("name",),
    "aps": ("absolute_priority",), "sp": ("priority",),
    "b": ("begin_time",), "t": ("terminate_time",), "wt": ("warning_time_s",),
    "mig": ("migration_min_plus_one",),
    "r": ("rerunnable", "not_rerunnable"), "rn": ("rerunnable", "not_rerunnable"),
    "i": INPUT, "is": INPUT, "o": ("output", "output_overwrite"), "oo": ("output", "output_overwrite"),
    "e": ("error", "error_overwrite"), "eo": ("error", "error_overwrite"), "cwd": ("cwd",), "outdir": ("output_dir",),
    "hostfile": (*SLOTS, "hosts", "host_file"), "c": ("rlimits.cpu",), "f": ("file_copies",), "k": ("checkpoint",),
    **{option: (f"rlimits.{name}",) for option, name in (submission.RLIMITS | submission.COUNTS).items()},
    "Z": COMMAND, "Zs": (*COMMAND, "script_arguments"),
}  # fmt: skip
RELATIVE = ("We+", "Wep")
HOST_FILE = ("hostfile", "hostfilen")
ONE_BY_ONE = (*RELATIVE, *HOST_FILE)  # what they mean depends on the job
DISPATCHED = (messages.STAGING, messages.RUN, messages.USUSP, messages.SSUSP, messages.UNKWN)
NO_RESET = ("r", "rn", "n", "Z", "Zs")
KINDS: dict[str, int | str] = {
    **{name: kind for name, kind in submission.KINDS.items() if name in FIELDS},
    **{name: kind for name, kind in submission.KINDS.items() if isinstance(kind, str)},
    **{f"{name}n": FLAG for name in FIELDS if name not in NO_RESET},
    **dict.fromkeys(("Z", "Zs", "a", "aps"), VALUE),
    "Zsn": "the command that was spooled is not known any more: -Z gives it anew.",
    **dict.fromkeys(("We+", "Wep"), VALUE),
    **dict.fromkeys(("H", "K", "env", "nnodes", "hang", "tty",
                     *submission.INTERACTIVE),
                    "this cannot be changed after the submission."),
}  # fmt: skip
GRAMMAR = Grammar("bmod", USAGE, KINDS, glued="q")


def main(argv: list[str], io: "Io") -> int:
    """Run bmod."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if not options.words:
        raise GRAMMAR.wrong("Job ID must be specified")
    if submission.has_esubs(options.last("a"), io):
        from lavactl.submit import esub

        options = esub.before_change(options, io)
    if not options.items:
        raise GRAMMAR.wrong("no parameter to change is specified")
    refs, bad = readable_refs(options.words, io)
    if any(not ref.job for ref in refs):
        raise CommandError("0: Illegal job ID.")
    if not refs:
        return FAILURE
    results: list[messages.SignalResult] = []
    for some in [[ref] for ref in refs] if any(name in options for name in ONE_BY_ONE) else [refs]:
        spec, fields = changes(with_requirement(absolute(options, some[0], io), some[0], io), io)
        results += io.client().modify(messages.ModifyRequest(refs=some, spec=spec, fields=fields)).results
    success = "Parameters of job <{}> are being changed"
    return tell(results, success, io, failed=bad, ending=". Job not modified.")


def absolute(options: Options, ref: messages.JobRef, io: "Io") -> Options:
    """Options with -We instead of -We+ and -Wep, which are relative to the run time so far."""
    made = Options()
    for name, value in options.items:
        if name in RELATIVE:
            ran = ran_s(ref, io)
            if name == "Wep" and not ran:
                raise CommandError(
                    f"Job <{ref_text(ref)}>: nothing of it is done yet: it is being started. -We+ says what is left. "
                    "Job not modified."
                )
            name, value = "We", f"{-(-estimate_s(name, value, ran) // 60):.0f}"
        made.items.append((name, value))
    return made


def with_requirement(options: Options, ref: messages.JobRef, io: "Io") -> Options:
    """Options with the -R that the job has beside a host file; -mn and that -R in place of -hostfilen.

    Raises:
        CommandError: the job has no host file that -hostfilen could remove.
    """
    given = [name for name in HOST_FILE if name in options]
    if not given or (given == ["hostfile"] and "R" in options):
        return options
    spec = spec_of(ref, io)
    if "hostfilen" in options and not spec.HasField("host_file"):
        raise CommandError(f"Job <{ref_text(ref)}>: it has no host file. Job not modified.")
    text = spec.host_file.requirement if spec.HasField("host_file") else spec.requirement_text
    made = Options()
    made.items += [item for item in options.items if item[0] != "hostfilen"]
    if "hostfilen" in options:
        made.items.append(("mn", ""))
    if "R" not in options and (text or "hostfilen" in options):
        made.items.append(("R", text) if text else ("Rn", ""))
    return made


def spec_of(ref: messages.JobRef, io: "Io") -> messages.JobSpec:
    """Submission of a job, or of the elements of an array; an empty one if there is no such job."""
    request = messages.ListJobsRequest(filter=messages.JobFilter(refs=[ref], user="all"), details=True)
    for page in io.client().list_jobs(request):
        for job in page.jobs:
            return job.spec
    return messages.JobSpec()


def ran_s(ref: messages.JobRef, io: "Io") -> float:
    """Seconds that a job has run; 0 of one that is dispatched, and whose host has not told yet that it runs.

    Raises:
        CommandError: the job does not run, or is an array.
    """
    request = messages.ListJobsRequest(filter=messages.JobFilter(refs=[ref], user="all"), columns=True)
    found = [job for page in io.client().list_jobs(request) for job in jobs_of(page)]
    if len(found) != 1 or found[0].state not in DISPATCHED:
        raise CommandError(f"Job <{ref_text(ref)}>: -We+ and -Wep are for a job that runs. Job not modified.")
    return max(0.0, io.now() - found[0].start_time) if found[0].start_time else 0.0


def estimate_s(option: str, text: str, ran_s: float) -> float:
    """Total run time of a job that has run for ``ran_s``, estimated by the time left (-We+) or the part done (-Wep)."""
    if option == "We+":
        return ran_s + job_options.run_limit_s(text, option)
    percent = text.removesuffix("%")
    if not (percent.isascii() and percent.isdigit() and 0 < int(percent) <= 100):
        raise job_options.bad(option, text, "the percentage that is done, from 1 to 100")
    return 100 * ran_s / int(percent)


def changes(options: Options, io: "Io") -> tuple[messages.JobSpec, list[str]]:
    """New values, and the names of the changed parameters; a named parameter without a value is reset."""
    kept = Options()
    fields: dict[str, None] = {}
    for name, value in options.items:
        is_reset = name not in FIELDS
        option = name[:-1] if is_reset else name
        fields |= dict.fromkeys(FIELDS[option])
        if not is_reset:
            kept.items.append((name, value))
    spec = messages.JobSpec()
    if (limit := element_limit(kept)) is not None:
        spec.array_limit = limit
        fields = {"array_limit" if field == "name" else field: None for field in fields}
    choices = submission.Choices(kept, Options())
    submission.describe(spec, choices)
    if spec.array:
        raise CommandError("bmod -J: the index list of an array cannot be changed. Job not modified.")
    if any(name in kept for name in ("i", "is", "o", "oo", "e", "eo", "cwd", "outdir", "f")):
        submission.place(spec, choices, io)
        del spec.environment[:]
    submission.limit(spec, choices, io)
    submission.request(spec, choices, io)
    if (text := choices.value("aps")) is not None:
        spec.absolute_priority = absolute_priority(text)
    if (command := choices.value("Z")) is not None:
        put_command(spec, command)
    if (command := choices.value("Zs")) is not None:
        words = split_words(command)
        put_command(spec, spooling.command_file(words, io))
        spec.is_script = True
        spec.script_arguments.extend(words[1:])
    return spec, list(fields)


def absolute_priority(text: str) -> str:
    """Argument of -aps, which the master reads."""
    name, equals, value = text.partition("=")
    if name.strip().lower() not in ("system", "admin") or not equals or not value.strip():
        raise job_options.bad("aps", text, "system=value or admin=value")
    return f"{name.strip().lower()}={value.strip()}"


def element_limit(options: Options) -> int | None:
    """Number of ``-J "%n"``, removed from the options; None without it."""
    for place, (name, value) in enumerate(options.items):
        if name == "J" and value.startswith("%"):
            del options.items[place]
            return job_options.count("J %", value[1:])
    return None
