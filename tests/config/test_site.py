"""A whole site's directory: it loads, with warnings for unsupported parts, and every policy of it applies."""

from pathlib import Path

import pytest

from lavad.core.model.gpu_use import GpuIdleRule
from lavad.core.model.policy import Policy
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.queues import Threshold
from lavad.core.model.rules.users import UserRule
from lavad.core.model.windows import Window
from tests.config.files import SITE, loaded, policy_of, said, write

FLOW = frozenset({"ada", "bea", "cai"})


def _site() -> Policy:
    found = loaded(SITE)
    assert said(found) == [
        "lsb.queues:18: RUNLIMIT = 4:00 72:00/skylake: the host has no effect: limits are never scaled by CPU factors",
        "lsb.resources:30: Begin ReservationUsage: the section has no effect: RESOURCE_RESERVE_PER_TASK does it, or a "
        "rusage with /job, /task or /host",
    ]
    return found.policy


def test_queues() -> None:
    """Limits, lists, preferences, windows, reservations and orders."""
    policy = _site()
    assert [queue.name for queue in policy.queues] == ["express", "normal", "short", "gpu", "night"]
    express, normal, short, gpu, night = policy.queues
    assert (policy.default_queues, policy.default_queue) == (("normal", "short"), "normal")
    assert express.users == Names(False, frozenset({"ops", "ada", "bea", "cai", "dan", "eva"}))
    assert (express.slot_limit, express.user_slot_limit, express.run_limit_s) == (32, 4, 1800)
    assert dict(normal.host_preference) == {"c01": 3, "c02": 3, "c03": 3}
    assert normal.hosts.names == {"c01", "c02", "c03", "m01"}
    assert (normal.defaults.run_limit_default_s, normal.run_limit_s) == (4 * 3600, 72 * 3600)
    assert (normal.defaults.memory_limit_default_mib, normal.defaults.memory_limit_mib) == (2000, 64 * 1024)
    assert (normal.defaults.tasks_min, normal.defaults.tasks_max) == (1, 256)
    assert (normal.backfill_depth, normal.slot_reserve_s, normal.is_exclusive_allowed) == (1, 300.0, True)
    assert normal.thresholds == (Threshold("mem", 400, 100), Threshold("scratch", 10))
    assert normal.job_controls == (("SUSPEND", "SIGTSTP"), ("TERMINATE", "/opt/site/end.sh -q"))
    assert normal.description == "batch and MPI work; the default"
    assert (short.order, short.backfill_depth, short.interactive) == (JobOrder.SLOWDOWN, 8, "yes")
    assert short.defaults.rlimits == (("core", 0, 512 << 10), ("cpu", 1800, 7200))
    assert (gpu.nice, gpu.defaults.pre_exec, gpu.is_exclusive_allowed) == (5, "/opt/site/check_gpu", False)
    assert Window(6 * 1440, 23 * 60 + 59) in night.run_windows
    assert Window(20 * 60, 31 * 60) in night.run_windows
    assert (night.rerunnable, night.order, night.processor_slot_limit) == (True, JobOrder.ROUND_ROBIN, 0.5)


def test_shares() -> None:
    """The tree with inner groups and their shares; factors of the queue before those of lsb.params; a child queue."""
    policy = _site()
    fairshare = policy.by_name["normal"].fairshare
    assert fairshare is not None
    assert (fairshare.run_job_factor, fairshare.hist_hours, fairshare.is_run_time_historic) == (2.5, 12.0, True)
    assert fairshare.queues == ("normal", "short")
    assert policy.by_name["short"].fairshare == fairshare
    science, trainees, default = fairshare.shares
    assert [(one.name, one.shares) for one in science.below] == [("flow", 2), ("others", 1)]
    assert [(one.name, one.shares, one.each) for one in science.below[0].below] == [
        ("ada", 3, False),
        ("default", 1, True),
    ]
    assert (trainees.each, "ada" in trainees.users, "zoe" in trainees.users) == (True, False, True)
    assert default.each


def test_preemption_from_both_ends() -> None:
    """PREEMPTIVE with preferences, PREEMPTABLE by every queue above."""
    policy = _site()
    assert dict(policy.by_name["express"].preempts) == {"normal": 2, "night": 0}
    assert policy.by_name["night"].preemptable_by == {"express", "normal", "short", "gpu"}
    assert policy.by_name["normal"].is_preemptable


