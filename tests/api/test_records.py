"""Records of queues, users, groups, parameters and limits of a whole site."""

import asyncio
from dataclasses import replace

from lavad.api.privacy import Sight
from lavad.api.records import whole_hosts
from lavad.api.records.application_records import applications_reply
from lavad.api.records.host_records import host_record
from lavad.api.records.parameters_limits import limits_reply, parameters_reply
from lavad.api.records.queue_records import queue_record
from lavad.api.records.resource_records import resources_reply
from lavad.api.records.user_records import groups_reply, users_reply
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.clock import exit_rates
from lavad.core.model import HostShare, JobState
from lavad.core.model.policy import Policy
from lavad.core.model.priorities.host_partition import HostPartition
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.queues import JobDefaults, Queue
from lavad.core.model.rules.users import Fairshare, Share
from protos import cluster_pb2 as pb
from tests.builders import ANN, Story, a_cluster, a_host, a_job
from tests.config.files import SITE, loaded
from tests.transcripts import site


def a_site() -> Story:
    """The site's rules over one host."""
    return Story(a_host("c01", 8), policy=loaded(SITE).policy)


def seen_by_ann(cluster: Cluster) -> Sight:
    """Visibility of jobs to ann."""
    return Sight(ANN, cluster.policy)


def test_counts_of_users_whose_jobs_are_hidden() -> None:
    """SECURE_JOB_INFO_LEVEL: busers lists them to others without jobs, and among all users not at all."""
    story = a_cluster(a_host())
    story.submit(a_job())
    bob = c.Caller("bob", 1001)
    for level, names, pend in ((0, ["ann"], 1), (4, ["bob"], 0)):
        policy = replace(story.cluster.policy, job_info_level=level)
        sight = Sight(bob, policy)
        everybody = asyncio.run(users_reply(story.cluster, pb.UsersRequest(everybody=True), "bob", sight)).users
        assert [user.name for user in everybody] == names
        (ann,) = asyncio.run(
            users_reply(story.cluster, pb.UsersRequest(names=["ann"], accounts=["ann"]), "bob", sight)
        ).users
        assert ann.pend == pend


def test_a_queue() -> None:
    """Limits in LSF's terms, groups with a slash, policies, shares."""
    story = a_site()
    record = queue_record(story.cluster, story.cluster.policy.by_name["normal"], story.now)
    assert dict(record.parameters) == {
        "RUNLIMIT": "4320.0 min",
        "PROCLIMIT": "1 256",
        "MEMLIMIT": "67108864 K",
        "HOSTS": "thin/+3 fat/",
        "ADMINISTRATORS": "ada",
        "REQUEUE_EXIT_VALUES": "30 99 EXCLUDE(20)",
        "JOB_CONTROLS": "SUSPEND[SIGTSTP] TERMINATE[/opt/site/end.sh -q]",
        "FAIRSHARE_QUEUES": "short",
        "SLOT_RESERVE": "300",
        "PREEMPTION": "PREEMPTIVE[night] PREEMPTABLE[express]",
        "POLICIES": "BACKFILL  EXCLUSIVE  FAIRSHARE  PREEMPTIVE  PREEMPTABLE",
    }
    assert dict(record.default_limits) == {"RUNLIMIT": "240.0 min", "MEMLIMIT": "2048000 K"}
    assert [(one.name, one.shares) for one in record.shares] == [("science", 20), ("trainees@", 2), ("default", 1)]
    assert [(one.index, one.sched, one.HasField("stop")) for one in record.thresholds] == [
        ("mem", 400, True), ("scratch", 10, False),
    ]  # fmt: skip
    assert record.is_default
    short = queue_record(story.cluster, story.cluster.policy.by_name["short"], story.now)
    assert (short.parameters["CPULIMIT"], short.default_limits["CPULIMIT"]) == ("120.0 min", "30.0 min")
    assert short.parameters["CORELIMIT"] == "512 K"
    night = queue_record(story.cluster, story.cluster.policy.by_name["night"], story.now)
    assert (night.per_host, night.per_processor, night.HasField("max")) == (16, 0.5, False)
    assert night.parameters["POLICIES"] == "PREEMPTABLE  ROUND_ROBIN"


def test_a_queue_for_whole_racks() -> None:
    """EXCLUSIVE = CU[...] is shown as configured."""
    queue = Queue("q", written=(("EXCLUSIVE", "CU[rack]"),))
    record = queue_record(a_cluster(policy=Policy(queues=(queue,))).cluster, queue, 0.0)
    assert (record.parameters["EXCLUSIVE"], record.parameters["POLICIES"]) == ("CU[rack]", "EXCLUSIVE")


