"""Batches of submissions. Those with dependency conditions are decided in portions: other calls go in between.

A condition may refer to thousands of jobs, and a batch holds a thousand of them.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from lavad.agent_links.spec_cache import SpecShelf
from lavad.api import checks, texts, translate
from lavad.api.jobs import checkpoint_defaults
from lavad.api.jobs.history import Stored
from lavad.audit import TRAIL
from lavad.core import commands as c
from lavad.core.decide.jobs.submit import Submitted
from lavad.core.model.reasons import NotNow, Refused
from lavad.engine import Engine
from protos import jobs_pb2 as pb

PORTION_S = 0.005  # of processor time
LONG_S = 0.010  # a portion that took longer is followed by a pause as long: a call of others needs several turns


class _Batch:
    """A batch in progress; ``left``: places of the items that are still to be decided."""

    def __init__(self, batch: pb.SubmitBatch, caller: c.Caller) -> None:
        self.items = batch.items
        self.caller = caller
        self.results = [pb.SubmitResult(request_id=item.request_id) for item in batch.items]
        self.left: deque[int] = deque()
        self.open_portions = 0
        self.replies: asyncio.Future[pb.SubmitReplies] = asyncio.get_running_loop().create_future()

    def close_portion(self) -> None:
        """Note that a portion has its answers; after the last one the batch is answered."""
        self.open_portions -= 1
        if not self.open_portions and not self.left and not self.replies.done():
            self.replies.set_result(pb.SubmitReplies(results=self.results))

    def audit(self, place: int) -> None:
        """Write one audit line for a job or an array of any size."""
        result = self.results[place]
        queue = result.queue or ",".join(self.items[place].spec.queues)
        what = f"jobs={result.job or '-'} queue={queue!r}"
        TRAIL.note(self.caller.user, self.caller.host, "submit", what, result.error)


class Submissions:
    """Submission of batches to the engine."""

    def __init__(self, engine: Engine, shelf: SpecShelf, stored: Stored) -> None:
        self._engine = engine
        self._shelf = shelf
        self._stored = stored
        self._turn = asyncio.Lock()  # one portion with conditions at a time, however many batches there are

    async def post(self, request: pb.SubmitBatch, caller: c.Caller) -> "asyncio.Future[pb.SubmitReplies]":
        """Post a batch to the engine; the future has its answers once they are durable.

        Raises:
            Refused: the batch is too large.
        """
        checks.check_batch(request)
        batch = _Batch(request, caller)
        for place, item in enumerate(batch.items):
            if not await self._is_known(item, batch.results[place], caller):
                batch.left.append(place)
        if not any(item.spec.dependency for item in batch.items):
            self._post_portion(batch)
            return batch.replies
        while True:
            async with self._turn:
                began = time.thread_time()
                self._post_portion(batch)
                took_s = time.thread_time() - began
                await asyncio.sleep(took_s if took_s > LONG_S else 0.0)
            if not batch.left:
                return batch.replies

    def _post_portion(self, batch: _Batch) -> None:
        portion: list[tuple[int, c.SubmitJob]] = []
        batch.open_portions += 1

        def reply(answers: list[Any]) -> None:
            for (place, command), answer in zip(portion, answers, strict=True):
                self._note_answer(batch.items[place], batch.results[place], answer)
                if isinstance(answer, Submitted) and not answer.is_known:
                    self._shelf.note_stored(batch.caller.user, command.job.shared.environment)
            batch.close_portion()
            for place, _ in portion:  # after it: a line of the log takes 0.2 ms, which the answer would wait for
                batch.audit(place)

        commands = self._commands(batch, portion)
        not_now = self._engine.not_now()
        if not not_now:
            self._engine.post_replying(commands, reply)
            return
        for place in [portion[-1][0] for _ in commands]:
            result = batch.results[place]
            result.error, result.retry_later, result.retry_s = not_now, True, self._stored.store.retry_s
            batch.audit(place)
        batch.close_portion()

    def _commands(self, batch: _Batch, portion: list[tuple[int, c.SubmitJob]]) -> Iterator[c.SubmitJob]:
        """Yield the commands of one portion, up to a job with a condition at which its time is over.

        Each is made right before it is decided: the environment that a job shares must still be there then.
        """
        ends_at = time.thread_time() + PORTION_S
        while batch.left:
            place = batch.left.popleft()
            item = batch.items[place]
            try:
                command = self._command(item, batch.caller)
            except Refused as error:
                batch.results[place].error = str(error)
                batch.audit(place)
            else:
                portion.append((place, command))
                yield command
            if item.spec.dependency and time.thread_time() >= ends_at:
                return

    async def _is_known(self, item: pb.SubmitItem, result: pb.SubmitResult, caller: c.Caller) -> bool:
        """Look a retried request that memory has forgotten up in the store, so that it never makes a second job."""
        if not item.retry or (caller.user, item.request_id) in self._engine.cluster.request_ids:
            return False
        found = await self._stored.job_of_request(item.request_id, caller.user)
        if found is None:
            return False
        result.job, result.queue = found
        result.default_queue = not item.spec.queues
        return True

    def _command(self, item: pb.SubmitItem, caller: c.Caller) -> c.SubmitJob:
        spec = item.spec
        checks.check_size(spec)
        texts.check(item)
        spec.submit_host = caller.host
        policy = self._engine.cluster.policy
        spec.project = spec.project or policy.default_project
        spec.application = spec.application or policy.default_application
        if len(spec.hosts) == 1 and self._engine.cluster.is_named(spec.hosts[0]):
            del spec.hosts[:]
        translate.fill_in_group(spec, caller.user, policy.default_job_group)
        queues = policy.default_queues or (policy.default_queue,)
        checkpoint_defaults.fill_in(self._engine.cluster, item, caller, tuple(spec.queues) or queues)
        packed = self._shelf.pack(spec, caller.user)
        job = translate.new_job(spec, packed, item.request_id, caller)
        asked = translate.asked_of(spec, queues)
        return c.SubmitJob(job, caller, asked, item.unique_name)

    def _note_answer(self, item: pb.SubmitItem, result: pb.SubmitResult, answer: Any) -> None:
        if isinstance(answer, Submitted):
            result.job, result.queue = answer.job, answer.queue
            result.default_queue = not item.spec.queues
        else:
            result.error = str(answer)
            result.retry_later = isinstance(answer, NotNow)
            result.retry_s = max(1, round(self._engine.cluster.policy.retry_submit_s))
