"""bsub's handling of its command line, its script and the master's answers."""

import resource
import time
from pathlib import Path

import pytest

from protos import common_pb2, jobs_pb2
from tests.lavactl.scripted import NOW, Desk

RUN, PEND, DONE, EXIT = common_pb2.RUN, common_pb2.PEND, common_pb2.DONE, common_pb2.EXIT

NO_FILE = "No output file: bpeek 1201 shows its output, also for a while after its end\n"


def test_the_line_every_wrapper_parses(desk: Desk) -> None:
    """lsf.md 1.2: one line on stdout, exit code 0."""
    result = desk.type("bsub", "-q", "normal", "sleep", "60")
    assert (result.code, result.out, result.err) == (0, "Job <1201> is submitted to queue <normal>.\n", NO_FILE)
    assert list(desk.spec.queues) == ["normal"]
    assert desk.spec.command == "sleep 60"
    assert not desk.spec.is_script


def test_a_program_reads_no_hint_on_standard_error(desk: Desk) -> None:
    """LSF prints nothing there; tools take what comes for a warning."""
    desk.has_screen = False
    result = desk.type("bsub", "sleep", "60")
    assert (result.code, result.err) == (0, "")


def test_the_default_queue_is_named_so(desk: Desk) -> None:
    """lsf.md 1.2: the second form, when no queue was given."""
    desk.client.submit_results = [jobs_pb2.SubmitResult(job=7, queue="normal", default_queue=True)]
    assert desk.type("bsub", "true").out == "Job <7> is submitted to default queue <normal>.\n"


def test_quiet(desk: Desk) -> None:
    """lsf.md 1.2: BSUB_QUIET suppresses the line."""
    desk.environ["BSUB_QUIET"] = ""
    assert desk.type("bsub", "true").out == ""


def test_every_option_reaches_the_job(desk: Desk) -> None:
    """lsf.md 1.2: effect of each option."""
    desk.type(
        "bsub", "-q", "q1 q2", "-n", "2,8", "-R", "span[ptile=2]", "-W", "1:30", "-We", "20", "-M", "2G",
        "-m", "n1 n2+1", "-J", "sweep[1-10:2,15]%3", "-Jd", "text", "-P", "proj", "-G", "grp",
        "-sp", "50", "-U", "r#1",
        "-oo", "out.%J.%I", "-e", "/tmp/err", "-i", "in", "-cwd", "sub", "-outdir", "results", "-L", "/bin/bash",
        "-gpu", "num=2:mode=shared:j_exclusive=yes", "-x", "-H", "-r", "-w", "done(5)",
        "-E", "pre", "-Ep", "post", "-c", "10", "-C", "0", "-F", "100", "a.out", "-n", "5",
    )  # fmt: skip
    spec = desk.spec
    assert spec.command == "a.out -n 5"
    assert list(spec.queues) == ["q1", "q2"]
    assert (spec.run_limit_s, spec.runtime_estimate_s, spec.memory_limit_mib) == (5400, 1200, 2048)
    assert list(spec.hosts) == ["n1", "n2+1"]
    assert (spec.name, spec.array_limit) == ("sweep", 3)
    assert [(r.first, r.last, r.step) for r in spec.array] == [(1, 9, 2), (15, 15, 1)]
    assert (spec.description, spec.project, spec.user_group) == ("text", "proj", "grp")
    assert (spec.priority, spec.reservation) == (50, "r#1")
    assert (spec.output, spec.output_overwrite) == ("out.%J.%I", True)
    assert (spec.error, spec.error_overwrite) == ("/tmp/err", False)
    assert (spec.input, spec.cwd) == ("in", "/home/alice/run/sub")
    assert (spec.submit_cwd, spec.output_dir) == ("/home/alice/run", "/home/alice/run/results")
    assert (spec.shell, spec.dependency, spec.pre_exec, spec.post_exec) == ("/bin/bash", "done(5)", "pre", "post")
    assert (spec.exclusive, spec.hold, spec.rerunnable, spec.not_rerunnable) == (True, True, True, False)
    assert [(limit.name, limit.soft) for limit in spec.rlimits] == [("cpu", 600), ("fsize", 102400), ("core", 0)]
    role = spec.roles[0]
    assert (role.tasks_min, role.tasks_max, role.slots_per_task, role.requirement) == (2, 8, 1, "span[ptile=2]")
    assert (role.gpu.num, role.gpu.per_task, role.gpu.j_exclusive) == (2, False, True)
    assert spec.umask_plus_one == 0o022 + 1


