"""Notification of jobs about another allocation: their lists are replaced, then their notification command is run.

On every host of the attempt the lists are replaced; the lead host runs the command beside the job, as its user, and
then reports that the job knows. A job without a command polls its lists, as elastic Horovod does: it gets a moment for
that before hosts are taken from it. All of this may be repeated after a restart of the agent.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence

from agents.attempts.attempts import Attempts
from agents.attempts.ledger import Ledger
from agents.attempts.ledger_entry import Entry, State
from agents.job_setup.environment import place_variables
from agents.job_setup.preparation import Preparation
from agents.ranks.interfaces import TaskRefused, TaskRequest
from agents.shepherd.messages import Key
from protos.agents_pb2 import Report
from protos.common_pb2 import HostShare

LOG = logging.getLogger("lava.resizes")

NOTICE_MAX_S = 45.0  # longest wait of a shrink for the job's warning time; the master knows it, too
NOTIFY_S = 50.0  # longest run of a notification command; the master waits a little longer
SETTLE_S = 2.0  # for jobs without one to notice leaving hosts: elastic launchers poll about once a second
SIGKILL = 9


def name_of(key: Key) -> str:
    """Return the name of an attempt's lists."""
    return "-".join(map(str, key))


class Resizes:
    """Notifier of this host's jobs. ``told`` takes the report that the job knows.

    ``make_ready`` makes tasks ready that join a job of tasks here, and returns why it can't, or "". ``notice`` gives a
    notice: attempt, event, reason, and the time of what it announces.
    """

    def __init__(
        self,
        ledger: Ledger,
        attempts: Attempts,
        preparation: Preparation,
        told: Callable[[Report], None],
        make_ready: Callable[[Entry], str],
        notice: Callable[[Key, str, str, float], None],
    ) -> None:
        self._ledger = ledger
        self._attempts = attempts
        self._preparation = preparation
        self._told = told
        self._make_ready = make_ready
        self._notice = notice
        self._turns: dict[Key, asyncio.Lock] = {}

    def forget(self, key: Key) -> None:
        """Forget an attempt of which nothing is left here."""
        self._turns.pop(key, None)
        self._preparation.drop_lists(name_of(key))

    async def adapt(self, key: Key) -> None:
        """Notify the job of the attempt's newest allocation, one change after the other."""
        turn = self._turns.setdefault(key, asyncio.Lock())
        async with turn:
            entry = self._ledger.entries.get(key)
            if entry is None or entry.state is not State.HELD or entry.is_told:
                return
            version, why = entry.version, await self._let_know(entry)
            if why:
                LOG.warning("event=resize_failed job=%d index=%d attempt=%d reason=%r", *key, why)
            for report in self._ledger.resized(key, version, bool(why), why):
                self._told(report)

    async def _let_know(self, entry: Entry) -> str:
        """Notify the job; return why it refuses the allocation, or "".

        What the tasks of a job of tasks are told was replaced when its new table came.
        """
        less = difference(entry.before, entry.stage.allocation)
        ends_at = self._warn(entry, less) if less else 0.0
        try:
            self._preparation.write_lists(entry.stage, name_of(entry.key))
        except OSError as error:
            return f"the lists of its hosts cannot be written: {error.strerror}"
        if entry.tasks is not None:
            why = self._make_ready(entry)
            await asyncio.sleep(max(0.0, ends_at - time.time()))
            return why
        allocation = entry.stage.allocation
        if allocation[0].host != self._preparation.host.host:
            return ""
        command = entry.notify or entry.blob.spec.resize_notify
        more = difference(allocation, entry.before)
        if not command:
            await asyncio.sleep(max(0.0, ends_at - time.time()))
            if not ends_at and {share.host for share in entry.before} - {share.host for share in allocation}:
                await asyncio.sleep(SETTLE_S)
            return ""
        for event, hosts in (("shrink", less), ("grow", more)):
            why = await self._run(entry, command, event, hosts) if hosts else ""
            if why:
                return why
        await asyncio.sleep(max(0.0, ends_at - time.time()))
        return ""

    def _warn(self, entry: Entry, less: str) -> float:
        """Give the notice of a shrink; return when its time is over, or 0 for a job without a warning time."""
        setup = self._attempts.prepared(entry.key)
        warning_s = min(setup.warning_time_s, NOTICE_MAX_S) if setup is not None else 0.0
        words = less.split()
        what = ", ".join(f"{slots} slots on {host}" for host, slots in zip(words[::2], words[1::2], strict=True))
        self._notice(entry.key, "shrink", f"the job gives up {what}", time.time() + warning_s)
        return time.time() + warning_s if warning_s else 0.0

    async def _run(self, entry: Entry, command: str, event: str, hosts: str) -> str:
        """Run the notification command; return why it failed, or ""."""
        variables = {"LSB_RESIZE_EVENT": event, "LSB_RESIZE_HOSTS": hosts, **place_variables(entry.stage.allocation)}
        environment = tuple(os.fsencode(f"{name}={value}") for name, value in variables.items())
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        argv = (b"/bin/sh", b"-c", os.fsencode(command))
        try:
            task = await self._attempts.run_task(
                entry.key, TaskRequest(argv, "", environment, nowhere, nowhere, nowhere)
            )
        except TaskRefused as error:
            return str(error)
        finally:
            os.close(nowhere)
        try:
            async with asyncio.timeout(NOTIFY_S):
                status = await task.wait()
        except TimeoutError:
            task.signal(SIGKILL)
            return f"it did not end within {NOTIFY_S:.0f} seconds"
        LOG.info("event=resize_notified job=%d index=%d attempt=%d status=%d", *entry.key, status)
        return "" if status == 0 else f"it {_ending(status)}"


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"was ended by signal {os.WTERMSIG(status)}"
    return f"ended with exit code {os.WEXITSTATUS(status)}"


def difference(more: Sequence[HostShare], less: Sequence[HostShare]) -> str:
    """Return the slots by which ``more`` exceeds ``less``, as "host slots host slots"."""
    known = {share.host: share.slots for share in less}
    extra = ((share.host, share.slots - known.get(share.host, 0)) for share in more)
    return " ".join(f"{host} {slots}" for host, slots in extra if slots > 0)
