"""Broken files: every error at once, each with file, line and what was expected."""

from pathlib import Path

from tests.config.files import loaded, said


def test_several_errors_at_once(tmp_path: Path) -> None:
    """In several files and of several kinds, in the order of files and lines; valid lines beside them do not matter."""
    found = loaded(tmp_path, {
        "lsb.params": """\
            Begin Parameters
            CLEAN_PERIOD = soon
            MAX_JOB_ARRAY_SIZE = 0
            DEFAULT_QUEUE = nowhere
            End Parameters
            """,
        "lsb.queues": """\
            Begin Queue
            QUEUE_NAME = normal
            PRIORITY = 30
            PRIORITY = 40
            RUN_WINDOW = 25:00-3:00
            HOSTS = h[9-1] gone/
            USERS = ~ann
            RUNLIMIT = 60 10
            MEMLIMIT = lots
            RES_REQ = span[
            FAIRSHARE = USER_SHARES[[ann,x]]
            PREEMPTION = PREEMPTIVE[idle]
            mem = 5/low
            End Queue
            Begin Queue
            QUEUE_NAME = default/
            End Queue
            Begin Queue
            QUEUE_NAME = last
            """,
        "lsb.users": """\
            Begin UserGroup
            GROUP_NAME GROUP_MEMBER
            a          (b)
            b          (a)
            slow       (!)
            all        (ann)
            wide       (ann bob) extra
            End UserGroup
            Begin User
            USER_NAME MAX_JOBS
            ann@      5
            End User
            """,
    })  # fmt: skip
    lines = said(found)
    assert lines.pop(9).startswith("lsb.queues:10: RES_REQ = span[: Bad resource requirement syntax at character 6")
    assert lines == [
        "lsb.params:2: CLEAN_PERIOD = soon: expected a whole number from 1 to 2147483647",
        "lsb.params:3: MAX_JOB_ARRAY_SIZE = 0: expected a whole number from 1 to 2147483647",
        "lsb.params:4: DEFAULT_QUEUE = nowhere: nowhere: there is no such queue",
        "lsb.queues:4: PRIORITY is set a second time; it was set on line 3",
        "lsb.queues:5: RUN_WINDOW = 25:00-3:00: 25:00-3:00: expected hours from 0 to 23 and minutes from 0 to 59",
        "lsb.queues:6: HOSTS = h[9-1] gone/: h[9-1]: expected a range such as node[1-64] or node[01-16,20]",
        "lsb.queues:7: USERS = ~ann: expected names, or all and behind it the names that are left out, each after a ~",
        "lsb.queues:8: RUNLIMIT = 60 10: expected the default before the maximum, and not above it",
        "lsb.queues:9: MEMLIMIT = lots: expected a size: a number, or one with K, M, G or T after it",
        "lsb.queues:11: FAIRSHARE = USER_SHARES[[ann,x]]: expected [user or group, shares] one after another",
        "lsb.queues:12: PREEMPTION = PREEMPTIVE[idle]: idle: there is no such queue",
        "lsb.queues:13: MEM = 5/low: expected loadSched/loadStop, each a number or nothing",
        "lsb.queues:16: QUEUE_NAME = default/: expected the name of a queue: up to 59 letters, digits, dots, dashes "
        "and underscores",
        "lsb.queues:18: 'Begin Queue' has no 'End Queue'",
        "lsb.users:3: group a: a contains b contains a: a circle",
        "lsb.users:5: group slow: egroup took longer than 10 seconds",
        "lsb.users:6: all: all is a word of LSF's own and can't name a user group",
        "lsb.users:7: expected 2 columns (GROUP_NAME GROUP_MEMBER), found 3; the line is left out",
        "lsb.users:11: USER_NAME = ann@: name@ takes a group of users",
    ]  # fmt: skip


def test_what_is_only_worth_a_warning(tmp_path: Path) -> None:
    """Unknown names, hosts that lsf.cluster lacks, files that are not read: the configuration can be used."""
    found = loaded(tmp_path, {
        "lsf.cluster.c1": "Begin Host\nHOSTNAME model type server RESOURCES\nh1 ! ! 1 ()\nEnd Host\n",
        "lsb.modules": "Begin PluginModule\nEnd PluginModule\n",
        "lsb.queues": """\
            Begin Queue
            QUEUE_NAME = normal
            QJOBLIMIT = 5
            HOSTS = h1 h2 h3
            PREEMPTION = PREEMPTIVE[low]
            End Queue
            Begin Queue
            QUEUE_NAME = low
            End Queue
            Begin Queues
            End Queues
            """,
        "lsb.resources": "Begin Limit\nNAME = l\nLIC_PROJECTS = a\nSLOTS = 1\nEnd Limit\n",
    })  # fmt: skip
    assert not found.errors
    assert said(found) == [
        "lsb.modules: not read: no plug-ins",
        "lsb.queues:3: QJOBLIMIT: unknown parameter, it has no effect; did you mean QJOB_LIMIT?",
        "lsb.queues:4: h2 and 1 more: no host of lsf.cluster; counts once such a host has joined",
        "lsb.queues:5: PREEMPTION: normal does not preempt low, whose PRIORITY is not below its own",
        "lsb.queues:10: Queues: unknown section, it has no effect; did you mean Queue?",
        "lsb.resources:3: LIC_PROJECTS: lava has no such consumers; the whole limit is left out",
    ]
    assert found.policy.limits == ()


def test_other_files_and_the_clock(tmp_path: Path) -> None:
    """#INCLUDE reads another file, and complaints name it; #endif without an #if is told."""
    found = loaded(tmp_path, {
        "queues.inc": "PRIORITY = 7\nNICE = 99\n",
        "lsb.queues": """\
            #include "nothing.inc"
            Begin Queue
            QUEUE_NAME = q   # a comment
            #INCLUDE "queues.inc"
            #if time(9:00-17:00)
            UJOB_LIMIT = 5
            #else
            UJOB_LIMIT = 50
            #endif
            End Queue
            #endif
            """,
    })  # fmt: skip
    assert found.policy.queues[0].priority == 7
    lines = said(found)
    assert lines[0].endswith("nothing.inc: No such file or directory")
    assert lines[1:] == [
        "lsb.queues:11: #endif has no #if before it",
        "queues.inc:2: NICE = 99: expected a whole number from -20 to 20",
    ]


def test_a_line_outside_any_section(tmp_path: Path) -> None:
    """Sections in lsf.conf and settings outside sections elsewhere are both in the wrong place."""
    found = loaded(
        tmp_path, {"lsf.conf": "Begin Queue\nX = 1\nEnd Queue\n", "lsb.params": "CLEAN_PERIOD = 5\nnonsense\n"}
    )
    assert said(found) == [
        "lsb.params:1: 'CLEAN_PERIOD = 5' and 1 more line stand outside any section; expected 'Begin SECTION' before",
        "lsf.conf:1: Begin Queue: lsf.conf has NAME=VALUE lines only",
    ]


def test_a_stray_nul_is_an_odd_character_like_any_other(tmp_path: Path) -> None:
    """A half-written file may hold some; no system call would take the name."""
    found = loaded(tmp_path, {
        "lsb.users": """\
            Begin UserGroup
            GROUP_NAME GROUP_MEMBER
            crew       (an\0n)
            End UserGroup
            """,
    })  # fmt: skip
    assert not found.errors
    assert found.policy.user_group_rows[0].members == ("an\N{REPLACEMENT CHARACTER}n",)
