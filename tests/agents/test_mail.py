"""Mails about jobs: which a job wants, to whom they go, their text, and that a failing program harms nothing."""

import time
from collections.abc import Iterator

import pytest

from agents.mail import letters
from agents.mail.letters import MailSettings, Output
from agents.shepherd.ending import Ending, Heading, is_success
from agents.shepherd.messages import Finish
from protos.agents_pb2 import Limits
from protos.jobs_pb2 import JobSpec, SlurmTerms, TaskRules

SUBMITTED, STARTED, ENDED = 1795165331.0, 1795165335.0, 1795167155.0  # Fri Nov 20 09:02:11 2026 and later
HEADING = Heading(
    "lsfadmin@n001", "c1", "alice", "login1", SUBMITTED, ("4*n001", "2*n002"), "normal", "/home/alice",
    "mpirun ./md npt.in", 4096, False,
)  # fmt: skip
FINISH = Finish(1201, 0, 1, 0, ENDED, 7200.12, 2048, 1800.0, 9, "", "", 4711, STARTED, True, threads_max=33)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at_end(spec: JobSpec, output: Output) -> str:
    """The mail at the end of the job of lsf.md's report."""
    ending = Ending("1201", "md_npt", "/home/alice/run", FINISH, "")
    return letters.at_end(HEADING, ending, spec, output).decode()


def test_report_with_output() -> None:
    """lsf.md 1.2: the shape that tools grep; the output follows."""
    text = at_end(JobSpec(), Output(b"step 1\nstep 2\n"))
    assert text.startswith(
        "Subject: Job 1201: <md_npt> in cluster <c1> Done\n"
        "\n"
        "Job <md_npt> was submitted from host <login1> by user <alice> in cluster <c1> at Fri Nov 20 09:02:11 2026\n"
        "Job was executed on host(s) <4*n001>, in queue <normal>, as user <alice> in cluster <c1>"
        " at Fri Nov 20 09:02:15 2026\n"
        "                            <2*n002>\n"
        "</home/alice> was used as the home directory.\n"
        "</home/alice/run> was used as the working directory.\n"
        "Started at Fri Nov 20 09:02:15 2026\n"
        "Terminated at Fri Nov 20 09:32:35 2026\n"
    )
    assert "\nSuccessfully completed.\n" in text
    assert text.endswith("\n\nThe output (if any) follows:\n\nstep 1\nstep 2\n")
    assert text.count("The output (if any)") == 1


def test_output_that_is_too_long() -> None:
    """LSB_MAILSIZE_LIMIT: the mail says what it lacks, and where that is."""
    text = at_end(JobSpec(), Output(b"beginning", is_cut=True))
    assert text.endswith("beginning\n(The rest is left out; as long as bjobs -a shows the job, bpeek 1201 has it.)\n")


def test_report_apart() -> None:
    """-o and -N: the report alone, with the name of the output file."""
    text = at_end(JobSpec(output="/home/alice/out", mail_end=True), Output())
    assert text.endswith("Read file </home/alice/out> for stdout output of this job.\n")
    assert "The output (if any)" not in text


def test_report_apart_of_a_job_whose_files_were_changed() -> None:
    """bmod -o of a running job: the mail names the new file. Output that goes by mail still does."""
    limits = Limits(version=1)
    spec = JobSpec(output="/home/alice/out", mail_end=True)
    assert letters.with_files(spec, None) == letters.with_files(spec, limits) == spec
    limits.files.output, limits.files.error = "/home/alice/new", "/home/alice/errors"
    changed = letters.with_files(spec, limits)
    assert at_end(changed, Output()).endswith("Read file </home/alice/new> for stdout output of this job.\n")
    assert changed.error == "/home/alice/errors"
    assert letters.has_output_by_mail(letters.with_files(JobSpec(), limits))


def test_report_of_a_job_without_files() -> None:
    """An interactive job: its client had the output."""
    text = at_end(JobSpec(interactive="shell", mail_end=True), Output())
    assert "Read file" not in text
    assert "The output (if any)" not in text


