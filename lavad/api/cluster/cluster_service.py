"""ClusterService: the cluster, its hosts, its queues and its configuration, as user commands show and control them."""

import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import grpc

from lavad.api import identity
from lavad.api.agents import AgentService
from lavad.api.cluster import advance_reservations, job_groups
from lavad.api.cluster.configuration import Configurator
from lavad.api.cluster.control import change_host_group, check_comment, control, remove_hosts
from lavad.api.cluster.control_history import ControlHistory
from lavad.api.cluster.host_choice import chosen
from lavad.api.cluster.performance import PerformanceMonitor
from lavad.api.cluster.query_log import QueryLog
from lavad.api.cluster.status import status_reply
from lavad.api.privacy import Sight
from lavad.api.records import application_records, parameters_limits, resource_records, user_records
from lavad.api.records.host_records import host_record
from lavad.api.records.queue_records import partitions_reply, queue_record
from lavad.api.records.service_class_records import service_class_records
from lavad.api.records.whole_hosts import beyond
from lavad.api.slices import Slices
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import Queue
from lavad.core.state.hosts.table import natural
from lavad.core.state.records import Host
from lavad.engine import Engine
from lavad.health import Health
from lavad.settings import Settings
from lavad.version import VERSION
from protos import cluster_pb2 as pb
from protos import cluster_pb2_grpc

PAGE_HOSTS = 500


