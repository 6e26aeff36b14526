"""Two ways to say one thing give one job: options typed, in a script, in a job file, by bmod, and in Slurm's words.

The ways are drawn from the tables of the options themselves, so that a new option is tried in all of them, and are
compared as the messages that go to the master.
"""

import contextlib
import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavactl.commands import bmod
from lavactl.job_files.own.keys import OPTION_KEYS
from lavactl.options import FLAG, VALUE
from lavactl.slurm.submit.options import PARSERS
from lavactl.slurm.words.options import HONOURED, Option, typed
from lavactl.slurm.words.variables import NOT_OF_SBATCH
from lavactl.submit import submission
from protos import jobs_pb2
from tests.lavactl.scripted import Desk
from tests.properties.examples import examples

HERE = Path(__file__).parent
WORDS = st.text("abcXYZ019._-", min_size=1, max_size=8).filter(lambda text: text[0] not in "-.")
TEXTS = st.text("abc 019._,:'\"$%&#;|<>()[]{}*?!~=+\\é", min_size=1, max_size=12).filter(
    lambda text: text.strip() == text and not text.startswith("-")
)
NUMBERS = st.integers(1, 5000).map(str)
SIZES = st.tuples(st.integers(1, 5000), st.sampled_from(["", "K", "M", "G", "MB"])).map(
    lambda parts: f"{parts[0]}{parts[1]}"
)
MINUTES = st.one_of(NUMBERS, st.tuples(st.integers(0, 99), st.integers(1, 59)).map(lambda at: f"{at[0]}:{at[1]:02d}"))
DATES = st.tuples(st.integers(1, 12), st.integers(1, 28), st.integers(0, 23)).map(
    lambda at: f"2027:{at[0]}:{at[1]}:{at[2]}:30"
)
CODES = st.lists(st.integers(1, 255), min_size=1, max_size=3).map(lambda codes: " ".join(map(str, codes)))
VALUES: dict[str, st.SearchStrategy[str]] = {
    **dict.fromkeys(("q", "m"), st.lists(WORDS, min_size=1, max_size=3).map(" ".join)),
    **dict.fromkeys(("P", "G", "app", "U", "sla", "o", "oo", "e", "eo", "i", "cwd", "outdir"), WORDS),
    **dict.fromkeys(("Jd", "E", "Ep"), TEXTS),
    **dict.fromkeys(("W", "We", "c"), MINUTES),
    **dict.fromkeys(("M", "F", "D", "S", "C", "v"), SIZES),
    **dict.fromkeys(("sp", "p", "T", "nnodes", "mig"), NUMBERS),
    **dict.fromkeys(("b", "t"), DATES),
    "J": st.one_of(WORDS, st.tuples(WORDS, st.integers(1, 9)).map(lambda parts: f"{parts[0]}[1-{parts[1]}]%2")),
    "n": st.one_of(NUMBERS, st.integers(1, 40).map(lambda least: f"{least},{least + 3}")),
    "R": st.sampled_from(["mem>100", "rusage[mem=10:swp=2]", "span[ptile=2]", "select[ib && ncpus>2] order[r1m]"]),
    "env": st.sampled_from(["all", "none", "HOME", "all, A=1, ~HOME", "all, A='b, c'", "A=x y"]),
    "gpu": st.sampled_from(["num=2", "-", "num=1/task:mode=shared:gmem=2G"]),
    "g": WORDS.map(lambda word: f"/{word}"), "L": st.just("/bin/bash"), "Q": CODES, "rnc": WORDS,
    "w": st.integers(1, 99).map(lambda job: f"done({job}) && !ended({job + 1})"),
    "wa": st.sampled_from(["USR1", "CHKPNT", "touch x"]), "wt": st.sampled_from(["5", "1:30", "30s"]),
    "u": WORDS, "notify": st.sampled_from(["start", "done exit"]), "f": st.just("a > b"),
    "k": st.sampled_from(["saved", "saved init=5 30"]), "hang": st.sampled_from(["5m", "after=10m:cpus=0.5"]),
    "is": st.just("no-such-place"), "hostfile": st.just(""), "a": st.just(""),
}  # fmt: skip
# Those that read files, are about the terminal, wait for the job, or name it another way.
LEFT_OUT = (*submission.NOT_IN_FILES, "is", "ul", "K")
DRAWN = [name for name, kind in submission.KINDS.items() if kind in (FLAG, VALUE) and name not in LEFT_OUT]


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of the scripted clock."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


