"""Lava's own job file: a key for every option of bsub, and a job that is shown, read again and equal."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.job_setup.told import tell
from lavactl.job_files import told
from lavactl.job_files.dry_run import describe
from lavactl.job_files.model import ACTIONS, EVENTS, LAUNCHES, RESTARTS, RESUMING, SPREADS, JobFile
from lavactl.job_files.own import keys
from lavactl.job_files.own.keys import BY_OPTION, NAMED, OPTION_KEYS, TABLES
from lavactl.job_files.own.schema import schema
from lavactl.job_files.own.writer import as_values, write_json, write_yaml
from lavactl.job_files.understanding import understand_text
from lavactl.options import FLAG, VALUE
from lavactl.submit.submission import KINDS, NOT_IN_FILES
from lavactl.wire import messages
from protos import jobs_pb2
from tests.lavactl.scripted import Desk

ROOT = Path(__file__).resolve().parents[2]
# A value of each option as a user would give it.
VALUES = {
    "q": "short long", "n": "2,8", "R": "rusage[mem=100]", "W": "1:30", "We": "20", "M": "2G", "m": "n1 n2+1",
    "J": "sweep[1-10:3,15]%3", "Jd": "two words", "P": "proj", "G": "grp", "g": "/a/b", "app": "md",
    "sp": "50", "U": "r#1", "sla": "gold",
    "o": "out.%J", "oo": "out.%J", "e": "/tmp/err", "eo": "/tmp/err", "i": "in", "cwd": "sub", "outdir": "results",
    "is": str(ROOT / "setup.cfg"),
    "env": "none, A=1", "L": "/bin/bash", "gpu": "num=2:mode=shared", "nnodes": "2", "b": "2027:1:2:10:00",
    "t": "2027:1:3:10:00", "w": "done(5)", "Q": "3 4", "E": "pre", "Ep": "post", "c": "10", "F": "100", "D": "200",
    "S": "300", "C": "0", "v": "400", "p": "20", "T": "40", "rnc": "notify me", "wa": "USR1", "wt": "30s",
    "mig": "0",
    "u": "a@example.org", "notify": "start",
    "f": "in.dat > in.dat",
    "hang": "after=5m:first=30m:cpus=0.1", "k": "/saved init=5 30 method=dmtcp",
}  # fmt: skip
ALONE = {"rnc": ["-ar"], "gpu": [], "nnodes": []}  # options that need others beside them


def options() -> list[str]:
    """Every option of bsub that a job can have."""
    return [name for name, kind in KINDS.items() if kind in (FLAG, VALUE) and name not in NOT_IN_FILES]


def test_every_option_of_bsub_has_a_key() -> None:
    """A new option has a key at once, though a plain one; this test wants a name and a value for it."""
    assert set(options()) == set(BY_OPTION) == set(NAMED)
    assert len({key.name for key in TABLES["job"]}) == len(TABLES["job"])
    assert {name for name in options() if KINDS[name] == VALUE} == set(VALUES)


@pytest.mark.parametrize("option", ["-Is", "-tty"])
def test_a_file_holds_no_interactive_jobs(desk: Desk, option: str) -> None:
    """They need a terminal; one that is shown says that it was one."""
    refused = desk.type("bsub", option, "-yaml", "-", stdin=b"command: bash\n")
    assert refused.code == 255
    assert "jobs of a file are not interactive" in refused.err
    spec = jobs_pb2.JobSpec(command="bash", cwd="/", interactive="shell")
    desk.client.jobs = [jobs_pb2.JobRecord(job=7, spec=spec)]
    assert "# It was interactive; submitted again, it is a batch job.\n" in desk.type("lavactl", "show", "7").out


def submitted(desk: Desk, *argv: str, stdin: str = "") -> jobs_pb2.JobSpec:
    """Job that a command line submits."""
    desk.client.submit_results = [jobs_pb2.SubmitResult(job=7, queue="q")]
    result = desk.type("bsub", *argv, stdin=stdin.encode())
    assert result.code == 0, result
    return last(desk)


def last(desk: Desk) -> jobs_pb2.JobSpec:
    """Job that was submitted last; a client that waits asks more after it."""
    return next(one.spec for one in reversed(desk.client.asked) if isinstance(one, jobs_pb2.SubmitItem))


@pytest.mark.parametrize("name", options())
def test_a_key_says_the_same_as_its_option(desk: Desk, name: str) -> None:
    """A file with one key gives the job that bsub gives with the option."""
    given = [f"-{name}", VALUES[name]] if name in VALUES else [f"-{name}"]
    if name == "K":
        desk.client.changes = [jobs_pb2.JobChange(job=7, state=messages.DONE)] * 2
    by_option = submitted(desk, *ALONE.get(name, []), *given, "run me")
    values = {"command": "run me", BY_OPTION[name].name: VALUES.get(name, True)}
    if ALONE.get(name):
        values["resizable"] = True
    if name == "K":
        desk.client.changes = [jobs_pb2.JobChange(job=7, state=messages.DONE)] * 2
    assert submitted(desk, "-yaml", "-", stdin=json.dumps(values)) == by_option


@pytest.mark.parametrize("name", options())
def test_a_job_that_is_shown_is_read_again(desk: Desk, name: str) -> None:
    """`lavactl show` of a job with an option gives a file that submits an equal job, from any directory."""
    given = [f"-{name}", VALUES[name]] if name in VALUES else [f"-{name}"]
    desk.client.changes = [jobs_pb2.JobChange(job=7, state=messages.DONE)]
    spec = submitted(desk, *ALONE.get(name, []), *given, "run me")
    stored = jobs_pb2.JobSpec.FromString(spec.SerializeToString())
    del stored.environment[:]
    desk.client.jobs = [jobs_pb2.JobRecord(job=7, spec=stored)]
    for form in ("yaml", "json"):
        shown = desk.type("lavactl", "show", "-o", form, "7")
        assert shown.code == 0, shown
        desk.client.submit_results = [jobs_pb2.SubmitResult(job=8, queue="q")]
        desk.client.changes = [jobs_pb2.JobChange(job=8, state=messages.DONE)]
        again = desk.type("bsub", "-yaml", "-", stdin=shown.out.encode(), cwd="/elsewhere")
        assert again.code == 0, again
        read = jobs_pb2.JobSpec.FromString(last(desk).SerializeToString())
        del read.environment[:]
        assert read == stored


NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=8)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)
COUNTS = st.integers(0, 50)


@st.composite
def policies(draw: st.DrawFn, tasks: int = 0) -> list[messages.TaskPolicy]:
    """Policies of a role with that number of tasks, or of the job."""
    made = []
    for _ in range(draw(st.integers(0, 2))):
        policy = messages.TaskPolicy(action=draw(st.sampled_from(sorted(ACTIONS.values()))))
        if draw(st.booleans()):
            policy.events.extend(draw(st.lists(st.sampled_from(sorted(EVENTS.values())), min_size=1, max_size=3)))
        else:
            policy.exit_codes.extend(draw(st.lists(st.integers(1, 255), min_size=1, max_size=3)))
        if policy.action == messages.RESUME_JOB and not {EVENTS[one] for one in RESUMING} & set(policy.events):
            policy.action = messages.ABORT_JOB
        policy.timeout_s = float(draw(COUNTS))
        policy.index_plus_one = draw(st.integers(0, tasks)) if tasks else 0
        policy.uncounted = draw(st.booleans())
        made.append(policy)
    return made


@st.composite
def roles(draw: st.DrawFn, name: str) -> messages.Role:
    """Any role."""
    most = draw(st.integers(1, 50))
    least = draw(st.integers(0, most))
    role = messages.Role(name=name, tasks_min=least, tasks_max=most, may_be_absent=least == 0)
    role.slots_per_task = draw(st.integers(1, 9))
    role.launch = draw(st.sampled_from(sorted(LAUNCHES.values())))
    role.restart = draw(st.sampled_from(sorted(RESTARTS.values())))
    role.spread = draw(st.sampled_from(("", *SPREADS)))
    for field in ("restarts_max", "group", "success_min", "failed_enough", "succeeded_enough", "memory_limit_mib"):
        setattr(role, field, draw(COUNTS))
    role.run_limit_s, role.after_any = float(draw(COUNTS)), draw(st.booleans())
    if draw(st.booleans()):
        role.command = draw(TEXTS.filter(str.strip))
    else:
        role.argv.extend(draw(st.lists(TEXTS, min_size=1, max_size=3)))
    role.image, role.cwd = draw(NAMES), draw(NAMES)
    role.environment.extend(f"{key}={value}".encode() for key, value in draw(st.dictionaries(NAMES, TEXTS)).items())
    for port in draw(st.lists(NAMES, unique=True, max_size=2)):
        role.ports.add(name=port, count=draw(st.integers(1, 9)), number=draw(st.sampled_from((0, 80))))
    role.policies.extend(draw(policies(most)))
    return role


@st.composite
def job_files(draw: st.DrawFn) -> JobFile:
    """Any job of tasks."""
    job = JobFile("f", (1, 1), "job")  # type: ignore[arg-type]
    job.options = [("J", draw(NAMES)), ("q", draw(NAMES)), ("H", "")]
    job.command = draw(TEXTS)
    job.environment = [f"{key}={value}" for key, value in draw(st.dictionaries(NAMES, TEXTS)).items()]
    job.umask = draw(st.none() | st.integers(0, 0o777))
    rules = job.tasks_rules
    rules.policies.extend(draw(policies()))
    for field in ("restarts_max", "success_min", "succeeded_enough"):
        setattr(rules, field, draw(COUNTS))
    rules.restarts_when_failed, rules.needs_each = draw(st.booleans()), draw(st.booleans())
    rules.final_codes.extend(draw(st.lists(st.integers(1, 255), max_size=3)))
    rules.free_codes.extend(draw(st.lists(st.integers(1, 255), max_size=3)))
    rules.owner_name, rules.origin = draw(NAMES), draw(NAMES)
    for name in draw(st.lists(st.sampled_from(keys.CONVENTIONS), unique=True, max_size=2)):
        known = sorted(set(told.OPTIONS[name]) - told.NUMBERS)
        given = draw(st.dictionaries(st.sampled_from(known), TEXTS)) if known else {}
        rules.conventions.add(name=name, options=[f"{option}={value}" for option, value in given.items()])
    job.roles = [draw(roles(name)) for name in draw(st.lists(NAMES, unique=True, min_size=1, max_size=3))]
    for at, role in enumerate(job.roles[1:], 1):
        role.after.extend(draw(st.lists(st.sampled_from([one.name for one in job.roles[:at]]), max_size=2)))
    return job


@given(job_files())
def test_any_job_is_read_as_it_was_written(job: JobFile) -> None:
    """Both as YAML and as JSON."""
    for text in (write_yaml([as_values(job)]), write_json([as_values(job)])):
        (read,) = understand_text(f"{text}\n", "f").jobs
        assert read.roles == job.roles
        assert read.rules == job.rules
        assert sorted(read.options) == sorted(job.options)
        assert (read.command, read.environment, read.umask) == (job.command, job.environment, job.umask)


def test_every_field_of_a_role_and_of_the_rules_has_a_key() -> None:
    """A field that is added to the wire is read and written, or stands here with its reason."""
    role, rules = (
        set(jobs_pb2.JobSpec().roles.add().DESCRIPTOR.fields_by_name),
        set(jobs_pb2.TaskRules.DESCRIPTOR.fields_by_name),
    )
    source = (ROOT / "lavactl/job_files/own/writer.py").read_text(encoding="utf-8")
    known = {name for name in role | rules if f".{name}" in source}
    assert role - known == {"name"} - known
    assert rules - known == {"secrets", "format"}


def test_keys_of_the_options_are_in_bsubs_order() -> None:
    """The table of keys is made from bsub's grammar."""
    assert [key.option for key in OPTION_KEYS] == options()


