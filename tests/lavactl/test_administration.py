"""Golden output of badmin, lsadmin, bparams, busers, bugroup, bmgroup, blimits, bresources,
lsclusters, and the long bqueues."""

import pytest

from protos import cluster_pb2
from tests.lavactl.scripted import Desk
from tests.lavactl.test_cluster_commands import a_host


def test_ckconfig_without_a_complaint(desk: Desk) -> None:
    """lsf.md 1.8."""
    desk.client.configure_reply.files.append("/etc/lsf/lsb.queues")
    result = desk.type("badmin", "ckconfig")
    assert (result.code, result.err) == (0, "")
    assert result.out == "\nChecking configuration files ...\n\nNo errors found.\n"
    assert not desk.client.asked[-1].apply


def test_ckconfig_lists_what_became_of_each_setting(desk: Desk) -> None:
    """-v: honoured, ignored with the reason, unknown."""
    reply = desk.client.configure_reply
    reply.files.append("/etc/lsf/lsb.queues")
    reply.entries.add(file="/etc/lsf/lsb.queues", line=2, name="QUEUE_NAME", fate="honoured")
    reply.entries.add(file="/etc/lsf/lsb.queues", line=3, name="MIG", fate="ignored", note="no migration")
    reply.entries.add(file="/etc/lsf/lsb.queues", line=4, name="NICENESS", fate="unknown")
    reply.complaints.add(file="/etc/lsf/lsb.queues", line=4, text="NICENESS: unknown parameter, it has no effect")
    result = desk.type("badmin", "ckconfig", "-v")
    assert result.out == (
        "\nChecking configuration files ...\n\n/etc/lsf/lsb.queues\n\n"
        "1 setting is honoured:\n  lsb.queues:2 QUEUE_NAME\n\n"
        "1 setting is ignored:\n  lsb.queues:3 MIG (no migration)\n\n"
        "1 setting is unknown:\n  lsb.queues:4 NICENESS\n\nThere are warning errors.\n"
    )
    assert result.err == "/etc/lsf/lsb.queues:4: warning: NICENESS: unknown parameter, it has no effect\n"


@pytest.mark.parametrize("command", ["badmin", "lsadmin"])
def test_reconfig_with_errors(desk: Desk, command: str) -> None:
    """All are reported, and no file is applied."""
    desk.client.configure_reply.complaints.add(file="/c/lsb.hosts", line=3, text="MXJ = x: expected ...", fatal=True)
    desk.client.configure_reply.complaints.add(file="/c/lsb.users", line=9, text="nobody: ...", fatal=True)
    result = desk.type(command, "reconfig")
    assert result.code == 255
    assert result.err == (
        "/c/lsb.hosts:3: MXJ = x: expected ...\n/c/lsb.users:9: nobody: ...\nThere are fatal errors.\n"
    )
    assert "initiated" not in result.out
    assert desk.client.asked[-1].apply


def test_reconfig(desk: Desk) -> None:
    """lsf.md 1.8; without files it names the built-in rules."""
    desk.client.configure_reply.applied = True
    assert desk.type("badmin", "reconfig").out == (
        "\nChecking configuration files ...\n\nNo errors found.\n"
        "There are no configuration files of LSF: the built-in queues are in force.\nReconfiguration initiated\n"
    )


def test_queues_are_ruled(desk: Desk) -> None:
    """One line for each; refusals go to standard error."""
    desk.client.control_reply.results.add(name="night")
    desk.client.control_reply.results.add(name="gpu", error="User permission denied")
    result = desk.type("badmin", "qinact", "-C", "repair", "night", "gpu")
    assert (result.code, result.out, result.err) == (
        255, "Queue <night> is inactivated\n", "gpu: User permission denied\n",
    )  # fmt: skip
    asked = desk.client.asked[-1]
    assert (asked.action, list(asked.names), asked.comment) == (
        cluster_pb2.INACTIVATE_QUEUE, ["night", "gpu"], "repair",
    )  # fmt: skip


def test_hosts_are_closed(desk: Desk) -> None:
    """lsf.md 1.8: on standard error."""
    desk.client.control_reply.results.add(name="n001")
    result = desk.type("badmin", "hclose", "all")
    assert (result.code, result.out, result.err) == (0, "", "Close <n001> ...... done\n")
    assert desk.client.asked[-1].all
    desk.client.control_reply.results[0].error = "\x1b[2J: Bad host name"
    assert desk.type("badmin", "hclose", "n001").err == "Close <n001> ...... ?[2J: Bad host name\n"