def test_slots_that_are_kept_for_a_job() -> None:
    """RSV of its queue, of its user and his account, and of the hosts."""
    shares = Fairshare((Share("art", 1, Names(False, frozenset({"ann"})), below=(Share("default", 1, ALL, True),)),))
    queue = Queue("normal", slot_reserve_s=60.0, fairshare=shares)
    story = a_cluster(a_host("n1", 2), a_host("n2", 2), policy=Policy(queues=(queue, Queue("other"))))
    first, *_ = [story.run(a_job()) for _ in range(4)]
    wide = story.submit(a_job(slots=3))
    story.plan()
    story.finished("n1", first)
    story.plan()
    assert story.state(wide) is JobState.PEND
    cluster = story.cluster
    assert [queue_record(cluster, one, story.now).rsv for one in cluster.policy.queues] == [1, 0]
    assert [
        user.rsv
        for user in asyncio.run(users_reply(cluster, pb.UsersRequest(names=["ann"]), "ann", seen_by_ann(cluster))).users
    ] == [1]
    assert [row.reserved for row in queue_record(cluster, queue, story.now).share_tree] == [1, 1]
    assert rsv(story) == {"n1": 1, "n2": 0}


def test_slots_that_are_set_apart() -> None:
    """RSV of a host counts the unused, free slots of an active advance reservation."""
    story = a_cluster(a_host("n1", 4), a_host("n2", 4))
    story.run(a_job(2, hosts=("n1",)))
    story.reserve(3, begin=60.0, hosts=("n1",), name="course")
    assert rsv(story) == {"n1": 0, "n2": 0}
    story.hear("n1", "n2")
    story.wait(61.0)
    assert rsv(story) == {"n1": 2, "n2": 0}


def rsv(story: Story) -> dict[str, int]:
    """RSV of each host in bhosts."""
    hosts = story.cluster.hosts.items()
    return {name: host_record(story.cluster, host, None, None, story.now).rsv for name, host in hosts}


def test_users() -> None:
    """Usage in slots, and the row that applies to each; groups are the sum of their members."""
    story = a_site()
    for name in ("ada", "bea", "dan"):
        job = a_job(2, queue="normal")
        story.submit(job._replace(shared=replace(job.shared, user=name)))
    story.plan()
    reply = asyncio.run(
        users_reply(
            story.cluster, pb.UsersRequest(names=["ada", "dan", "flow", "zoe"]), "ann", seen_by_ann(story.cluster)
        )
    )
    rows = {user.name: user for user in reply.users}
    assert (rows["ada"].max, rows["ada"].njobs, rows["ada"].HasField("per_processor")) == (256, 2, False)
    assert (rows["dan"].max, rows["dan"].per_processor, rows["dan"].pending_jobs_max) == (64, 1.0, 2000)
    assert (rows["flow"].njobs, rows["flow"].is_group) == (4, True)
    assert list(reply.missing) == ["zoe"]
    (zoe,) = asyncio.run(
        users_reply(story.cluster, pb.UsersRequest(names=["zoe"], accounts=["zoe"]), "ann", seen_by_ann(story.cluster))
    ).users
    assert (zoe.name, zoe.max, zoe.njobs) == ("zoe", 128, 0)  # the row `default` is for her, too
    everybody = asyncio.run(
        users_reply(story.cluster, pb.UsersRequest(everybody=True), "ann", seen_by_ann(story.cluster))
    )
    assert {user.name for user in everybody.users} >= {"ada", "bea", "dan", "default", "science"}
    assert [user.name for user in everybody.users if user.is_group] == ["flow", "genome", "science", "trainees"]
    assert [user.is_group for user in everybody.users][-4:] == [True] * 4
    assert [
        user.name
        for user in asyncio.run(users_reply(story.cluster, pb.UsersRequest(), "ann", seen_by_ann(story.cluster))).users
    ] == ["ann"]


def test_groups() -> None:
    """As written, or all members at any depth."""
    policy = a_site().cluster.policy
    written = groups_reply(policy, pb.GroupsRequest(names=["science", "no"]))
    assert [list(group.members) for group in written.groups] == [["flow/", "genome/", "fin"]]
    assert list(written.missing) == ["no"]
    flat = groups_reply(policy, pb.GroupsRequest(names=["compute", "elsewhere"], hosts=True, flat=True))
    assert [list(group.members) for group in flat.groups] == [["c01", "c02", "c03", "m01"], ["all", "~g01", "~g02"]]


