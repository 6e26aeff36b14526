"""esub and epsub programs: who names them, what they are told, what they change, and how they refuse a job."""

from pathlib import Path

import pytest

from protos import common_pb2, jobs_pb2
from tests.lavactl.scripted import Desk

RULES = 'exec 1>&2\n. "$LSB_SUB_PARM_FILE"\n'


class Site:
    """Programs of a site, and the copy of the master's lsf.conf that names their directory."""

    def __init__(self, desk: Desk, directory: Path) -> None:
        self.desk = desk
        self.programs = directory / "etc"
        self.programs.mkdir()
        self.seen = directory / "seen"
        desk.environ["LAVA_SOCKET"] = str(directory / "agent.sock")
        self._conf = directory / "agent.lsf" / "lsf.conf"
        self._conf.parent.mkdir()
        self.configure(f"LSF_SERVERDIR={self.programs}\n")

    def configure(self, text: str) -> None:
        """Make this the master's lsf.conf."""
        self._conf.write_text(text)

    def program(self, name: str, text: str, mode: int = 0o755) -> None:
        """Install a program, a shell script."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(mode)

    def bsub(self, *words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        """Submit; exit code, output and errors."""
        self.desk.client.submit_results = [jobs_pb2.SubmitResult(job=1201, queue="normal")]
        result = self.desk.type("bsub", *words, stdin=stdin, cwd=str(self.programs))
        return result.code, result.out, result.err

    @property
    def spec(self) -> jobs_pb2.JobSpec:
        """The job of the last submission."""
        return self.desk.spec


@pytest.fixture
def site(desk: Desk, tmp_path: Path) -> Site:
    """A site without any program yet."""
    return Site(desk, tmp_path)


def test_parameters_are_told_as_a_file_for_the_shell(site: Site) -> None:
    """lsf.md 5.4: esub reads $LSB_SUB_PARM_FILE (name=value); limits in seconds and KB."""
    site.program("esub", f'cp "$LSB_SUB_PARM_FILE" {site.seen}; sh -c ". {site.seen}; echo \\"$LSB_SUB_RES_REQ\\"" >&2')
    words = ("-q", "normal", "-x", "-P", "proj", "-R", 'rlm rusage[mem=100] "$HOME"', "-n", "90", "-W", "1:30")
    assert site.bsub(*words, "-M", "2G", "-F", "100", "-oo", "out", "sleep", "10")[0] == 0
    assert site.seen.read_text().splitlines() == [
        'LSB_SUB_QUEUE="normal"',
        'LSB_SUB_PROJECT_NAME="proj"',
        'LSB_SUB_RES_REQ="rlm rusage[mem=100] \\"\\$HOME\\""',
        'LSB_SUB_OUT_FILE="out"',
        "LSB_SUB_EXCLUSIVE=Y",
        "LSB_SUB_RLIMIT_FSIZE=100",
        "LSB_SUB_RLIMIT_RSS=2097152",
        "LSB_SUB_RLIMIT_RUN=5400",
        "LSB_SUB_NUM_PROCESSORS=90",
        "LSB_SUB_MAX_NUM_PROCESSORS=90",
        'LSB_SUB_COMMAND_LINE="sleep 10"',
    ]


def test_what_an_esub_changes(site: Site) -> None:
    """lsf.md 5.4: it writes $LSB_SUB_MODIFY_FILE and $LSB_SUB_MODIFY_ENVFILE; the script's own options give way."""
    site.desk.environ["CUSTOMER"] = "none"
    site.program(
        "esub",
        "cat > $LSB_SUB_MODIFY_FILE <<'END'\n"
        'LSB_SUB_QUEUE="short"\nLSB_SUB_RES_REQ="select[model=="X"]"\nLSB_SUB_RLIMIT_RUN=601\nLSB_SUB_RLIMIT_RSS=4096\n'
        "LSB_SUB_NUM_PROCESSORS=8\nLSB_SUB_EXCLUSIVE=N\nLSB_SUB_HOLD=Y\nLSB_SUB_OUT_FILE='log.%J'\n"
        'LSB_SUB_BEGIN_TIME=1795256970\nLSB_SUB_DEPEND_COND=SUB_RESET\nLSB_SUB_COMMAND_LINE="nice ./a.out\n'
        'second \\"line\\""\nEND\n'
        'echo "CUSTOMER=lab one" >> $LSB_SUB_MODIFY_ENVFILE; echo \'NEW="a"\' >> $LSB_SUB_MODIFY_ENVFILE',
    )
    script = b"#BSUB -q long -x -oo out -n 2 -R mem>1\n#BSUB -w done(1)\n./a.out\n"
    assert site.bsub(stdin=script)[0] == 0
    spec = site.spec
    assert (list(spec.queues), spec.roles[0].requirement) == (["short"], 'select[model=="X"]')
    assert (spec.run_limit_s, spec.memory_limit_mib, spec.begin_time) == (660, 4, 1795257000.0)
    assert (spec.roles[0].tasks_min, spec.roles[0].tasks_max) == (8, 8)
    assert (spec.exclusive, spec.hold, spec.dependency) == (False, True, "")
    assert (spec.output, spec.output_overwrite) == ("log.%J", True)
    assert spec.command == 'nice ./a.out\nsecond "line"'
    assert [one for one in spec.environment if one.startswith((b"CUSTOMER", b"NEW"))] == [b"CUSTOMER=lab one", b"NEW=a"]


