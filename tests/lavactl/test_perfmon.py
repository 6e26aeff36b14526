"""Golden output of badmin perfmon, in the layout of LSF's."""

import json

import pytest

from protos import cluster_pb2
from tests.lavactl.scripted import NOW, Desk


def test_the_figures(desk: Desk) -> None:
    """Counts of calls and jobs, file descriptors, and the scheduler's metrics."""
    reply = desk.client.performance_reply
    reply.is_on, reply.period_s, reply.started, reply.sampled = True, 60, NOW - 120, NOW
    reply.files_used, reply.files_max = 424, 1024
    reply.counts.add(name="Total queries", last=0, max=25, min=0, mean=7.95, total=159)
    reply.counts.add(name="  Jobs information queries", last=0, max=13, min=0, mean=12.5, total=46)
    reply.scheduler.add(name="Job buckets", last=5, max=5, min=0, mean=2.25)
    result = desk.type("badmin", "perfmon", "view")
    rule = "-" * 76 + "\n"
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "Performance monitor start time:  Sat Nov 21 09:28:00\n"
        "End time of last sample period:  Sat Nov 21 09:30:00\n"
        "Sample period :                  60 Seconds\n"
        + rule
        + "Metrics                                Last     Max     Min     Avg   Total\n"
        + rule
        + "Total queries                             0      25       0     8.0     159\n"
        "  Jobs information queries                0      13       0      12      46\n"
        + rule
        + "File Descriptor Metrics                Free    Used   Total\n"
        + rule
        + "MBD file descriptor usage               600     424    1024\n"
        + rule
        + "Scheduler Metrics                      Last     Max     Min     Avg\n"
        + rule
        + "Job buckets                               5       5       0     2.2\n"
    )


def test_the_figures_for_programs(desk: Desk) -> None:
    """-json has the names and keys of LSF's, by which monitoring integrations find what they show."""
    reply = desk.client.performance_reply
    reply.is_on, reply.period_s, reply.started, reply.sampled = True, 60, NOW - 120, NOW
    reply.files_used, reply.files_max = 424, 1024
    reply.counts.add(name="Total queries", last=0, max=25, min=0, mean=7.95, total=159)
    reply.scheduler.add(name="Job buckets", last=5, max=5, min=0, mean=2.25)
    assert json.loads(desk.type("badmin", "perfmon", "view", "-json").out) == {
        "num": 2,
        "record": [
            {"name": "Processed requests: mbatchd", "current": 0, "max": 25, "min": 0, "avg": 8.0, "total": 159},
            {"name": "Job buckets", "current": 5, "max": 5, "min": 0, "avg": 2.2, "total": 0},
        ],
        "period": 60,
        "start": NOW - 120,
        "end": NOW,
        "fd": {"name": "mbatchd file descriptor usage", "free": 600, "used": 424, "total": 1024},
    }
    wrong = desk.type("badmin", "perfmon", "stop", "-json")
    assert (wrong.code, wrong.err.splitlines()[0]) == (255, "badmin perfmon stop: -json is for view")


def test_monitoring_is_switched(desk: Desk) -> None:
    """With a sample period, or with the usual one."""
    desk.client.performance_reply.period_s = 30
    said = "Performance monitoring is on, with a sample period of 30 seconds\n"
    assert desk.type("badmin", "perfmon", "start", "30").out == said
    asked = desk.client.asked[-1]
    assert (asked.action, asked.period_s) == (cluster_pb2.START_PERFORMANCE, 30)
    assert desk.type("badmin", "perfmon", "setperiod", "30").out == said
    assert desk.type("badmin", "perfmon", "stop").out == "Performance monitoring is stopped\n"
    result = desk.type("badmin", "perfmon", "view")
    said = "Performance monitoring is off; badmin perfmon start begins it.\n"
    assert (result.code, result.out, result.err) == (255, "", said)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "badmin perfmon: expected start, stop, view or setperiod"),
        (["begin"], "badmin perfmon: expected start, stop, view or setperiod"),
        (["setperiod"], "badmin perfmon setperiod: expected a sample period in seconds"),
        (["start", "0"], "badmin perfmon start 0: expected a sample period of 1 to 86400 seconds"),
        (["stop", "60"], "badmin perfmon stop: expected no more words"),
    ],
)
def test_words_that_are_refused(desk: Desk, words: list[str], sentence: str) -> None:
    """One sentence, then the usage."""
    result = desk.type("badmin", "perfmon", *words)
    assert (result.code, result.err.splitlines()[0]) == (255, sentence)