def test_compute_units() -> None:
    """Behind the groups of hosts, or alone; as written, or all hosts at any depth."""
    policy = a_site().cluster.policy
    both = groups_reply(policy, pb.GroupsRequest(hosts=True))
    assert [(one.name, one.type) for one in both.groups][-4:] == [
        (policy.host_group_rows[-1].name, ""), ("e1", "enclosure"), ("e2", "enclosure"), ("r1", "rack"),
    ]  # fmt: skip
    units = groups_reply(policy, pb.GroupsRequest(hosts=True, units_only=True))
    assert [list(unit.members) for unit in units.groups] == [["c01", "c02"], ["c03", "fat/"], ["e1/", "e2/"]]
    flat = groups_reply(policy, pb.GroupsRequest(hosts=True, units_only=True, flat=True, names=["r1", "compute"]))
    assert [list(unit.members) for unit in flat.groups] == [["c01", "c02", "c03", "m01"]]
    assert list(flat.missing) == ["compute"]


def test_host_partitions_among_groups() -> None:
    """Behind compute units; as written, or all hosts at any depth, of which those that run jobs are all."""
    fair = Fairshare((Share("default", 1, ALL, True),))
    some = HostPartition("some", Names(False, frozenset({"n2", "n10"})), fair, ("n2", "old/"))
    policy = Policy(host_partitions=(some, HostPartition("rest", Names(True, frozenset({"n2"})), fair, ("all", "~n2"))))
    for flat, members in ((False, [["n2", "old/"], ["all", "~n2"]]), (True, [["n2", "n10"], ["n1"]])):
        told = groups_reply(policy, pb.GroupsRequest(hosts=True, flat=flat), ["n1", "n2"]).groups
        assert [(one.name, list(one.members)) for one in told] == list(zip(("some", "rest"), members, strict=True))
    assert not groups_reply(policy, pb.GroupsRequest(hosts=True, units_only=True)).groups


def test_parameters_and_limits() -> None:
    """Every honoured parameter; limits as they could be written."""
    cluster = a_site().cluster
    found = {one.name: one for one in parameters_reply(cluster.policy).parameters}
    assert (found["CLEAN_PERIOD"].value, found["CLEAN_PERIOD"].is_set) == ("7200", True)
    assert (found["JOB_DEP_LAST_SUB"].is_set, found["MAX_PEND_SLOTS"].value) == (False, "")
    limits = {one.name: dict(one.configured) for one in limits_reply(cluster, seen_by_ann(cluster)).limits}
    assert limits["flow_on_thin"] == {
        "USERS": "ada bea cai", "QUEUES": "normal", "HOSTS": "c01 c02 c03", "SLOTS": "96", "MEM": "512000 M",
        "RESOURCE": "[lic_flow,12]",
    }  # fmt: skip
    assert limits["per_core"] == {"PER_HOST": "all", "SLOTS_PER_PROCESSOR": "1.5"}


def test_limits_of_a_profile_have_units() -> None:
    """As those of a queue have: the file's numbers are minutes, or KB unless LSF_UNIT_FOR_LIMITS says otherwise."""
    limits = JobDefaults(run_limit_default_s=600, memory_limit_mib=500_000, rlimits=(("cpu", 0, 7200),))
    profile = Application("md", defaults=limits, run_limit_s=3600, written=(("NAME", "md"), ("RUNLIMIT", "10 60")))
    (md,) = applications_reply(Cluster(Policy(applications={"md": profile})), pb.ApplicationsRequest()).applications
    assert dict(md.limits) == {"RUNLIMIT": "60.0 min", "MEMLIMIT": "512000000 K", "CPULIMIT": "120.0 min"}
    assert dict(md.default_limits) == {"RUNLIMIT": "10.0 min"}


def test_texts_of_parameters_have_no_markdown() -> None:
    """They are written for a page: a terminal shows the words of a link only."""
    found = {one.name: one.about for one in parameters_reply(a_site().cluster.policy).parameters}
    assert found["MAX_JOB_NUM"] == "ended jobs in lsb.events before a new one is begun; 10000"
    assert [about for about in found.values() if "](" in about or "`" in about] == []