def test_their_order_and_arguments(site: Site) -> None:
    """lsf.md 5.4: esub, LSB_ESUB_METHOD, then -a, each with its own arguments; each sees what came before."""
    site.configure(f'LSF_SERVERDIR={site.programs}\nLSB_ESUB_METHOD="policy policy"\n')
    site.desk.environ["LSB_ESUB_METHOD"] = "own"
    add = f'. $LSB_SUB_PARM_FILE; echo "$LSB_SUB_PROJECT_NAME|$LSB_SUB_ADDITIONAL|$*|$LSF_INVOKE_CMD" >> {site.seen}\n'
    for name in ("esub", "esub.policy", "esub.own", "esub.fluent", "esub.mpi"):
        site.program(name, f'{add}echo LSB_SUB_PROJECT_NAME="${{LSB_SUB_PROJECT_NAME}}+" > $LSB_SUB_MODIFY_FILE')
    assert site.bsub("-P", "p", "-a", "fluent(a, b),mpi()", "true")[0] == 0
    assert site.seen.read_text().splitlines() == [
        "p|fluent(a, b),mpi()||bsub",
        "p+|fluent(a, b),mpi()||bsub",
        "p++|fluent(a, b),mpi()||bsub",
        "p+++|fluent(a, b),mpi()|a b|bsub",
        "p++++|fluent(a, b),mpi()||bsub",
    ]
    assert site.spec.project == "p+++++"


def test_an_esub_refuses_a_job(site: Site, capfd: pytest.CaptureFixture[str]) -> None:
    """lsf.md 1.2 and 5.4: exit $LSB_SUB_ABORT_VALUE; its own words stand before bsub's."""
    site.program("esub", 'echo "no projects today" >&2; exit $LSB_SUB_ABORT_VALUE')
    assert site.bsub("true") == (255, "", "Request aborted by esub. Job not submitted.\n")
    assert capfd.readouterr().err == "no projects today\n"
    assert not site.desk.client.asked


def test_another_exit_code_lets_the_job_pass(site: Site) -> None:
    """lsf.md 5.4: only the abort value rejects; the failure is told."""
    site.program("esub", "exit 3")
    code, out, err = site.bsub("-o", "x", "true")
    assert (code, out) == (0, "Job <1201> is submitted to queue <normal>.\n")
    assert err == "esub ended with exit code 3; only 97 ($LSB_SUB_ABORT_VALUE) refuses the job.\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kill -9 $$", "esub was ended by signal 9."),
        ("echo nonsense > $LSB_SUB_MODIFY_FILE", "esub wrote 'nonsense': expected NAME=value."),
        (
            "echo LSB_SUB_WISH=1 > $LSB_SUB_MODIFY_FILE",
            "esub set LSB_SUB_WISH: lava knows no submission parameter of this name to change.",
        ),
        (
            "echo LSB_SUB_ADDITIONAL=x > $LSB_SUB_MODIFY_FILE",
            "esub set LSB_SUB_ADDITIONAL: lava knows no submission parameter of this name to change.",
        ),
        (
            "echo LSB_SUB_INTERACTIVE=Y > $LSB_SUB_MODIFY_FILE",
            "esub set LSB_SUB_INTERACTIVE: whether a job is interactive is its user's to say.",
        ),
        (
            "echo LSB_SUB_RLIMIT_RUN=soon > $LSB_SUB_MODIFY_FILE",
            "esub set LSB_SUB_RLIMIT_RUN=soon: expected a number of seconds.",
        ),
        (
            "echo LSB_SUB_NUM_PROCESSORS=many > $LSB_SUB_MODIFY_FILE",
            "-n many,many: expected min[,max], such as 4 or 2,8.",
        ),
    ],
)
def test_an_esub_that_errs(site: Site, text: str, why: str) -> None:
    """Nothing is submitted, and the sentence names the program and what it did."""
    site.program("esub", text)
    assert site.bsub("true") == (255, "", f"{why} Job not submitted.\n")
    assert not site.desk.client.asked