def test_the_conventions_are_those_that_the_agents_know() -> None:
    """The programs share no list: a convention that is new on one side is missing here."""
    assert set(keys.CONVENTIONS) == set(tell.CONVENTIONS) == set(told.OPTIONS)


def test_the_options_of_conventions_are_those_that_the_agents_read() -> None:
    """An option that is read there and not known here could not be given."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "agents/job_setup").rglob("*.py")]
    read = {name for text in texts for name in re.findall(r"scene\.(?:option|number|has)\(\"([\w-]+)\"", text)}
    assert read <= {option for options in told.OPTIONS.values() for option in options}


SILENT = """\
conventions: {convention}
roles:
  chief: {{tasks: 1, command: run}}
  trainer: {{tasks: 2, command: run}}
"""


@pytest.mark.parametrize(
    ("convention", "said"),
    [
        ("{pytorch: {}}", "conventions.pytorch: tasks are told nothing by pytorch: there is no role master or worker; "
                          "its options master and worker can name others."),
        ("{pytorch: {worker: trianer}}", "conventions.pytorch: pytorch: there is no role trianer, which its option "
                                         "worker names."),
        ("{mindspore: {worker: trainer}}", ""),
        ("{ray: {}}", "conventions.ray: tasks are told nothing by ray: there is no role head; its option head can "
                      "name others."),
        ("{slurm: {roles: 'chief,boss'}}", "conventions.slurm: slurm: there is no role boss, which its option roles "
                                           "names."),
        ("{tensorflow: {}, horovod: {}, env: {}}", ""),
    ],
)  # fmt: skip
def test_a_convention_that_finds_no_role_says_so(convention: str, said: str) -> None:
    """Before, the tasks just had no variables, and nothing told why."""
    (job,) = understand_text(SILENT.format(convention=convention), "f").jobs
    assert [f"{note.field}: {note.text}" for note in job.notes] == ([said] if said else [])


def test_a_dry_run_says_which_roles_a_convention_tells() -> None:
    """A chief and workers of another name: the workers have no TF_CONFIG."""
    said = describe(understand_text(SILENT.format(convention="{tensorflow: {}, env: {}}"), "f"))
    assert "  tasks of chief are told as by tensorflow\n  tasks are told as by env\n" in said
    assert "  no tasks are told as by pytorch\n" in describe(
        understand_text(SILENT.format(convention="{pytorch: {}}"), "f")
    )


def test_the_page_and_the_schema_are_what_the_keys_say() -> None:
    """The reference page and the JSON schema were written from the tables as they are now."""
    script = runpy.run_path(str(ROOT / "packaging" / "job_file_page.py"))
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"](), "run make docs"
    assert script["SCHEMA"].read_text(encoding="utf-8") == script["schema_text"](), "run make docs"


def test_the_schema_knows_what_is_written() -> None:
    """Every key of the samples' written form is in the schema, with a value of its kind."""
    known = schema()
    for path in (ROOT / "tests/job_files/samples").glob("*.*"):
        if path.suffix == ".txt":
            continue
        for job in understand_text(path.read_text(encoding="utf-8"), "f", "ann").jobs:
            values = as_values(job)
            check(values, known, known["$defs"])