def test_resources_of_the_site() -> None:
    """Shared amounts with the jobs' reservations, strings, and elim values, reported or not."""
    policy = site.policy(["lic=4@all", "place=north@n1,n2", "scratch=elim@each", "ssd=@n1"], Policy())
    story = Story(a_host("n1"), a_host("n2"), policy=policy)
    story.submit(a_job(1, rusage="lic=1.5"))
    story.plan()
    loads = {"n2": pb.Load(external={"scratch": 30.0})}
    story.cluster.table.set_external(story.cluster.hosts["n2"].row, {"scratch": 30.0})
    found = {one.name: one for one in resources_reply(story.cluster, loads).resources}
    assert list(found) == ["lic", "place", "scratch"]
    (lic,) = found["lic"].instances
    assert (list(lic.hosts), lic.shared, lic.total, lic.reserved) == (["n1", "n2"], True, 4.0, 1.5)
    assert [(list(one.hosts), one.value) for one in found["place"].instances] == [(["n1", "n2"], "north")]
    assert found["scratch"].dynamic
    told = [(list(one.hosts), one.shared, one.HasField("total"), one.total) for one in found["scratch"].instances]
    assert told == [(["n1"], False, False, 0.0), (["n2"], False, True, 30.0)]


def test_the_jobs_of_each_device() -> None:
    """An element by its number."""
    story = a_cluster(a_host("n1", 4, gpus=3))
    for job in (a_job(array="1-2", gpus=1), a_job(gpus=1)):
        story.submit(job)
    story.plan()
    record = host_record(story.cluster, story.cluster.hosts["n1"], None, None, story.now)
    assert [(list(use.run_jobs), list(use.susp_jobs), use.run) for use in record.gpu_use] == [
        (["1[1]"], [], 1), (["1[2]"], [], 1), (["2"], [], 1),
    ]  # fmt: skip


def test_slots_of_whole_hosts() -> None:
    """-alloc counts all slots of its hosts for an exclusive job, of whatever state; other jobs count the same."""
    story = a_cluster(a_host("n1", 8), a_host("n2", 4), policy=Policy(applications={"md": Application("md")}))
    whole = story.run(a_job(2, hosts=("n1",), exclusive=True, application="md"))
    story.run(a_job(1, c.Caller("bob", 1001), hosts=("n2",)))
    cluster, queue = story.cluster, story.cluster.policy.by_name["normal"]

    def counts(is_suspended: bool = False) -> list[tuple[int, int]]:
        name, found = "ususp" if is_suspended else "run", []
        for allocated in (False, True):
            more = list(whole_hosts.beyond(cluster)) if allocated else []
            hosts = [host_record(cluster, host, None, None, story.now, allocated=allocated)
                     for host in cluster.hosts.values()]  # fmt: skip
            users = asyncio.run(
                users_reply(cluster, pb.UsersRequest(names=["ann"], allocated=allocated), "ann", seen_by_ann(cluster))
            ).users
            profiles = applications_reply(cluster, pb.ApplicationsRequest(allocated=allocated)).applications
            found.append([getattr(one, name) for one in (
                *hosts, queue_record(cluster, queue, story.now, more), *users, *profiles)])  # fmt: skip
        return list(zip(*found, strict=True))

    assert counts() == [(2, 8), (1, 1), (3, 9), (2, 8), (2, 8)]
    story.do(c.StopJob(c.Target(whole.job), ANN))
    assert counts(is_suspended=True) == [(2, 8), (0, 0), (2, 8), (2, 8), (2, 8)]


def test_hosts_closed_for_their_exit_rate() -> None:
    """bhosts -x shows those that lavad has closed for it, not those that an administrator closed."""
    story = a_cluster(a_host("n1", 8), a_host("n2", 8))
    for name, by in (("n1", exit_rates.BY), ("n2", "root")):
        story.cluster.hosts[name].closed_by = by
    hosts = story.cluster.hosts.values()
    records = [host_record(story.cluster, host, None, None, story.now) for host in hosts]
    assert [one.is_exceptional for one in records] == [True, False]


def test_processors_that_jobs_are_bound_to() -> None:
    """bhosts -aff has them, and those that jobs keep idle, if they are asked for."""
    story = a_cluster(a_host("n1", 8))
    key, host = story.run(a_job()), story.cluster.hosts["n1"]
    host.attempts[key] = HostShare("n1", 1, cpus=((4, 5), (1,)), cpus_idle=(0,))
    for asked, cpus in ((True, [0, 1, 4, 5]), (False, [])):
        assert list(host_record(story.cluster, host, None, None, story.now, processors=asked).bound_cpus) == cpus
