"""Typed calls to the cluster through the local agent's socket, with deadlines, retries and error sentences.

Invariants:

* A call is repeated only where that is safe: queries, signals that are idempotent, and Submit, which carries a request
  id that the master answers with the same job.
* Waiting for the master is bounded: LSB_NTRIES tries (12 if unset, about a minute and a half), then a CommandError. *
Every failure is raised as a ``CommandError`` of one sentence.
"""

from itertools import count

from lavactl.errors import CommandError
from lavactl.settings import socket_path, tries_of
from lavactl.text.render import clean
from lavactl.wire import messages
from lavactl.wire.connection import CallError, Connection, LostError
from protos import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Protocol

    from protos import cluster_pb2, jobs_pb2

    class Surroundings(Protocol):
        """The part of ``lavactl.io.Io`` that calls need."""

        environ: Mapping[str, str]

        def setting(self, name: str, /) -> str | None: ...
        def error(self, text: str, /) -> None: ...
        def sleep(self, seconds: float, /) -> None: ...


JOBS = "/lava.v1.JobService/"
CLUSTER = "/lava.v1.ClusterService/"
PEEK = "/lava.local/Peek"

TRIES = 12
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0)  # after each failed try; the last one repeats
ANSWER_S = 90.0  # longer than the gateway waits for the master, so that its error message arrives
STILL_TRYING = " ... still trying"
NOT_RESPONDING = "batch system daemon not responding" + STILL_TRYING
OTHER_HOST = "the agent of "  # what cannot be reached is the job's host: nothing is wrong with the batch system

TRANSIENT = (frames.UNAVAILABLE, frames.DEADLINE_EXCEEDED)

# Policies for repeating a call after a lost connection.
ALWAYS = 0
BEFORE_SENT = 1