def test_hosts() -> None:
    """Rows of a host, of a range, of a model and of all others, joined with lsf.cluster."""
    policy = _site()
    rule = policy.host_rule("m01")
    assert (rule.slots, rule.user_slots, rule.model) == (48, 8, "genoa")
    assert (rule.resources, rule.exclusive_resources) == ({"ib", "bigmem"}, {"bigmem"})
    assert policy.host_rule("c01").thresholds == (Threshold("mem", 500, 100), Threshold("r1m", 3.5))
    assert policy.host_rule("g02").thresholds == (Threshold("r1m", 8, 12),)
    assert Window(6 * 1440, 1440) in policy.host_rule("g01").dispatch_windows
    assert policy.host_rule("new", model="grace").slots == 72
    assert policy.host_rule("new").thresholds == (Threshold("mem", 500, 100),)
    assert not policy.host_rule("head").is_server
    assert policy.host_groups["compute"] == Names(False, frozenset({"c01", "c02", "c03", "m01"}))
    assert policy.host_groups["elsewhere"] == Names(True, frozenset({"g01", "g02"}))
    units = {unit.name: (unit.type, unit.hosts.names) for unit in policy.compute_units}
    assert units["e2"] == ("enclosure", {"c03", "m01"})
    assert units["r1"] == ("rack", {"c01", "c02", "c03", "m01"})
    assert policy.compute_unit_types == ("enclosure", "rack")
    assert policy.cpu_factors["skylake"] == 60.5
    assert "c03" in policy.known_hosts


def test_users() -> None:
    """Nested groups, and rules for users, groups, each member of a group, and default."""
    policy = _site()
    assert policy.user_groups["science"] == Names(False, FLOW | {"dan", "eva", "fin"})
    assert "zoe" in policy.user_groups["trainees"]
    assert policy.user_rules["default"] == UserRule(slots=128, pending_jobs=5000)
    assert policy.each_user_rules["genome"] == UserRule(64, 1.0, 2000, 10000)
    flow = policy.user_group_rows[0]
    assert (flow.members, flow.shares, flow.administrators) == (
        ("ada", "bea", "cai"), (("ada", 3), ("default", 1)), {"ada"},
    )  # fmt: skip
    assert policy.user_group_rows[2].members == ("flow/", "genome/", "fin")
    assert policy.administrators == {"root", "hpcadm", "ops"}


def test_limits_and_pools() -> None:
    """Limit sections in both forms; guarantees of a pool."""
    policy = _site()
    each, flow, night, core = policy.limits
    assert (each.slots, each.per_user, each.windows) == (
        16, Names(True, FLOW | {"dan", "eva", "fin"}), (Window(1440 + 480, 5 * 1440 + 18 * 60),),
    )  # fmt: skip
    assert (flow.slots, flow.memory_mib, flow.resources) == (96, 500 * 1024, (("lic_flow", 12.0),))
    assert (flow.users, flow.queues) == (Names(False, FLOW), Names(False, frozenset({"normal"})))
    assert (night.slots, night.hosts) == (0, None)
    assert (core.slots_per_processor, core.per_host) == (1.5, Names())
    (pool,) = policy.pools
    assert (pool.guaranteed, pool.deserved, pool.largest) == (
        {"slots": 32, "mem": 200 * 1024}, {"slots": 48}, {"slots": 96, "gpus": 0},
    )  # fmt: skip


def test_limits_of_a_table_need_no_names(tmp_path: Path) -> None:
    """LSF's own sample has a table without the column NAME: each row is a limit of its own."""
    table = "Begin Limit\nPER_USER QUEUES SLOTS\nall - 4\nall normal 2\nEnd Limit\n"
    assert [limit.slots for limit in policy_of(tmp_path, {"lsb.resources": table}).limits] == [4, 2]


def test_resources() -> None:
    """Kinds, and amounts by place."""
    policy = _site()
    assert policy.resources["scratch"].interval_s == 60
    by_name = {(one.resource, one.value): one for one in policy.resource_map}
    assert not by_name["scratch", ""].is_shared
    assert by_name["lic_flow", "24"].hosts == Names(True, frozenset({"g01"}))
    assert by_name["rack", "r2"].hosts.names == {"m01", "g01", "g02"}