Given = list[tuple[str, str]]
# Options of which the last one counts, wherever the others stand, by the one that stands for them.
ONE_OF = {"oo": "o", "eo": "e", "is": "i", "rn": "r"}


@st.composite
def options(draw: st.DrawFn, among: list[str] = DRAWN) -> Given:
    """Some options of bsub with values, each once."""
    names = draw(
        st.lists(st.sampled_from(among), min_size=1, max_size=5, unique_by=lambda name: ONE_OF.get(name, name))
    )
    return [(name, draw(VALUES[name]) if submission.KINDS[name] == VALUE else "") for name in names]


def argv_of(given: Given) -> list[str]:
    """The options as words of a command line."""
    return [
        word
        for name, value in given
        for word in ([f"-{name}", value] if submission.KINDS[name] == VALUE else [f"-{name}"])
    ]


Answer = tuple[str, bytes]


def said(desk: Desk, *words: str, stdin: bytes = b"") -> Answer:
    """Message to the master about a job, or a refusal: without the parts that differ by the way alone."""
    result = desk.type(*words, stdin=stdin)
    if not any(isinstance(asked, jobs_pb2.SubmitItem) for asked in desk.client.asked):
        return "refused", b""
    assert result.code == 0, result
    spec = jobs_pb2.JobSpec()
    spec.CopyFrom(desk.spec)
    for field in ("command", "command_bytes", "is_script", "notify_end"):
        spec.ClearField(field)
    entries = sorted(spec.environment)
    del spec.environment[:]
    spec.environment.extend(entry for entry in entries if not entry.startswith((b"SBATCH_", b"SLURM_")))
    limits = sorted(spec.rlimits, key=lambda one: one.name)
    copies = [jobs_pb2.Rlimit(name=one.name, soft=one.soft) for one in limits]
    del spec.rlimits[:]
    spec.rlimits.extend(copies)
    return "sent", spec.SerializeToString(deterministic=True)


SCRIPT = "#!/bin/sh\n{}true\n"


@contextlib.contextmanager
def file_of(text: str) -> Iterator[str]:
    """A file with this text."""
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        yield file.name


def test_each_option_has_a_value_to_be_tried_with() -> None:
    """A new option fails here until the ways are tried with it, too."""
    wanted = {name for name, kind in submission.KINDS.items() if kind == VALUE and name not in submission.NOT_IN_FILES}
    assert wanted - set(VALUES) == set()


@given(options(), st.data())
@examples(120)
def test_typed_or_in_the_script(given_options: Given, data: st.DataObject) -> None:
    """On the command line, in #BSUB lines, some here and some there, joined by backslashes, without blanks."""
    expected = said(Desk(), "bsub", *argv_of(given_options), stdin=SCRIPT.format("").encode())
    cut = data.draw(st.integers(0, len(given_options)))
    form = data.draw(st.sampled_from(["#BSUB {}\n", "#BSUB{}\n", "# BSUB {}\n", "#BSUB\t{}   # remark\n"]))
    typed_here, in_script = given_options[:cut], given_options[cut:]
    if {name for name, _ in typed_here} & {"R", "env", "f"}:
        in_script = [one for one in in_script if one[0] not in ("R", "env", "f")]
    lines = "".join(form.format(shlex.join(argv_of([one]))) for one in in_script)
    joined = "#BSUB " + " \\\n  ".join(shlex.join(argv_of([one])) for one in in_script) + "\n" if in_script else ""
    for directives in (lines, joined):
        found = said(Desk(), "bsub", *argv_of(typed_here), stdin=SCRIPT.format(directives).encode())
        assert found == expected


