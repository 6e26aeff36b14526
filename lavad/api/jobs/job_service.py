"""JobService: submit, list, watch, signal, modify, explain, history, peek. Translates messages into commands."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lavad.agent_links.links import AgentLinks
from lavad.agent_links.spec_cache import SpecShelf
from lavad.api import checks, identity, interceptor, translate
from lavad.api.cluster.host_choice import chosen
from lavad.api.jobs import checkpoint_defaults, listing, messages, modify, resize, tasks
from lavad.api.jobs.dependencies import dependencies_reply
from lavad.api.jobs.history import Stored
from lavad.api.jobs.pages import JobLists
from lavad.api.jobs.submission import Submissions
from lavad.api.jobs.tickets.attach import attach_reply
from lavad.api.jobs.tickets.copies import copy_reply
from lavad.api.jobs.waiting import Waiters
from lavad.api.jobs.watch import Watchers
from lavad.api.privacy import Sight
from lavad.core import commands as c
from lavad.core.decide.decision import administers, check_owner, is_owner
from lavad.core.decide.jobs.changes.elements import Part, parts_of
from lavad.core.decide.jobs.control import find
from lavad.core.model import HOLDING, WAITING, JobState
from lavad.core.model.reasons import NotNow, Refused
from lavad.core.queries.slot_windows import slot_windows
from lavad.core.scheduling.backfill.profile import NEVER
from lavad.core.scheduling.worklist import Worklist
from lavad.core.state.hosts.table import natural
from lavad.core.state.records import ArrayRecord, Job
from lavad.engine import PORTION, Engine
from lavad.settings import Settings
from protos import common_pb2, jobs_pb2_grpc
from protos import jobs_pb2 as pb
from protos.trust import peek_tickets


class JobService(jobs_pb2_grpc.JobServiceServicer):
    """Job service for user commands."""

    def __init__(
        self,
        engine: Engine,
        links: AgentLinks,
        shelf: SpecShelf,
        stored: Stored,
        watchers: Watchers,
        settings: Settings,
        ticket_key: Ed25519PrivateKey,
        worklist: Worklist,
    ) -> None:
        self.engine = engine
        self.links = links
        self.shelf = shelf
        self.stored = stored
        self.watchers = watchers
        self.settings = settings
        self.ticket_key = ticket_key
        self.lists = JobLists(engine, stored, worklist)
        self.waiters = Waiters(engine, stored, watchers)
        self._submissions = Submissions(engine, shelf, stored)

    # -- submit -------------------------------------------------------------------------------------------------

    async def Submit(self, request_iterator: Any, context: identity.Context) -> None:
        """Answer batches in order; the next one is read while the last is being made durable."""
        caller = await identity.caller(context, self.settings, starts_jobs=True)
        answers: asyncio.Queue[asyncio.Future[pb.SubmitReplies] | None] = asyncio.Queue(maxsize=16)
        writer = asyncio.create_task(_answer_in_order(answers, context))
        try:
            while isinstance(batch := await context.read(), pb.SubmitBatch):
                await answers.put(await self._submissions.post(batch, caller))
            interceptor.check_readable(batch)
        finally:
            await answers.put(None)
            await writer

    # -- read ---------------------------------------------------------------------------------------------------

    async def List(self, request: pb.ListJobsRequest, context: identity.Context) -> AsyncIterator[pb.JobPage | bytes]:
        """bjobs."""
        caller = await identity.caller(context, self.settings)
        async with aclosing(self.lists.pages(request, caller)) as pages:
            async for page in pages:
                yield page

    async def Explain(self, request: pb.ExplainRequest, context: identity.Context) -> pb.ExplainReply:
        """Return the pending reasons of jobs (bjobs -p)."""
        return await self.lists.explain(request, await identity.caller(context, self.settings))

    async def Environment(self, request: pb.EnvironmentRequest, context: identity.Context) -> pb.EnvironmentReply:
        """Return the environment that a job was submitted with (bjobs -env)."""
        caller = await identity.caller(context, self.settings)
        checks.check_refs([request.ref])
        try:
            target = translate.target_of(request.ref)
            check_owner(find(self.engine.cluster, target, caller), caller)
        except Refused as error:
            return pb.EnvironmentReply(error=str(error))
        number = self.engine.cluster.bearer(target.job, _single(target)).spec_number
        return pb.EnvironmentReply(environment=(await self.shelf.spec(number)).environment)

    async def Slots(self, request: pb.SlotsRequest, context: identity.Context) -> AsyncIterator[pb.SlotWindow]:
        """bslots: free slots, and how long they stay free beside reservations."""
        await identity.caller(context, self.settings)
        cluster = self.engine.cluster
        names = sorted((name for name, host in cluster.hosts.items() if host.facts.server), key=natural)
        hosts = chosen(cluster, request.requirement, names) if request.requirement else names
        for window in slot_windows(cluster, self.lists.worklist.reservation_table, hosts, self.engine.clock()):
            one = pb.SlotWindow(until=window.until if window.until < NEVER else 0.0, slots=window.slots)
            for host, slots in window.hosts if request.with_hosts else ():
                one.hosts.add(host=host, slots=slots)
            yield one
            await asyncio.sleep(0)  # a window of a large cluster takes milliseconds

    async def History(self, request: pb.HistoryRequest, context: identity.Context) -> AsyncIterator[bytes]:
        """Yield the histories of jobs from the store (bhist)."""
        caller = await identity.caller(context, self.settings)
        async with aclosing(self.stored.history(request, caller, self.engine.cluster)) as pages:
            async for page in pages:
                yield page

    async def Accounts(self, request: pb.AccountsRequest, context: identity.Context) -> AsyncIterator[bytes]:
        """Yield ended attempts and their sums from the store (bacct)."""
        caller = await identity.caller(context, self.settings)
        async with aclosing(self.stored.accounts(request, caller, self.engine.cluster)) as pages:
            async for page in pages:
                yield page

    async def Usage(self, request: pb.UsageRequest, context: identity.Context) -> AsyncIterator[bytes]:
        """Yield what ended attempts have used, summed by the database (busage)."""
        caller = await identity.caller(context, self.settings)
        async with aclosing(self.stored.usage(request, caller, self.engine.cluster)) as pages:
            async for page in pages:
                yield page

    async def Watch(self, request: pb.WatchRequest, context: identity.Context) -> AsyncIterator[pb.JobChange]:
        """Yield the present state at once, then every change, until all watched jobs have ended."""
        caller = await identity.caller(context, self.settings)
        checks.check_refs(request.refs)
        jobs = self._watchable(request, Sight(caller, self.engine.cluster.policy))
        with self.watchers.counted(caller.user, jobs):
            if request.only_end:
                await self.watchers.until_over(jobs)
                for job in jobs:
                    yield self.watchers.change(job, 0)
                return
            async for change in self._watch(jobs, caller):
                yield change

    async def Wait(self, request: pb.WaitRequest, context: identity.Context) -> AsyncIterator[pb.WaitReply]:
        """bwait: WAITING at once, and then the verdict on a dependency condition."""
        caller = await identity.caller(context, self.settings)
        async with aclosing(self.waiters.replies(request, caller)) as replies:
            async for reply in replies:
                yield reply

    def _watchable(self, request: pb.WatchRequest, sight: Sight) -> list[int]:
        """Return those named jobs of which the caller may see details; ids not yet given out count as unknown."""
        cluster = self.engine.cluster
        jobs = dict.fromkeys(ref.job for ref in request.refs if ref.job < cluster.next_job)
        found = ((job, cluster.jobs.get(job)) for job in jobs)
        return [job for job, record in found if record is None or sight.has_details(record.shared)]

    async def _watch(self, jobs: list[int], caller: c.Caller) -> AsyncIterator[pb.JobChange]:
        with self.watchers.watching(jobs) as watch:
            async for change in self._present(jobs, caller):
                yield change
            self.watchers.close_ended(watch, jobs)
            while watch.open:
                await watch.wait()
                while (unread := watch.take()) is not None:
                    yield unread
                    self.watchers.close_ended(watch, (unread.job,))
                if watch.has_missed:
                    self.watchers.close_ended(watch, watch.open)
            await self.stored.store.flush()  # memory is ahead of the disk: the end itself may not be durable yet
            while (unread := watch.take()) is not None:
                yield unread
            if watch.has_missed:
                async for change in self._present(jobs, caller):
                    yield change

    async def _present(self, jobs: list[int], caller: c.Caller) -> AsyncIterator[pb.JobChange]:
        for job in jobs:
            record = self.engine.cluster.jobs.get(job)
            if isinstance(record, ArrayRecord):
                for index in record.indices:
                    yield self.watchers.change(job, index)
            elif record is not None:
                yield self.watchers.change(job, 0)
            else:
                refs, policy = [common_pb2.JobRef(job=job)], self.engine.cluster.policy
                async for page in self.stored.records(refs, caller, policy, needs_details=True):
                    for old in pb.JobPage.FromString(page).jobs:
                        yield _past_change(old)

    # -- control ------------------------------------------------------------------------------------------------

    async def Signal(self, request: pb.SignalRequest, context: identity.Context) -> pb.SignalReply:
        """bkill, bstop, bresume: signal each named job, all that the filter admits, or the newest of them."""
        caller = await identity.caller(context, self.settings)
        checks.check_signal(request)
        targets = await self._targets(request.filter, request.newest_only, caller, controls=True)
        if not targets:
            return pb.SignalReply(error="No unfinished job found")
        results, targets, answered = self._of_filter(request.filter, targets, caller)
        if not targets:
            return pb.SignalReply(results=results)
        if request.hosts and request.action == pb.MIGRATE:
            for target, result in zip(targets, answered, strict=True):
                result.error, result.note = await self._migrate(target, request, caller)
            return pb.SignalReply(results=results)
        places = self._turns(request, targets)
        replies = await self.engine.execute_all([_command(request, targets[place], caller) for place in places])
        for place, answer in zip(places, replies, strict=True):
            result = answered[place]
            if isinstance(answer, Refused | NotNow):
                result.error = str(answer)
            elif isinstance(answer, str):
                result.note = answer
        return pb.SignalReply(results=results)

    def _turns(self, request: pb.SignalRequest, targets: list[c.Target]) -> list[int]:
        """Return the places of the targets in the order in which they are executed.

        Between two portions jobs start, but none that is to be ended or held in a later one: those that only wait come
        before those for whose hosts or end they wait, the newest first, since jobs depend on older ones.
        """
        places = list(range(len(targets)))
        if len(targets) > PORTION and not _lets_go(request):
            places.sort(key=lambda place: (self._is_live(targets[place].job), -targets[place].job))
        return places

    def _is_live(self, job: int) -> bool:
        record = self.engine.cluster.jobs.get(job)
        return bool(record.live) if isinstance(record, ArrayRecord) else record is None or record.state not in WAITING

    def _of_filter(
        self, wanted: pb.JobFilter, targets: list[c.Target], caller: c.Caller
    ) -> tuple[list[pb.SignalResult], list[c.Target], list[pb.SignalResult]]:
        """Return a result for each target, those targets that the filter admits, and the results of these.

        A job named by its id that the other options exclude is reported like one that does not exist.
        """
        results = [pb.SignalResult(job=target.job, index=_single(target)) for target in targets]
        if not wanted.refs or not wanted.refs[0].job:
            return results, targets, results
        selection = listing.Selection(wanted, caller, self.engine.cluster)
        chosen, answered = list[c.Target](), list[pb.SignalResult]()
        for target, result in zip(targets, results, strict=True):
            narrowed = selection.narrowed(target)
            if narrowed is None:
                result.error = "No matching job found"
            else:
                chosen.append(narrowed)
                answered.append(result)
        return results, chosen, answered

    async def _targets(
        self, wanted: pb.JobFilter, newest_only: bool, caller: c.Caller, *, controls: bool = False
    ) -> list[c.Target]:
        """Return the jobs named, or those of the filter that are the caller's; with ``controls`` all it may control."""
        named = [ref for ref in wanted.refs if ref.job]
        if named:
            return [translate.target_of(ref) for ref in named]
        selection = listing.Selection(wanted, caller, self.engine.cluster)
        jobs: dict[int, None] = {}
        for portion in selection.portions([]):
            if not portion:
                await asyncio.sleep(0)
            for record in listing.records_of(portion):
                if (
                    caller.is_administrator
                    or is_owner(record, caller)
                    or (controls and administers(self.engine.cluster, record, caller))
                ):
                    jobs[record.id] = None
        chosen = sorted(jobs)[-1:] if newest_only else jobs
        return [c.Target(job, selection.elements_of(job)) for job in chosen]

    async def Dependencies(self, request: pb.DependenciesRequest, context: identity.Context) -> pb.DependenciesReply:
        """bjdepinfo."""
        caller = await identity.caller(context, self.settings)
        return dependencies_reply(self.engine.cluster, request, caller)

    async def Post(self, request: pb.PostRequest, context: identity.Context) -> pb.PostReply:
        """bpost, bstatus -d: attach a message to a job."""
        caller = await identity.caller(context, self.settings)
        try:
            target = await self._one_target(request, caller)
            index = await self.engine.execute(messages.command_of(request, target, caller))
        except (Refused, NotNow) as error:
            return pb.PostReply(error=str(error))
        return pb.PostReply(job=target.job, index=index)

    async def Read(self, request: pb.ReadRequest, context: identity.Context) -> pb.ReadReply:
        """bread, bstatus: a message of a job."""
        caller = await identity.caller(context, self.settings)
        try:
            target = await self._one_target(request, caller)
            return await messages.read_reply(self.engine.cluster, self.stored.store, request, target, caller)
        except Refused as error:
            return pb.ReadReply(error=str(error))

    async def _one_target(self, request: pb.PostRequest | pb.ReadRequest, caller: c.Caller) -> c.Target:
        checks.check_refs([request.ref])
        chosen = [] if request.ref.job else await self._targets(request.filter, True, caller)
        return messages.target_of(request, chosen)

    async def Resize(self, request: pb.ResizeRequest, context: identity.Context) -> pb.ResizeReply:
        """bresize: a running job releases hosts or slots, or gets another desired size."""
        caller = await identity.caller(context, self.settings)
        sizes, reply = resize.Sizes(self.engine.cluster, request.ref.job), pb.ResizeReply()
        try:
            gives = await self.engine.execute(resize.command_of(request, caller))
        except (Refused, NotNow) as error:
            return pb.ResizeReply(error=str(error))
        if request.action not in (pb.RESIZE_REQUEST, pb.RESIZE_CANCEL):
            sizes.tell(reply, request.sizes, gives)
        return reply

    async def Modify(self, request: pb.ModifyRequest, context: identity.Context) -> pb.ModifyReply:
        """bmod and bswitch: set the named fields of jobs."""
        caller = await identity.caller(context, self.settings, starts_jobs=True)
        checks.check_refs(request.refs)
        checks.check_filter(request.filter)
        targets = [translate.target_of(ref) for ref in request.refs]
        if not targets:
            targets = await self._targets(request.filter, request.newest_only, caller)
        results, targets, answered = self._of_filter(request.filter, targets, caller)
        for target, result in zip(targets, answered, strict=True):
            try:
                await self._modify(target, request, caller)
            except (Refused, NotNow) as error:
                result.error = str(error)
        return pb.ModifyReply(results=results)

    async def _migrate(self, target: c.Target, request: pb.SignalRequest, caller: c.Caller) -> tuple[str, str]:
        """Send a job to certain hosts; why not, or empty, and what else its user is told."""
        change = pb.ModifyRequest(spec=pb.JobSpec(hosts=request.hosts), fields=["hosts"])
        moved = c.RequeueJob(target, caller, _MOVABLE, migrates=True, force=request.force, may_stay=True)
        try:
            told = await self._modify(target, change, caller, moved)
        except (Refused, NotNow) as error:
            return str(error), ""
        return "", told if isinstance(told, str) else ""

    async def _modify(
        self, target: c.Target, request: pb.ModifyRequest, caller: c.Caller, moved: c.RequeueJob | None = None
    ) -> Any:
        record = self.engine.cluster.jobs.get(target.job)
        if record is None:
            raise Refused("No matching job found")
        check_owner(record, caller)  # before anything is read or stored on behalf of a caller without permission
        if not isinstance(record, ArrayRecord):
            return await self._modify_part(Part(None, record.spec_number), target, request, caller, moved)
        first, *others = parts_of(record, target.indices)
        if moved is not None and others:
            raise Refused("Elements of a job array are moved to other hosts one at a time")
        told = await self._modify_part(first, target, request, caller, moved)
        unchanged = list[str]()
        for part in others:
            try:
                await self._modify_part(part, target, request, caller, None, first.indices is None)
            except Refused as error:
                unchanged.append(f"[{part.indices.text() if part.indices is not None else ''}]: {error}")
        if unchanged:
            raise Refused(f"Changed, but for some elements: {'; '.join(unchanged[:_TOLD_MAX])}")
        return told

    async def _modify_part(
        self,
        part: Part,
        target: c.Target,
        request: pb.ModifyRequest,
        caller: c.Caller,
        moved: c.RequeueJob | None,
        is_whole: bool = False,
    ) -> Any:
        """Change a job, an array, or elements of one that have the same spec."""
        record = self.engine.cluster.bearer(target.job, part.indices.first() if part.indices is not None else 0)
        before, spec = await self.shelf.spec(part.spec_number), pb.JobSpec()
        spec.CopyFrom(before)
        modify.take_over(spec, request)
        if "checkpoint" in request.fields and spec.HasField("checkpoint"):
            checkpoint_defaults.merge(self.engine.cluster, spec)
        checks.check_size(spec)
        if "job_group" in request.fields:
            translate.fill_in_group(spec, record.shared.user)
        owner = c.Caller(record.shared.user, record.shared.uid, False, record.shared.gid, record.shared.from_host)
        packed = self.shelf.pack(spec, record.shared.user)
        policy = self.engine.cluster.policy
        new = translate.new_job(spec, packed, b"", owner)
        changes = modify.in_words(modify.Versions(before, spec, record.shared.queue), policy.zone)
        fields = frozenset(request.fields)
        asked = translate.asked_of(spec, (policy.default_queue,))
        command = c.ModifyJob(
            target, new, caller, changes, fields, request.is_switch, asked, moved is not None, part.indices, is_whole,
            modify.run_change(spec, fields),
        )  # fmt: skip
        done = self.engine.execute(command if moved is None else c.MigrateJob(command, moved))
        if part.indices is None:  # else the changed spec has a number of its own
            self.links.spec_changed(target.job)  # at once: the change may let the job start in the same commit
        told = await done
        self.shelf.note_stored(record.shared.user, packed.environment)
        return told

    async def Move(self, request: pb.MoveRequest, context: identity.Context) -> pb.MoveReply:
        """btop, bbot."""
        caller = await identity.caller(context, self.settings)
        checks.check_refs([request.ref])
        command = c.MoveJob(translate.target_of(request.ref), request.place, caller, request.among_own)
        try:
            moved = await self.engine.execute(command)
        except (Refused, NotNow) as error:
            return pb.MoveReply(error=str(error))
        return pb.MoveReply(place=moved.place)

    async def Force(self, request: pb.ForceRequest, context: identity.Context) -> pb.SignalResult:
        """brun."""
        caller = await identity.caller(context, self.settings)
        checks.check_refs([request.ref])
        target = translate.target_of(request.ref)
        result = pb.SignalResult(job=target.job, index=_single(target))
        try:
            hosts = checks.forced_hosts(request.hosts)
            await self.engine.execute(c.ForceJob(target, caller, hosts, request.is_unconstrained))
        except (Refused, NotNow) as error:
            result.error = str(error)
        return result

    # -- output -------------------------------------------------------------------------------------------------

    async def PeekTicket(self, request: pb.PeekTicketRequest, context: identity.Context) -> pb.PeekTicketReply:
        """Issue a ticket with which the owner or an administrator reads a job's output on its host."""
        caller = await identity.caller(context, self.settings)
        job, problem = await self._peekable(request, caller)
        if job is None:
            return pb.PeekTicketReply(error=problem)
        key, host, has_error_file = job.key, _peeked_at(job), bool(job.words["error"]) and job.end is None
        task = None
        if job.tasks is not None:
            if not request.role:
                return pb.PeekTicketReply(has_tasks=True)
            try:
                host, task = tasks.output_of(job.tasks, request)
            except Refused as error:
                return pb.PeekTicketReply(error=f"Job <{key.job}> : {error}")
        elif request.role:
            return pb.PeekTicketReply(error=f"Job <{key.job}> has no roles")
        known = self.engine.cluster.hosts.get(host)
        address = known.facts.peer_address if known is not None else ""
        reply = pb.PeekTicketReply(host=host, address=address, has_error_file=has_error_file, task=task)
        reply.key.job, reply.key.index, reply.key.attempt = key
        reply.ticket = peek_tickets.sign(
            self.ticket_key, (key.job, key.index, key.attempt), host, time.time() + peek_tickets.LIFE_S
        )
        return reply

    async def AttachTicket(self, request: pb.AttachTicketRequest, context: identity.Context) -> pb.AttachTicketReply:
        """Issue a ticket with which the owner or an administrator has a process within a running job."""
        caller = await identity.caller(context, self.settings)
        return attach_reply(self.engine.cluster, request, caller, self.ticket_key)

    async def CopyTicket(self, request: pb.CopyTicketRequest, context: identity.Context) -> pb.CopyTicketReply:
        """Issue a ticket to copy a file that a job names, to its first host."""
        caller = await identity.caller(context, self.settings)
        if request.key.job not in self.engine.cluster.jobs:
            return pb.CopyTicketReply(error=f"Job <{request.key.job}> is not found")
        bearer = self.engine.cluster.bearer(request.key.job, request.key.index)
        spec = await self.shelf.spec(bearer.spec_number)
        return copy_reply(self.engine.cluster, spec, request, caller, self.ticket_key)

    async def _peekable(self, request: pb.PeekTicketRequest, caller: c.Caller) -> tuple[Job | None, str]:
        refs = [request.ref] if request.ref.job else []
        wanted = pb.JobFilter()
        wanted.CopyFrom(request.filter)
        wanted.refs.extend(refs)
        selection = listing.Selection(wanted, caller, self.engine.cluster)
        found: listing.Item | None = None
        async for item in selection.items([]):
            found = item if found is None or item[0].id >= found[0].id else found
        if found is None:
            called = request.ref.job or request.filter.name
            return None, f"Job <{called}> is not found" if called else "No matching job found"
        record, index, job = found
        label = f"{record.id}[{index}]" if index else str(record.id)
        if not caller.is_administrator and not is_owner(record, caller):
            return None, f"Job <{label}>: User permission denied"
        if record.shared.special.interactive:
            return None, f"Job <{label}> : Cannot bpeek an interactive job."
        if job is None:
            return None, f"Job <{label}> : Not yet started."
        if job.end is not None and not (job.end.started_at or job.end.pid):
            return None, f"Job <{label}> : Already finished: it ended before it started. {job.end.reason}".rstrip()
        if not _peeked_at(job) and job.tasks is None:
            return None, f"Job <{label}> : " + ("Already finished." if job.end is not None else "Not yet started.")
        return job, ""