def test_limits_of_the_whole_job(desk: Desk) -> None:
    """lsf.md, section 3.8: -v in KiB or with a unit, -p and -T as numbers; what is no number is refused."""
    desk.type("bsub", "-v", "1G", "-p", "20", "-T", "40", "x")
    assert [(limit.name, limit.soft) for limit in desk.spec.rlimits] == [
        ("swap", 1 << 30), ("nproc", 20), ("threads", 40),
    ]  # fmt: skip
    for option, text in (("v", "much"), ("p", "0"), ("T", "-1")):
        told = desk.type("bsub", f"-{option}", text, "x")
        assert (told.code, told.err.startswith(f"-{option} {text}: expected a number ")) == (255, True)


def test_limits_of_the_callers_shell(desk: Desk) -> None:
    """-ul passes what ulimit has set, except where an option names another limit; what is unlimited stays so."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE), resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, before[0][1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1][1]))
    try:
        desk.type("bsub", "-ul", "-F", "100", "x")
        found = {limit.name: limit.soft for limit in desk.spec.rlimits}
        assert (found["fsize"], found["core"]) == (100 << 10, 0)
        assert "cpu" not in found
        desk.type("bsub", "-ul", "x")
        assert {limit.name: limit.soft for limit in desk.spec.rlimits}["fsize"] == 1 << 30
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before[0])
        resource.setrlimit(resource.RLIMIT_CORE, before[1])


def test_a_whole_shell_line_as_one_argument(desk: Desk) -> None:
    """lsf-clients.md: snakemake gives its job as one word with quotes in it."""
    line = "python -m snakemake --set x='a b' && echo \"done\""
    desk.type("bsub", "-J", "Snakemake_rule_R:wild=v,(x)/y", line)
    assert desk.spec.command == line
    assert desk.spec.name == "Snakemake_rule_R:wild=v,(x)/y"
    assert not desk.spec.array


def test_a_percent_sign_in_the_name_of_an_array(desk: Desk) -> None:
    """Only behind the list of indices it begins the limit of running elements."""
    desk.type("bsub", "-J", "50%[1-3]", "x")
    assert (desk.spec.name, [(part.first, part.last) for part in desk.spec.array]) == ("50%", [(1, 3)])
    assert not desk.spec.array_limit


def test_script_on_stdin_with_directives(desk: Desk) -> None:
    """lsf-clients.md: dask's header; comments after an option (batchspawner); the command line wins."""
    script = (
        "#!/usr/bin/env bash\n\n#BSUB -J dask-worker\n#BSUB -e dask-worker-%J.err\n#BSUB -q regular\n"
        '#BSUB -n 4\n#BSUB -R "span[hosts=1]"    # keep together\n#BSUB -M 4000000\n#BSUB -W 00:30\n'
        "##BSUB -x\n#BSUBx -H\n\nrun worker\n"
    )
    desk.type("bsub", "-q", "fast", stdin=script.encode())
    spec = desk.spec
    assert (spec.command, spec.is_script) == (script, True)
    assert list(spec.queues) == ["fast"]
    assert (spec.name, spec.error) == ("dask-worker", "dask-worker-%J.err")
    assert (spec.roles[0].tasks_min, spec.roles[0].requirement) == (4, "span[hosts=1]")
    assert (spec.memory_limit_mib, spec.run_limit_s) == (3907, 1800)
    assert not spec.exclusive
    assert not spec.hold