def test_programs_that_are_missing(site: Site) -> None:
    """A name without a program, one that cannot be executed, and a site without a directory for them."""
    why = f"Request aborted by esub: there is neither esub.lost nor epsub.lost in {site.programs}. Job not submitted.\n"
    assert site.bsub("-a", "lost", "true") == (255, "", why)
    site.program("esub", "true", 0o644)
    why = f"Request aborted by esub: {site.programs}/esub is no program that you may execute. Job not submitted.\n"
    assert site.bsub("true") == (255, "", why)
    site.configure("")
    why = "Request aborted by esub: esub.x is asked for, but the cluster's lsf.conf has no LSF_SERVERDIR."
    assert site.bsub("-a", "x", "true") == (255, "", f"{why} Job not submitted.\n")
    assert site.bsub("-a", "../x)", "true")[2].endswith("Job not submitted.\n")


def test_only_the_site_names_their_directory(site: Site, tmp_path: Path) -> None:
    """A variable, or a lsf.conf of the caller's own, neither adds a program nor takes one away."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "lsf.conf").write_text(f"LSF_SERVERDIR={own}\nLSB_ESUB_METHOD=\n")
    (own / "esub").write_text(f"#!/bin/sh\ntouch {own}/ran\n")
    (own / "esub").chmod(0o755)
    site.program("esub", "exit 97")
    site.desk.environ |= {"LSF_SERVERDIR": str(own), "LSF_ENVDIR": str(own), "LSB_ESUB_METHOD": ""}
    assert site.bsub("true")[2] == "Request aborted by esub. Job not submitted.\n"
    assert not (own / "ran").exists()


def test_epsub_hears_of_the_job(site: Site) -> None:
    """lsf.md 5.4: epsub runs after the submission with LSB_SUB_JOB_ID and the queue; also after a refusal."""
    site.program(
        "epsub", f'. $LSB_SUB_PARM_FILE; echo "$LSB_SUB_JOB_ID $LSB_SUB_JOB_QUEUE $LSB_SUB_JOB_ERR" >> {site.seen}'
    )
    site.program("epsub.late", f'echo "late $1" >> {site.seen}; exit 2')
    code, out, err = site.bsub("-o", "x", "-a", "late(5)", "true")
    assert (code, out, err) == (
        0,
        "Job <1201> is submitted to queue <normal>.\n",
        "epsub.late ended with exit code 2.\n",
    )
    site.desk.client.submit_results = [jobs_pb2.SubmitResult(error="No such queue")]
    assert site.desk.type("bsub", "true", cwd=str(site.programs)).err == "No such queue. Job not submitted.\n"
    assert site.seen.read_text() == "1201 normal 0\nlate 5\n0  255\n"


def test_a_change_of_a_job(site: Site) -> None:
    """lsf.md 5.4 and 1.2: bmod asks, too; what is taken back is SUB_RESET."""
    site.program(
        "esub",
        f"cat $LSB_SUB_PARM_FILE > {site.seen}; echo $LSB_SUB_MODIFY $LSF_INVOKE_CMD >> {site.seen}\n"
        "echo LSB_SUB_PROJECT_NAME=SUB_RESET > $LSB_SUB_MODIFY_FILE; echo LSB_SUB_QUEUE=q2 >> $LSB_SUB_MODIFY_FILE",
    )
    site.desk.client.modify_reply.results.add(job=7)
    result = site.desk.type("bmod", "-q", "q1", "-wn", "-Z", "new", "7", cwd=str(site.programs))
    assert (result.code, result.err) == (0, "")
    told = ['LSB_SUB_QUEUE="q1"', 'LSB_SUB_COMMAND_LINE="new"', 'LSB_SUB_DEPEND_COND="SUB_RESET"', "Y bmod"]
    assert site.seen.read_text().splitlines() == told
    request = site.desk.client.asked[-1]
    assert list(request.spec.queues) == ["q2"]
    assert set(request.fields) == {"queues", "project", "dependency", "command", "command_bytes", "is_script"}
    assert request.refs[0] == common_pb2.JobRef(job=7)


def test_jobs_of_a_file(site: Site, tmp_path: Path) -> None:
    """The site's rules hold for bsub -yaml, too."""
    file = tmp_path / "job.yaml"
    file.write_text("command: ./a.out\nproject: p\n")
    site.program("esub", RULES + "echo LSB_SUB_PROJECT_NAME=$LSB_SUB_PROJECT_NAME.2 > $LSB_SUB_MODIFY_FILE")
    assert site.bsub("-yaml", str(file))[0] == 0
    assert (site.spec.project, site.spec.command) == ("p.2", "./a.out")


