"""Health checks of hosts: their times, their waves, and what answers do."""

import logging

import pytest

from lavad.agent_links.links import AgentLinks
from lavad.core import commands as c
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue, QueueChecks
from lavad.health_checks import HealthChecks
from lavad.settings import HealthSettings
from protos import agents_pb2 as pb
from tests.builders import Story, a_host, a_job

OK, WARN, BAD = 0, 1, 2


class Checked:
    """Ten hosts; 20 % may run a check at once, every 100 s."""

    def __init__(self, hosts: int = 10, *queues: Queue, argv: tuple[str, ...] = ("/opt/check",)) -> None:
        policy = Policy(queues=(Queue("normal"), *queues))
        self.story = Story(*(a_host(f"n{number}", 1) for number in range(hosts)), policy=policy)
        links = AgentLinks(self.story.cluster, None)  # type: ignore[arg-type]
        self.outboxes = {f"n{number}": links.open(f"n{number}", 1) for number in range(hosts)}
        settings = HealthSettings(argv, interval_s=100.0, limit_s=10.0, share=0.2)
        self.checks = HealthChecks(self.story.cluster, links, settings)

    def asked(self) -> dict[str, pb.HealthCheck]:
        """Hosts that are asked for a check now."""
        for command in self.checks.look(self.story.now):
            self.story.do(command)
        found = {name: outbox.take_check() for name, outbox in self.outboxes.items()}
        return {name: check for name, check in found.items() if check is not None}

    def answer(self, asked: dict[str, pb.HealthCheck], verdict: int = OK, text: str = "") -> None:
        """These hosts answer."""
        for name, check in asked.items():
            told = pb.HealthVerdict(number=check.number, verdict=verdict, text=text)
            for command in self.checks.take(name, told, self.story.now):
                self.story.do(command)

    def all_in_turn(self) -> list[str]:
        """Check all hosts that are due; each wave in turn."""
        done: list[str] = []
        while asked := self.asked():
            assert len(asked) <= 2
            self.answer(asked)
            done += asked
        return done


def test_hosts_are_checked_in_waves_of_the_share() -> None:
    """Each once in the interval; nothing is asked while two have not answered."""
    checked = Checked()
    first = checked.asked()
    assert len(first) == 2
    assert [tuple(one.argv) for one in first.values()] == [("/opt/check",)] * 2
    assert checked.asked() == {}
    checked.answer(first)
    assert sorted([*first, *checked.all_in_turn()]) == sorted(checked.outboxes)
    checked.story.now += 99
    assert checked.asked() == {}
    checked.story.now += 1
    assert len(checked.all_in_turn()) == 10


def test_a_busy_host_is_checked_after_a_job_has_failed_there() -> None:
    """Otherwise checks wait until it is idle; with a failing array they don't follow each other at once."""
    checked = Checked(1)
    checked.all_in_turn()
    for status, is_due in ((0, False), (1 << 8, True)):
        key = checked.story.run(a_job())
        checked.story.now += 11
        outcome = checked.story.finished("n0", key, status)
        checked.checks.notify(outcome.events)
        running = checked.story.run(a_job())
        asked = checked.asked()
        assert bool(asked) == is_due
        checked.answer(asked)
        checked.story.finished("n0", running)
    key = checked.story.run(a_job())
    checked.checks.notify(checked.story.finished("n0", key, 1 << 8).events)
    assert not checked.asked()
    running = checked.story.run(a_job())
    checked.story.now += 200
    checked.story.hear("n0")
    assert checked.asked()


def test_a_closed_host_opens_after_a_good_check_of_its_own() -> None:
    """It is checked like idle ones, although the jobs it has go on."""
    checked = Checked(2)
    running = checked.story.run(a_job(hosts=("n0",)))
    while "n0" not in (asked := checked.asked()):
        checked.answer(asked)
        checked.checks._failed(["n0"])
    checked.answer(asked, BAD, "fabric \x1b[2J is down")
    host = checked.story.cluster.hosts["n0"]
    assert (host.closed_by, host.comment) == ("health check", "health check: fabric ?[2J is down")
    checked.story.now += 100
    checked.story.hear("n0", "n1")
    assert running in host.attempts
    checked.answer({name: check for name, check in checked.asked().items() if name == "n0"})
    checked.answer(checked.asked())
    assert not host.closed_by