def test_indented_directives_are_reported_and_ignored(desk: Desk) -> None:
    """lsf-clients.md: ipyparallel's template repeats -J, indented, without its index list; all n engines must start."""
    script = "#!/bin/sh\n#BSUB -J ipengine[1-4]\n    #BSUB -J ipengine-abc\n    #BSUB -env all\nipengine\n"
    result = desk.type("bsub", stdin=script.encode())
    assert [(r.first, r.last) for r in desk.spec.array] == [(1, 4)]
    assert result.out == "Job <1201> is submitted to queue <normal>.\n"
    assert result.err.splitlines() == [
        'Line 3 of the job script: "#BSUB" is not at the start of the line and is ignored.',
        'Line 4 of the job script: "#BSUB" is not at the start of the line and is ignored.',
        NO_FILE.rstrip(),
    ]


def test_a_script_written_on_windows(desk: Desk) -> None:
    """CR is removed from its lines: directives, interpreter and commands; a note reports it."""
    script = "#!/bin/sh\r\n#BSUB -J wave -n 2\r\n./wave\r\n"
    result = desk.type("bsub", stdin=script.encode())
    assert desk.spec.command == "#!/bin/sh\n#BSUB -J wave -n 2\n./wave\n"
    assert desk.spec.name == "wave"
    assert "The lines of the job script end in CR LF, as on Windows: they are taken without the CR.\n" in result.err


def test_a_program_written_on_windows(desk: Desk, tmp_path: Path) -> None:
    """It would be started from its file, which cannot be changed: refused, with the remedy."""
    path = tmp_path / "job.sh"
    path.write_bytes(b"#!/bin/sh\r\n./wave\r\n")
    path.chmod(0o755)
    assert desk.type("bsub", str(path), "arg").err == (
        f"{path}: its first line ends in CR LF, so nothing could start it; sed -i 's/\\r$//' mends that."
        " Job not submitted.\n"
    )


def test_several_requirements_are_joined(desk: Desk) -> None:
    """lsf.md 1.2: -R is repeatable and and-ed; a bare condition is wrapped in select beside others."""
    desk.type("bsub", "-R", "mem>500 order[ut]", "-R", "rusage[mem=64.0]", "-R", "span[hosts=1]", "x")
    assert desk.spec.roles[0].requirement == "select[mem>500] order[ut] rusage[mem=64.0] span[hosts=1]"
    desk.client.submit_results = [jobs_pb2.SubmitResult(job=1)]
    desk.type("bsub", "-R", "mem>500", "x")
    assert desk.spec.roles[0].requirement == "mem>500"


def test_a_requirement_of_the_command_line_replaces_the_scripts(desk: Desk) -> None:
    """lsf.md 1.2: the command line wins over the script."""
    desk.type("bsub", "-R", "span[hosts=1]", stdin=b"#BSUB -R mem>1\n#BSUB -R swp>1\nx\n")
    assert desk.spec.roles[0].requirement == "span[hosts=1]"


def test_output_pairs_count_as_one_option(desk: Desk) -> None:
    """-oo on the command line replaces -o of the script."""
    desk.type("bsub", "-oo", "/tmp/b", stdin=b"#BSUB -o /tmp/a\nx\n")
    assert (desk.spec.output, desk.spec.output_overwrite) == ("/tmp/b", True)


def test_output_in_a_directory_is_named_by_the_job(desk: Desk, tmp_path: Path) -> None:
    """An output file that is a directory gets the job's id, and the index in an array."""
    desk.type("bsub", "-o", str(tmp_path), "-e", "logs/", "x")
    assert desk.spec.output == f"{tmp_path}/%J.out"
    assert desk.spec.error == "logs/%J.err"
    desk.client.submit_results = [jobs_pb2.SubmitResult(job=1)]
    desk.type("bsub", "-J", "a[1-2]", "-o", str(tmp_path), "x")
    assert desk.spec.output == f"{tmp_path}/%J.%I.out"


