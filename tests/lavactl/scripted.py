"""Surroundings for command tests: streams in memory, a fixed clock, and a client that answers from a script.

The scripted client records requests in ``asked``, so that a test can also check them.
"""

import io as memory
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from lavactl.io import Io
from lavactl.main import run
from protos import cluster_pb2, common_pb2, jobs_pb2

if TYPE_CHECKING:
    from lavactl.wire.client import Client

# Sat Nov 21 09:30:00 2026 UTC
NOW = 1795253400.0


class ScriptedClient:
    """Answers of a cluster that a test made up."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.jobs: list[jobs_pb2.JobRecord] = []
        self.missing: list[common_pb2.JobRef] = []
        self.submit_results: list[jobs_pb2.SubmitResult] = [jobs_pb2.SubmitResult(job=1201, queue="normal")]
        self.signal_reply = jobs_pb2.SignalReply()
        self.has_columns = True  # of lists, as a master of this version
        self.has_entries = True  # of several jobs in them, too
        self.modify_reply = jobs_pb2.ModifyReply()
        self.move_reply = jobs_pb2.MoveReply()
        self.force_reply = jobs_pb2.SignalResult()
        self.resize_reply = jobs_pb2.ResizeReply()
        self.environment_reply = jobs_pb2.EnvironmentReply()
        self.verdicts: list[int] = []
        self.silences: list[float | None] = []
        self.windows: list[jobs_pb2.SlotWindow] = []
        self.post_reply = jobs_pb2.PostReply(job=7)
        self.read_reply = jobs_pb2.ReadReply()
        self.dependencies_reply = jobs_pb2.DependenciesReply()
        self.explain_reply = jobs_pb2.ExplainReply()
        self.changes: list[jobs_pb2.JobChange] = []
        self.chunks: list[Any] = []
        self.histories: list[jobs_pb2.JobHistory] = []
        self.account_pages: list[jobs_pb2.AccountPage] = []
        self.usage_rows: list[jobs_pb2.UsageRow] = []
        self.host_records: list[cluster_pb2.HostRecord] = []
        self.queue_records: list[cluster_pb2.QueueRecord] = []
        self.user_records: list[cluster_pb2.UserRecord] = []
        self.group_records: list[cluster_pb2.GroupRecord] = []
        self.parameters_reply = cluster_pb2.ParametersReply()
        self.installation_reply = cluster_pb2.ParametersReply()
        self.status_reply = cluster_pb2.StatusReply()
        self.limits_reply = cluster_pb2.LimitsReply()
        self.pools_reply = cluster_pb2.PoolsReply()
        self.host_partitions_reply = cluster_pb2.HostPartitionsReply()
        self.resources_reply = cluster_pb2.ResourcesReply()
        self.configure_reply = cluster_pb2.ConfigureReply()
        self.control_reply = cluster_pb2.ControlReply()
        self.performance_reply = cluster_pb2.PerformanceReply()
        self.control_records: list[cluster_pb2.ControlRecord] = []
        self.reserve_reply = cluster_pb2.ReserveReply(name="ann#0")
        self.reservations_reply = cluster_pb2.ReservationsReply()
        self.applications_reply = cluster_pb2.ApplicationsReply()
        self.job_group_reply = cluster_pb2.JobGroupReply()
        self.job_groups_reply = cluster_pb2.JobGroupsReply()
        self.cluster = cluster_pb2.InfoReply(cluster="c1", master_host="m1", version="0.1.0")

    def close(self) -> None:
        """Keep the connection that there is not."""

    def keep(self, kind: Any, request: Any) -> None:
        """Record a request as the master would read it: the library decodes the command's encoding."""
        self.asked.append(kind.FromString(request.SerializeToString()))

    def reserve(self, request: cluster_pb2.ReserveRequest) -> cluster_pb2.ReserveReply:
        self.keep(cluster_pb2.ReserveRequest, request)
        return self.reserve_reply

    def performance(self, request: cluster_pb2.PerformanceRequest) -> cluster_pb2.PerformanceReply:
        self.keep(cluster_pb2.PerformanceRequest, request)
        return self.performance_reply

    def diagnose(self, request: cluster_pb2.DiagnoseRequest) -> cluster_pb2.DiagnoseReply:
        self.keep(cluster_pb2.DiagnoseRequest, request)
        return cluster_pb2.DiagnoseReply(path="/var/lib/lava/query.log", host="m1")

    def control_history(self, request: cluster_pb2.ControlHistoryRequest) -> Iterator[cluster_pb2.ControlRecord]:
        self.keep(cluster_pb2.ControlHistoryRequest, request)
        return iter(self.control_records)

    def reservations(self, request: cluster_pb2.ReservationsRequest) -> cluster_pb2.ReservationsReply:
        self.keep(cluster_pb2.ReservationsRequest, request)
        return self.reservations_reply

    def applications(self, request: cluster_pb2.ApplicationsRequest) -> cluster_pb2.ApplicationsReply:
        self.keep(cluster_pb2.ApplicationsRequest, request)
        return self.applications_reply

    def change_job_group(self, request: cluster_pb2.JobGroupRequest) -> cluster_pb2.JobGroupReply:
        self.keep(cluster_pb2.JobGroupRequest, request)
        return self.job_group_reply

    def job_groups(self, request: cluster_pb2.JobGroupsRequest) -> cluster_pb2.JobGroupsReply:
        self.keep(cluster_pb2.JobGroupsRequest, request)
        return self.job_groups_reply

    def submit(self, item: jobs_pb2.SubmitItem) -> jobs_pb2.SubmitResult:
        self.keep(jobs_pb2.SubmitItem, item)
        return self.submit_results.pop(0)

    def submit_all(self, items: list[Any]) -> list[jobs_pb2.SubmitResult]:
        return [self.submit(item) for item in items]

    def list_jobs(self, request: jobs_pb2.ListJobsRequest) -> Iterator[jobs_pb2.JobPage]:
        self.keep(jobs_pb2.ListJobsRequest, request)
        if request.columns and self.has_columns:
            columns = in_columns(self.jobs, request)
            if columns.job and request.time_unit_s and self.has_entries:
                join_entries(columns, request.time_unit_s)
            return iter([jobs_pb2.JobPage(columns=columns, missing=self.missing)])
        return iter([jobs_pb2.JobPage(jobs=self.jobs, missing=self.missing)])

    def signal(self, request: jobs_pb2.SignalRequest) -> jobs_pb2.SignalReply:
        self.keep(jobs_pb2.SignalRequest, request)
        return self.signal_reply

    def modify(self, request: jobs_pb2.ModifyRequest) -> jobs_pb2.ModifyReply:
        self.keep(jobs_pb2.ModifyRequest, request)
        return self.modify_reply

    def move(self, request: jobs_pb2.MoveRequest) -> jobs_pb2.MoveReply:
        self.keep(jobs_pb2.MoveRequest, request)
        return self.move_reply

    def force(self, request: jobs_pb2.ForceRequest) -> jobs_pb2.SignalResult:
        self.keep(jobs_pb2.ForceRequest, request)
        return self.force_reply

    def resize(self, request: jobs_pb2.ResizeRequest) -> jobs_pb2.ResizeReply:
        self.keep(jobs_pb2.ResizeRequest, request)
        return self.resize_reply

    def environment(self, request: jobs_pb2.EnvironmentRequest) -> jobs_pb2.EnvironmentReply:
        self.keep(jobs_pb2.EnvironmentRequest, request)
        return self.environment_reply

    def wait(self, request: jobs_pb2.WaitRequest, silence_s: float | None) -> int:
        self.keep(jobs_pb2.WaitRequest, request)
        self.silences.append(silence_s)
        return self.verdicts.pop(0)

    def slots(self, requirement: str, *, with_hosts: bool) -> Iterator[jobs_pb2.SlotWindow]:
        self.asked.append((requirement, with_hosts))
        return iter(self.windows)

    def post(self, request: jobs_pb2.PostRequest) -> jobs_pb2.PostReply:
        self.keep(jobs_pb2.PostRequest, request)
        return self.post_reply

    def read(self, request: jobs_pb2.ReadRequest) -> jobs_pb2.ReadReply:
        self.keep(jobs_pb2.ReadRequest, request)
        return self.read_reply

    def dependencies(self, request: jobs_pb2.DependenciesRequest) -> jobs_pb2.DependenciesReply:
        self.keep(jobs_pb2.DependenciesRequest, request)
        return self.dependencies_reply

    def explain(self, request: jobs_pb2.ExplainRequest) -> jobs_pb2.ExplainReply:
        self.keep(jobs_pb2.ExplainRequest, request)
        return self.explain_reply

    def watch(self, refs: list[common_pb2.JobRef]) -> Iterator[jobs_pb2.JobChange]:
        self.asked.append(refs)
        return iter(self.changes)

    def peek(self, request: jobs_pb2.PeekRequest) -> Iterator[Any]:
        self.keep(jobs_pb2.PeekRequest, request)
        return iter(self.chunks)

    def peek_many(self, requests: list[Any], at_once: int) -> Iterator[tuple[int, Any]]:
        """Each request's output, one after the other."""
        for number, request in enumerate(requests):
            for chunk in self.peek(request):
                yield number, chunk
            yield number, None

    def history(self, request: jobs_pb2.HistoryRequest) -> Iterator[jobs_pb2.HistoryPage]:
        self.keep(jobs_pb2.HistoryRequest, request)
        return iter([jobs_pb2.HistoryPage(jobs=self.histories)])

    def usage(self, request: jobs_pb2.UsageRequest) -> Iterator[jobs_pb2.UsageRow]:
        self.keep(jobs_pb2.UsageRequest, request)
        return iter(self.usage_rows)

    def accounts(self, request: jobs_pb2.AccountsRequest) -> Iterator[jobs_pb2.AccountPage]:
        self.keep(jobs_pb2.AccountsRequest, request)
        return iter(self.account_pages)

    def users(self, request: cluster_pb2.UsersRequest) -> cluster_pb2.UsersReply:
        self.keep(cluster_pb2.UsersRequest, request)
        known = {user.name for user in self.user_records}
        chosen = [user for user in self.user_records if not request.names or user.name in request.names]
        return cluster_pb2.UsersReply(users=chosen, missing=[name for name in request.names if name not in known])

    def groups(self, request: cluster_pb2.GroupsRequest) -> cluster_pb2.GroupsReply:
        self.asked.append(request)
        known = {group.name for group in self.group_records}
        chosen = [group for group in self.group_records if not request.names or group.name in request.names]
        return cluster_pb2.GroupsReply(groups=chosen, missing=[name for name in request.names if name not in known])

    def parameters(self, installation: bool = False) -> cluster_pb2.ParametersReply:
        return self.installation_reply if installation else self.parameters_reply

    def status(self) -> cluster_pb2.StatusReply:
        return self.status_reply

    def limits(self) -> cluster_pb2.LimitsReply:
        return self.limits_reply

    def pools(self, request: cluster_pb2.PoolsRequest) -> cluster_pb2.PoolsReply:
        self.asked.append(request)
        return self.pools_reply

    def host_partitions(self, request: cluster_pb2.HostPartitionsRequest) -> cluster_pb2.HostPartitionsReply:
        self.asked.append(request)
        return self.host_partitions_reply

    def configure(self, request: cluster_pb2.ConfigureRequest) -> cluster_pb2.ConfigureReply:
        self.asked.append(request)
        return self.configure_reply

    def control(self, request: cluster_pb2.ControlRequest) -> cluster_pb2.ControlReply:
        self.asked.append(request)
        return self.control_reply

    def info(self) -> cluster_pb2.InfoReply:
        return self.cluster

    def hosts(self, request: cluster_pb2.HostsRequest) -> Iterator[cluster_pb2.HostsPage]:
        self.asked.append(request)
        known = {host.facts.name: host for host in self.host_records}
        chosen = [known[name] for name in request.names if name in known] if request.names else self.host_records
        missing = [name for name in request.names if name not in known]
        return iter([cluster_pb2.HostsPage(hosts=chosen, missing=missing)])

    def resources(self, definitions: bool = False) -> cluster_pb2.ResourcesReply:
        return self.resources_reply

    def queues(self, request: cluster_pb2.QueuesRequest) -> cluster_pb2.QueuesReply:
        self.asked.append(request)
        known = {queue.name: queue for queue in self.queue_records}
        chosen = [known[name] for name in request.names if name in known] if request.names else self.queue_records
        return cluster_pb2.QueuesReply(queues=chosen, missing=[name for name in request.names if name not in known])


