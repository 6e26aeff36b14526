"""Mails about a job: which it wants, to whom they go, and their text. Pure.

A job without an output file has its report and its output by mail, as in LSF; one with an output file has a mail if it
asks for it, and then no report in that file.
"""

from collections.abc import Mapping
from typing import NamedTuple

from agents.shepherd.ending import Ending, Heading, date, render
from protos.agents_pb2 import Limits
from protos.jobs_pb2 import JobSpec

PROGRAM, TO, LIMIT = "LSB_MAILPROG", "LSB_MAILTO", "LSB_MAILSIZE_LIMIT"
START, DONE, EXIT = "start", "done", "exit"
OUTPUT_MAX = 8 << 20  # bytes of a mail, where the site sets no limit
REPORT_END = b"The output (if any) is above this job summary."


class MailSettings(NamedTuple):
    """Settings of the site's lsf.conf about mail; none is sent without a program."""

    program: tuple[str, ...] = ()
    to: str = "!U"
    limit: int = OUTPUT_MAX

    @staticmethod
    def of(settings: Mapping[str, str]) -> "MailSettings":
        """Read the settings."""
        said = {name: settings.get(name, "").strip().strip("\"'") for name in (PROGRAM, TO, LIMIT)}
        limit = int(said[LIMIT]) << 10 if said[LIMIT].isascii() and said[LIMIT].isdigit() else OUTPUT_MAX
        return MailSettings(tuple(said[PROGRAM].split()), said[TO] or "!U", min(limit or OUTPUT_MAX, OUTPUT_MAX))


class Output(NamedTuple):
    """Output of a job that goes with the report; ``is_cut`` if the mail has only its beginning."""

    data: bytes = b""
    is_cut: bool = False


def wanted(spec: JobSpec) -> frozenset[str]:
    """Return the events of a job that a mail is sent for."""
    if spec.HasField("tasks"):  # its tasks have ends of their own
        return frozenset()
    found = {word for word in spec.mail_events.split() if word in (START, DONE, EXIT)}
    if spec.mail_begin:
        found.add(START)
    if spec.mail_end or has_output_by_mail(spec):
        found |= {DONE, EXIT}
    if spec.mail_failure:
        found.add(EXIT)
    return frozenset(found)


def has_output_by_mail(spec: JobSpec) -> bool:
    """Return True for a job whose output goes neither to a file nor to a client; jobs in Slurm's words ask for mail."""
    return not (spec.output or spec.interactive or spec.HasField("slurm"))


def has_report_apart(spec: JobSpec) -> bool:
    """Return True for a job whose report goes by mail alone, however it ends."""
    return {DONE, EXIT} <= wanted(spec)


def with_files(spec: JobSpec, limits: Limits | None) -> JobSpec:
    """Return a job with the output files that it was given while it ran (bmod -o, -e), if it has any."""
    if limits is None or not limits.HasField("files") or spec.interactive or spec.HasField("tasks"):
        return spec
    changed = JobSpec()
    changed.CopyFrom(spec)
    changed.output = spec.output and (limits.files.output or spec.output)
    changed.error = limits.files.error
    return changed


def addresses(spec: JobSpec, user: str, settings: MailSettings) -> list[str]:
    """Return whom the job's mails go to: -u, or what LSB_MAILTO makes of its user and submission host."""
    if named := spec.mail_user.replace(",", " ").split():
        return named
    return [settings.to.replace("!U", user).replace("!H", spec.submit_host)]


def at_start(heading: Heading, label: str, name: str, moment: float) -> bytes:
    """Return the mail at a job's start, without its addresses."""
    hosts = "".join(f"\n{' ' * 28}<{host}>" for host in heading.hosts[1:])
    where, name = f"in cluster <{heading.cluster}>", _one_line(name)
    text = f"""\
Subject: Job {label}: <{name}> {where} started

Job <{name}> was submitted from host <{heading.submit_host}> by user <{heading.user}> {where} at \
{date(heading.submit_time)}
Job was executed on host(s) <{(heading.hosts or ("",))[0]}>, in queue <{heading.queue}>, as user <{heading.user}> \
{where} at {date(moment)}{hosts}
"""
    return text.encode("utf-8", "surrogateescape")


def at_end(heading: Heading, ending: Ending, spec: JobSpec, output: Output) -> bytes:
    """Return the mail at a job's end, without its addresses: report, and output that has no file."""
    report = render(tuple(heading), ending._replace(name=_one_line(ending.name)))
    head, _, body = report.partition(b"\n\n")
    subject = head[head.index(b"Subject: ") :]
    if has_output_by_mail(spec):
        tail = b"The output (if any) follows:\n\n" + output.data
        if output.is_cut:
            label = ending.label.encode()
            tail += b"\n(The rest is left out; as long as bjobs -a shows the job, bpeek " + label + b" has it.)\n"
    elif not spec.output:
        tail = b""
    else:
        tail = b"Read file <%s> for stdout output of this job.\n" % spec.output.encode("utf-8", "surrogateescape")
    return subject + b"\n\n" + body.replace(REPORT_END, b"").rstrip() + b"\n\n" + tail


def message(sender: str, to: list[str], letter: bytes) -> bytes:
    """Return a mail as a mail program reads it."""
    head = (
        f"From: LSF System <{sender}>\nTo: {', '.join(to)}\nMIME-Version: 1.0\n"
        "Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\nAuto-Submitted: auto-generated\n"
    )
    return head.encode("utf-8", "surrogateescape") + letter


def _one_line(text: str) -> str:
    return " ".join(text.split())
