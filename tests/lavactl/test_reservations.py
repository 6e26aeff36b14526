"""Golden output of brsvadd, brsvmod, brsvdel, brsvs."""

import pytest

from protos import cluster_pb2 as pb
from tests.lavactl.scripted import NOW, Desk

DAY = 86_400.0


def a_record(desk: Desk, **words: object) -> pb.ReservationRecord:
    """The reservation of lsf.md's example, on two hosts."""
    record = desk.client.reservations_reply.reservations.add(
        name="user1#0", kind="user", holders=["user1"], begins_at=NOW, ends_at=NOW + 7200, creator="root"
    )
    record.hosts.add(host="hostA", slots=3, used=2, slots_max=8)
    record.hosts.add(host="hostB", slots=1, slots_max=8)
    record.stretches.extend((NOW, NOW + 7200))
    for name, value in words.items():
        setattr(record, name, value)
    return record


def cluster_user(name: str) -> pb.UserRecord:
    """A user whom the cluster knows."""
    return pb.UserRecord(name=name)


def test_a_reservation_is_made(desk: Desk) -> None:
    """Times are the next such dates; the current minute has begun."""
    desk.client.user_records = [cluster_user("user1")]
    done = desk.type(
        "brsvadd", "-n", "1024", "-m", "hostA hostB", "-u", "user1", "-b", "9:30", "-e", "18:0", "-o", "-N", "course"
    )
    assert (done.code, done.out) == (0, 'Reservation "ann#0" is created\n')
    asked = desk.client.asked[-1]
    assert (asked.units, list(asked.hosts), list(asked.holders)) == (1024, ["hostA", "hostB"], ["user1"])
    assert (asked.begins_at, asked.ends_at) == (NOW, NOW + 8.5 * 3600)
    assert (asked.is_open, asked.name) == (True, "course")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-n", "1", "-m", "h", "-b", "9:30", "-e", "10:0"), "one of -u, -g and -s is expected"),
        (("-s", "-u", "x", "-m", "h", "-b", "9:30", "-e", "10:0"), "one of -u, -g and -s is expected"),
        (("-n", "1", "-u", "x", "-m", "h", "-b", "9:30"), "both -b and -e, or -t, are expected"),
        (("-n", "1", "-u", "x", "-b", "9:30", "-e", "10:0"), "the hosts are missing: -m or -R is expected"),
        (("-n", "0", "-u", "x", "-m", "h", "-b", "9:30", "-e", "10:0"), "-n: 0: expected a number, 1 or more."),
        (("-n", "1", "-u", "x", "-m", "h", "-b", "noon", "-e", "10:0"), "-b: noon: expected [[[year:]month:]day:]"),
        (("-n", "1", "-u", "x", "-m", "h", "-t", "8:00-9:00", "-e", "10:0"), "has neither -b nor -e"),
        (
            ("-n", "1", "-u", "x", "-m", "h", "-b", "12:0", "-e", "11:0"),
            "The reservation would end (Sat Nov 21 11:00:00) before it begins (Sat Nov 21 12:00:00); name the day",
        ),
        (("-n", "1", "-u", "x", "-m", "h", "-b", "2026:12:2:8:0", "-e", "2026:12:1:9:0"), "before it begins"),
        (("-unit", "rack", "-n", "1", "-u", "x", "-m", "h", "-t", "8:00-9:00"), "-unit takes slot or host"),
    ],
)
def test_what_makes_no_sense(desk: Desk, words: tuple[str, ...], said: str) -> None:
    """One sentence, and no request is sent."""
    done = desk.type("brsvadd", *words)
    assert done.code == 255
    assert said in done.err
    assert not desk.client.asked


@pytest.mark.parametrize(("begin", "end", "hours"), [("22:30", "2:0", 3.5), ("23:8:0", "12:0", 4.0)])
def test_an_end_without_its_day(desk: Desk, begin: str, end: str, hours: float) -> None:
    """The next such hour from now, or on the day that -b names."""
    assert desk.type("brsvadd", "-s", "-m", "h", "-b", begin, "-e", end).code == 0
    asked = desk.client.asked[-1]
    assert asked.ends_at - asked.begins_at == hours * 3600


@pytest.mark.parametrize("option", ["-u", "-g"])
def test_nobody_reserves_for_somebody_unknown(desk: Desk, option: str) -> None:
    """Neither an account here nor a user of the cluster."""
    desk.client.user_records = [cluster_user("ann")]
    done = desk.type("brsvadd", "-n", "1", option, "ann zoe", "-m", "h", "-b", "12:0", "-e", "13:0")
    assert (done.code, done.err) == (255, "zoe: Unknown user or user group.\n")
    assert not any(isinstance(one, pb.ReserveRequest) for one in desk.client.asked)