@pytest.mark.parametrize(
    ("unit", "text", "mib"), [("MB", "4000", 4000), ("KB", "4000", 4), ("GB", "2", 2048), ("MB", "3G", 3072)]
)
def test_memory_unit_comes_from_the_configuration(desk: Desk, tmp_path: Path, unit: str, text: str, mib: int) -> None:
    """lsf.md 3.8: LSF_UNIT_FOR_LIMITS of lsf.conf; its last line counts; a suffix overrides it."""
    (tmp_path / "lsf.conf").write_text(f"# conf\nLSF_UNIT_FOR_LIMITS=TB\nLSF_UNIT_FOR_LIMITS={unit}\n")
    desk.environ["LSF_ENVDIR"] = str(tmp_path)
    desk.type("bsub", "-M", text, "x")
    assert desk.spec.memory_limit_mib == mib


@pytest.mark.parametrize(
    ("options", "environ", "found"),
    [
        ((), {"LSB_SUCCESS_EXIT_VALUES": " 3 10-12"}, "3 10-12"),
        (("-env", "none"), {"LSB_SUCCESS_EXIT_VALUES": "3"}, "3"),
        (("-env", "all, LSB_SUCCESS_EXIT_VALUES=4"), {"LSB_SUCCESS_EXIT_VALUES": "3"}, "4"),
        ((), {}, ""),
    ],
)
def test_exit_values_that_mean_success(
    desk: Desk, options: tuple[str, ...], environ: dict[str, str], found: str
) -> None:
    """LSB_SUCCESS_EXIT_VALUES of the environment, or of what -env makes of it."""
    desk.environ |= environ
    assert desk.type("bsub", *options, "true").code == 0
    assert desk.spec.success_exit_values == found


@pytest.mark.parametrize("text", ["x", "256", "5-3", "-3", "3-", "3,4", "\u0663"])
def test_exit_values_that_are_none(desk: Desk, text: str) -> None:
    """One sentence; nothing is submitted."""
    desk.environ["LSB_SUCCESS_EXIT_VALUES"] = text
    done = desk.type("bsub", "true")
    assert done.code == 255
    expected = "expected exit codes from 0 to 255, as in 3 10-12. Job not submitted."
    assert done.err == f"LSB_SUCCESS_EXIT_VALUES={text}: {expected}\n"
    assert not desk.client.asked


def test_environment_is_the_callers_less_the_batch_systems(desk: Desk) -> None:
    """lsf.md 4.2: the submit environment is copied, minus LSB_* and TERM; the caller's LC_CTYPE is not invented."""
    desk.environ |= {"LSB_JOBID": "5", "TERM": "xterm", "LS_COLORS": "x", "TOKEN": "a=b", "CUDA_VISIBLE_DEVICES": "1"}
    desk.type("bsub", "x")
    names = {entry.split(b"=")[0] for entry in desk.spec.environment}
    assert names == {b"PATH", b"HOME", b"LSF_ENVDIR", b"LS_COLORS", b"TOKEN"}
    assert b"TOKEN=a=b" in desk.spec.environment


def test_cuda_devices_named_by_the_user_are_kept(desk: Desk) -> None:
    """Outside a job CUDA_VISIBLE_DEVICES is the user's own."""
    desk.environ["CUDA_VISIBLE_DEVICES"] = "1"
    desk.type("bsub", "x")
    assert b"CUDA_VISIBLE_DEVICES=1" in desk.spec.environment


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("all", {b"A=1", b"B=2", b"PATH=/usr/bin"}),
        ("none", set()),
        ("A", {b"A=1"}),
        ("A=9, C=x", {b"A=9", b"C=x"}),
        ("all, ~A, B=3", {b"B=3", b"PATH=/usr/bin"}),
    ],
)
def test_env_option(desk: Desk, option: str, expected: set[bytes]) -> None:
    """lsf.md 1.2: -env all, none, or a list."""
    desk.environ = {"A": "1", "B": "2", "PATH": "/usr/bin"}
    desk.type("bsub", "-env", option, "x")
    assert set(desk.spec.environment) == expected


def test_whole_hosts(desk: Desk) -> None:
    """lsf-clients.md: parsl's default asks for -nnodes."""
    desk.type("bsub", "-nnodes", "3", "x")
    role = desk.spec.roles[0]
    assert (role.tasks_min, role.tasks_max, role.requirement, desk.spec.exclusive) == (3, 3, "span[ptile=1]", True)