def test_start() -> None:
    """-B: where it runs."""
    text = letters.at_start(HEADING, "1201[3]", "sweep[3]", STARTED).decode()
    assert text == (
        "Subject: Job 1201[3]: <sweep[3]> in cluster <c1> started\n"
        "\n"
        "Job <sweep[3]> was submitted from host <login1> by user <alice> in cluster <c1> at Fri Nov 20 09:02:11 2026\n"
        "Job was executed on host(s) <4*n001>, in queue <normal>, as user <alice> in cluster <c1>"
        " at Fri Nov 20 09:02:15 2026\n"
        "                            <2*n002>\n"
    )


@pytest.mark.parametrize(
    ("spec", "events"),
    [
        (JobSpec(), "done exit"),
        (JobSpec(output="o"), ""),
        (JobSpec(output="o", mail_end=True), "done exit"),
        (JobSpec(output="o", mail_failure=True), "exit"),
        (JobSpec(output="o", mail_begin=True), "start"),
        (JobSpec(output="o", mail_events="done start"), "done start"),
        (JobSpec(interactive="shell"), ""),
        (JobSpec(interactive="shell", mail_end=True), "done exit"),
        (JobSpec(slurm=SlurmTerms(command="sbatch")), ""),
        (JobSpec(slurm=SlurmTerms(command="sbatch"), mail_events="exit"), "exit"),
        (JobSpec(tasks=TaskRules(format=1), mail_end=True), ""),
    ],
)
def test_which_mails_a_job_wants(spec: JobSpec, events: str) -> None:
    """lsf.md 1.2: -u -B -N -Ne -notify; without -o report and output."""
    assert letters.wanted(spec) == set(events.split())
    assert letters.has_report_apart(spec) is (events == "done exit")


def test_settings_and_addresses() -> None:
    """lsf.md 6.6: LSB_MAILTO `!U`, LSB_MAILPROG, LSB_MAILSIZE_LIMIT; no program, no mail."""
    assert not MailSettings.of({}).program
    assert not MailSettings.of({"LSB_MAILTO": "!U"}).program
    settings = MailSettings.of(
        {"LSB_MAILPROG": '"/usr/sbin/sendmail -v"', "LSB_MAILTO": "!U@!H.example.org", "LSB_MAILSIZE_LIMIT": "2"}
    )
    assert settings == MailSettings(("/usr/sbin/sendmail", "-v"), "!U@!H.example.org", 2048)
    spec = JobSpec(submit_host="login1")
    assert letters.addresses(spec, "alice", settings) == ["alice@login1.example.org"]
    assert letters.addresses(spec, "alice", MailSettings()) == ["alice"]
    spec.mail_user = "ann@example.org, bob"
    assert letters.addresses(spec, "alice", settings) == ["ann@example.org", "bob"]
    spec.mail_user = ", bob,"
    assert letters.addresses(spec, "alice", settings) == ["bob"]
    spec.mail_user = " , "
    assert letters.addresses(spec, "alice", settings) == ["alice@login1.example.org"]


def test_a_name_of_several_lines_adds_no_header() -> None:
    """Headers end with the first empty line: a job's name must not bring one, or another address."""
    ending = Ending("7", "a\n\nBcc: eve", "/", FINISH, "")
    text = letters.at_end(HEADING, ending, JobSpec(), Output()).decode()
    mail = letters.message("root@n001", ["alice"], text.encode()).decode()
    head = mail.partition("\n\n")[0]
    assert [line.partition(":")[0] for line in head.splitlines()] == [
        "From", "To", "MIME-Version", "Content-Type", "Content-Transfer-Encoding", "Auto-Submitted", "Subject",
    ]  # fmt: skip


def test_an_exit_code_that_means_success() -> None:
    """SUCCESS_EXIT_VALUES: the report says Done, unless a signal or a reason of its own ended the job."""
    codes = (3, 9)
    assert is_success(FINISH._replace(status=3 << 8), codes)
    assert not is_success(FINISH._replace(status=4 << 8), codes)
    assert not is_success(FINISH._replace(status=9), codes)
    assert not is_success(FINISH._replace(status=3 << 8, reason="TERM_RUNLIMIT"), codes)