def test_a_reservation_is_changed(desk: Desk) -> None:
    """Only the named fields."""
    assert desk.type("brsvmod", "-e", "12:0", "-on", "user1#0").out == 'Reservation "ann#0" is modified\n'
    asked = desk.client.asked[-1]
    assert (asked.action, list(asked.fields)) == (pb.CHANGE_RESERVATION, ["times", "is_open"])
    assert (asked.begins_at, asked.ends_at) == (0.0, NOW + 2.5 * 3600)
    desk.type("brsvmod", "addhost", "-n", "2", "-m", "hostC", "user1#0")
    assert (desk.client.asked[-1].action, desk.client.asked[-1].units) == (pb.ADD_HOSTS, 2)
    desk.type("brsvmod", "disable", "-td", "2026:11:22-2026:11:23", "user1#0")
    asked = desk.client.asked[-1]
    assert asked.action == pb.SKIP_OCCURRENCES
    assert asked.ends_at - asked.begins_at == 2 * DAY


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("user1#0",), "no parameter to change is specified"),
        (("-e", "12:0"), "one reservation is expected"),
        (("addhost", "-e", "12:0", "user1#0"), "-e makes no sense with addhost"),
        (("disable", "-td", "2026:13:1", "user1#0"), "expected year:month:day"),
        (("disable", "user1#0"), "-td is expected"),
    ],
)
def test_changes_that_make_no_sense(desk: Desk, words: tuple[str, ...], said: str) -> None:
    """One sentence."""
    assert said in desk.type("brsvmod", *words).err


def test_reservations_are_deleted(desk: Desk) -> None:
    """lsf.md: a line for each."""
    assert desk.type("brsvdel", "-f", "a#0", "b#1").out == (
        "Reservation a#0 is being deleted\nReservation b#1 is being deleted\n"
    )
    assert desk.client.asked[-1].is_forced


def test_brsvs(desk: Desk) -> None:
    """A line for each host; those that recur have an asterisk."""
    assert desk.type("brsvs").err == "No reservation found\n"
    a_record(desk)
    system = desk.client.reservations_reply.reservations.add(name="system#0", kind="sys", windows="5:18:0-5:20:0")
    system.hosts.add(host="hostA", slots=8, slots_max=8)
    assert desk.type("brsvs").out == (
        "RSVID       TYPE    USER      NCPUS     RSV_HOSTS        TIME_WINDOW\n"
        "user1#0     user    user1     2/4       hostA:2/3        11/21/9/30-11/21/11/30\n"
        "                                        hostB:0/1\n"
        "system#0    sys     system    0/8       hostA:0/8        5:18:0-5:20:0 *\n"
    )


def test_brsvs_at_length(desk: Desk) -> None:
    """Jobs and attributes of a reservation."""
    record = a_record(desk, is_active=True, description="course")
    record.waiting.extend((213, 214))
    record.running.append(211)
    assert desk.type("brsvs", "-l", "user1#0").out.splitlines()[3:] == [
        "Reservation Status: Active",
        "Description: course",
        "Creator: root",
        "Reservation Type: CLOSED",
        "PEND Jobs: 213 214",
        "RUN Jobs: 211",
        "Resource Unit: Slot",
        "Start action: suspend others as needed",
    ]


def test_what_is_not_there(desk: Desk) -> None:
    """One sentence, and exit code 255."""
    desk.client.reservations_reply.missing.append("x#1")
    done = desk.type("brsvs", "x#1")
    assert (done.code, done.err) == (255, "x#1: No such reservation\n")


def test_the_planner(desk: Desk) -> None:
    """-z: only lines with reserved slots, every ten minutes."""
    a_record(desk)
    lines = desk.type("brsvs", "-z", "hostA").out.splitlines()
    assert lines[0] == "HOST: hostA (MAX = 8)"
    assert lines[1] == "Week: 11/15/2026 - 11/21/2026"
    assert lines[3].split() == ["TIME", "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
    assert [line.split()[0] for line in lines[5:]] == [f"{at // 60}:{at % 60}" for at in range(570, 690, 10)]
    assert lines[5].split()[1:] == ["0"] * 6 + ["3"]
    assert len(desk.type("brsvs", "-p", "all").out.splitlines()) == 2 * (5 + 144) + 1


def test_policies(desk: Desk) -> None:
    """-c, in lsf.md's words."""
    desk.client.reservations_reply.rules.add(name="day", users="ann ~bob", hosts="hostA", windows="8:00-13:00")
    assert desk.type("brsvs", "-c", "all").out == (
        "Policy Name: day\nUsers: ann ~bob\nHosts: hostA\nTime Window: 8:00-13:00\n"
    )