class TestScriptFile:
    """lsf-clients.md: dask (use_stdin=False) and parsl call `bsub FILE` and remove the file at once."""

    TEXT = "#!/bin/bash\n\n#BSUB -W 5\n#BSUB -J name.block-0\necho hi\n"

    def script(self, folder: Path, mode: int = 0o644) -> Path:
        """A script file."""
        path = folder / "job.sh"
        path.write_text(self.TEXT)
        path.chmod(mode)
        return path

    def test_a_file_that_is_no_program_is_taken_as_the_script(self, desk: Desk, tmp_path: Path) -> None:
        """Text and directives are taken at submission."""
        self.script(tmp_path)
        desk.type("bsub", "job.sh", cwd=str(tmp_path))
        assert (desk.spec.command, desk.spec.is_script) == (self.TEXT, True)
        assert (desk.spec.run_limit_s, desk.spec.name) == (300, "name.block-0")

    def test_an_executable_file_is_a_command(self, desk: Desk, tmp_path: Path) -> None:
        """lsf.md 1.2: a script file given as an argument is not scanned by default."""
        path = self.script(tmp_path, 0o755)
        desk.type("bsub", str(path))
        assert (desk.spec.command, desk.spec.is_script, desk.spec.name) == (str(path), False, "")

    def test_parsing_can_be_asked_for(self, desk: Desk, tmp_path: Path) -> None:
        """lsf.md 1.2: LSB_BSUB_PARSE_SCRIPT=Y; with arguments only the directives are taken."""
        path = self.script(tmp_path, 0o755)
        desk.environ["LSB_BSUB_PARSE_SCRIPT"] = "Y"
        desk.type("bsub", str(path), "arg")
        assert (desk.spec.command, desk.spec.is_script, desk.spec.run_limit_s) == (f"{path} arg", False, 300)

    def test_parsing_can_be_forbidden(self, desk: Desk, tmp_path: Path) -> None:
        """LSB_BSUB_PARSE_SCRIPT=N."""
        path = self.script(tmp_path)
        desk.environ["LSB_BSUB_PARSE_SCRIPT"] = "N"
        desk.type("bsub", str(path))
        assert (desk.spec.command, desk.spec.is_script) == (str(path), False)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["-n", "0", "x"], "-n 0: expected min[,max], such as 4 or 2,8. Job not submitted."),
        (["-n", "", "x"], "-n: expected a value, found an empty one. Job not submitted."),
        (["-w", " ", "x"], "-w: expected a value, found an empty one. Job not submitted."),
        (["-n", "8,2", "x"], "-n 8,2: expected min[,max], such as 4 or 2,8. Job not submitted."),
        (["-W", "abc", "x"], "-W abc: expected [hours:]minutes, such as 90 or 1:30. Job not submitted."),
        (["-M", "lots", "x"],
         "-M lots: expected a number, optionally followed by K, M, G or T, such as 4G. Job not submitted."),
        (["-J", "a[0-3]", "x"], "a[0-3]: Job array index error. Job not submitted."),
        (["-J", "a[1-3", "x"], "a[1-3: Job array index error. Job not submitted."),
        (["-J", "a[1-3]%-1", "x"], "a[1-3]%-1: Job array index error. Job not submitted."),
        (["-J", "a[1-3]%", "x"], "a[1-3]%: Job array index error. Job not submitted."),
        (["-gpu", "num=x", "x"], "-gpu num=x: expected num=N with N from 1 to 1024. Job not submitted."),
        (["-b", "25:00", "x"], "-b 25:00: Bad time specification. Job not submitted."),
        (["-b", "23:59", "-t", "23:59", "x"], "Start time is later than termination time. Job not submitted."),
        (["-IX", "bash"],
         "bsub -IX: X11 is not forwarded; -Is with a DISPLAY that the host can reach does it. Job not submitted."),
        (["-Is", "-K", "bash"],
         "-K and -Is cannot be combined: bsub waits for an interactive job anyway. Job not submitted."),
        (["-r", "-I", "x"], "-r and -I cannot be combined: an interactive job is not run again. Job not submitted."),
        (["-tty", "x"], "-tty is for interactive jobs: -I makes one. Job not submitted."),
        (["-I", "-tty", "-o", "f", "x"],
         "-tty beside -o or -e is not supported: output goes to the file or to the terminal. Job not submitted."),
        ([], "Empty job. Job not submitted."),
        ([" "], "No command is specified. Job not submitted."),
    ],
)  # fmt: skip
def test_errors_name_the_reason(desk: Desk, argv: list[str], sentence: str) -> None:
    """lsf.md 1.2: `<reason>. Job not submitted.` on stderr, exit code 255."""
    result = desk.type("bsub", *argv)
    assert (result.code, result.out, result.err) == (255, "", sentence + "\n")
    assert not desk.client.asked


