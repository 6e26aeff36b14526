"""Engine of the core: execute a command, make its events durable, only then send its orders and its reply.

The engine owns the cluster; nothing else calls ``step``. Its interfaces (append, send, clock) are plain callables. In
memory the cluster is ahead of the disk by the batches in progress; nothing outside acts on that.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from lavad.clock import Clock
from lavad.core.cluster import Cluster
from lavad.core.commands import Command
from lavad.core.decide.jobs.dependencies import step_budget
from lavad.core.events import Event
from lavad.core.model.reasons import NotNow, Refused
from lavad.core.orders import Order, still_wanted
from lavad.core.state.dependencies import Budget
from lavad.core.step import Outcome, step
from protos.failpoints import reach

PORTION = 500  # commands executed at once, 15 ms of those that end a waiting job

Append = Callable[[list[Event], Callable[[], None]], None]
Send = Callable[[list[Order]], None]


class Engine:
    """Executor of commands; ``listeners`` get events once they are durable, ``on_change`` is called at once."""

    def __init__(self, cluster: Cluster, append: Append, send: Send, clock: Clock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.listeners: list[Callable[[list[Event]], None]] = []
        self.on_change: Callable[[], None] = lambda: None
        self.on_defect: Callable[[str], None] = lambda why: None
        self.not_now: Callable[[], str] = lambda: ""  # why no jobs are taken at the moment
        self.is_broken = False
        self._append = append
        self._send = send

    def execute(self, command: Command) -> "asyncio.Future[Any]":
        """Execute one command; the future has its reply once it is durable.

        Raises:
            Refused, NotNow: at once, nothing has changed.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        outcome = self._step(command, self.clock())
        self._commit(outcome, lambda: _resolve(future, outcome.reply))
        return future

    def _step(self, command: Command, now: float, budget: Budget | None = None) -> Outcome:
        """Run one step. A defect may leave memory half changed: the master must stop and restart from its store."""
        if self.is_broken:
            raise NotNow("The master is stopping after a defect; its log says which")
        try:
            return step(self.cluster, command, now, budget=budget)
        except (Refused, NotNow):
            raise
        except Exception as error:
            self.is_broken = True
            self.on_defect(f"{type(command).__name__} failed: {type(error).__name__}: {error}")
            raise

    def post(self, commands: Iterable[Command]) -> None:
        """Execute commands that need no replies, as one batch.

        Raises:
            Refused: by the first refused command; all others were executed.
        """
        refusals: list[Refused | NotNow] = []
        self.post_replying(list(commands), _ignore, refusals)
        if refusals:
            raise refusals[0]

    def post_replying(
        self,
        commands: Iterable[Command],
        reply: Callable[[list[Any]], None],
        refusals: list[Refused | NotNow] | None = None,
    ) -> None:
        """Execute commands as one batch; once all is durable ``reply`` gets a reply or a refusal for each.

        Refusals are added to ``refusals`` at once.
        """
        now = self.clock()
        together, replies, budget = Outcome(), [], step_budget()
        for command in commands:
            try:
                outcome = self._step(command, now, budget)
            except (Refused, NotNow) as refusal:
                # The traceback holds this frame, and so the replies and the command: a reference cycle that would keep
                # them all.
                replies.append(refusal.with_traceback(None))
                if refusals is not None:
                    refusals.append(refusal)
                continue
            together.events.extend(outcome.events)
            together.orders.extend(outcome.orders)
            replies.append(outcome.reply)
        self._commit(together, lambda: reply(replies))

    async def execute_all(self, commands: Sequence[Command]) -> list[Any]:
        """Execute commands in portions, between which others are; return a reply or a refusal for each.

        All is durable then. A portion is written while the next one is executed. Cancelled, it leaves
        the portions that are still to come undone.
        """
        answers: list[asyncio.Future[list[Any]]] = []
        for first in range(0, len(commands), PORTION):
            if first:
                await asyncio.sleep(0)
            answers.append(asyncio.get_running_loop().create_future())
            self.post_replying(commands[first : first + PORTION], partial(_resolve, answers[-1]))
        return [reply for replies in await asyncio.gather(*answers) for reply in replies]

    def _commit(self, outcome: Outcome, reply: Callable[[], None]) -> None:
        def speak() -> None:
            if outcome.events:
                reach("master.after_commit", outcome.events)
            self._send(still_wanted(self.cluster, outcome.orders))
            for listener in self.listeners:
                listener(outcome.events)
            if outcome.events:
                reach("master.before_reply", outcome.events)
            # An iteration later: batches that became durable together may hold orders, and a job's start waits for
            # those.
            asyncio.get_running_loop().call_soon(reply)

        if outcome.events:
            reach("master.before_commit", outcome.events)
            self.on_change()  # before the append: jobs that the change starts may then share its commit
        self._append(outcome.events, speak)


def _resolve(future: "asyncio.Future[Any]", reply: Any) -> None:
    if not future.done():  # the caller may have left
        future.set_result(reply)


def _ignore(replies: list[Any]) -> None:
    return None