def switch(site: Site, *words: str) -> tuple[int, str, str]:
    """Switch job 7; exit code, queue asked for, errors."""
    site.desk.client.asked.clear()
    site.desk.client.modify_reply = jobs_pb2.ModifyReply(results=[jobs_pb2.SignalResult(job=7)])
    result = site.desk.type("bswitch", *words, cwd=str(site.programs))
    asked = site.desk.client.asked
    return result.code, asked[-1].spec.queues[0] if asked else "", result.err


def test_eswitch_programs_see_a_switch(site: Site) -> None:
    """In LSF's order, each once, and each sees the queue that those before it chose."""
    see = f'cat "$LSB_SWITCH_PARM_FILE" >> {site.seen}; echo "$1" >> {site.seen}\n'
    site.configure(f"LSF_SERVERDIR={site.programs}\nLSB_ESWITCH_METHOD=policy\n")
    site.program("eswitch", see)
    site.program("eswitch.policy", f'{see}echo LSB_SWITCH_QUEUE="night" > $LSB_SWITCH_MODIFY_FILE')
    site.program("eswitch.own", f"{see}exit 3")
    code, queue, errors = switch(site, "-a", "own(x) policy", "day", "7", "8[2]")
    assert (code, queue) == (0, "night")
    assert errors == "eswitch.own ended with exit code 3; only 97 ($LSB_SWITCH_ABORT_VALUE) refuses the switch.\n"
    told = [
        "LSB_SWITCH=Y", 'LSB_SWITCH_ADDITIONAL="{}"', 'LSB_SWITCH_JOB="7 8[2]"', 'LSB_SWITCH_QUEUE="{}"',
    ]  # fmt: skip
    expected = [
        line.format(*words)
        for name, queue, argument in (("", "day", ""), ("policy", "day", ""), ("own", "night", "x"))
        for line, words in zip([*told, argument], ((), (name,), (), (queue,), ()), strict=True)
    ]
    assert site.seen.read_text().splitlines() == expected


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("exit $LSB_SWITCH_ABORT_VALUE", ("day", "7"), "Request aborted by eswitch.\n"),
        ("kill -9 $$", ("day", "7"), "eswitch was ended by signal 9.\n"),
        ("echo LSB_SUB_QUEUE=x > $LSB_SWITCH_MODIFY_FILE", ("day", "7"), "only LSB_SWITCH_QUEUE can be changed"),
        ("exit 0", ("-a", "none", "day", "7"), "Request aborted by eswitch: there is no eswitch.none in "),
        ("exit 0", ("-a", "a(b", "day", "7"), '-a a(b: expected "name[(argument,...)] ...".'),
    ],
)
def test_a_switch_that_the_site_refuses(site: Site, text: str, words: tuple[str, ...], sentence: str) -> None:
    """Nothing is asked of the master."""
    site.program("eswitch", text)
    code, queue, errors = switch(site, *words)
    assert (code, queue) == (255, "")
    assert sentence in errors


def test_a_switch_without_programs(site: Site) -> None:
    """A site with a directory and none of them switches as before; without a directory -a is refused."""
    assert switch(site, "day", "7") == (0, "day", "")
    site.configure("")
    assert switch(site, "day", "7") == (0, "day", "")
    code, queue, errors = switch(site, "-a", "own", "day", "7")
    assert (code, queue) == (255, "")
    assert "eswitch.own is asked for, but the cluster's lsf.conf has no LSF_SERVERDIR." in errors