def test_an_error_in_a_directive_names_its_line(desk: Desk) -> None:
    """The reader is led to the line of the script."""
    assert desk.type("bsub", stdin=b"#!/bin/sh\n#BSUB -zz\nx\n").err == (
        "Line 2 of the job script: bsub: illegal option -- zz. Job not submitted.\n"
    )
    assert desk.type("bsub", stdin=b"#BSUB -J my job\nx\n").err == (
        "Line 1 of the job script: job is no option; quote a value that has blanks. Job not submitted.\n"
    )
    assert desk.type("bsub", stdin=b'x\n#BSUB -J "my job\n').err == (
        'Line 2 of the job script: the quote " is not closed. Job not submitted.\n'
    )


LATIN = b"#!/bin/sh\n# d\xe9but\necho \xe9\n"
READABLE = LATIN.decode("utf-8", "replace")


def test_bytes_that_are_no_text_pass_through(desk: Desk, tmp_path: Path) -> None:
    """A script or command in another encoding reaches the job byte for byte; names of files have to be text."""
    (tmp_path / "job.sh").write_bytes(LATIN)
    (tmp_path / "pack").write_bytes(b"echo \xe9\n")
    desk.client.submit_results = [jobs_pb2.SubmitResult(job=7, queue="q") for _ in range(5)]
    for argv, stdin in ((("bsub",), LATIN), (("bsub", "-Zs", "job.sh"), b""), (("sbatch",), LATIN)):
        assert desk.type(*argv, stdin=stdin, cwd=str(tmp_path)).code == 0
        assert (desk.spec.command_bytes, desk.spec.command) == (LATIN, READABLE)
    for argv in (("bsub", "echo \udce9"), ("bsub", "-pack", "pack")):
        assert desk.type(*argv, cwd=str(tmp_path)).code == 0
        assert (desk.spec.command_bytes, desk.spec.command) == (b"echo \xe9", "echo \ufffd")
    assert desk.type("bsub", "-o", "\udcff", "x").err == "A name or argument is not UTF-8 text. Job not submitted.\n"


def test_a_change_of_the_command_changes_its_bytes(desk: Desk) -> None:
    """bmod -Z gives a text in place of bytes, and the other way round."""
    desk.client.modify_reply.results.add(job=7)
    for command, found in (("echo \udce9", b"echo \xe9"), ("echo e", b"")):
        assert desk.type("bmod", "-Z", command, "7").code == 0
        request = desk.client.asked[-1]
        assert (request.spec.command_bytes, "command_bytes" in request.fields) == (found, True)


def test_a_script_that_is_no_text(desk: Desk) -> None:
    """Each is refused with a sentence: no shell could read it."""
    assert desk.type("bsub", stdin=b"a\0b\n").err == (
        "The job script holds a NUL byte: it is no text. Job not submitted.\n"
    )
    assert desk.type("bsub", stdin="true\n".encode("utf-16")).err == (
        "The job script is UTF-16 text, which no shell reads: save it as UTF-8. Job not submitted.\n"
    )