def test_hosts_are_closed_with_lock_ids(desk: Desk) -> None:
    """badmin hclose -i and hopen -i (lsf.md 1.8); what keeps a host closed is said behind done."""
    desk.client.control_reply.results.add(name="n001")
    assert desk.type("badmin", "hclose", "-i", "disk_1", "-C", "new disk", "n001").err == "Close <n001> ...... done\n"
    assert list(desk.client.asked[-1].lock_ids) == ["disk_1"]
    desk.client.control_reply.results[0].note = "host remains closed due to lock ID <fan>"
    result = desk.type("badmin", "hopen", "-i", "disk_1 net", "n001")
    assert (result.code, result.err) == (0, "Open <n001> ...... done : host remains closed due to lock ID <fan>\n")
    assert list(desk.client.asked[-1].lock_ids) == ["disk_1", "net"]


def test_host_groups_are_changed(desk: Desk) -> None:
    """badmin hghostadd; hghostdel asks first, unless -f says that it need not."""
    desk.client.control_reply.results.add(name="n1")
    desk.client.control_reply.results.add(name="n2")
    added = desk.type("badmin", "hghostadd", "-C", "spare", "rack", "n1", "n2")
    assert (added.code, added.out) == (
        0, "Host <n1> is added to host group <rack>\nHost <n2> is added to host group <rack>\n",
    )  # fmt: skip
    asked = desk.client.asked[-1]
    assert (asked.action, asked.group, asked.comment) == (cluster_pb2.ADD_TO_GROUP, "rack", "spare")
    assert list(asked.names) == ["n1", "n2"]
    question, gone = "Delete n1 n2 from host group <rack>? [y/n] ", "Host <n{}> is deleted from host group <rack>\n"
    deleted = desk.type("badmin", "hghostdel", "rack", "n1", "n2", stdin=b"y\n")
    assert deleted.out == question + gone.format(1) + gone.format(2)
    assert desk.client.asked[-1].action == cluster_pb2.DELETE_FROM_GROUP
    assert desk.type("badmin", "hghostdel", "-f", "rack", "n1", "n2").out == gone.format(1) + gone.format(2)


@pytest.mark.parametrize("answer", [b"", b"n\n", b"\n"])
def test_hosts_stay_in_their_group_without_a_yes(desk: Desk, answer: bytes) -> None:
    """Nothing is asked of the master."""
    result = desk.type("badmin", "hghostdel", "rack", "n1", stdin=answer)
    assert (result.code, result.err) == (255, "Nothing was deleted from host group <rack>\n")
    assert not desk.client.asked


def test_a_changed_group_needs_hosts(desk: Desk) -> None:
    """The sentence and the usage."""
    result = desk.type("badmin", "hghostadd", "rack")
    assert result.code == 255
    assert result.err.startswith("badmin hghostadd: name a host group, and behind it hosts\nUsage: badmin")


def test_changes_of_groups_are_told(desk: Desk) -> None:
    """badmin hhist names the group."""
    for action in ("added", "deleted"):
        desk.client.control_records.append(
            cluster_pb2.ControlRecord(kind="host", name="n1", action=action, by="root", group="rack", comment="why")
        )
    assert [line.partition(": ")[2] for line in desk.type("badmin", "hhist").out.splitlines()] == [
        "Host <n1> added to host group <rack> by administrator <root> why",
        "Host <n1> deleted from host group <rack> by administrator <root> why",
    ]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["hclose", "-i", "all"], "hclose: -i all: no lock ID is called all"),
        (["hopen", "-i", "a all"], "hopen: -i a all: no lock ID is called all"),
        (["hclose", "-i", "a b"], "hclose: -i a b: expected one lock ID of 1 to 128 letters, digits and underscores"),
        (["hopen", "-i", "a-b"], "hopen: -i a-b: expected lock IDs of 1 to 128 letters, digits and underscores"),
        (["hopen", "-i", " "], "hopen: -i  : expected lock IDs of 1 to 128 letters, digits and underscores"),
        (["hclose", "-i", "a", "-revoke", "30", "n1"], "hclose: -i and -revoke don't go together"),
    ],
)
def test_lock_ids_that_are_none(desk: Desk, argv: list[str], sentence: str) -> None:
    """One sentence, and nothing is asked."""
    result = desk.type("badmin", *argv)
    assert result.code == 255
    assert result.err.startswith(f"badmin {sentence}\nUsage: badmin")
    assert not desk.client.asked


