"""busage: keys, months, units and forms of its output; bad words in one sentence."""

import csv
import io
import json
import time
from itertools import pairwise

import pytest

from protos import jobs_pb2 as pb
from tests.lavactl.scripted import NOW, Desk

ANN = pb.UsageRow(user="ann", project="p,1", period=1, done=3, exited=1, cpu_s=7200.0, slot_s=3600.4, gpu_s=90.0,
                  wait_s=40.0, memory_mib_max=2048)  # fmt: skip
BOB = pb.UsageRow(user="bob", project='say "hi"')


def asked(desk: Desk, *words: str) -> pb.UsageRequest:
    """The request that the command makes."""
    assert desk.type("busage", *words).code == 0
    request: pb.UsageRequest = desk.client.asked[-1]
    return request


def test_a_line_for_each_user(desk: Desk) -> None:
    """Without options: by user, over the twelve months that end with this one."""
    desk.client.usage_rows = [ANN, BOB]
    assert desk.type("busage").out == (
        "USER  JOBS  DONE  EXIT  CPU_S  SLOT_S  GPU_S  WAIT_S  MAX_MEM\n"
        "ann      4     3     1   7200    3600     90      10     2048\n"
        "bob      0     0     0      0       0      0       0        0\n"
    )
    request = desk.client.asked[-1]
    assert list(request.keys) == [pb.USAGE_USER]
    first, last = (time.localtime(bound) for bound in request.bounds)
    assert (first.tm_mday, first.tm_hour, last.tm_mday, last.tm_hour) == (1, 0, 1, 0)
    now = time.localtime(NOW)
    assert (last.tm_year * 12 + last.tm_mon) - (now.tm_year * 12 + now.tm_mon) == 1
    assert (last.tm_year * 12 + last.tm_mon) - (first.tm_year * 12 + first.tm_mon) == 12


def test_months_are_those_of_the_callers_calendar(desk: Desk) -> None:
    """Each is one period with its own name, from its first midnight to before that of the next."""
    desk.client.usage_rows = [ANN]
    shown = desk.type("busage", "-by", "month user", "-months", "2026-01,2026-04", "-t", "hours").out
    header, line = (text.split() for text in shown.splitlines())
    assert header == ["MONTH", "USER", *["JOBS", "DONE", "EXIT", "CPU_H", "SLOT_H", "GPU_H", "WAIT_H", "MAX_MEM"]]
    assert line == ["2026-02", "ann", "4", "3", "1", "2.00", "1.00", "0.03", "0.00", "2048"]
    bounds = [time.localtime(one)[:5] for one in desk.client.asked[-1].bounds]
    assert bounds == [(2026, month, 1, 0, 0) for month in range(1, 6)]


def test_exact_times_are_parted_by_months(desk: Desk) -> None:
    """-C from the middle of one month to that of another; the end is included, as bacct has it."""
    request = asked(desk, "-by", "month", "-C", "2026/1/15/12:00,2026/3/2/00:00")
    days = [time.localtime(one)[:5] for one in request.bounds]
    assert days == [(2026, 1, 15, 12, 0), (2026, 2, 1, 0, 0), (2026, 3, 1, 0, 0), (2026, 3, 2, 0, 1)]
    assert all(one < other for one, other in pairwise(request.bounds))
    assert list(asked(desk, "-C", "2026/1/15/12:00,").bounds)[1] > NOW


def test_names_choose(desk: Desk) -> None:
    """Users, groups, projects and queues; several in quotes."""
    request = asked(desk, "-by", "all", "-u", "ann bob", "-G", "chem", "-P", "p1", "-q", "normal night")
    assert (list(request.keys), list(request.users), list(request.groups)) == ([], ["ann", "bob"], ["chem"])
    assert (list(request.projects), list(request.queues)) == (["p1"], ["normal", "night"])


def test_csv_and_json_can_be_read_back(desk: Desk) -> None:
    """A comma or a quote in a project's name splits no field."""
    desk.client.usage_rows = [ANN, BOB]
    rows = list(csv.reader(io.StringIO(desk.type("busage", "-by", "project,user", "-csv").out)))
    assert [row[:2] for row in rows] == [["PROJECT", "USER"], ["p,1", "ann"], ['say "hi"', "bob"]]
    found = json.loads(desk.type("busage", "-by", "project user", "-json").out)
    assert found["LINES"] == 2
    assert found["RECORDS"][1]["PROJECT"] == 'say "hi"'


def test_nothing_is_said_in_a_sentence(desk: Desk) -> None:
    """A table without lines is no table; CSV has its header all the same."""
    assert desk.type("busage").out == "No matching job found\n"
    assert desk.type("busage", "-csv").out.startswith("USER,JOBS")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-by", "host"), "busage -by host: expected user, group, project, queue, month, or all."),
        (("-t", "days"), "busage -t days: expected seconds, minutes, hours."),
        (("-months", "2026-13"), "busage -months 2026-13: expected a month or two, as 2026-01,2026-10."),
        (("-months", "1200-01"), "busage -months 1200-01: there were no jobs before 1971."),
        (("-months", "2026-03,2026-01"), "busage -months 2026-03,2026-01: the second month is before the first."),
        (("-C", "never"), "busage -C never: expected a time interval, as bacct -C has it."),
        (("-by", "month", "-C", "2026/1/1,"), "busage -by month: -C needs both its times."),
        (("-csv", "-json"), "busage: -csv and -json cannot be used together"),
        (("alice",), "busage: alice: only options are expected"),
    ],
)
def test_bad_words_have_a_sentence(desk: Desk, words: tuple[str, ...], sentence: str) -> None:
    """With a failing exit code and nothing asked of the master."""
    done = desk.type("busage", *words)
    assert done.code == 255
    assert done.err.splitlines()[0] == sentence
    assert not desk.client.asked