def test_refusal_by_the_master(desk: Desk) -> None:
    """lsf.md 1.2: the master's reason and the fixed ending."""
    desk.client.submit_results = [jobs_pb2.SubmitResult(error="nope: No such queue")]
    result = desk.type("bsub", "-q", "nope", "x")
    assert (result.code, result.err) == (255, "nope: No such queue. Job not submitted.\n")
    desk.client.submit_results = [jobs_pb2.SubmitResult(error="a\x1b[2J\n: No such queue")]
    assert desk.type("bsub", "-q", "a\x1b[2J\n", "x").err == "a\\e[2J\\n: No such queue. Job not submitted.\n"


def test_refusal_for_now_is_tried_again_with_the_same_id(desk: Desk) -> None:
    """lsf.md 1.2: `Retrying in 60 seconds...`; the request id stays, so the master cannot make two jobs of it."""
    later = jobs_pb2.SubmitResult(error="Pending job threshold reached", retry_later=True)
    desk.client.submit_results = [later, jobs_pb2.SubmitResult(job=8, queue="q")]
    result = desk.type("bsub", "x")
    assert result.err == "Pending job threshold reached. Retrying in 60 seconds...\n" + NO_FILE.replace("1201", "8")
    assert result.out == "Job <8> is submitted to queue <q>.\n"
    first, second = desk.client.asked
    assert first.request_id == second.request_id
    assert (first.retry, second.retry) == (False, True)
    assert desk.slept == [60.0]


def test_mail_options_leave_a_note_where_no_mail_is_sent(desk: Desk) -> None:
    """An option without effect is not swallowed."""
    result = desk.type("bsub", "-N", "-u", "a@b", "x")
    assert result.code == 0
    why = "has no effect: the cluster's lsf.conf names no LSB_MAILPROG, so no mail is sent.\n"
    assert result.err == f"-u {why}-N {why}{NO_FILE}"


def test_output_that_comes_by_mail_is_not_announced_as_kept(desk: Desk, tmp_path: Path) -> None:
    """A job without an output file has its output by mail, where the site sends mails."""
    (tmp_path / "agent.lsf").mkdir()
    (tmp_path / "agent.lsf" / "lsf.conf").write_text("LSB_MAILPROG=/usr/sbin/sendmail\n")
    desk.environ["LAVA_SOCKET"] = str(tmp_path / "agent.sock")
    result = desk.type("bsub", "x")
    assert (result.code, result.err) == (0, "")


def test_begin_and_termination_times(desk: Desk) -> None:
    """lsf.md 1.2: -b and -t are the next such moments, and are announced."""
    result = desk.type("bsub", "-b", "20:00", "-t", "23:8:15", "x")
    assert time.gmtime(desk.spec.begin_time)[:5] == (2026, 11, 21, 20, 0)
    assert time.gmtime(desk.spec.terminate_time)[:5] == (2026, 11, 23, 8, 15)
    assert result.err == NO_FILE + (
        "Job will be scheduled after Sat Nov 21 20:00:00 2026\nJob will be terminated by Mon Nov 23 08:15:00 2026\n"
    )
    desk.client.submit_results = [jobs_pb2.SubmitResult(job=1)]
    desk.type("bsub", "-b", "09:00", "x")
    assert desk.spec.begin_time - NOW == pytest.approx(23.5 * 3600)