class ClusterService(cluster_pb2_grpc.ClusterServiceServicer):
    """Queries about the cluster for users, and its control for administrators."""

    def __init__(
        self,
        engine: Engine,
        agents: AgentService,
        configurator: Configurator,
        health: Health,
        control_history: ControlHistory,
        performance: PerformanceMonitor,
        query_log: QueryLog,
    ) -> None:
        self.engine = engine
        self.agents = agents
        self.configurator = configurator
        self.health = health
        self.control_history = control_history
        self.performance = performance
        self.query_log = query_log
        self.started_at = engine.clock()

    @property
    def settings(self) -> Settings:
        """Settings with the present administrators."""
        return self.agents.settings

    async def Info(self, request: pb.InfoRequest, context: identity.Context) -> pb.InfoReply:
        """lsid."""
        await identity.caller(context, self.settings)
        cluster = self.engine.cluster
        return pb.InfoReply(
            cluster=cluster.name,
            master_host=self.settings.master_host,
            version=VERSION,
            term=cluster.term,
            conf_dir=str(self.settings.directory),
            administrators=sorted(self.settings.administrators),
            default_queue=cluster.policy.default_queue,
            hosts=len(cluster.hosts),
            servers=sum(1 for host in cluster.hosts.values() if host.facts.server),
        )

    async def Hosts(self, request: pb.HostsRequest, context: identity.Context) -> AsyncIterator[pb.HostsPage]:
        """bhosts, lsload, lshosts. Login hosts only when asked for."""
        await identity.caller(context, self.settings)
        hosts = self.engine.cluster.hosts
        names = self._named(request.names) if request.names else sorted(hosts, key=natural)
        page = pb.HostsPage(missing=[name for name in names if name not in hosts])
        if request.requirement:
            names = chosen(self.engine.cluster, request.requirement, [name for name in names if name in hosts])
        slices = Slices()
        for name in names:
            await slices.check()
            host = hosts.get(name)
            if host is not None and (host.facts.server or request.clients_too or request.names):
                page.hosts.append(self._host(name, host, request))
                if len(page.hosts) >= PAGE_HOSTS:
                    yield page
                    page = pb.HostsPage()
        yield page

    def _named(self, words: Sequence[str]) -> list[str]:
        """Return host names, with groups replaced by their joined members; each host once."""
        groups, hosts = self.engine.cluster.policy.host_groups, self.engine.cluster.hosts
        found: dict[str, None] = {}
        for word in words:
            members = groups.get(word.removesuffix("/"))
            names = [word] if members is None else sorted((name for name in hosts if name in members), key=natural)
            found |= dict.fromkeys(names)
        return list(found)

    def _host(self, name: str, host: Host, request: pb.HostsRequest) -> pb.HostRecord:
        told, load = self.agents.facts.get(name), self.agents.loads.get(name)
        record = host_record(
            self.engine.cluster,
            host,
            told,
            load,
            self.engine.clock(),
            allocated=request.allocated,
            processors=request.processors,
        )
        if self.agents.health_checks is not None:
            for argv, result in self.agents.health_checks.results(name).items():
                record.checks.add(command=shlex.join(argv), time=result.at, verdict=result.verdict, text=result.text)
        return record

    async def Queues(self, request: pb.QueuesRequest, context: identity.Context) -> pb.QueuesReply:
        """bqueues: all queues, the named ones, or those that a user or host may use."""
        await identity.caller(context, self.settings)
        cluster = self.engine.cluster
        known = cluster.policy.by_name
        if not self._is_host(request.host):
            return pb.QueuesReply(host_is_unknown=True)
        reply = pb.QueuesReply(missing=[name for name in request.names if name not in known])
        more = list(beyond(cluster)) if request.allocated else []
        for queue in sorted(cluster.policy.queues, key=lambda one: -one.priority):
            if (not request.names or queue.name in request.names) and self._is_meant(queue, request):
                reply.queues.append(queue_record(cluster, queue, self.engine.clock(), more))
        return reply

    def _is_host(self, name: str) -> bool:
        """Return True for a joined or configured host, a host group, the cluster, ``all`` or an empty name."""
        cluster = self.engine.cluster
        known = (cluster.hosts, cluster.policy.known_hosts, cluster.policy.host_groups)
        return name in ("", "all", cluster.name) or any(name in names for names in known)

    def _is_meant(self, queue: Queue, request: pb.QueuesRequest) -> bool:
        """Return True if the queue passes -u and -m: each takes ``all``, and a group stands for any of its members."""
        policy = self.engine.cluster.policy
        if request.user not in ("", "all"):
            group = policy.user_groups.get(request.user)
            users = {request.user} if group is None else group.names
            if not any(user in queue.users for user in users):
                return False
        if request.host in ("", "all") or self.engine.cluster.is_named(request.host):
            return True
        hosts = policy.host_groups.get(request.host)
        return any(host in queue.hosts for host in ({request.host} if hosts is None else hosts.names))

    async def Users(self, request: pb.UsersRequest, context: identity.Context) -> pb.UsersReply:
        """busers."""
        caller = await identity.caller(context, self.settings)
        sight = Sight(caller, self.engine.cluster.policy)
        return await user_records.users_reply(self.engine.cluster, request, caller.user, sight)

    async def Groups(self, request: pb.GroupsRequest, context: identity.Context) -> pb.GroupsReply:
        """bugroup and bmgroup."""
        await identity.caller(context, self.settings)
        table = self.engine.cluster.table
        hosts = [facts.name for facts in table.facts if facts.server]
        return user_records.groups_reply(self.engine.cluster.policy, request, hosts)

    async def Parameters(self, request: pb.ParametersRequest, context: identity.Context) -> pb.ParametersReply:
        """bparams; badmin showconf."""
        await identity.caller(context, self.settings)
        if request.installation:
            return parameters_limits.installation_reply(self.configurator.installation.settings)
        return parameters_limits.parameters_reply(self.engine.cluster.policy, self.settings.usage_interval_s)

    async def Limits(self, request: pb.LimitsRequest, context: identity.Context) -> pb.LimitsReply:
        """blimits, bbudgets."""
        sight = Sight(await identity.caller(context, self.settings), self.engine.cluster.policy)
        reply = parameters_limits.limits_reply(self.engine.cluster, sight)
        parameters_limits.add_budgets(reply, self.engine.cluster, self.engine.clock(), sight)
        return reply

    async def Pools(self, request: pb.PoolsRequest, context: identity.Context) -> pb.PoolsReply:
        """bresources -g, bsla."""
        await identity.caller(context, self.settings)
        reply = parameters_limits.pools_reply(self.engine.cluster, request)
        if request.service_classes:
            reply.service_classes.extend(service_class_records(self.engine.cluster))
        return reply

    async def HostPartitions(
        self, request: pb.HostPartitionsRequest, context: identity.Context
    ) -> pb.HostPartitionsReply:
        """bhpart."""
        await identity.caller(context, self.settings)
        return partitions_reply(self.engine.cluster, request, self.engine.clock())

    async def Resources(self, request: pb.ResourcesRequest, context: identity.Context) -> pb.ResourcesReply:
        """bhosts -s, lsload -s and lshosts -s, and the shared resources in their -l; lsinfo."""
        await identity.caller(context, self.settings)
        if request.definitions:
            return resource_records.definitions_reply(self.engine.cluster)
        return resource_records.resources_reply(self.engine.cluster, self.agents.loads)

    async def Configure(self, request: pb.ConfigureRequest, context: identity.Context) -> pb.ConfigureReply:
        """badmin ckconfig and badmin reconfig."""
        caller = await identity.caller(context, self.settings)
        if not caller.is_administrator:
            raise Refused("User permission denied")
        check_comment(request.comment)
        reply = await self.configurator.run(request.apply)
        if reply.applied:
            self.control_history.tell_reconfiguration(caller.user, request.comment)
        return reply

    async def Status(self, request: pb.StatusRequest, context: identity.Context) -> pb.StatusReply:
        """badmin showstatus."""
        await identity.caller(context, self.settings)
        problems = self.health.problems
        return status_reply(self.engine.cluster, self.started_at, self.configurator.applied_at, problems)

    async def Control(self, request: pb.ControlRequest, context: identity.Context) -> pb.ControlReply:
        """badmin hopen, hclose, hremove, hghostadd, hghostdel, qopen, qclose, qact, qinact. The core checks
        permissions."""
        caller = await identity.caller(context, self.settings)
        if request.action in (pb.ADD_TO_GROUP, pb.DELETE_FROM_GROUP):
            reply = await change_host_group(self.configurator, request, caller)
            self.control_history.tell_reconfiguration(caller.user, request.comment)
            return reply
        if request.action == pb.REMOVE_HOST:
            return await remove_hosts(self.engine, request, caller, self.agents.remove)
        return await control(self.engine, request, caller)

    async def Performance(self, request: pb.PerformanceRequest, context: identity.Context) -> pb.PerformanceReply:
        """badmin perfmon."""
        caller = await identity.caller(context, self.settings)
        if request.action != pb.VIEW_PERFORMANCE and not caller.is_administrator:
            raise Refused("User permission denied")
        if request.action == pb.START_PERFORMANCE:
            self.performance.start(request.period_s)
        elif request.action == pb.STOP_PERFORMANCE:
            self.performance.stop()
        elif request.action == pb.SET_PERFORMANCE_PERIOD:
            self.performance.set_period(request.period_s)
        return self.performance.reply()

    async def Diagnose(self, request: pb.DiagnoseRequest, context: identity.Context) -> pb.DiagnoseReply:
        """badmin diagnose -c query."""
        caller = await identity.caller(context, self.settings)
        if not caller.is_administrator:
            raise Refused("User permission denied")
        path = self.query_log.stop() if request.off else self.query_log.start(request.file, request.seconds)
        if path is None:
            raise Refused("Query diagnosis is off; badmin diagnose -c query begins it")
        return pb.DiagnoseReply(path=str(path), host=self.settings.master_host)

    async def ControlHistory(
        self, request: pb.ControlHistoryRequest, context: identity.Context
    ) -> AsyncIterator[pb.ControlHistoryPage]:
        """badmin hist, qhist, hhist, mbdhist."""
        await identity.caller(context, self.settings)
        async with aclosing(self.control_history.pages(request)) as pages:
            async for page in pages:
                yield page

    async def Reserve(self, request: pb.ReserveRequest, context: identity.Context) -> pb.ReserveReply:
        """brsvadd, brsvmod, brsvdel. The core checks permissions."""
        caller = await identity.caller(context, self.settings)
        return await advance_reservations.reserve(self.engine, request, caller)

    async def Reservations(self, request: pb.ReservationsRequest, context: identity.Context) -> pb.ReservationsReply:
        """brsvs."""
        await identity.caller(context, self.settings)
        return advance_reservations.reservations_reply(self.engine.cluster, request, self.engine.clock())

    async def ChangeJobGroup(self, request: pb.JobGroupRequest, context: identity.Context) -> pb.JobGroupReply:
        """bgadd, bgmod, bgdel. The core checks permissions."""
        caller = await identity.caller(context, self.settings)
        return await job_groups.change(self.engine, request, caller)

    async def Applications(self, request: pb.ApplicationsRequest, context: identity.Context) -> pb.ApplicationsReply:
        """bapp."""
        await identity.caller(context, self.settings)
        return application_records.applications_reply(self.engine.cluster, request)

    async def JobGroups(
        self, request: pb.JobGroupsRequest, context: identity.Context
    ) -> AsyncIterator[pb.JobGroupsReply]:
        """bjgroup."""
        sight = Sight(await identity.caller(context, self.settings), self.engine.cluster.policy)
        async with aclosing(job_groups.pages(self.engine.cluster, request, sight)) as pages:
            async for page in pages:
                yield page


def register(server: grpc.aio.Server, service: ClusterService) -> None:
    """Add the cluster service to the server."""
    cluster_pb2_grpc.add_ClusterServiceServicer_to_server(service, server)