def test_lock_ids_of_a_host_are_listed(desk: Desk) -> None:
    """bhosts -l as a table, bhosts -o comments in a word, badmin hhist in its line."""
    host = a_host("n001")
    host.comment = "audit"
    host.lock_ids.add(id="disk_1", by="root", time=1000.0, comment="new\x1b disk")
    host.lock_ids.add(id="fan", by="ann", time=1000.0)
    desk.client.host_records = [host]
    shown = desk.type("bhosts", "-l").out.partition("ADMIN ACTION COMMENT:  audit\n\n")[2].splitlines()
    assert [line.split()[:1] + line.split()[5:] for line in shown[2:4]] == [
        ["disk_1", "root", "new\\e", "disk"], ["fan", "ann", "-"],
    ]  # fmt: skip
    assert shown[:2] == ["ADMIN ACTION COMMENTS:", " LOCK_ID         TIME                     ADMIN       COMMENT"]
    said = desk.type("bhosts", "-noheader", "-o", "comments:60").out.split()
    assert said == ["audit;", "disk_1:", "new\\e", "disk;", "fan"]
    for action in ("closed", "partly opened", "open"):
        desk.client.control_records.append(
            cluster_pb2.ControlRecord(kind="host", name="n001", action=action, by="root", lock_id="fan")
        )
    assert [line.partition(": ")[2] for line in desk.type("badmin", "hhist").out.splitlines()] == [
        f"Host <n001> {verb} with lock ID <fan> by administrator <root>."
        for verb in ("closed", "partly opened", "opened")
    ]


@pytest.mark.parametrize(
    ("command", "argv", "sentence"),
    [
        ("badmin", ["qmove"], "badmin: qmove: no such subcommand"),
        ("badmin", ["qopen", "-x"], "badmin qopen: illegal option -- x"),
    ],
)
def test_what_they_do_not_do(desk: Desk, command: str, argv: list[str], sentence: str) -> None:
    """One sentence, then the usage."""
    result = desk.type(command, *argv)
    assert result.code == 255
    assert result.err.startswith(f"{sentence}\nUsage: {command}")


def test_busers(desk: Desk) -> None:
    """lsf.md 1.5."""
    desk.client.user_records = [
        cluster_pb2.UserRecord(name="alice", max=64, njobs=112, pend=80, run=30, ssusp=2, pending_jobs=81,
                               pending_jobs_max=500),
        cluster_pb2.UserRecord(name="chem", is_group=True, per_processor=1.5),
    ]  # fmt: skip
    assert desk.type("busers", "-w", "all").out == (
        "USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV  MPEND  PJOBS MPJOBS\n"
        "alice                  -     64    112     80     30      2      0      0      -     81    500\n"
        "chem/                1.5      -      0      0      0      0      0      0      -      0      -\n"
    )
    assert desk.client.asked[-1].everybody
    assert desk.type("busers").out.splitlines()[1] == (
        "alice                  -     64    112     80     30      2      0      0"
    )
    assert desk.type("busers", "zoe", "bob").err.startswith("zoe: No such user/user group\n")
    assert list(desk.client.asked[-1].accounts) == ["bob"]  # the master knows users without jobs by that


def test_queues_of_nobody(desk: Desk) -> None:
    """All queues that are for all would be listed: a misspelt name would not be seen."""
    desk.client.queue_records = [cluster_pb2.QueueRecord(name="normal")]
    desk.client.user_records = [cluster_pb2.UserRecord(name="chem", is_group=True)]
    result = desk.type("bqueues", "-u", "zoe")
    assert (result.code, result.out, result.err) == (255, "", "zoe: Unknown user\n")
    for known in ("alice", "chem", "all"):
        assert desk.type("bqueues", "-u", known).code == 0


def test_groups(desk: Desk) -> None:
    """lsf.md 1.5: members, inner groups with a slash, shares in the long form."""
    desk.client.group_records = [
        cluster_pb2.GroupRecord(name="chem", members=["alice", "flow/"], administrators=["alice"],
                                shares=[cluster_pb2.GroupShare(name="alice", shares=2)]),
        cluster_pb2.GroupRecord(name="everybody", members=["all"]),
    ]  # fmt: skip
    assert desk.type("bugroup").out == ("GROUP_NAME    USERS\nchem          alice flow/\neverybody     all users\n")
    assert desk.type("bugroup", "-l", "chem").out == (
        "GROUP_NAME:  chem\nUSERS:  alice flow/\nSHARES:  [alice, 2]\nGROUP_ADMIN:  alice\n"
    )
    assert desk.type("bmgroup", "-r").out == "GROUP_NAME    HOSTS\nchem          alice flow/\neverybody     all hosts\n"
    assert (desk.client.asked[-1].hosts, desk.client.asked[-1].flat) == (True, True)
    assert desk.type("bmgroup", "no").err == "no: No such host group\n"