class TestInteractive:
    """lsf.md 1.2: bsub -I and its kin, as far as no job runs."""

    @pytest.mark.parametrize(
        ("options", "streams", "has_term"),
        [
            (["-I"], "pipes", False), (["-IS"], "pipes", False), (["-Ip"], "terminal", True),
            (["-ISp"], "terminal", True), (["-Is"], "shell", True), (["-ISs"], "shell", True),
            (["-I", "-Is", "-tty"], "shell", True), ([], "", False),
        ],
    )  # fmt: skip
    def test_options(self, desk: Desk, options: list[str], streams: str, has_term: bool) -> None:
        """The last one counts; a job on a terminal has the caller's TERM."""
        desk.environ["TERM"] = "xterm"
        desk.type("bsub", *options, "bash")
        spec = desk.client.asked[0].spec
        assert (spec.interactive, b"TERM=xterm" in spec.environment) == (streams, has_term)

    def test_a_directive_makes_a_job_interactive(self, desk: Desk) -> None:
        """#BSUB -I, of a script on standard input, whose job then has none."""
        desk.type("bsub", stdin=b"#BSUB -I\ndate\n")
        assert desk.client.asked[0].spec.interactive == "pipes"

    def test_one_that_ends_while_pending(self, desk: Desk) -> None:
        """126 and LSF's notices, as with -K; nothing is said of kept output, since there is none."""
        desk.client.changes = [jobs_pb2.JobChange(job=1201, state=EXIT)]
        result = desk.type("bsub", "-Is", "bash")
        assert result.code == 126
        assert result.err == "<<Waiting for dispatch ...>>\n<<Terminated while pending>>\n"

    def test_one_that_could_not_be_started(self, desk: Desk) -> None:
        """Its end says why."""
        change = jobs_pb2.JobChange(
            job=1201, state=EXIT, hosts=["n1"], exit_status=127 << 8, exit_reason="No such file."
        )
        desk.client.changes = [change]
        result = desk.type("bsub", "-I", "nothing")
        assert (result.code, result.err.splitlines()[-1]) == (127, "Job <1201>: No such file.")


class TestWaiting:
    """lsf.md 1.2: bsub -K."""

    def changes(self, *changes: tuple[int, common_pb2.JobState, int, str]) -> list[jobs_pb2.JobChange]:
        """(index, state, wait status, host)."""
        return [
            jobs_pb2.JobChange(job=1201, index=index, state=state, exit_status=status, hosts=[host] if host else [])
            for index, state, status, host in changes
        ]

    def test_returns_the_jobs_exit_code(self, desk: Desk) -> None:
        """The notices go to stderr."""
        desk.client.changes = self.changes((0, PEND, 0, ""), (0, RUN, 0, "n001"), (0, EXIT, 7 << 8, "n001"))
        result = desk.type("bsub", "-K", "x")
        assert result.code == 7
        assert result.err == NO_FILE + "<<Waiting for dispatch ...>>\n<<Starting on n001>>\n<<Job is finished>>\n"
        assert desk.client.asked[0].spec.notify_end

    def test_a_signal_is_128_and_more(self, desk: Desk) -> None:
        """lsf.md 2.4: as in a shell."""
        desk.client.changes = self.changes((0, EXIT, 9, "n001"))
        assert desk.type("bsub", "-K", "x").code == 137

    def test_a_job_ended_while_pending_is_126(self, desk: Desk) -> None:
        """lsf.md 1.2: 126 if the job ended while pending."""
        desk.client.changes = self.changes((0, PEND, 0, ""), (0, EXIT, 0, ""))
        result = desk.type("bsub", "-K", "x")
        assert result.code == 126
        assert result.err.endswith("<<Terminated while pending>>\n")

    def test_an_array_fails_with_its_first_failure(self, desk: Desk) -> None:
        """Every element is waited for."""
        desk.client.changes = self.changes((2, EXIT, 3 << 8, "n1"), (1, DONE, 0, "n1"), (3, EXIT, 4 << 8, "n1"))
        assert desk.type("bsub", "-K", "-J", "a[1-3]", "x").code == 3

    def test_a_watch_that_ends_early_is_a_failure(self, desk: Desk) -> None:
        """No end seen is not success."""
        desk.client.changes = self.changes((0, RUN, 0, "n001"))
        result = desk.type("bsub", "-K", "x")
        assert result.code == 255
        assert "Job <1201>" in result.err


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("saved 30", ("saved", 1800, False, False)),
        ("saved 0", ("saved", 0, True, False)),
        ("240", ("240", 0, False, True)),
        ("240 30", ("240", 1800, False, False)),
        ("./240", ("240", 0, False, False)),
    ],
)
def test_periods_of_checkpoints(desk: Desk, text: str, terms: tuple[str, float, bool, bool]) -> None:
    """-k: a period of 0 is none at all, and a number alone may be the period (lsf.md 1.4: -k)."""
    assert desk.type("bsub", "-k", text, "true").code == 0
    one = desk.spec.checkpoint
    assert (one.directory.rpartition("/")[2], one.period_s, one.no_period, one.names_minutes) == terms