KEYS = {key.option: key for key in OPTION_KEYS}


@given(options([name for name in DRAWN if name in KEYS]))
@examples(120)
def test_typed_or_in_a_job_file(given_options: Given) -> None:
    """Lava's own job file has a key for each option."""
    expected = said(Desk(), "bsub", *argv_of(given_options), stdin=SCRIPT.format("").encode())
    document: dict[str, object] = {"script": SCRIPT.format("")}
    for name, value in given_options:
        document[KEYS[name].name] = value if submission.KINDS[name] == VALUE else True
    with file_of(json.dumps(document)) as path:
        assert said(Desk(), "bsub", "-yaml", path) == expected


@given(options([name for name in DRAWN if name in bmod.FIELDS and "[" not in name]))
@examples(120)
def test_typed_or_changed_afterwards(given_options: Given) -> None:
    """bmod sets the fields that it names to what bsub would have sent."""
    desk = Desk()
    result = desk.type("bsub", *argv_of(given_options), "true")
    if result.code or desk.spec.array:
        return
    changed = Desk()
    changed.client.modify_reply.results.add(job=7)
    outcome = changed.type("bmod", *argv_of(given_options), "7")
    assert outcome.code == 0, outcome
    request = changed.client.asked[-1]
    for field in request.fields:
        assert field_of(request.spec, field) == field_of(desk.spec, field), field


def field_of(spec: jobs_pb2.JobSpec, name: str) -> object:
    """Value of a field as ModifyRequest names it."""
    first, _, rest = name.partition(".")
    if first == "roles":
        role = spec.roles[0] if spec.roles else jobs_pb2.JobSpec().roles.add()
        parts = {"tasks": ("tasks_min", "tasks_max", "slots_per_task")}.get(rest, (rest,))
        return [str(getattr(role, part)) for part in parts]
    if first == "rlimits":
        return [one.soft for one in spec.rlimits if one.name == rest]
    value = getattr(spec, first)
    return [*map(str, value)] if hasattr(value, "__len__") and not isinstance(value, str | bytes) else str(value)


SLURM_VALUES: dict[str, st.SearchStrategy[str]] = {
    **dict.fromkeys(("account", "job-name", "partition", "reservation", "nodelist", "exclude", "comment"), WORDS),
    **dict.fromkeys(("error", "input", "output", "chdir", "mail-user"), WORDS),
    **dict.fromkeys(("cpus-per-task", "ntasks", "nodes", "mincpus"), st.integers(1, 40).map(str)),
    **dict.fromkeys(("mem", "mem-per-cpu", "tmp"), st.integers(1, 900).map(lambda size: f"{size}M")),
    "array": st.sampled_from(["0-9%2", "1-7:3", "4"]), "begin": st.just("now+1hour"), "constraint": st.just("ib&fast"),
    "dependency": st.sampled_from(["afterok:5", "afterany:5:6"]), "export": st.sampled_from(["ALL", "NONE", "A=1"]),
    "exclusive": st.just(""), "gpus": st.just("2"), "gpus-per-node": st.just("a100:1"), "gpus-per-task": st.just("1"),
    "gres": st.just("gpu:1"), "kill-on-invalid-dep": st.just("yes"), "licenses": st.just("lic:2"),
    "mail-type": st.sampled_from(["END", "ALL"]), "mem-per-gpu": st.just("1G"), "ntasks-per-node": st.just("1"),
    "open-mode": st.sampled_from(["append", "truncate"]), "signal": st.just("USR1@30"),
    "time": st.sampled_from(["10", "1:00:00", "1-0"]),
}  # fmt: skip
NOT_DRAWN = ("help", "usage", "version", "wrap", "nodefile", "wait", "parsable", "quiet")
SLURM_OPTIONS = [one for one in PARSERS["sbatch"].options if one.fate == HONOURED and one.name not in NOT_DRAWN]


def test_each_option_of_slurm_has_a_value_to_be_tried_with() -> None:
    """A new option fails here until the ways are tried with it, too."""
    wanted = {one.name for one in SLURM_OPTIONS if one.kind != 0}
    assert wanted - set(SLURM_VALUES) == set()


