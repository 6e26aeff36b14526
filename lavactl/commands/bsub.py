"""bsub: submit a job; with -K wait for its end, with -I and its kin be its terminal.

Exit code: 0 submitted, 255 not; with -K and -I the job's own (126 if it ended without having started).
"""

import time

from lavactl.errors import CommandError, UsageError
from lavactl.options import answered
from lavactl.settings import tries_of
from lavactl.submit.submission import (
    GRAMMAR,
    JOB_FILE_OPTIONS,
    JSDL_OPTIONS,
    USAGE,
    Submission,
    name_programs,
    submission_of,
)
from lavactl.text.exits import exit_code
from lavactl.text.render import clean, is_output_kept, kept_output
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.options import Options

ENDED_PENDING = 126
RETRY_S = 60.0
LINE = 80  # characters; a reason that is longer is printed in full only once
RETRIES = 12  # of a submission refused only for now, unless LSB_NTRIES is set


def main(argv: list[str], io: "Io") -> int:
    """Run bsub."""
    if answered(argv, USAGE, io):
        return 0
    try:
        line = GRAMMAR.parse(argv)
        if (found := next((one for one in line.items if one[0] in JOB_FILE_OPTIONS), None)) is not None:
            if (other := next((name for name in JSDL_OPTIONS if name in line), None)) is not None:
                raise GRAMMAR.wrong(f"-{found[0]} and -{other} cannot be used together")
            return submit_file(found[1], line, io)
        if "pack" in line:
            io.stay()
            from lavactl.submit.pack import submit_pack

            return submit_pack(line, io)
        submission = submission_of(line, io)
        if submission.wait or submission.spec.interactive:
            io.stay()
        for note in submission.notes:
            io.error(note)
        result = sent(submission, io)
    except UsageError as error:
        raise UsageError(not_submitted(error), error.usage) from None
    except UnicodeEncodeError:
        raise CommandError("A name or argument is not UTF-8 text. Job not submitted.") from None
    except CommandError as error:
        raise CommandError(not_submitted(error), error.code) from None
    finish(submission, result, io)
    if submission.spec.interactive:
        from lavactl.tasks.interactive import InteractiveJob

        return InteractiveJob(result.job, submission.spec.interactive, submission.quiet, io).run()
    return wait_for(result.job, submission.quiet, io) if submission.wait else 0


def submit_file(path: str, line: "Options", io: "Io") -> int:
    """Submit the jobs of a job file; with -K wait for all of them: the first failure's exit code, or 0."""
    from lavactl.job_files.handing_in import hand_in

    all_sent = hand_in(path, line, io, sent)
    for submission, result in all_sent:
        finish(submission, result, io)
    codes = [wait_for(result.job, submission.quiet, io) for submission, result in all_sent if submission.wait]
    return next((code for code in codes if code), 0)


def not_submitted(error: CommandError) -> str:
    """``<reason>. Job not submitted.``"""
    reason = str(error).rstrip(".")
    return f"{reason}{'' if reason.endswith('?') else '.'} Job not submitted."


def sent(submission: Submission, io: "Io") -> messages.SubmitResult:
    """Submit the job; of one that is refused the site's epsub programs hear at once."""
    try:
        return submit(submission, io)
    except CommandError as error:
        tell_site(submission, 0, "", error.code, io)
        raise


def finish(submission: Submission, result: messages.SubmitResult, io: "Io") -> None:
    """Tell the user and the site's epsub programs about a submitted job."""
    announce(submission, result, io)
    tell_site(submission, result.job, result.queue, 0, io)


def tell_site(submission: Submission, job: int, queue: str, code: int, io: "Io") -> None:
    """Run the site's epsub programs, if it has any."""
    if submission.esub is not None:
        from lavactl.submit import esub

        esub.after(submission.esub, job, queue, code, io)


def submit(submission: Submission, io: "Io") -> messages.SubmitResult:
    """Send the job; wait and send it again, with the same request id, while the master refuses it only for now."""
    name, is_repeated = io.request_id()
    item = messages.SubmitItem(
        request_id=name, spec=submission.spec, retry=is_repeated, unique_name=submission.has_unique_name
    )
    name_programs(item, io.environ)
    told, attempt = "", 0
    while True:
        attempt += 1
        result = io.client().submit(item)
        if result.job:
            return result
        whole = clean(result.error) or "the master gave no reason"
        reason = whole if whole != told else shortened(whole)
        if not result.retry_later or attempt >= tries_of(io.setting("LSB_NTRIES"), RETRIES):
            raise CommandError(reason)
        io.stay()
        pause_s = result.retry_s or RETRY_S
        io.error(f"{reason.rstrip('.')}. Retrying in {pause_s:.0f} seconds...")
        io.sleep(pause_s)
        item.retry = True
        told = whole


def shortened(reason: str) -> str:
    """Beginning of a long reason, for one that has been printed in full before."""
    return reason if len(reason) <= LINE else reason.partition(": ")[0].partition(". ")[0]


def announce(submission: Submission, result: messages.SubmitResult, io: "Io") -> None:
    """Print the line that wrappers parse, and the notices about times."""
    if submission.quiet:
        return
    default = "default " if result.default_queue or submission.by_default else ""
    say = io.error if "BSUB_STDERR" in io.environ else io.print
    say(f"Job <{result.job}> is submitted to {default}queue <{result.queue}>.")
    is_for_people = io.is_terminal(io.stderr)  # programs keep what they read on standard error for a warning
    spec = submission.spec
    if (
        is_for_people
        or submission.wait
        or submission.esub
        or spec.interactive
        or spec.begin_time
        or spec.terminate_time
    ):
        io.flush()  # something follows; else the line goes with the end of the command
    if is_for_people and is_output_kept(submission.spec, bool(io.site_setting("LSB_MAILPROG"))):
        io.error(kept_output(str(result.job)))
    if submission.spec.begin_time:
        io.error(f"Job will be scheduled after {time.ctime(submission.spec.begin_time)}")
    if submission.spec.terminate_time:
        io.error(f"Job will be terminated by {time.ctime(submission.spec.terminate_time)}")


def wait_for(job: int, quiet: bool, io: "Io") -> int:
    """Wait until the job, or every element of the array, has ended; the first failure's exit code, or 0."""

    def say(notice: str) -> None:
        if not quiet:
            io.error(f"<<{notice}>>")

    say("Waiting for dispatch ...")
    codes: dict[int, int] = {}
    started: set[int] = set()
    for change in io.client().watch([messages.JobRef(job=job)]):
        has_run = change.index in started
        is_over = change.state in (messages.DONE, messages.EXIT)
        if change.hosts and not has_run and (is_over or change.state in (messages.RUN, messages.STAGING)):
            if not started:  # of an array: the host of its first element
                say(f"Starting on {change.hosts[0]}")
            started.add(change.index)
        if is_over and change.index not in codes:
            ran = change.index in started or change.state == messages.DONE
            codes[change.index] = final_code(change, ran)
        elif not is_over:
            codes.pop(change.index, None)  # it was requeued
    if not codes:
        raise CommandError(f"The master stopped telling about Job <{job}> before its end.")
    has_any_run = bool(started) or ENDED_PENDING not in codes.values()
    say("Job is finished" if has_any_run else "Terminated while pending")
    return next((codes[index] for index in sorted(codes) if codes[index]), 0)


def final_code(change: messages.JobChange, ran: bool) -> int:
    """Exit code for one ended job."""
    if change.state == messages.DONE:
        return 0
    if not ran:
        return ENDED_PENDING
    return exit_code(change.exit_status) or 1  # EXIT without a status of its own is still a failure