def test_programs_that_are_missing_warn_once_and_close_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The same on ten hosts is one line; a host that does not answer leaves room for the next."""
    checked = Checked()
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            checked.answer(checked.asked(), WARN, "/opt/check: No such file or directory")
    assert len(caplog.records) == 1
    assert not any(host.closed_by for host in checked.story.cluster.hosts.values())
    checked.story.now += 100
    silent = checked.asked()
    checked.story.now += 26
    with caplog.at_level(logging.WARNING):
        assert not checked.asked().keys() & silent.keys()
    assert "has not answered" in caplog.text
    checked.answer(silent, BAD)
    assert not any(host.closed_by for host in checked.story.cluster.hosts.values())


GPUS = Queue(
    "gpus",
    hosts=Names(False, frozenset({"n0", "n1"})),
    checks=QueueChecks("/opt/gpu prolog", "/opt/gpu epilog", "/opt/gpu nagios", limit_s=20),
)


def argvs(asked: dict[str, pb.HealthCheck]) -> dict[str, list[str]]:
    return {name: list(check.argv) for name, check in asked.items()}


def test_a_host_runs_the_programs_of_its_queues_in_turn() -> None:
    """One after the other, the site's first, each with its own limit; a host of no such queue runs the site's alone."""
    checked = Checked(10, GPUS)
    seen: dict[str, list[list[str]]] = {}
    while asked := checked.asked():
        assert len(asked) <= 2
        for name, argv in argvs(asked).items():
            seen.setdefault(name, []).append(argv)
        assert all(check.limit_s == (10.0 if check.argv[0] == "/opt/check" else 20.0) for check in asked.values())
        checked.answer(asked)
    assert seen["n0"] == seen["n1"] == [["/opt/check"], ["/opt/gpu", "nagios"]]
    assert [name for name in seen if seen[name] == [["/opt/check"]]] == [f"n{number}" for number in range(2, 10)]


def test_a_host_closed_by_a_check_before_a_job_opens_when_all_its_checks_are_good() -> None:
    """That one among them: what the check between jobs looks at may be well. It is never opened unchecked."""
    checked = Checked(2, GPUS, argv=())
    told = pb.HealthVerdict(verdict=BAD, text="GPU 3 is lost", argv=["/opt/gpu", "prolog"])
    for command in checked.checks.take("n0", told, checked.story.now):
        checked.story.do(command)
    host = checked.story.cluster.hosts["n0"]
    assert (host.closed_by, host.comment) == ("health check", "health check: GPU 3 is lost")
    order = []
    for verdict in (OK, WARN, OK, OK, OK, OK):
        asked = {}
        while "n0" not in asked:
            checked.answer({name: check for name, check in asked.items() if name != "n0"})
            checked.story.now += 0 if (asked := checked.asked()) else 100
            checked.story.hear("n0", "n1")
        order.append(asked["n0"].argv[1])
        assert host.closed_by
        checked.answer(asked, verdict)
    assert order == ["nagios", "prolog", "epilog"] * 2
    assert not host.closed_by
    assert {argv[1]: one.verdict for argv, one in checked.checks.results("n0").items()} == {
        "prolog": OK, "nagios": OK, "epilog": OK,
    }  # fmt: skip


def test_an_answer_that_changes_nothing_is_no_command() -> None:
    """Ten thousand good hosts cost the master no step; neither does one that was closed already."""
    checked = Checked(4)
    host = checked.story.cluster.hosts["n0"]
    asked: dict[str, pb.HealthCheck] = {}
    while "n0" not in asked:
        checked.answer(asked)
        asked = checked.asked()
    check = asked["n0"]
    assert checked.checks.take("n0", pb.HealthVerdict(number=check.number, verdict=OK), checked.story.now) == []
    told = pb.HealthVerdict(verdict=BAD, argv=["/x"])
    assert checked.checks.take("n0", told, checked.story.now) == [
        c.HostChecked("n0", False, True, "it failed without a word")
    ]
    checked.story.do(c.HostChecked("n0", False, True, "bad"))
    assert host.closed_by
    assert checked.checks.take("n0", told, checked.story.now) == []


def test_a_host_that_is_lost_while_it_is_checked_is_checked_again() -> None:
    """The agent was killed by what it is to find, or its master was: nothing waits for that answer for ever."""
    checked = Checked(1)
    (first,) = checked.asked().values()
    checked.story.now += 26
    checked.story.hear("n0")
    assert not checked.asked()
    checked.story.now += 100
    checked.story.hear("n0")
    (second,) = checked.asked().values()
    assert second.number > first.number
    checked.answer({"n0": first}, BAD)
    assert not checked.story.cluster.hosts["n0"].closed_by


def test_a_host_opens_when_the_checks_that_closed_it_are_removed() -> None:
    """Nothing else would: no program is left that could be good."""
    queue = Queue("checked", hosts=Names(), checks=QueueChecks(between="/opt/fan"))
    checked = Checked(3, queue, argv=())
    checked.answer({"n0": checked.asked()["n0"]}, BAD, "no fan")
    host = checked.story.cluster.hosts["n0"]
    assert host.closed_by
    checked.asked()
    assert host.closed_by
    checked.story.do(c.Reconfigure(Policy(queues=(Queue("normal"),))))
    checked.asked()
    assert not host.closed_by
