"""Sending of mails about this host's jobs by the site's mail program, as the job's user.

Invariants: without LSB_MAILPROG nothing is sent; a mail that cannot be sent is logged and holds up nothing; a job's
start and end are told at most once on this host, also if the shepherd tells them again or the agent is another one: the
journal has what was sent; what happens before the master has told the site's settings is told then; few programs run
at once.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import NamedTuple

from agents.attempts.attempts import Attempts
from agents.attempts.journal import Journal, mailed_record
from agents.attempts.ledger import Ledger
from agents.attempts.ledger_entry import Entry
from agents.attempts.resizes import name_of
from agents.job_setup.preparation import Preparation
from agents.job_setup.users import words_of_user
from agents.mail import letters
from agents.mail.letters import Output
from agents.shepherd import messages
from agents.shepherd.ending import Ending, is_success
from agents.shepherd.messages import Finish, JobSetup, Key, Message, fields_of
from agents.shepherd.process.start import expand
from agents.shepherd.spool import kept_path
from protos.common_pb2 import Usage

LOG = logging.getLogger("lava.mail")

AT_ONCE = 4
WAITING_MAX = 10_000  # mails; more are dropped, with a line in the log
TIMEOUT_S = 120.0
TOLD_MAX = 20_000
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def as_user(job: JobSetup) -> tuple[str, ...]:
    """Return the words before a command line that has to run as the job's user; none for an agent without root."""
    return words_of_user(job.uid, job.gid, job.groups)


class _Happened(NamedTuple):
    """Start or, with ``finish``, end of an attempt; ``job`` is None if this agent has not prepared it."""

    entry: Entry
    job: JobSetup | None
    moment: float
    finish: Finish | None = None


def _end_reported(entry: Entry, used: Usage) -> Finish | None:
    """Return the end as it was reported, with the usage known; None if there is none."""
    if entry.last is None or not entry.last.HasField("finished"):
        return None
    end = entry.last.finished
    return Finish(
        *entry.key, end.status, end.time, used.cpu_s, used.memory_mib_max, used.memory_mib_mean, used.processes_max,
        end.reason, end.detail, end.pid, end.started, True, used.user_s, used.system_s, used.swap_mib_max,
        used.threads_max, used.seconds,
    )  # fmt: skip


