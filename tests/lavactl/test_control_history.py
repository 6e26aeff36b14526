"""Golden output of badmin hist, qhist, hhist and mbdhist: lsf.md 1.8, and the records of lsb.events."""

from pathlib import Path

import pytest

from protos import cluster_pb2
from tests.lavactl.scripted import NOW, Desk

EVENTS = """\
#512
"MBD_START" "10.1" 1795166000 "m1" "c1" 3 4
"JOB_NEW" "10.1" 1795166500 1 0 "ann"
"QUEUE_CTRL" "10.1" 1795167000 2 "night" 0 "root" "of ""old"" disks"
"HOST_CTRL" "10.1" 1795167060 3 "n001" 0 "" ""
"HOST_CTRL" "20" 1795253000 2 "n002" 0 "ann"
"MBD_DIE" "10.1" 1795253100 "m1" 0 15
"QUEUE_CTRL" "10.1" 17952
"""


def test_what_became_of_queues_hosts_and_the_master(desk: Desk) -> None:
    """A line for each, with the comment in place of the full stop."""
    add = desk.client.control_records.append
    record = cluster_pb2.ControlRecord
    add(record(time=NOW - 60, kind="master", action="started", name="m1", cluster="c1", hosts=3, queues=4))
    add(record(time=NOW - 50, kind="queue", action="closed", name="night", by="ann"))
    add(record(time=NOW - 40, kind="queue", action="inactive", name="night", by="ann", comment="Change\x1b[2J"))
    add(record(time=NOW - 30, kind="host", action="closed", name="n001", by="root", comment="Weekly backup"))
    add(record(time=NOW - 20, kind="host", action="removed", name="n001", by="root"))
    add(record(time=NOW - 10, kind="master", action="reconfigured", name="m1", by="root", comment="new queue"))
    add(record(time=NOW, kind="master", action="ended", name="m1"))
    result = desk.type("badmin", "hist", "-t", "20,21")
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "Sat Nov 21 09:29:00: mbatchd started on host <m1>; cluster name <c1>, 3 server hosts, 4 queues.\n"
        "Sat Nov 21 09:29:10: Queue <night> closed by user or administrator <ann>.\n"
        "Sat Nov 21 09:29:20: Queue <night> inactivated by user or administrator <ann> Change\\e[2J\n"
        "Sat Nov 21 09:29:30: Host <n001> closed by administrator <root> Weekly backup\n"
        "Sat Nov 21 09:29:40: Host <n001> removed by administrator <root>.\n"
        "Sat Nov 21 09:29:50: mbatchd on host <m1> reconfigured by administrator <root> new queue\n"
        "Sat Nov 21 09:30:00: mbatchd on host <m1> died: told to end.\n"
    )
    asked = desk.client.asked[-1]
    assert (list(asked.kinds), list(asked.names), asked.last - asked.first > 2 * 86400 - 1) == ([], [], True)


@pytest.mark.parametrize(
    ("argv", "kinds", "names"),
    [
        (["qhist", "night", "day"], ["queue"], ["night", "day"]),
        (["hhist", "all"], ["host"], []),
        (["mbdhist"], ["master"], []),
    ],
)
def test_the_master_is_asked_for_one_kind(desk: Desk, argv: list[str], kinds: list[str], names: list[str]) -> None:
    """Nothing found is a failure, in one sentence."""
    result = desk.type("badmin", *argv)
    assert (result.code, result.out, result.err) == (255, "", "No matching event found\n")
    asked = desk.client.asked[-1]
    assert (list(asked.kinds), list(asked.names), asked.first, asked.last) == (kinds, names, 0.0, 0.0)


def test_an_events_file(desk: Desk, tmp_path: Path) -> None:
    """-f: of LSF as of OpenLava, whose records have no comment; its last line is still being written."""
    path = tmp_path / "lsb.events"
    path.write_text(EVENTS[:-1])
    result = desk.type("badmin", "hist", "-f", str(path))
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "Fri Nov 20 09:13:20: mbatchd started on host <m1>; cluster name <c1>, 3 server hosts, 4 queues.\n"
        'Fri Nov 20 09:30:00: Queue <night> closed by user or administrator <root> of "old" disks\n'
        "Fri Nov 20 09:31:00: Host <n001> rebooted.\n"
        "Sat Nov 21 09:23:20: Host <n002> closed by administrator <ann>.\n"
        "Sat Nov 21 09:25:00: mbatchd on host <m1> died: killed by signal <15>.\n"
    )
    assert desk.type("badmin", "hhist", "-f", str(path), "n002").out.count("\n") == 1
    assert desk.type("badmin", "hist", "-f", str(path), "-t", "20").out.count("\n") == 3
    assert desk.client.asked == []


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["hist", "-t", "soon"], "badmin hist -t soon: expected a time interval, as "),
        (["mbdhist", "m1"], "badmin mbdhist: takes no names\nUsage: badmin"),
        (["qhist", "-f", "/none"], "/none: No such file or directory."),
        (["hist", "-f", "FILE"], "FILE, line 4: expected a record of lsb.events; the line is damaged or cut short."),
    ],
)
def test_histories_that_are_refused(desk: Desk, tmp_path: Path, argv: list[str], sentence: str) -> None:
    """One sentence, and the exit code of a failure."""
    path = tmp_path / "lsb.events"
    path.write_text(EVENTS.replace(' 2 "night"', ' x "night"'))
    result = desk.type("badmin", *[str(path) if word == "FILE" else word for word in argv])
    assert result.code == 255
    assert result.err.startswith(sentence.replace("FILE", str(path)))