def test_compute_units(desk: Desk) -> None:
    """lsf.md 1.5, bmgroup -cu: racks, enclosures and the like, with the units and hosts in them."""
    desk.client.group_records = [
        cluster_pb2.GroupRecord(name="encl1", type="enclosure", members=["hostA", "hg1/"]),
        cluster_pb2.GroupRecord(name="rack1", type="rack", members=["encl1/", "encl2/"]),
    ]
    assert desk.type("bmgroup", "-cu").out == (
        "NAME          TYPE          HOSTS\n"
        "encl1         enclosure     hostA hg1/\n"
        "rack1         rack          encl1/ encl2/\n"
    )
    assert (desk.client.asked[-1].hosts, desk.client.asked[-1].units_only) == (True, True)
    assert desk.type("bmgroup", "-l", "rack1").out == "NAME:  rack1\nTYPE:  rack\nHOSTS:  encl1/ encl2/\n"
    assert desk.type("bmgroup", "-cu", "no").err == "no: No such compute unit\n"
    assert desk.type("bugroup", "-cu").code == 255
    desk.client.group_records = []
    result = desk.type("bmgroup", "-cu")
    assert (result.code, result.out, result.err) == (255, "", "No compute unit found\n")


def a_pool(overcommitted: bool = False) -> cluster_pb2.PoolRecord:
    """A pool of slots and memory."""
    pool = cluster_pb2.PoolRecord(name="lab", users="ann bob", queues="all", hosts="all ~n9", lends=True)
    pool.amounts.add(resource="slots", total=96, free=40, guaranteed=64, deserved=32, own=64, used=70, borrowed=6)
    pool.amounts.add(
        resource="mem", total=2 << 20, free=3 << 18, largest=1 << 20, used=512, overcommitted=overcommitted
    )
    return pool


def test_pools(desk: Desk) -> None:
    """lsf.md 1.9, bresources -g: a line for each resource of a pool."""
    desk.client.pools_reply.pools.append(a_pool())
    rows = (
        "POOL_NAME        TYPE   STATUS            TOTAL     FREE     GUAR     USED BORROWED\n"
        "lab              slots  ok                   96       40       64       70        6\n"
        "lab              mem    ok                2048G     768G       0M     512M       0M\n"
    )
    assert desk.type("bresources", "-g").out == rows
    result = desk.type("bresources", "-g", "lab", "no")
    assert (result.code, result.out, result.err) == (255, rows, "no: No such guaranteed resource pool\n")
    assert desk.type("bresources", "-g", "-l", "lab").out == (
        "GUARANTEED RESOURCE POOL: lab\n\nUSERS:   ann bob\nQUEUES:  all\nHOSTS:   all ~n9\nLOAN:    Y\n"
        "STATUS:  ok\n\n"
        " TYPE   GUARANTEED   DESERVED        MAX    TOTAL     FREE     USED BORROWED\n"
        " slots          64         32          -       96       40       70        6\n"
        " mem             -          -      1024G    2048G     768G     512M       0M\n"
    )


def test_pools_of_service_classes(desk: Desk) -> None:
    """The name of LSF's pool stands for all its classes; -l says which profiles, and who borrows."""
    for name in ("night/gold", "night/silver", "day/gold"):
        pool = desk.client.pools_reply.pools.add(name=name, users="all", queues="all", hosts="all", lends=True)
        pool.borrowers, pool.applications, pool.service_class = "short idle", "md", name.rpartition("/")[2]
        pool.amounts.add(resource="slots", total=8, free=8, guaranteed=4, own=4)
    rows = desk.type("bresources", "-g", "night").out.splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["night/gold", "night/silver"]
    shown = desk.type("bresources", "-g", "-l", "day/gold").out
    assert "QUEUES:  all\nAPPS:    md\nHOSTS:   all\nLOAN:    Y (short idle)\n" in shown
    assert desk.type("bresources", "-g", "gold").err == "gold: No such guaranteed resource pool\n"