def test_parameters_of_the_cluster() -> None:
    """Values of lsb.params, and their texts for bparams."""
    policy = _site()
    assert (policy.max_array_size, policy.clean_period_s, policy.pending_jobs) == (20000, 7200, 200000)
    assert (policy.priority_step, policy.priority_step_s, policy.user_priority_max) == (1, 900, 100)
    assert (policy.default_project, policy.retry_submit_s) == ("unfunded", 30)
    assert policy.parameters["JOB_PRIORITY_OVER_TIME"] == "1/15"


def test_idle_gpus_of_all_queues(tmp_path: Path) -> None:
    """GPU_IDLE_* of lsb.params are the cluster's rule, and a queue's own come before them."""
    policy = policy_of(tmp_path, {
        "lsb.params": """\
            Begin Parameters
            GPU_IDLE_TIME = 600
            GPU_IDLE_POWER = 15%
            GPU_IDLE_LIMIT = 3600 requeue
            End Parameters
            """,
        "lsb.queues": "Begin Queue\nQUEUE_NAME = q\nGPU_IDLE_TIME = 60\nEnd Queue\n",
    })  # fmt: skip
    assert policy.gpu_idle == GpuIdleRule(600.0, 0.0, 0.15, 3600.0, requeues=True)
    assert policy.by_name["q"].gpu_idle == GpuIdleRule(warn_s=60.0)


def test_files_in_their_own_directories(tmp_path: Path) -> None:
    """LSF_CONFDIR and LSB_CONFDIR/NAME/configdir, as the newer LSF keeps them; the cluster by its name."""
    write(tmp_path, {
        "etc/lsf.conf": f"LSF_CONFDIR={tmp_path}/conf\nLSB_CONFDIR={tmp_path}/conf/lsbatch\n",
        "conf/lsf.cluster.c1": "Begin ClusterAdmins\nAdministrators = kim\nEnd ClusterAdmins\n",
        "conf/lsf.cluster.c2": "Begin ClusterAdmins\nAdministrators = lou\nEnd ClusterAdmins\n",
        "conf/lsbatch/c1/configdir/lsb.queues": "Begin Queue\nQUEUE_NAME = one\nEnd Queue\n",
        "conf/lsbatch/c2/configdir/lsb.queues": "Begin Queue\nQUEUE_NAME = two\nEnd Queue\n",
    })  # fmt: skip
    policy = loaded(tmp_path / "etc").policy
    assert [queue.name for queue in policy.queues] == ["one", "default"]
    assert policy.administrators == {"root", "kim"}


@pytest.mark.parametrize(
    ("text", "hosts", "preference"),
    [
        ("all ~h3", Names(True, frozenset({"h3"})), {}),
        ("h1+2 others", ALL, {"h1": 2}),
        ("h1 h2+7 others+5", ALL, {"h1": -5, "h2": 2}),
        ("few+ h[4-5] ~h2", Names(False, frozenset({"h1", "h4", "h5"})), {"h1": 1, "h2": 1}),
        ("many/ ~few", Names(True, frozenset({"h1", "h2", "h9"})), {}),
        ("none", Names(False), {}),
    ],
)
def test_hosts_of_a_queue(tmp_path: Path, text: str, hosts: Names, preference: dict[str, int]) -> None:
    """Groups, exclusion and preference levels; "others" counts as 0, or as its level for all other hosts."""
    groups = "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nfew (h1 h2)\nmany (all ~h9)\nEnd HostGroup\n"
    queue = f"Begin Queue\nQUEUE_NAME = q\nHOSTS = {text}\nEnd Queue\n"
    found = policy_of(tmp_path, {"lsb.hosts": groups, "lsb.queues": queue}).by_name["q"]
    assert (found.hosts, dict(found.host_preference)) == (hosts, preference)


def test_without_files_the_built_in_policy_stands(tmp_path: Path) -> None:
    """A single file changes only its own part of it."""
    assert loaded(tmp_path).policy.queues == Policy().queues
    policy = policy_of(tmp_path, {"lsb.hosts": "Begin Host\nHOST_NAME MXJ\nh[1-2] 3\nEnd Host\n"})
    assert (policy.queues, policy.host_rule("h2")) == (Policy().queues, HostRule(slots=3))