@st.composite
def slurm_options(draw: st.DrawFn) -> list[tuple[Option, str]]:
    """Some options of sbatch with values."""
    chosen = draw(
        st.lists(
            st.sampled_from(SLURM_OPTIONS), min_size=1, max_size=4, unique_by=lambda one: one.name.removeprefix("no-")
        )
    )
    return [(one, draw(SLURM_VALUES[one.name]) if one.kind != 0 else "") for one in chosen]


@given(slurm_options())
@examples(150)
def test_slurms_three_places(given_options: list[tuple[Option, str]]) -> None:
    """sbatch: typed, in #SBATCH lines with and without a blank, and as SBATCH_ variables where there is one."""
    expected = said(
        Desk(), "sbatch", *(typed(one, value) for one, value in given_options), stdin=SCRIPT.format("").encode()
    )
    for mark in ("#SBATCH ", "#SBATCH"):
        lines = "".join(f"{mark}{typed(one, value)}\n" for one, value in given_options)
        assert said(Desk(), "sbatch", stdin=SCRIPT.format(lines).encode()) == expected
    desk, rest = Desk(), []
    for one, value in given_options:
        if one.environment and one.environment not in NOT_OF_SBATCH:
            desk.environ[f"SBATCH_{one.environment}"] = value if one.kind != 0 else "1"
        else:
            rest.append(typed(one, value))
    assert said(desk, "sbatch", *rest, stdin=SCRIPT.format("").encode()) == expected


# Options of bsub and of sbatch that say the same, with the values of each and the fields that they fill in.
SAME = {
    "J": ("job-name", WORDS, str, ("name",)), "P": ("account", WORDS, str, ("project",)),
    "q": ("partition", WORDS, str, ("queues",)), "Jd": ("comment", WORDS, str, ("description",)),
    "U": ("reservation", WORDS, str, ("reservation",)), "W": ("time", NUMBERS, str, ("run_limit_s",)),
    "i": ("input", WORDS, str, ("input",)), "eo": ("error", WORDS, str, ("error", "error_overwrite")),
    "oo": ("output", WORDS, str, ("output", "output_overwrite")), "cwd": ("chdir", WORDS, str, ("cwd",)),
    "m": ("nodelist", WORDS, str, ("hosts",)), "n": ("ntasks", st.integers(1, 99).map(str), str, ("roles",)),
    "w": ("dependency", st.integers(1, 99).map(str), "afterok:{}".format, ("dependency",)),
}  # fmt: skip
SAME_FLAGS = {
    "H": ("hold", "hold"),
    "r": ("requeue", "rerunnable"),
    "rn": ("no-requeue", "not_rerunnable"),
    "x": ("exclusive", "exclusive"),
}


@given(st.dictionaries(st.sampled_from([*SAME, *SAME_FLAGS]), st.data(), min_size=1, max_size=5))
@examples(100)
def test_in_lsfs_words_or_in_slurms(drawn: dict[str, st.DataObject]) -> None:
    """Both families of commands submit the same for options that both have."""
    if {"r", "rn"} <= set(drawn):
        del drawn["r"]
    lsf, slurm, fields = list[str](), list[str](), list[str]()
    for name, data in drawn.items():
        if name in SAME_FLAGS:
            word, field = SAME_FLAGS[name]
            lsf, slurm, fields = [*lsf, f"-{name}"], [*slurm, f"--{word}"], [*fields, field]
            continue
        word, values, in_slurm, filled = SAME[name]
        value = data.draw(values)
        lsf += [f"-{name}", f"done({value})" if name == "w" else value]
        slurm.append(f"--{word}={in_slurm(value)}")
        fields += filled
    ours, theirs = Desk(), Desk()
    assert ours.type("bsub", *lsf, "true").code == 0
    assert theirs.type("sbatch", *slurm, "--wrap", "true").code == 0
    for field in fields:
        assert getattr(ours.spec, field) == getattr(theirs.spec, field), field
