"""Every honoured parameter: the field set by a good value, and the refusal of a bad one with file and line.

A parameter without a line here fails the test, so that every honoured parameter is tested.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lavad.config import cluster, conf, hosts, params, queues, resources, users
from lavad.config.applications import APPLICATION
from lavad.config.guarantees.class_pools import Part
from lavad.config.guarantees.service_classes import SERVICE_CLASS as SERVICE_CLASS_TABLE
from lavad.config.site import Honoured, Site, Table
from lavad.config.values import Wrong
from lavad.core.model.checkpoints import CheckpointTerms
from lavad.core.model.priorities.absolute import AbsolutePriority, Factor
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.queues import QueueChecks
from lavad.core.model.rules.resources import Resource, ResourceKind
from lavad.core.model.rules.users import Share
from lavad.core.model.windows import Window
from tests.config.files import MadeUp, loaded

ANN = Names(False, frozenset({"ann"}))
H1 = Names(False, frozenset({"h1"}))
EVERY_DAY = tuple(Window(day * 1440 + 540, day * 1440 + 1020) for day in range(7))
MIB = 1 << 20


def a_site() -> Site:
    """Site as read from earlier files."""
    site = Site(MadeUp(), unit="M", turn_s=10.0)
    site.queue_names = frozenset({"q1", "q2"})
    site.application_names = frozenset({"md", "fe"})
    site.user_groups["g"] = Names(False, frozenset({"bob", "cy"}))
    site.host_groups["far"] = Names(True, frozenset({"h1"}))
    site.resources = {"lic": Resource("lic", ResourceKind.NUMERIC), "ib": Resource("ib")}
    return site


# Name: (a good value, the fields it sets, bad values).
Case = tuple[str, Mapping[str, Any], tuple[str, ...]]


def number(field: str, *bad: str) -> Case:
    return "7", {field: 7}, (*bad, "x", "-1", "1.5")


def factor(field: str) -> Case:
    return "0.5", {f"fairshare.{field}": 0.5}, ("x", "-1", "nan")


def switch(field: str) -> Case:
    return "Y", {field: True}, ("maybe", "2")


def text(field: str, value: str = "word") -> Case:
    return value, {field: value}, ()


FACTORS: dict[str, Case] = {
    **{name: factor(name.lower()) for name in ("CPU_TIME_FACTOR", "RUN_TIME_FACTOR", "RUN_JOB_FACTOR", "HIST_HOURS",
                                               "COMMITTED_RUN_TIME_FACTOR", "GPU_RUN_TIME_FACTOR")},
    "ENABLE_HIST_RUN_TIME": switch("fairshare.is_run_time_historic"),
    "RUN_TIME_DECAY": switch("fairshare.does_run_time_decay"),
}  # fmt: skip
GPU_IDLE: dict[str, Case] = {
    "GPU_IDLE_TIME": ("600", {"gpu_idle.warn_s": 600.0}, ("x", "-1")),
    "GPU_IDLE_POWER": ("15%", {"gpu_idle.fraction": 0.15}, ("0", "100%", "x", "1.5")),
    "GPU_IDLE_LIMIT": (
        "3600 requeue", {"gpu_idle.limit_s": 3600.0, "gpu_idle.requeues": True}, ("x", "3600 stop"),
    ),
}  # fmt: skip
RETRIES: dict[str, Case] = {
    "LOCAL_MAX_PREEXEC_RETRY": number("around.tries_max", "0"),
    "PREEXEC_EXCLUDE_HOST_EXIT_VALUES": (
        "7 10-12", {"around.excluding": frozenset({7, 10, 11, 12})}, ("x", "0", "99", "256", "EXCLUDE(7)"),
    ),
    "LOCAL_MAX_PREEXEC_RETRY_ACTION": ("exit", {"around.exits": True}, ("HOLD", "SUSPEND EXIT")),
}  # fmt: skip
RESERVE_BAD = ("MAX_RESERVE_TIME[x]", "30")
SIZE_BAD = ("x", "2 1", "1 2 3", "-5", "0")
QUEUE: dict[str, Case] = {
    "QUEUE_NAME": text("name"), "PRIORITY": number("priority", "0"), "DESCRIPTION": text("description"),
    "USERS": ("ann g ~cy", {"users": Names(False, frozenset({"ann", "bob"}))}, ("~ann", "no/")),
    "HOSTS": ("h1+2 h2", {"hosts": Names(False, frozenset({"h1", "h2"})), "host_preference": (("h1", 2),)},
              ("far+1", "h1+x", "h[3-1]")),
    "ADMINISTRATORS": ("ann", {"administrators": frozenset({"ann"})}, ("all",)),
    "NICE": ("-5", {"nice": -5}, ("30", "x")),
    "QJOB_LIMIT": number("slot_limit"), "UJOB_LIMIT": number("user_slot_limit"),
    "HJOB_LIMIT": number("host_slot_limit"),
    "PJOB_LIMIT": ("1.5", {"processor_slot_limit": 1.5}, ("x", "-1")),
    **dict.fromkeys(("PROCLIMIT", "TASKLIMIT"), (
        "2 4 8", {"defaults.tasks_min": 2, "defaults.tasks_default": 4, "defaults.tasks_max": 8}, ("8 4", "0",
        "1 2 3 4"))),
    "CPULIMIT": ("10 1:00/c01", {"rlimit.cpu": (600, 3600)}, ("60 10", "x", "1:2:3", "0")),
    "RUNLIMIT": ("10 1:00", {"run_limit_s": 3600, "defaults.run_limit_default_s": 600}, ("60 10", "x", "0")),
    "MEMLIMIT": ("100 1G", {"defaults.memory_limit_mib": 1024, "defaults.memory_limit_default_mib": 100}, SIZE_BAD),
    **{name: ("1 2", {f"rlimit.{field}": (MIB, 2 * MIB)}, SIZE_BAD) for name, field in (
        ("STACKLIMIT", "stack"),)},
    **{name: ("1 2", {f"rlimit.{kind}": (1 << 10, 2 << 10)}, ("0", "x", "2 1")) for name, kind in (
        ("DATALIMIT", "data"), ("FILELIMIT", "fsize"))},
    "CORELIMIT": ("0", {"rlimit.core": (0, 0)}, ("x", "-1", "2 1")),
    "PROCESSLIMIT": ("50", {"rlimit.nproc": (0, 50)}, ("x", "0", "9 5")),
    "SWAPLIMIT": ("100 200M", {"rlimit.swap": (100 << 20, 200 << 20)}, ("x", "0", "9 5")),
    "THREADLIMIT": ("6 8", {"rlimit.threads": (6, 8)}, ("x", "0", "9 5")),
    "RES_REQ": ("select[mem>5]", {"defaults.requirement": "select[mem>5]"}, ("span[", "rusage[mem=x]")),
    **GPU_IDLE,
    "GPU_REQ": ("num=1", {"defaults.gpu_requirement": "num=1"}, ("num=x", "mps=maybe")),
    "STOP_COND": text("stop_condition", "mem < 5"), "RESUME_COND": text("resume_condition", "mem > 5"),
    "RUN_WINDOW": ("9:00-17:00", {"run_windows": EVERY_DAY}, ("9", "9-9", "8:9:0-17", "9:61-10")),
    "DISPATCH_WINDOW": ("9-17", {"dispatch_windows": EVERY_DAY}, ("x-y", "25-26")),
    "EXCLUSIVE": ("CU[rack]", {"is_exclusive_allowed": True}, ("maybe",)),
    "INTERACTIVE": ("ONLY", {"interactive": "only"}, ("always",)),
    "BACKFILL": switch("backfill"), "IGNORE_DEADLINE": switch("ignores_deadline"), "RERUNNABLE": switch("rerunnable"),
    "LAVA_BACKFILL_DEPTH": number("backfill_depth"), "LAVA_STRICT_ORDER": switch("in_order"),
    "APS_PRIORITY": (
        "WEIGHT[[PROC, 2]]",
        {"absolute": AbsolutePriority((("RSRC", Factor(1.0)), ("PROC", Factor(2.0))))},
        ("PROC", "WEIGHT[[PROC, 0]]", "WEIGHT[[PROC, x]]", "WEIGHT[[CPU, 1]]"),
    ),
    "LAVA_JOB_ORDER": ("round_robin", {"order": JobOrder.ROUND_ROBIN}, ("random",)),
    "ROUND_ROBIN_POLICY": ("Y", {"order": JobOrder.ROUND_ROBIN}, ("maybe",)),
    "SLOT_RESERVE": ("MAX_RESERVE_TIME[30]", {"slot_reserve_s": 300.0}, RESERVE_BAD),
    **dict.fromkeys(("RESOURCE_RESERVE", "SLOT_MEMORY_RESERVE"), (
        "MAX_RESERVE_TIME[3]", {"slot_reserve_s": 30.0, "reserves_memory": True}, RESERVE_BAD)),
    "FAIRSHARE": ("USER_SHARES[[ann,3]]", {"fairshare.shares": (Share("ann", 3, ANN),)},
                  ("USER_SHARES[]", "[[ann,3]]", "USER_SHARES[[ann,0]]", "USER_SHARES[[ann,1] [ann,2]]")),
    "USER_SHARES": ("[ann,3]", {"fairshare.shares": (Share("ann", 3, ANN),)}, ("ann",)),
    "QUEUE_GROUP": ("q2, q2", {"group": ("q2", "q2")}, ("q3",)),
    "FAIRSHARE_QUEUES": ("q2", {"fairshare.queues": ("q2",)}, ("q3",)),
    **FACTORS,
    "PREEMPTION": ("PREEMPTIVE[q1+2] PREEMPTABLE", {"preemption": {"preemptive": (("q1", 2),), "preemptable": None}},
                   ("PREEMPT", "PREEMPTIVE[q9]", "PREEMPTIVE[q1+x]")),
    "PREEMPT_DELAY": ("0", {"preempt_delay_s": 0.0}, ("x", "-1")),
    "MAX_JOB_REQUEUE": number("requeue_limit"),
    "SUCCESS_EXIT_VALUES": ("3 10-12", {"defaults.success_exit_values": "3 10-12"}, ("x", "256", "5-3", "-1")),
    "REQUEUE_EXIT_VALUES": text("defaults.requeue_exit_values", "30 99 EXCLUDE(20)"),
    **{name: text(f"defaults.{name.lower()}", "/bin/x -a") for name in ("PRE_EXEC", "POST_EXEC", "JOB_STARTER")},
    **{name: text(f"around.{name.lower()[:-5]}", "/bin/x -a") for name in ("HOST_PRE_EXEC", "HOST_POST_EXEC")},
    "PRE_POST_EXEC_USER": ("root", {"around.user": "root"}, ("a b", "a,b")), **RETRIES,
    "JOB_CONTROLS": ("SUSPEND[SIGTSTP]", {"job_controls": (("SUSPEND", "SIGTSTP"),)}, 
                     ("STOP[x]", "SUSPEND", "SUSPEND[]", "RESUME[chkpnt]", "RESUME[SIGNONE]", "RESUME[[x]")),
    "HEALTH_CHECKS": ("BEFORE[/x prolog] LIMIT[30]", {"checks": QueueChecks("/x prolog", limit_s=30)},
                      ("/x", "BEFORE[]", "BETWEEN[x]", "LIMIT[0]", "LIMIT[x]", "NEVER[/x]", "AFTER[/x 'a]")),
    "JOB_ACTION_WARNING_TIME": ("1:02", {"warning_time_s": 3720.0}, ("x", "-1", "s")),
    "JOB_WARNING_ACTION": ("CHKPNT", {"warning_action": "CHKPNT"}, ("SIGSTOP", "SIGKILL")),
    "CONTAINER": text("defaults.container", "docker[image(x:1)]"),
    "JOB_OVERRUN": ("1:10", {"exceptions.overrun_s": 4200.0}, ("x", "0", "-1")),
    "JOB_UNDERRUN": ("2", {"exceptions.underrun_s": 120.0}, ("x", "0", "-1")),
    "JOB_IDLE": ("0.10", {"exceptions.idle_factor": 0.1}, ("x", "1.5", "-1")),
    "MIG": ("0", {"migration_s": 0.0}, ("x", "-1", "1.5", "30 min")),
    "CHKPNT": ("saved 10", {"checkpoints": CheckpointTerms("saved", 600.0)}, ("$HOME/a", "a x", "a -1", "a 1 2", "%J")),
    "TERMINATE_WHEN": ("WINDOW LOAD", {"terminate_when": frozenset({"WINDOW", "LOAD"})}, ("NEVER",)),
    "JOB_ACCEPT_INTERVAL": ("2", {"accept_interval": 20.0}, ("x",)),
    "DEFAULT_USER_GROUP": text("user_group_default"),
}  # fmt: skip
PARAMETERS: dict[str, Case] = {
    "DEFAULT_APPLICATION": text("default_application"),
    "DEFAULT_JOBGROUP": ("/%u/x", {"default_job_group": "/%u/x"}, ("x", "/a//b", "/a b", "/a" * 17)),
    **GPU_IDLE,
    **RETRIES,
    "ENABLE_USER_RESUME": ("Y", {"users_resume": True}, ("x",)),
    "LAVA_REQUEUE_DELAY": ("0", {"requeue_pause_s": 0.0}, ("x", "-1")),
    "PRE_EXEC_DELAY": ("5", {"pre_exec_pause_s": 5.0}, ("x", "-1")),
    **{name: ("2", {f"around.{field}_limit_s": 120.0}, ("0", "x")) for name, field in (
        ("JOB_PREPROC_TIMEOUT", "pre"), ("JOB_POSTPROC_TIMEOUT", "post"))},
    "JOB_INCLUDE_POSTPROC": switch("around.includes_post"),
    "SECURE_JOB_INFO_LEVEL": ("3", {"job_info_level": 3}, ("6", "x", "-1")),
    "SCHED_METRIC_ENABLE": ("Y", {"samples_performance": True}, ("maybe",)),
    "SCHED_METRIC_SAMPLE_PERIOD": ("30", {"sample_period_s": 30}, ("0", "x", "86401")),
    "SECURE_INFODIR_USER_ACCESS": ("g", {"history_access": "G"}, ("X", "Y N", "")),
    "DEFAULT_QUEUE": ("q1 q2", {"default_queues": ("q1", "q2")}, ()), "DEFAULT_PROJECT": text("default_project"),
    "MBD_SLEEP_TIME": ("10", {"turn_s": 10.0}, ("0", "x")),
    "JOB_ACCEPT_INTERVAL": ("2", {"queue.accept_interval": 20.0}, ("x",)),
    "JOB_TERMINATE_INTERVAL": ("20", {"terminate_interval_s": 20.0}, ("0", "x")),
    "CLEAN_PERIOD": ("60", {"clean_period_s": 60.0}, ("0", "x")),
    "MAX_JOB_NUM": number("events_jobs_max", "0"), "MAX_ACCT_ARCHIVE_FILE": number("acct_archives_max", "0"),
    "MIN_SWITCH_PERIOD": ("90", {"events_switch_s": 90.0}, ("x",)),
    "ACCT_ARCHIVE_AGE": ("2", {"acct_archive_s": 172800.0}, ("0", "x")),
    "ACCT_ARCHIVE_SIZE": number("acct_archive_kib", "0"),
    "MAX_JOB_ARRAY_SIZE": number("max_array_size", "0"),
    "DEFAULT_LIMIT_IGNORE_USER_GROUP": ("Y", {"default_limits_ignore_groups": True}, ("x",)),
    "JOB_DEP_LAST_SUB": ("1", {"requires_last_dependency": True}, ("x",)),
    "MAX_USER_PRIORITY": number("user_priority_max", "0"),
    "JOB_PRIORITY_OVER_TIME": ("2/15", {"priority_step": 2, "priority_step_s": 900.0}, ("2", "x/1", "1/0")),
    **dict.fromkeys(("RESOURCE_RESERVE_PER_TASK", "RESOURCE_RESERVE_PER_SLOT", "SLOT_RESOURCE_RESERVE"),
                    switch("reserves_per_task")),
    "COMPUTE_UNIT_TYPES": ("cell rack!", {"compute_unit_types": ("cell", "rack"), "compute_unit_type": "rack"},
                           ("cell! rack!",)),
    "MAX_PEND_JOBS": number("pending_jobs"), "MAX_PEND_SLOTS": number("pending_slots"),
    "PREEMPT_DELAY": ("0", {"preempt_delay_s": 0.0}, ("x", "-1")),
    "LAVA_WARNING_TIME_MAX": ("60", {"warning_time_max_s": 60.0}, ("x", "-1")),
    "MAX_JOB_PREEMPT": number("preemptions_max", "0"),
    **{name: ("2", {f"{name.lower()[:-5]}_s": 120.0}, ("0", "x"))
       for name in ("NO_PREEMPT_RUN_TIME", "NO_PREEMPT_FINISH_TIME")},
    "PREEMPTABLE_RESOURCES": ("mem NGPUS_PHYSICAL", {"preemptable_resources": frozenset({"mem", "ngpus_physical"})},
                              ("matlab", "mem matlab")),
    "SUB_TRY_INTERVAL": ("30", {"retry_submit_s": 30.0}, ("0",)),
    **FACTORS,
    "GLOBAL_EXIT_RATE": number("global_exit_rate"),
    "JOB_EXIT_RATE_DURATION": ("2", {"exit_rate_period_s": 120.0}, ("0", "x")),
    "DETECT_IDLE_JOB_AFTER": ("10", {"idle_after_s": 600.0}, ("x", "-1")),
    "EADMIN_TRIGGER_DURATION": ("5", {"exceptions_told_every_s": 300.0}, ("0", "x")),
    "EXIT_RATE_TYPE": ("jobexit JOBINIT", {"exit_rate_types": frozenset({"JOBEXIT", "JOBINIT"})}, ("", "JOBS")),
}  # fmt: skip
HOST: dict[str, Case] = {
    "HOST_NAME": text("name"), "MXJ": ("!", {"slots": None}, ("x", "-2")), "JL/U": number("user_slots"),
    "EXIT_RATE": number("exit_rate"), "MIG": ("10", {"migration_s": 600.0}, ("x", "-1")),
    "DISPATCH_WINDOW": ("9-17", {"dispatch_windows": EVERY_DAY, "window_text": "9-17"}, ("x",)),
}  # fmt: skip
GROUP: dict[str, Case] = {"GROUP_NAME": text("name"), "GROUP_MEMBER": text("member_text")}
UNIT: dict[str, Case] = {"NAME": text("name"), "TYPE": text("type"), "MEMBER": text("member_text")}
USER_GROUP: dict[str, Case] = {
    **GROUP, "USER_SHARES": text("share_text", "[ann,1]"),
    "GROUP_ADMIN": ("ann[full]", {"administrators": frozenset({"ann"})}, ("all",)),
}  # fmt: skip
USER: dict[str, Case] = {
    "USER_NAME": text("name"), "MAX_JOBS": number("slots"), "JL/P": ("0.5", {"slots_per_processor": 0.5}, ("x",)),
    "MAX_PEND_JOBS": number("pending_jobs"), "MAX_PEND_SLOTS": number("pending_slots"),
}  # fmt: skip
NAMES_BAD = ("~x",)
LIMIT: dict[str, Case] = {
    "NAME": text("name"), "SLOTS": number("slots"), "JOBS": number("jobs"),
    "SLOTS_PER_PROCESSOR": ("1.5", {"slots_per_processor": 1.5}, ("x",)),
    "MEM": ("2G", {"memory_mib": 2048}, ("x", "0%", "150%")),
    "TMP": ("5", {"resource.tmp": ("tmp", 5.0)}, ("x", "0%")),
    "SWP": ("50%", {"share.swp": ("swp", 0.5)}, ("x", "150%")),
    "RESOURCE": ("[lic,3]", {"resource.own": (("lic", 3.0),)}, ("lic", "[no,3]", "[lic,x]")),
    "LICENSE": ("[lic,3]", {"licenses": (("lic", 3.0),)}, ("lic", "[no,3]", "[lic,x]")),
    "USERS": ("ann", {"users": ANN}, NAMES_BAD), "PER_USER": ("all", {"per_user": ALL}, NAMES_BAD),
    "HOSTS": ("h1", {"hosts": H1}, NAMES_BAD), "PER_HOST": ("h1", {"per_host": H1}, NAMES_BAD),
    "QUEUES": ("q1", {"queues": Names(False, frozenset({"q1"}))}, ("q3", "~q1")),
    "PER_QUEUE": ("all ~q1", {"per_queue": Names(True, frozenset({"q1"}))}, ("q3",)),
    "PROJECTS": ("p", {"projects": Names(False, frozenset({"p"}))}, NAMES_BAD),
    "APPS": ("md", {"applications": Names(False, frozenset({"md"}))}, ("gone", "~md")),
    "PER_APP": ("all ~md", {"per_application": Names(True, frozenset({"", "md"}))}, ("gone",)),
    "PER_PROJECT": ("all", {"per_project": ALL}, NAMES_BAD), "LAVA_WINDOW": ("9-17", {"windows": EVERY_DAY}, ("x",)),
}  # fmt: skip
PARTITION: dict[str, Case] = {
    "HPART_NAME": text("name"), "HOSTS": ("h1", {"hosts": H1}, NAMES_BAD),
    "USER_SHARES": ("[ann,3]", {"shares": (Share("ann", 3, ANN),)}, ("ann", "[ann,0]")),
}  # fmt: skip
AMOUNTS_BAD = ("5", "slots=x", "cpus=5")
POOL: dict[str, Case] = {
    "NAME": text("name"), "USERS": ("ann", {"users": ANN}, NAMES_BAD), "HOSTS": ("h1", {"hosts": H1}, NAMES_BAD),
    "QUEUES": ("q1", {"queues": Names(False, frozenset({"q1"}))}, ("q3",)), "LOAN": ("N", {"lends": False}, ("x",)),
    "GUARANTEED": ("slots=4 mem=2G gpus=1", {"guaranteed": {"slots": 4.0, "mem": 2048.0, "gpus": 1.0}}, AMOUNTS_BAD),
    "DESERVED": ("slots=4", {"deserved": {"slots": 4.0}}, AMOUNTS_BAD),
    "MAX": ("gpus=4", {"largest": {"gpus": 4.0}}, AMOUNTS_BAD),
    "DISTRIBUTION": (
        "([a,4] [b, 50%])", {"parts": {"a": Part({"slots": 4.0}), "b": Part(slots_share=0.5)}},
        ("()", "a 4", "[a,4", "[a,0%]", "[a,101%]", "[a,x]", "[a,1] [a,2]"),
    ),
    "LOAN_POLICIES": (
        "QUEUES[!q1 q2] CLOSE_ON_DEMAND",
        {"borrowers": Names(False, frozenset({"q1", "q2"})), "loan.others": ("CLOSE_ON_DEMAND",)},
        ("QUEUES[q3]", "[q1]"),
    ),
}  # fmt: skip
SERVICE_CLASS: dict[str, Case] = {
    "NAME": text("name"), "AUTO_ATTACH": switch("attaches"), "DESCRIPTION": text("description"),
    "GOALS": ("[GUARANTEE] [velocity 5]", {"goals": ("GUARANTEE", "VELOCITY")}, ("GUARANTEE", "[GUARANTEE] x")),
    "ACCESS_CONTROL": (
        "QUEUES[q1] USERS[ann] APPS[md]FAIRSHARE_GROUPS[g/]",
        {"users": ANN, "queues": Names(False, frozenset({"q1"})), "applications": Names(False, frozenset({"md"})),
         "groups": Names(False, frozenset({"bob", "cy"}))},
        ("ann", "USERS[ann", "QUEUES[q3]", "APPS[gone]", "USERS[~x]", "HOSTS[h1]", "USERS[ann] USERS[bob]"),
    ),
}  # fmt: skip
RESOURCE: dict[str, Case] = {
    "RESOURCENAME": text("name"), "TYPE": ("numeric", {"kind": ResourceKind.NUMERIC}, ("Number",)),
    "INTERVAL": ("60", {"interval_s": 60.0}, ("x",)), "INCREASING": switch("is_increasing"),
    "CONSUMABLE": switch("is_consumable"),
    "LAVA_INDEXED": switch("is_indexed"), "DESCRIPTION": text("description"),
}  # fmt: skip
CLUSTER_HOST: dict[str, Case] = {
    "HOSTNAME": text("name"), "MODEL": ("!", {"model": ""}, ()), "TYPE": text("type"),
    "SERVER": ("0", {"is_server": False}, ("x",)),
    "RUNWINDOW": HOST["DISPATCH_WINDOW"],
    "RESOURCES": ("!ib", {"resources": frozenset({"ib"}), "exclusive_resources": frozenset({"ib"})}, ()),
}  # fmt: skip
CONF: dict[str, Case] = {
    "LSB_PRE_POST_EXEC_USER": ("root", {"commands_user": "root"}, ("a b",)),
    "LSF_CONFDIR": text("confdir"), "LSB_CONFDIR": text("lsb_confdir"), "LSF_SERVERDIR": text("serverdir"),
    "LSF_UNIT_FOR_LIMITS": ("GB", {"unit": "G"}, ("pounds",)),
    "LSF_ENABLE_TMP_UNIT": ("y", {"has_tmp_unit": True}, ("maybe",)),
    "LSB_GPU_REQ": ("num=1:j_exclusive=no", {"gpu_requirement": "num=1:j_exclusive=no"}, ("mode=odd",)),
    **dict.fromkeys(("LSB_BSUB_PARSE_SCRIPT", "LSB_SHORT_HOSTLIST", "LSB_NTRIES", "LSB_BJOBS_FORMAT",
    "LSB_BHIST_HOURS", "LSB_BHOSTS_FORMAT", "LSB_BJOBS_PENDREASON_LEVEL", "LSB_ESUB_METHOD", "LSB_ESWITCH_METHOD",
    "LSB_MAX_PACK_JOBS", "LSB_PACK_SKIP_ERROR", "LSF_DISABLE_LSRUN", "LSB_MAILPROG", "LSB_MAILTO", "LSB_MAILSIZE_LIMIT",
    "LSB_ECHKPNT_METHOD", "LSB_ECHKPNT_METHOD_DIR", "LSF_LSLOAD_FORMAT", "LSF_LSHOSTS_FORMAT", "LSB_BWAIT_IN_JOBS",
                     "LSB_BWAIT_REREG_INTERVAL",
                     "LSB_BQUEUES_FORMAT", "LSB_BUSERS_FORMAT", "LSB_BJOBS_CONSISTENT_EXIT_CODE", "LSB_SHAREDIR",
                     "LSF_HPC_EXTENSIONS"), ("1", {}, ())),
}  # fmt: skip
APPLICATIONS: dict[str, Case] = {
    "NAME": text("name"), "DESCRIPTION": text("description"),
    **{name: QUEUE[name] for name in APPLICATION if name in QUEUE and isinstance(APPLICATION[name], Honoured)},
    "PRIORITY": number("priority"),
    **{name: text(f"around.job_{name.lower()[:-5]}", "/bin/x -a") for name in ("PRE_EXEC", "POST_EXEC")},
    **{name: PARAMETERS[name] for name in ("JOB_PREPROC_TIMEOUT", "JOB_POSTPROC_TIMEOUT", "JOB_INCLUDE_POSTPROC")},
    "CHKPNT_DIR": ("/saved", {"checkpoint.directory": "/saved"}, ("$HOME", "a b")),
    "CHKPNT_METHOD": ("own", {"checkpoint.method": "own"}, ("a/b",)),
    **{name: ("5", {f"checkpoint.{field}": 300.0}, ("x", "-1")) for name, field in (
        ("CHKPNT_PERIOD", "period_s"), ("CHKPNT_INITPERIOD", "first_s"))},
    "SUSPEND_CONTROL": ("SIGTSTP", {"control.SUSPEND": "SIGTSTP"}, ("SIGNONE",)),
    "RESUME_CONTROL": ("SIGCONT", {"control.RESUME": "SIGCONT"}, ("SIGNONE", "")),
    "TERMINATE_CONTROL": ("CHKPNT", {"control.TERMINATE": "CHKPNT"}, ("SIGNONE",)),
    "ENV_VARS": ("A='1', B=2", {"environment": (("A", "1"), ("B", "2"))}, ("A", "1=2", "LSB_X=1", "LAVA_X=1")),
}  # fmt: skip
TABLES: dict[str, tuple[Table, dict[str, Case]]] = {
    "lsb.params": (params.PARAMETERS, PARAMETERS), "lsb.queues": (queues.QUEUE, QUEUE),
    "lsb.hosts": (hosts.HOST, HOST), "HostGroup": (hosts.HOST_GROUP, GROUP), "ComputeUnit": (hosts.COMPUTE_UNIT, UNIT),
    "HostPartition": (hosts.HOST_PARTITION, PARTITION),
    "UserGroup": (users.USER_GROUP, USER_GROUP), "User": (users.USER, USER),
    "Limit": (resources.LIMIT, LIMIT), "Pool": (resources.POOL, POOL),
    "ServiceClass": (SERVICE_CLASS_TABLE, SERVICE_CLASS),
    "HostType": (cluster.HOST_TYPE, {"TYPENAME": text("name")}),
    "HostModel": (cluster.HOST_MODEL, {"MODELNAME": text("name"), "CPUFACTOR": ("60.5", {"factor": 60.5}, ("0", "x"))}),
    "Resource": (cluster.RESOURCE, RESOURCE), "lsf.cluster Host": (cluster.HOST, CLUSTER_HOST),
    "ResourceMap": (cluster.RESOURCE_MAP, {"RESOURCENAME": text("name"), "LOCATION": text("location")}),
    "ClusterAdmins": (cluster.ADMINS, {"ADMINISTRATORS": text("names")}), "lsf.conf": (conf.CONF, CONF),
    "lsb.applications": (APPLICATION, APPLICATIONS),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_every_honoured_parameter(name: str) -> None:
    """A good value sets the field, each bad value gives a sentence; no parameter of the table is left out."""
    table, cases = TABLES[name]
    honoured = {word for word, known in table.items() if isinstance(known, Honoured)}
    assert honoured == set(cases)
    for word, (good, expected, bad) in cases.items():
        known = table[word]
        assert isinstance(known, Honoured)
        found = known.read(good, a_site())
        assert {key: found[key] for key in expected} == dict(expected), word
        assert known.about, word
        for value in bad:
            with pytest.raises(Wrong) as wrong:
                known.read(value, a_site())
            assert len(str(wrong.value)) > 10, (word, value)


def test_ignored_parameters_have_a_reason_and_no_effect(tmp_path: Path) -> None:
    """All of them at once change nothing, and are no error."""
    ignored = [name for name, known in queues.QUEUE.items() if not isinstance(known, Honoured)]
    lines = "".join(f"{name} = 1\n" for name in ignored)
    plain = loaded(tmp_path, {"lsb.queues": "Begin Queue\nQUEUE_NAME = q\nEnd Queue\n"}).policy.by_name["q"]
    found = loaded(tmp_path, {"lsb.queues": f"Begin Queue\nQUEUE_NAME = q\n{lines}End Queue\n"})
    assert not found.errors
    assert found.policy.by_name["q"] == plain
    assert {entry.note for entry in found.entries if entry.name in ignored} >= {"no such policy"}