def _peeked_at(job: Job) -> str:
    """Return the host that keeps the job's output: after its end only if that went to no file; empty if none has it."""
    if job.end is not None:
        return job.end.hosts[0].host if job.end.hosts and not job.words["output"] else ""
    return job.attempt.lead if job.state in HOLDING and job.attempt is not None else ""


async def _answer_in_order(answers: Any, context: identity.Context) -> None:
    while (future := await answers.get()) is not None:
        await context.write(await future)


def _past_change(old: pb.JobRecord) -> pb.JobChange:
    """Build the end of a job that memory has forgotten."""
    return pb.JobChange(
        job=old.job, index=old.index, state=old.state, exit_status=old.exit_status, exit_reason=old.exit_reason
    )


_TOLD_MAX = 5  # parts of an array that are told one by one
_MOVABLE = frozenset({JobState.STAGING, JobState.RUN, JobState.USUSP, JobState.SSUSP})


def _single(target: c.Target) -> int:
    return target.indices.first() if target.indices is not None and len(target.indices) == 1 else 0


def _states(request: pb.SignalRequest) -> frozenset[JobState]:
    return frozenset(JobState(state) for state in request.states if state)


def _command(request: pb.SignalRequest, target: c.Target, caller: c.Caller) -> c.Command:
    if request.role:
        target = replace(target, role=request.role, task=request.task_plus_one - 1)
    reason = request.reason
    match request.action:
        case pb.TERMINATE:
            return c.KillJob(target, caller, reason=reason)
        case pb.REMOVE:
            return c.KillJob(target, caller, remove=True, reason=reason)
        case pb.TERMINATE_DONE:
            return c.KillJob(target, caller, as_done=True, reason=reason)
        case pb.TERMINATE_IN_STATES:
            return c.KillJob(target, caller, states=_states(request), reason=reason)
        case pb.STOP:
            return c.StopJob(target, caller, reason)
        case pb.RESUME:
            return c.ResumeJob(target, caller, reason)
        case pb.CHECKPOINT:
            return c.CheckpointJob(target, caller, request.force, request.ends)
        case pb.REQUEUE:
            return c.RequeueJob(target, caller, _states(request), request.hold)
        case pb.MIGRATE:
            return c.RequeueJob(target, caller, _MOVABLE, migrates=True, force=request.force)
        case _:
            return c.SignalJob(target, request.signal, caller)


def _lets_go(request: pb.SignalRequest) -> bool:
    """Return True if jobs may start that are signalled so."""
    return request.action in (pb.RESUME, pb.REQUEUE) or (request.action == pb.SEND and request.signal == signal.SIGCONT)


def register(server: grpc.aio.Server, service: JobService) -> None:
    """Add the job service to the server."""
    jobs_pb2_grpc.add_JobServiceServicer_to_server(service, server)