class Result:
    """Result of a command: exit code, standard output, standard error."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}--- stderr\n{self.err}"


class Screen(memory.BytesIO):
    """An output that is a terminal."""

    def isatty(self) -> bool:
        """As of a terminal."""
        return True


class Desk:
    """Surroundings in which a test types commands; ``has_screen``: standard error is a terminal."""

    def __init__(self) -> None:
        self.has_screen = True
        self.client = ScriptedClient()
        self.environ: dict[str, str] = {"PATH": "/usr/bin", "HOME": "/home/alice", "LSF_ENVDIR": "/nonexistent"}
        self.slept: list[float] = []
        self.last_io: Io | None = None

    def type(
        self, name: str, *argv: str, stdin: bytes = b"", cwd: str = "/home/alice/run", client: Any = None
    ) -> Result:
        """Run a command as the user would."""
        out, err = memory.BytesIO(), Screen() if self.has_screen else memory.BytesIO()
        io = FixedIo(
            stdin=memory.BytesIO(stdin),
            stdout=out,
            stderr=err,
            raw_environ=[f"{key}={value}".encode() for key, value in self.environ.items()],
            cwd=cwd,
            umask=0o022,
            width=80,
            client=cast("Client", client or self.client),
        )
        io.slept = self.slept
        self.last_io = io
        code = run(name, list(argv), io)
        return Result(code, out.getvalue().decode(), err.getvalue().decode())

    @property
    def spec(self) -> jobs_pb2.JobSpec:
        """Job of the last submission."""
        item = self.client.asked[-1]
        assert isinstance(item, jobs_pb2.SubmitItem)
        return item.spec


class FixedIo(Io):
    """An ``Io`` with a fixed clock and fake users."""

    slept: list[float]
    homes: Mapping[str, str] = {"alice": "/home/alice", "bob": "/home/bob"}

    def now(self) -> float:
        return NOW

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def user_name(self) -> str:
        return "alice"

    def home_of(self, user: str) -> str | None:
        return self.homes.get(user)


def at(clock: str, day: int = 21) -> float:
    """Seconds since the epoch of a time in November 2026, UTC."""
    hours, minutes, seconds = map(int, clock.split(":"))
    return NOW - 9.5 * 3600 + (day - 21) * 86400 + hours * 3600 + minutes * 60 + seconds


def a_job(hosts: Iterable[tuple[str, int]] = (), **fields: Any) -> jobs_pb2.JobRecord:
    """Job record with only the fields relevant to a test."""
    shares = [common_pb2.HostShare(host=host, slots=slots) for host, slots in hosts]
    plain = {
        "job": 1201, "user": "alice", "state": common_pb2.PEND, "queue": "normal", "from_host": "login1",
        "name": "md_npt", "project": "default", "submit_time": at("09:02:11"), "slots_min": 1,
    }  # fmt: skip
    return jobs_pb2.JobRecord(**{**plain, **fields}, hosts=shares)


def in_columns(jobs: Iterable[jobs_pb2.JobRecord], request: jobs_pb2.ListJobsRequest) -> jobs_pb2.JobColumns:
    """The jobs by columns, with a kind and a name for each that differs; of runs what the request wants."""
    columns, kinds, names = jobs_pb2.JobColumns(), dict[bytes, int](), dict[str, int]()
    for job in jobs:
        kind = jobs_pb2.JobRecord()
        kind.CopyFrom(job)
        for field in ("job", "index", "name", "submit_time"):
            kind.ClearField(field)
        has_figures = request.end_columns and job.end_time > 0
        if request.hosts_alone or has_figures:
            for field in ("start_time", "end_time", "exit_status", "exit_reason", "usage", "usage_by_host"):
                kind.ClearField(field)
        if has_figures:
            kind.attempt += 1000  # apart from those without figures
            columns.start_time.append(job.start_time)
            columns.end_time.append(job.end_time)
            columns.cpu_s.append(job.usage.cpu_s)
        name = job.name.removesuffix(f"[{job.index}]")
        columns.job.append(job.job)
        columns.index.append(job.index)
        columns.submit_time.append(job.submit_time)
        columns.kind.append(kinds.setdefault(kind.SerializeToString(deterministic=True), len(kinds)))
        columns.name.append(names.setdefault(name, len(names)))
    columns.kinds.extend(map(jobs_pb2.JobRecord.FromString, kinds))
    columns.names.extend(names)
    columns.ended.extend(number for number, kind in enumerate(columns.kinds) if kind.attempt >= 1000)
    if not any(columns.index):
        del columns.index[:]
    return columns


def join_entries(columns: jobs_pb2.JobColumns, unit_s: int) -> None:
    """Give jobs alike, with numbers or indices that follow each other, one entry for each unit of time."""
    indices = list(columns.index) or [0] * len(columns.job)
    entries: list[list[Any]] = []
    for job, index, time, kind, name in zip(
        columns.job, indices, columns.submit_time, columns.kind, columns.name, strict=True
    ):
        last = entries[-1] if entries and kind not in columns.ended else None
        if last is not None and (kind, name, time // unit_s) == (*last[3:5], last[2] // unit_s):
            following = (last[0], last[1] + last[5]) if last[1] else (last[0] + last[5], 0)
            if (job, index) == following:
                last[5] += 1
                continue
        entries.append([job, index, time, kind, name, 1])
    for field, column in zip(
        ("job", "index", "submit_time", "kind", "name", "count"), zip(*entries, strict=True), strict=True
    ):
        columns.ClearField(field)  # type: ignore[arg-type]
        getattr(columns, field).extend(column)
    if not any(columns.index):
        del columns.index[:]