class Mailer:
    """Mails about the attempts whose command runs on this host."""

    def __init__(
        self,
        ledger: Ledger,
        journal: Journal,
        attempts: Attempts,
        preparation: Preparation,
        outputs: str,
        prepare: Callable[[Entry], Awaitable[None]],
    ) -> None:
        """``prepare`` lets ``attempts`` know an attempt of an earlier agent."""
        self._ledger = ledger
        self._journal = journal
        self._attempts = attempts
        self._preparation = preparation
        self._outputs = outputs
        self._prepare = prepare
        self._missed: list[_Happened] | None = []  # until the site's settings are known
        self._told: OrderedDict[tuple[Key, str], None] = OrderedDict()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._sending: set[asyncio.Task[None]] = set()

    @property
    def _program(self) -> tuple[str, ...]:
        return self._preparation.mail.program

    def on_message(self, message: Message) -> None:
        """Handle a message of a shepherd, before its attempt is forgotten."""
        kind = message[0]
        if kind not in (messages.STARTED, messages.FINISHED) or (self._missed is None and not self._program):
            return
        key: Key = message[1:4]
        entry, job = self._ledger.entries.get(key), self._attempts.prepared(key)
        if entry is None or job is None:
            return
        if kind == messages.STARTED:
            self._take(_Happened(entry, job, message[5]))
        else:
            finish = fields_of(Finish, message[1:])
            self._take(_Happened(entry, job, finish.time, finish))

    def on_lost(self, entry: Entry, job: JobSetup | None, finish: Finish | None, used: Usage) -> None:
        """Handle the end of an attempt whose shepherd died, when it has been reported.

        ``finish`` is the end that the shepherd recorded before; ``used`` is the newest known usage.
        """
        finish = finish or _end_reported(entry, used)
        if finish is not None and entry.launched and entry.blob.user:
            self._take(_Happened(entry, job, finish.time, finish))

    def missed(self, entry: Entry, moment: float, finish: Finish | None = None) -> None:
        """Take the start or, with ``finish``, the end of an attempt, found when this agent began."""
        if entry.blob.user:  # else its order is not known
            self._take(_Happened(entry, None, moment, finish))

    def take_settings(self) -> None:
        """Tell what has happened until now; to be called when the master has told the site's settings."""
        missed, self._missed = self._missed, None
        if missed and self._program:
            self._spawn(self._tell_missed(missed))

    def _take(self, one: _Happened) -> None:
        if self._missed is None:
            if self._program and one.job is not None:
                self._tell_of(one, one.job)
        elif letters.wanted(one.entry.blob.spec):
            self._missed.append(one)

    async def _tell_missed(self, missed: list[_Happened]) -> None:
        for one in missed:
            job = await self._setup_of(one)
            if job is not None:
                self._tell_of(one, job)
            else:
                key = one.entry.key
                LOG.warning("event=mail_not_sent job=%d index=%d attempt=%d reason=%r", *key, "it was not prepared")

    async def _setup_of(self, one: _Happened) -> JobSetup | None:
        """Return the setup of an attempt, of an earlier agent's prepared anew; nothing is kept of one that is over."""
        key = one.entry.key
        job = one.job or self._attempts.prepared(key)
        if job is not None:
            return job
        await self._prepare(one.entry)
        job = self._attempts.prepared(key)
        if self._ledger.is_over(one.entry):
            self._attempts.forget(key)
            self._preparation.drop_lists(name_of(key))
            if not self._ledger.holds(key[0]):
                self._preparation.forget(key[0])
        return job

    def _tell_of(self, one: _Happened, job: JobSetup) -> None:
        entry, _, moment, finish = one
        if job.program is None:
            return
        if finish is None:
            self._tell(entry, job, letters.START, moment)
            return
        if finish.started:  # the start of a short job is not told by itself
            self._tell(entry, job, letters.START, finish.started)
        self._tell(
            entry,
            job,
            letters.DONE if is_success(finish, job.around.success_codes) else letters.EXIT,
            finish.time,
            finish,
        )

    def _tell(self, entry: Entry, job: JobSetup, event: str, moment: float, finish: Finish | None = None) -> None:
        spec, kind = entry.blob.spec, letters.START if finish is None else letters.DONE
        if event not in letters.wanted(spec) or kind in entry.mailed or (entry.key, kind) in self._told:
            return
        self._told[(entry.key, kind)] = None
        if len(self._told) > TOLD_MAX:
            self._told.popitem(last=False)
        if len(self._sending) >= WAITING_MAX:
            LOG.warning("event=mail_dropped job=%d index=%d attempt=%d reason=%r", *entry.key, "too many are waiting")
            return
        self._spawn(self._send(entry, job, finish, moment))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, entry: Entry, job: JobSetup, finish: Finish | None, moment: float) -> None:
        async with self._slots:
            try:
                to, mail = await asyncio.to_thread(self._compose, entry, job, finish, moment)
                self._note(entry, letters.START if finish is None else letters.DONE)
                why = await self._run(job, to, mail)
            except OSError as error:
                why = error.strerror or str(error)
            except TimeoutError:
                why = f"it took longer than {TIMEOUT_S:.0f} seconds"
        if why:
            LOG.warning("event=mail_not_sent job=%d index=%d attempt=%d reason=%r", *entry.key, why)

    def _note(self, entry: Entry, kind: str) -> None:
        """Record that a mail is sent, before it is: another agent sends it no second time."""
        entry.mailed |= {kind}
        if self._ledger.entries.get(entry.key) is entry:
            try:
                self._journal.append([mailed_record(entry.key, kind)])
            except OSError as error:
                LOG.error("event=journal_full error=%s", error.strerror)

    def _compose(self, entry: Entry, job: JobSetup, finish: Finish | None, moment: float) -> tuple[list[str], bytes]:
        """Return addresses and mail. Blocks: it reads the job's output."""
        spec = letters.with_files(entry.blob.spec, entry.limits)
        heading = self._preparation.heading(entry.blob, entry.stage, job.home)._replace(error_file=bool(spec.error))
        number, index, _ = entry.key
        label, name = (f"{number}[{index}]", f"{job.name}[{index}]") if index else (str(number), job.name)
        if finish is None:
            letter = letters.at_start(heading, label, name, moment)
        else:
            cwd, codes = expand(job.cwd, entry.key) or job.home, job.around.success_codes
            ending = Ending(label, name, cwd, finish, spec.error, success_codes=codes)
            letter = letters.at_end(heading, ending, spec, self._output_of(entry, job))
        to = letters.addresses(spec, entry.blob.user, self._preparation.mail)
        return to, letters.message(heading.sender, to, letter)

    def _output_of(self, entry: Entry, job: JobSetup) -> Output:
        """Return the kept output, as much of it as a mail holds; none if the job wrote nothing."""
        if job.output:
            return Output()
        limit = self._preparation.mail.limit
        try:
            with open(kept_path(self._outputs, entry.key), "rb") as file:
                data = file.read(limit + 1)
        except FileNotFoundError:
            return Output()
        return Output(data[:limit], len(data) > limit)

    async def _run(self, job: JobSetup, to: list[str], mail: bytes) -> str:
        """Run the mail program as the job's user; return why it failed, empty if it did not."""
        process = await asyncio.create_subprocess_exec(
            *as_user(job),
            *self._program,
            "-oi",
            "--",
            *to,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            env={"PATH": PATH, "HOME": job.home, "USER": job.user, "LOGNAME": job.user},
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(TIMEOUT_S):
                _, errors = await process.communicate(mail)
        except (TimeoutError, asyncio.CancelledError):
            process.kill()
            await process.wait()
            raise
        if not process.returncode:
            return ""
        said = errors.decode("utf-8", "replace").strip()[:200]
        return f"{self._program[0]} ended with {process.returncode}: {said}"

    async def close(self) -> None:
        """Give up mails that are under way."""
        for task in list(self._sending):
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