def test_hosts_and_queues_of_pools(desk: Desk) -> None:
    """-g -l: -m names the joined hosts, -q chooses by queue and says what its jobs have of each pool."""
    reply = desk.client.pools_reply
    reply.pools.extend([a_pool(), a_pool(), a_pool()])
    for name, pool in zip(("lab", "spare", "night"), reply.pools, strict=True):
        pool.name = name
    reply.pools[0].takes_queue = reply.pools[1].lends_to_queue = True
    reply.pools[1].hosts = "fat"
    reply.host_lists.add(hosts="all ~n9", names=["n1", "n2"])
    reply.host_lists.add(hosts="fat")
    shown = desk.type("bresources", "-g", "-l", "-m", "-q", "normal").out
    assert desk.client.asked[-1] == cluster_pb2.PoolsRequest(hosts=True, queue="normal")
    first, second = shown.split("\n\nGUARANTEED RESOURCE POOL: spare\n")
    assert "\nHOSTS:   n1 n2\nLOAN:    Y\nQUEUE:   normal (its jobs may be the pool's)\nSTATUS:  ok\n" in first
    assert "\nHOSTS:   -\nLOAN:    Y\nQUEUE:   normal (its jobs borrow)\nSTATUS:  ok\n" in second
    assert "night" not in shown
    result = desk.type("bresources", "-g", "-l", "-q", "normal", "night")
    sentence = "normal: No guaranteed resource pool is for jobs of the queue or lends to them\n"
    assert (result.code, result.out, result.err) == (255, "", sentence)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["-m"], "pools, -l, -m and -q need -g"),
        (["-q", "normal"], "pools, -l, -m and -q need -g"),
        (["-g", "-m"], "-m and -q need -g and -l"),
        (["-g", "-l", "-q", ""], "-q: expected the name of a queue"),
    ],
)
def test_options_of_pools_alone(desk: Desk, argv: list[str], sentence: str) -> None:
    """None of them is taken and ignored."""
    result = desk.type("bresources", *argv)
    assert (result.code, result.out) == (255, "")
    assert sentence in result.err


def test_a_pool_that_is_promised_too_much(desk: Desk) -> None:
    """Reported for the resource, and for the pool as a whole."""
    desk.client.pools_reply.pools.append(a_pool(overcommitted=True))
    assert [line.split()[2] for line in desk.type("bresources", "-g").out.splitlines()[1:]] == ["ok", "overcommitted"]
    assert "STATUS:  overcommitted\n" in desk.type("bresources", "-gl").out


def test_bresources_without_pools(desk: Desk) -> None:
    """Without -g the limits, as blimits -c shows them."""
    desk.client.limits_reply.limits.add(name="few", configured={"SLOTS": "2"})
    assert desk.type("bresources").out == desk.type("blimits", "-c").out
    result = desk.type("bresources", "-g")
    assert (result.code, result.out, result.err) == (255, "", "No guaranteed resource pool is configured\n")
    assert desk.type("bresources", "lab").code == 255


def test_bparams(desk: Desk) -> None:
    """lsf.md 1.5: the short form, every one that has a value, a sentence for each."""
    add = desk.client.parameters_reply.parameters.add
    add(name="DEFAULT_QUEUE", value="normal", about="queues for jobs without -q")
    add(name="MBD_SLEEP_TIME", value="10", about="length of a dispatch turn", is_set=True)
    add(name="JOB_ACCEPT_INTERVAL", value="0", about="turns between two starts on one host")
    add(name="MAX_PEND_JOBS", about="waiting jobs of the cluster")
    assert desk.type("bparams").out == (
        "Default Queues:  normal\nDefault Host Specification:\nJob Dispatch Interval:  10 seconds\n"
        "Job Checking Interval:  0 seconds\nJob Accepting Interval:  0 seconds\n"
    )
    assert desk.type("bparams", "-a").out == "DEFAULT_QUEUE = normal\nMBD_SLEEP_TIME = 10\nJOB_ACCEPT_INTERVAL = 0\n"
    assert "Waiting jobs of the cluster:\n    MAX_PEND_JOBS = not set\n" in desk.type("bparams", "-l").out