class Client:
    """Calls to the local agent and, through it, to the master.

    Args:
        io: source of LAVA_SOCKET and LSB_NTRIES; announces and makes the pauses between tries.
    """

    def __init__(self, io: "Surroundings", path: str | None = None) -> None:
        self._io = io
        self._path = path or socket_path(io.environ)
        self._connection: Connection | None = None

    @property
    def _tries(self) -> int:
        return tries_of(self._io.setting("LSB_NTRIES"), TRIES)

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Jobs.

    def submit(self, item: messages.SubmitItem) -> messages.SubmitResult:
        """Submit one job. A repetition carries the same request id, so the job is never submitted twice."""
        batch = messages.SubmitBatch(items=[item])
        payload = batch.SerializeToString()
        if (size := len(payload)) > frames.MAX_PAYLOAD - 256:
            raise CommandError(f"The job is {size >> 20} MiB with its script and environment; 8 MiB is the most.")

        def mark_retry() -> bytes:
            batch.items[0].retry = True
            return batch.SerializeToString()

        for answer in self._stream(JOBS + "Submit", payload, again=mark_retry):
            for result in messages.SubmitReplies.FromString(answer).results:
                return result
        raise CommandError("The master gave no answer to the submission.")

    def submit_all(self, items: list[messages.SubmitItem]) -> list[messages.SubmitResult]:
        """Submit several jobs in one request and return their results in order; repeated as `submit` is."""

        def batch(is_repeated: bool) -> bytes:
            for item in items if is_repeated else ():
                item.retry = True
            return messages.SubmitBatch(items=items).SerializeToString()

        payload = batch(False)
        if len(payload) > frames.MAX_PAYLOAD - 256:
            raise CommandError(f"{len(items)} jobs are {len(payload) >> 20} MiB; 8 MiB is the most for one request.")
        results: list[messages.SubmitResult] = []
        for answer in self._stream(JOBS + "Submit", payload, again=lambda: batch(True)):
            results += messages.SubmitReplies.FromString(answer).results
        if len(results) != len(items):
            raise CommandError(f"The master answered {len(results)} of {len(items)} submissions.")
        return results

    def list_jobs(self, request: messages.ListJobsRequest) -> "Iterator[messages.JobPage]":
        """Pages of job records, in the master's order."""
        return map(messages.read_page, self._stream(JOBS + "List", request.SerializeToString()))

    def signal(self, request: messages.SignalRequest) -> messages.SignalReply:
        """Signal, stop, resume or end jobs. What is no signal to end, stop or resume is not repeated: it fails after a
        lost connection.
        """
        once = (messages.SEND, messages.REQUEUE, messages.MIGRATE, messages.CHECKPOINT)
        repeat = BEFORE_SENT if request.action in once else ALWAYS
        payload = self._one(JOBS + "Signal", request.SerializeToString(), repeat)
        return messages.read_signal_reply(payload)

    def modify(self, request: messages.ModifyRequest) -> messages.ModifyReply:
        """Change parameters of jobs; idempotent."""
        return messages.ModifyReply.FromString(self._one(JOBS + "Modify", request.SerializeToString()))

    def move(self, request: messages.MoveRequest) -> messages.MoveReply:
        """Change the position of a pending job in its queue."""
        return messages.MoveReply.FromString(self._one(JOBS + "Move", request.SerializeToString()))

    def force(self, request: messages.ForceRequest) -> messages.SignalResult:
        """Start a pending job now. Not repeated: the second call would find the job started."""
        payload = self._one(JOBS + "Force", request.SerializeToString(), BEFORE_SENT)
        return messages.SignalResult.FromString(payload)

    def resize(self, request: messages.ResizeRequest) -> messages.ResizeReply:
        """Release hosts of a running job, or grow it; not repeated: after a lost connection it fails."""
        payload = self._one(JOBS + "Resize", request.SerializeToString(), BEFORE_SENT)
        return messages.ResizeReply.FromString(payload)

    def post(self, request: messages.PostRequest) -> messages.PostReply:
        """Attach a message to a job; idempotent."""
        return messages.PostReply.FromString(self._one(JOBS + "Post", request.SerializeToString()))

    def read(self, request: messages.ReadRequest) -> messages.ReadReply:
        """Message of a job."""
        return messages.ReadReply.FromString(self._one(JOBS + "Read", request.SerializeToString()))

    def slots(self, requirement: str, *, with_hosts: bool) -> "Iterator[jobs_pb2.SlotWindow]":
        """Free slots of hosts, and how long they stay free."""
        from protos import jobs_pb2

        request = jobs_pb2.SlotsRequest(requirement=requirement, with_hosts=with_hosts).SerializeToString()
        return map(jobs_pb2.SlotWindow.FromString, self._stream(JOBS + "Slots", request))

    def explain(self, request: messages.ExplainRequest) -> messages.ExplainReply:
        """Pending reasons of jobs."""
        return messages.ExplainReply.FromString(self._one(JOBS + "Explain", request.SerializeToString()))

    def environment(self, request: messages.EnvironmentRequest) -> messages.EnvironmentReply:
        """Environment that a job was submitted with."""
        return messages.EnvironmentReply.FromString(self._one(JOBS + "Environment", request.SerializeToString()))

    def dependencies(self, request: messages.DependenciesRequest) -> messages.DependenciesReply:
        """Parents or children of a job by its dependency condition."""
        return messages.DependenciesReply.FromString(self._one(JOBS + "Dependencies", request.SerializeToString()))

    def history(self, request: messages.HistoryRequest) -> "Iterator[jobs_pb2.HistoryPage]":
        """Pages of job histories."""
        from protos import jobs_pb2

        return map(jobs_pb2.HistoryPage.FromString, self._stream(JOBS + "History", request.SerializeToString()))

    def accounts(self, request: messages.AccountsRequest) -> "Iterator[jobs_pb2.AccountPage]":
        """Pages of ended attempts."""
        from protos import jobs_pb2

        return map(jobs_pb2.AccountPage.FromString, self._stream(JOBS + "Accounts", request.SerializeToString()))

    def usage(self, request: "jobs_pb2.UsageRequest") -> "Iterator[jobs_pb2.UsageRow]":
        """Sums over ended attempts."""
        from protos import jobs_pb2

        for payload in self._stream(JOBS + "Usage", request.SerializeToString()):
            yield from jobs_pb2.UsagePage.FromString(payload).rows

    def watch(self, refs: "list[messages.JobRef]") -> "Iterator[messages.JobChange]":
        """State changes of jobs until all have ended; after a lost connection the watch restarts with the present
        state.
        """
        request = messages.WatchRequest(refs=refs).SerializeToString()
        while True:
            try:
                for payload in self._stream(JOBS + "Watch", request, silence_s=None):
                    yield messages.JobChange.FromString(payload)
                return
            except InterruptedAnswerError:
                self._io.sleep(PAUSES_S[0])

    def wait(self, request: messages.WaitRequest, silence_s: float | None) -> int:
        """Verdict on a dependency condition; WAITING if the connection was lost, or silent for that time."""
        try:
            for payload in self._stream(JOBS + "Wait", request.SerializeToString(), silence_s=silence_s):
                reply = messages.WaitReply.FromString(payload)
                if reply.verdict != messages.WAITING:
                    return reply.verdict
        except InterruptedAnswerError:
            pass  # to be asked again
        return messages.WAITING

    def watch_briefly(self, ref: messages.JobRef, silence_s: float) -> "Iterator[messages.JobChange]":
        """State of a job and its changes, until none comes for that time; none if the master does not answer."""
        request = messages.WatchRequest(refs=[ref]).SerializeToString()
        try:
            for payload in Connection(self._path).answers(JOBS + "Watch", request, silence_s):
                yield messages.JobChange.FromString(payload)
        except (CallError, LostError, OSError):
            return

    def peek(self, request: messages.PeekRequest) -> "Iterator[messages.TailChunk]":
        """Output of a job so far, and further output as it is written if the request follows it."""
        silence_s = None if request.follow else ANSWER_S
        return map(messages.TailChunk.FromString, self._stream(PEEK, request.SerializeToString(), silence_s=silence_s))

    def peek_many(
        self, requests: "list[messages.PeekRequest]", at_once: int
    ) -> "Iterator[tuple[int, messages.TailChunk | str | None]]":
        """Output of several tasks over one connection, so many at once: number of the request, and a part of its
        output; at its end None, or why it cannot be read.

        Raises:
            CommandError: the agent cannot be reached.
        """
        from lavactl.wire.overlapping import Overlapping

        packed = [one.SerializeToString() for one in requests]
        silence_s = None if any(one.follow for one in requests) else ANSWER_S
        begun: set[int] = set()
        announced = False

        def pause_s(tries: int) -> float | None:
            nonlocal announced
            if tries >= self._tries:
                return None
            if not announced:
                self._io.error(NOT_RESPONDING)
                announced = True
            return PAUSES_S[min(tries, len(PAUSES_S)) - 1]

        calls = Overlapping(self._connected, PEEK, packed, at_once, silence_s, pause_s)
        for number, answer in calls.answers(lambda error: error.status in TRANSIENT, self.close):
            if answer is None:
                yield number, None
            elif isinstance(answer, bytes):
                begun.add(number)
                yield number, messages.TailChunk.FromString(answer)
            else:
                yield number, _why(answer, number in begun)

    # The cluster.

    def info(self) -> "cluster_pb2.InfoReply":
        """Names and version of the cluster."""
        from protos import cluster_pb2

        return cluster_pb2.InfoReply.FromString(self._one(CLUSTER + "Info", b""))

    def hosts(self, request: "cluster_pb2.HostsRequest") -> "Iterator[cluster_pb2.HostsPage]":
        """Pages of host records."""
        from protos import cluster_pb2

        return map(cluster_pb2.HostsPage.FromString, self._stream(CLUSTER + "Hosts", request.SerializeToString()))

    def queues(self, request: "cluster_pb2.QueuesRequest") -> "cluster_pb2.QueuesReply":
        """Queue records."""
        from protos import cluster_pb2

        return cluster_pb2.QueuesReply.FromString(self._one(CLUSTER + "Queues", request.SerializeToString()))

    def resources(self, definitions: bool = False) -> "cluster_pb2.ResourcesReply":
        """The site's own resources: amounts on hosts, or their definitions with the types and models of hosts."""
        from protos import cluster_pb2

        request = cluster_pb2.ResourcesRequest(definitions=definitions).SerializeToString()
        return cluster_pb2.ResourcesReply.FromString(self._one(CLUSTER + "Resources", request))

    def users(self, request: "cluster_pb2.UsersRequest") -> "cluster_pb2.UsersReply":
        """Users and groups with their usage and limits."""
        from protos import cluster_pb2

        return cluster_pb2.UsersReply.FromString(self._one(CLUSTER + "Users", request.SerializeToString()))

    def groups(self, request: "cluster_pb2.GroupsRequest") -> "cluster_pb2.GroupsReply":
        """Groups of users or hosts."""
        from protos import cluster_pb2

        return cluster_pb2.GroupsReply.FromString(self._one(CLUSTER + "Groups", request.SerializeToString()))

    def parameters(self, installation: bool = False) -> "cluster_pb2.ParametersReply":
        """Parameters of the cluster, or of its installation under the names of lsf.conf."""
        from protos import cluster_pb2

        request = cluster_pb2.ParametersRequest(installation=installation)
        return cluster_pb2.ParametersReply.FromString(self._one(CLUSTER + "Parameters", request.SerializeToString()))

    def status(self) -> "cluster_pb2.StatusReply":
        """Status of the master: counts of hosts, jobs and users."""
        from protos import cluster_pb2

        return cluster_pb2.StatusReply.FromString(self._one(CLUSTER + "Status", b""))

    def limits(self) -> "cluster_pb2.LimitsReply":
        """Resource limits and their usage."""
        from protos import cluster_pb2

        return cluster_pb2.LimitsReply.FromString(self._one(CLUSTER + "Limits", b""))

    def pools(self, request: "cluster_pb2.PoolsRequest") -> "cluster_pb2.PoolsReply":
        """Resource pools and their usage, and what else the request asks for."""
        from protos import cluster_pb2

        return cluster_pb2.PoolsReply.FromString(self._one(CLUSTER + "Pools", request.SerializeToString()))

    def host_partitions(self, request: "cluster_pb2.HostPartitionsRequest") -> "cluster_pb2.HostPartitionsReply":
        """Host partitions and their share accounts."""
        from protos import cluster_pb2

        reply = self._one(CLUSTER + "HostPartitions", request.SerializeToString())
        return cluster_pb2.HostPartitionsReply.FromString(reply)

    def configure(self, request: "cluster_pb2.ConfigureRequest") -> "cluster_pb2.ConfigureReply":
        """Check the configuration, or apply it; idempotent."""
        from protos import cluster_pb2

        return cluster_pb2.ConfigureReply.FromString(self._one(CLUSTER + "Configure", request.SerializeToString()))

    def control(self, request: "cluster_pb2.ControlRequest") -> "cluster_pb2.ControlReply":
        """Open, close, activate or inactivate hosts and queues; idempotent."""
        from protos import cluster_pb2

        return cluster_pb2.ControlReply.FromString(self._one(CLUSTER + "Control", request.SerializeToString()))

    def performance(self, request: "cluster_pb2.PerformanceRequest") -> "cluster_pb2.PerformanceReply":
        """Start, stop or view the performance monitoring; not repeated: after a lost connection it fails."""
        from protos import cluster_pb2

        payload = self._one(CLUSTER + "Performance", request.SerializeToString(), BEFORE_SENT)
        return cluster_pb2.PerformanceReply.FromString(payload)

    def diagnose(self, request: "cluster_pb2.DiagnoseRequest") -> "cluster_pb2.DiagnoseReply":
        """Switch the log of queries on or off; not repeated: after a lost connection it fails."""
        from protos import cluster_pb2

        payload = self._one(CLUSTER + "Diagnose", request.SerializeToString(), BEFORE_SENT)
        return cluster_pb2.DiagnoseReply.FromString(payload)

    def control_history(self, request: "cluster_pb2.ControlHistoryRequest") -> "Iterator[cluster_pb2.ControlRecord]":
        """Records of hosts, queues and the master, oldest first."""
        from protos import cluster_pb2

        for payload in self._stream(CLUSTER + "ControlHistory", request.SerializeToString()):
            yield from cluster_pb2.ControlHistoryPage.FromString(payload).records

    def reserve(self, request: "cluster_pb2.ReserveRequest") -> "cluster_pb2.ReserveReply":
        """Make, change or delete an advance reservation; not repeated: after a lost connection it fails."""
        from protos import cluster_pb2

        payload = self._one(CLUSTER + "Reserve", request.SerializeToString(), BEFORE_SENT)
        return cluster_pb2.ReserveReply.FromString(payload)

    def reservations(self, request: "cluster_pb2.ReservationsRequest") -> "cluster_pb2.ReservationsReply":
        """Advance reservations."""
        from protos import cluster_pb2

        payload = self._one(CLUSTER + "Reservations", request.SerializeToString())
        return cluster_pb2.ReservationsReply.FromString(payload)

    def change_job_group(self, request: "cluster_pb2.JobGroupRequest") -> "cluster_pb2.JobGroupReply":
        """Create, change or delete job groups; not repeated: after a lost connection it fails."""
        from protos import cluster_pb2

        payload = self._one(CLUSTER + "ChangeJobGroup", request.SerializeToString(), BEFORE_SENT)
        return cluster_pb2.JobGroupReply.FromString(payload)

    def applications(self, request: "cluster_pb2.ApplicationsRequest") -> "cluster_pb2.ApplicationsReply":
        """Application profiles with the slots of their jobs."""
        from protos import cluster_pb2

        payload = self._one(CLUSTER + "Applications", request.SerializeToString())
        return cluster_pb2.ApplicationsReply.FromString(payload)

    def job_groups(self, request: "cluster_pb2.JobGroupsRequest") -> "cluster_pb2.JobGroupsReply":
        """Job groups with their jobs by state, of all pages."""
        from protos import cluster_pb2

        reply = cluster_pb2.JobGroupsReply()
        for page in self._stream(CLUSTER + "JobGroups", request.SerializeToString()):
            reply.MergeFromString(page)
        return reply

    # Making a call.

    def _one(self, method: str, message: bytes, repeat: int = ALWAYS) -> bytes:
        for payload in self._stream(method, message, repeat=repeat):
            return payload
        raise CommandError("The master gave an empty answer.")

    def _stream(
        self,
        method: str,
        message: bytes,
        *,
        silence_s: float | None = ANSWER_S,
        repeat: int = ALWAYS,
        again: "Callable[[], bytes] | None" = None,
    ) -> "Iterator[bytes]":
        """Answers to one call. The call is repeated while no answer has come and a repetition is safe.

        Args:
            again: makes the request for a repetition, where it differs from the first.
        """
        for attempt in count():
            answered = False
            try:
                for payload in self._connected().answers(method, message, silence_s):
                    answered = True
                    yield payload
                return
            except CallError as error:
                if error.status not in TRANSIENT or repeat == BEFORE_SENT:
                    raise CommandError(sentence(str(error))) from None
                reason = str(error)
            except LostError as error:
                self.close()
                reason = f"the connection to the agent of this host was lost: {error}"
                if repeat == BEFORE_SENT:
                    reason += "; whether the request was carried out is not known"
                    raise CommandError(sentence(reason)) from None
            if answered:
                raise InterruptedAnswerError(sentence(f"The answer was cut short: {reason}"))
            message = again() if again else message
            self._pause(attempt, reason)

    def _connected(self) -> Connection:
        if self._connection is None:
            for attempt in count():
                try:
                    self._connection = Connection(self._path)
                    break
                except (ConnectionRefusedError, BlockingIOError) as error:
                    self._pause(attempt, f"no agent of this host listens on {self._path}: {error.strerror}")
                except OSError as error:
                    raise CommandError(no_agent(self._path, error)) from None
        assert self._connection is not None, "_pause raises after the last try"
        return self._connection

    def _pause(self, attempt: int, reason: str) -> None:
        """Wait before the next try; raise CommandError after the last one."""
        if attempt + 1 >= self._tries:
            raise CommandError(sentence(f"The batch system does not answer: {reason}"))
        if attempt == 0:
            self._io.error(reason + STILL_TRYING if reason.startswith(OTHER_HOST) else NOT_RESPONDING)
        self._io.sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])


def _why(error: CallError | LostError, is_begun: bool) -> str:
    """Reason in a sentence why a call of several has no more answers."""
    reason = (
        f"the connection to the agent of this host was lost: {error}" if isinstance(error, LostError) else str(error)
    )
    if is_begun:
        return sentence(f"The answer was cut short: {reason}")
    if isinstance(error, LostError) or error.status in TRANSIENT:
        return sentence(f"The batch system does not answer: {reason}")
    return sentence(reason)


class InterruptedAnswerError(CommandError):
    """A stream of answers broke off after its first message."""


def no_agent(path: str, error: OSError) -> str:
    """Error sentence for a socket that cannot be opened at all."""
    return (
        f"Cannot reach the lava agent of this host at {path} ({error.strerror}): start lava-agent here, "
        "or set LAVA_SOCKET as `lavactl env` prints it."
    )


def sentence(text: str) -> str:
    """Message of the master or agent as one sentence on one line; a name at its start (``x: No such queue``) stays."""
    text = clean(" ".join(text.split())) or "The request failed"
    first = text.partition(" ")[0]
    begin = text[0] if first.endswith(":") else text[0].upper()
    return begin + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
