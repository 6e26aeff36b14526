"""Health checks of hosts: their times, their waves, and what answers do."""

import logging

import pytest

from lavad.agent_links.links import AgentLinks
from lavad.health_checks import HealthChecks
from lavad.settings import HealthSettings
from protos import agents_pb2 as pb
from tests.builders import Story, a_host, a_job

OK, WARN, BAD = 0, 1, 2


class Checked:
    """Ten hosts; 20 % may run a check at once, every 100 s."""

    def __init__(self, hosts: int = 10) -> None:
        self.story = Story(*(a_host(f"n{number}", 1) for number in range(hosts)))
        links = AgentLinks(self.story.cluster, None)  # type: ignore[arg-type]
        self.outboxes = {f"n{number}": links.open(f"n{number}", 1) for number in range(hosts)}
        settings = HealthSettings(("/opt/check",), interval_s=100.0, limit_s=10.0, share=0.2)
        self.checks = HealthChecks(self.story.cluster, links, settings)

    def asked(self) -> dict[str, pb.HealthCheck]:
        """Hosts that are asked for a check now."""
        self.checks.look(self.story.now)
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