def test_blimits(desk: Desk) -> None:
    """Configuration and usage."""
    assert desk.type("blimits").out == "No resource usage found.\n"
    limit = desk.client.limits_reply.limits.add(name="flow", configured={"USERS": "alice bob", "SLOTS": "96"})
    assert desk.type("blimits", "-c").out == (
        "Begin Limit\nNAME                = flow\nSLOTS               = 96\n"
        "USERS               = alice bob\nEnd Limit\n"
    )
    limit.usage.add(users="alice bob", used={"SLOTS": "12/96"})
    lines = desk.type("blimits").out.splitlines()
    assert lines[1] == "INTERNAL RESOURCE LIMITS:"
    assert lines[3].split() == ["NAME", "USERS", "QUEUES", "HOSTS", "PROJECTS", "SLOTS", "MEM", "TMP", "SWP", "JOBS"]
    assert lines[4].split() == ["flow", "alice", "bob", "-", "-", "-", "12/96", "-", "-", "-", "-"]


def test_blimits_of_what_nothing_counts_for(desk: Desk) -> None:
    """-a: a line for each limit without usage, with its consumers and amounts as configured."""
    add = desk.client.limits_reply.limits.add
    busy = add(name="busy", configured={"SLOTS": "8"})
    busy.usage.add(used={"SLOTS": "2/8"})
    add(name="night", configured={"PER_USER": "all ~bob", "QUEUES": "night", "MEM": "2048 M", "JOBS": "3",
                                  "RESOURCE": "[matlab,4] [disk,1.5]"})  # fmt: skip
    lines = desk.type("blimits", "-a").out.splitlines()[4:]
    assert [line.split() for line in lines] == [
        ["busy", "-", "-", "-", "-", "2/8", "-", "-", "-", "-"],
        ["night", "all", "~bob", "night", "-", "-", "-", "0/2048", "-", "-", "0/3", "DISK", "0/1.5", "MATLAB", "0/4"],
    ]
    assert len(desk.type("blimits").out.splitlines()) == 5
    add(name="codes", configured={"PER_APP": "all", "JOBS": "1"}).usage.add(apps="md", used={"JOBS": "1/1"})
    title, line = desk.type("blimits", "-A", "md", "-n", "codes").out.splitlines()[3:]
    assert (title.split()[5], line.split()) == ("APPS", ["codes", *"----", "md", *"----", "1/1"])
    assert desk.type("blimits", "-A", "fe", "-n", "codes").out == "No resource usage found.\n"
    assert desk.type("blimits", "-a", "-u", "bob", "-n", "night").out == "No resource usage found.\n"
    assert desk.type("blimits", "-a", "-c").code == 255


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["-u", "alice"], ["each:alice", "flow:alice bob", "nobody:all ~bob", "wide:"]),
        (["-u", "bob"], ["each:bob", "flow:alice bob", "wide:"]),
        (["-u", "bob", "-n", "flow"], ["flow:alice bob"]),
        (["-q", "night"], ["each:alice", "each:bob", "flow:alice bob", "nobody:all ~bob", "wide:"]),
        (["-q", "short", "wide"], []),
    ],
)
def test_limits_of_one(desk: Desk, argv: list[str], expected: list[str]) -> None:
    """Those that hold for a user or a queue; of each the lines that are about him."""
    desk.client.queue_records = [cluster_pb2.QueueRecord(name=name) for name in ("night", "short")]
    add = desk.client.limits_reply.limits.add
    for name, configured, users in (
        ("each", {"PER_USER": "all"}, ["alice", "bob"]), ("flow", {"USERS": "alice bob"}, ["alice bob"]),
        ("nobody", {"USERS": "all ~bob"}, ["all ~bob"]), ("wide", {"QUEUES": "night"}, [""]),
    ):  # fmt: skip
        add(name=name, configured=configured).usage.extend(
            cluster_pb2.LimitUsage(users=one, queues=configured.get("QUEUES", ""), used={"SLOTS": "1/9"})
            for one in users
        )
    result = desk.type("blimits", "-w", *argv)
    assert result.code == 0
    lines = [line for line in result.out.splitlines()[4:] if line.strip()]
    found = [f"{line.split()[0]}:{line[16:].partition('  ')[0].strip().removeprefix('-')}" for line in lines]
    assert found == expected


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["-u", "zoe"], "zoe: Unknown user"),
        (["-q", "nowhere"], "nowhere: No such queue"),
        (["-n", "nothing"], "blimits: nothing: no such limit"),
    ],
)
def test_limits_of_nobody(desk: Desk, argv: list[str], sentence: str) -> None:
    """A misspelt name is an error, not zero usage."""
    result = desk.type("blimits", *argv)
    assert (result.code, result.err.splitlines()[0]) == (255, sentence)