def check(value: object, kind: dict[str, Any], named: dict[str, Any]) -> None:
    """Check a value by the part of JSON schema that ours uses."""
    if "$ref" in kind:
        kind = named[kind["$ref"].rpartition("/")[2]]
    if "anyOf" in kind and "properties" not in kind:
        errors = [error for one in kind["anyOf"] if (error := refusal(value, one, named))]
        assert len(errors) < len(kind["anyOf"]), errors
        return
    if "enum" in kind:
        assert value in kind["enum"]
    types = {"string": str, "number": (int, float), "integer": int, "boolean": bool, "object": dict, "array": list}
    wanted = kind.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    assert not wanted or any(name == "null" or isinstance(value, types[name]) for name in wanted), (value, kind)
    for one in value if isinstance(value, list) and "items" in kind else ():
        check(one, kind["items"], named)
    for key, one in value.items() if isinstance(value, dict) else ():
        inner = kind.get("properties", {}).get(key, kind.get("additionalProperties"))
        assert inner, f"{key} is not in the schema"
        check(one, inner, named)


def refusal(value: object, kind: dict[str, Any], named: dict[str, Any]) -> str:
    """Cause why a value is none of a kind; empty if it is."""
    try:
        check(value, kind, named)
    except AssertionError as error:
        return str(error) or "refused"
    return ""