def test_lsclusters(desk: Desk) -> None:
    """lsf.md 1.7; a client takes the first word of the second line as the cluster's name."""
    desk.client.cluster.administrators.append("hpcadm")
    desk.client.cluster.hosts, desk.client.cluster.servers = 3, 2
    assert desk.type("lsclusters", "-w").out == (
        "CLUSTER_NAME   STATUS   MASTER_HOST               ADMIN    HOSTS  SERVERS\n"
        "c1             ok       m1                       hpcadm        3        2\n"
    )


def test_lsclusters_long(desk: Desk) -> None:
    """-l names all administrators, and what lsinfo tells more of."""
    desk.client.cluster.administrators.extend(["hpcadm", "ada"])
    desk.client.resources_reply.types.append("X86_64")
    desk.client.resources_reply.models.add(name="Intel E5", cpu_factor=60.0)
    desk.client.resources_reply.definitions.add(name="lic", kind="Numeric")
    lines = desk.type("lsclusters", "-l").out.splitlines()
    assert lines[1].split()[:1] == ["c1"]
    assert lines[2:4] == ["", "LSF administrators: hpcadm ada"]
    assert lines[4].startswith("Available resources: r15s r1m ")
    assert lines[4].endswith(" server lic")
    assert lines[5:] == ["Available host types: X86_64", "Available host models: Intel_E5"]


def test_a_queue_in_full(desk: Desk) -> None:
    """lsf.md 1.5: limits, thresholds, policies, shares and the state of the accounts."""
    queue = cluster_pb2.QueueRecord(
        name="gpu", priority=40, open=True, description="GPU jobs", max=64, per_processor=0.5, accept_interval_s=10,
        default_limits={"RUNLIMIT": "60.0 min"}, comment="until Monday",
        parameters={"RUNLIMIT": "1440.0 min", "PROCLIMIT": "1 64", "POLICIES": "BACKFILL  FAIRSHARE", "NICE": "5",
                    "HOSTS": "gpuhosts/", "RUN_WINDOW": "20:00-8:00", "SLOT_RESERVE": "300", "RERUNNABLE": "yes"},
    )  # fmt: skip
    queue.thresholds.add(index="mem", sched=400, stop=100)
    queue.thresholds.add(index="scratch", sched=10)
    queue.shares.add(name="chem", shares=20)
    queue.share_tree.add(
        name="chem", shares=20, priority=3.333, started=1, cpu_s=1204.5, run_s=480, gpu_run_s=90, is_group=True
    )
    queue.share_tree.add(path="/chem", name="alice", shares=1, priority=0.5)
    desk.client.queue_records = [queue]
    top = (
        "\nQUEUE: gpu\n  -- GPU jobs.\n\nPARAMETERS/STATISTICS\n"
        "PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV\n"
        " 40    5  Open:Inact_Adm   64    -  0.5    -     0     0     0     0     0    0\n"
        "Interval for a host to accept two jobs is 10 seconds\n"
        "\nDEFAULT LIMITS:\n RUNLIMIT\n 60.0 min\n\nMAXIMUM LIMITS:\n RUNLIMIT\n 1440.0 min\n PROCLIMIT\n 1 64\n"
        "\nSCHEDULING PARAMETERS\n"
        "           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem\n"
        " loadSched   -     -     -     -       -     -    -     -     -      -    400M\n"
        " loadStop    -     -     -     -       -     -    -     -     -      -    100M\n"
        "\n                scratch\n loadSched           10\n loadStop             -\n"
        "\nSCHEDULING POLICIES:  BACKFILL  FAIRSHARE\nUSER_SHARES:  [chem, 20]\n"
        "\nSHARE_INFO_FOR: gpu/\n"
        "USER/GROUP      SHARES    PRIORITY   STARTED  RESERVED    CPU_TIME  RUN_TIME   ADJUST  GPU_RUN_TIME\n"
        " chem               20       3.333         1         0      1204.5       480    0.000            90\n"
    )
    tree = (
        "\nSHARE_INFO_FOR: gpu/chem/\n"
        "USER/GROUP      SHARES    PRIORITY   STARTED  RESERVED    CPU_TIME  RUN_TIME   ADJUST  GPU_RUN_TIME\n"
        " alice               1       0.500         0         0         0.0         0    0.000             0\n"
    )
    rest = (
        "\nRUN_WINDOW:  20:00-8:00\n\nUSERS:  all\nHOSTS:  gpuhosts/\nMaximum slot reservation time: 300 seconds\n"
        "RERUNNABLE :  yes\n\nADMIN ACTION COMMENT:  until Monday\n"
    )
    assert desk.type("bqueues", "-l", "gpu").out == top + rest
    assert desk.type("bqueues", "-r", "gpu").out == top + tree + rest


def test_large_numbers_have_all_their_digits(desk: Desk) -> None:
    """Limits and thresholds of queues and users are never rounded or written with an exponent, however wide."""
    queue = cluster_pb2.QueueRecord(name="gpu", open=True, active=True, max=1234567, per_host=7654321)
    for index, sched, stop in (("tmp", 12345678, 1), ("swp", 23456789, 2), ("mem", 34567891, 3.25)):
        queue.thresholds.add(index=index, sched=sched, stop=stop)
    queue.thresholds.add(index="scratch", sched=45678912)
    desk.client.queue_records = [queue]
    desk.client.user_records = [cluster_pb2.UserRecord(name="ann", per_processor=1234567.5, max=7654321)]
    assert desk.type("bqueues", "-noheader", "-o", "max jl_h").out == "1234567 7654321\n"
    said = desk.type("bqueues", "-l", "gpu").out
    assert "12345678M 23456789M 34567891M\n loadStop " in said
    assert said.split(" loadStop ")[1].splitlines()[0].split()[-3:] == ["1M", "2M", "3.25M"]
    assert " loadSched     45678912\n" in said
    assert desk.type("busers", "ann").out.split()[-9:-6] == ["ann", "1234567.5", "7654321"]
    pool = desk.client.pools_reply.pools.add(name="lab")
    pool.amounts.add(resource="licences", total=1234567, free=0.1 + 0.2, used=1e7)
    row = ["lab", "licences", "ok", "1234567", "0.3", "0", "10000000", "0"]
    assert desk.type("bresources", "-g").out.splitlines()[1].split() == row


def test_bqueues_fields(desk: Desk) -> None:
    """-o and -json as bhosts has them."""
    desk.client.queue_records = [cluster_pb2.QueueRecord(name="gpu", priority=40, open=True, active=True, per_user=0)]
    assert desk.type("bqueues", "-noheader", "-o", "qname prio stat jl_u max").out == "gpu 40 Open:Active 0 -\n"
    assert '"QUEUES":1' in desk.type("bqueues", "-json", "-o", "queue_name").out


def test_a_host_with_rules(desk: Desk) -> None:
    """lsf.md 1.5: JL/U, window and thresholds of lsb.hosts."""
    host = a_host("n001")
    host.per_user, host.dispatch_window = 2, "20:00-8:00"
    host.thresholds.add(index="r1m", sched=3.5, stop=8)
    desk.client.host_records = [host]
    out = desk.type("bhosts", "-l").out
    assert "     2     32      0      0      0      0      0 20:00-8:00\n" in out
    assert " loadSched   -    3.5    -     -       -" in out
    assert desk.type("bhosts", "-noheader", "-o", "jl_u").out == "2\n"


def test_hosts_are_locked(desk: Desk) -> None:
    """lsadmin limlock and limunlock, for a while or without end; bhosts and lsload show it as LSF does (lsf.md 1.7)."""
    desk.client.control_reply.results.add(name="n001")
    result = desk.type("lsadmin", "limlock", "-l", "90", "n001")
    assert (result.code, result.out, result.err) == (0, "", "Lock <n001> ...... done\n")
    asked = desk.client.asked[-1]
    assert (asked.action, list(asked.names), asked.lock_s) == (cluster_pb2.LOCK_HOST, ["n001"], 90)
    desk.client.control_reply.results[0].error = "n001: Host is not locked"
    result = desk.type("lsadmin", "limunlock")
    assert (result.code, result.err) == (255, "Unlock <n001> ...... n001: Host is not locked\n")
    assert desk.type("lsadmin", "limlock", "-l", "soon").err.startswith("lsadmin limlock: -l soon: expected 1 to ")
    host = a_host("n001")
    host.status = "closed_Lock"
    desk.client.host_records = [host]
    assert desk.type("lsload").out.splitlines()[1].split()[:2] == ["n001", "lockU"]
    assert desk.type("bhosts", "-w").out.splitlines()[1].split()[:2] == ["n001", "closed_Lock"]


@pytest.mark.parametrize(
    ("name", "why"), [("limrestart", "systemctl restart lava-agent"), ("resdebug", "no debug classes")]
)
def test_daemons_of_hosts_are_services(desk: Desk, name: str, why: str) -> None:
    """A refusal is one sentence."""
    result = desk.type("lsadmin", name, "n001")
    assert (result.code, result.err.count("\n"), why in result.err) == (255, 1, True)
