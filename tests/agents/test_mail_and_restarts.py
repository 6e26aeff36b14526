"""Mails about jobs over restarts of the agent: each is sent once, also about what happened while there was none."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from typing import Any

import pytest

from agents.mail.letters import MailSettings
from tests.agents.hosts import Host, Place, alive, blob, until

pytestmark = pytest.mark.slow

KEY = (1, 0, 1)
WAITS = "while [ ! -e stop ]; do sleep 0.02; done; exit 7"
# As sendmail: the mail on standard input. A file has its name when it is whole.
PROGRAM = '#!/bin/sh\ncat > "{work}/$$.part" && mv "{work}/$$.part" "{work}/$$.mail"\n'


def run(story: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(story)


def welcome(host: Host) -> None:
    """The master tells the site's settings."""
    program = host.place.root / "mailer"
    if not program.exists():
        program.write_text(PROGRAM.format(work=host.place.work))
        program.chmod(0o755)
    host.local.preparation.mail = MailSettings((str(program),))
    host.local.mailer.take_settings()


def subjects(place: Place) -> list[str]:
    """Last word of the subject of each mail until now."""
    found = []
    for path in place.work.glob("*.mail"):
        (line,) = [line for line in path.read_text().splitlines() if line.startswith("Subject: ")]
        found.append(line.rpartition(" ")[2])
    return sorted(found)


async def mails(host: Host, *expected: str) -> None:
    """Wait for these mails, and for all that are being sent."""
    await until(lambda: subjects(host.place) == sorted(expected), more=lambda: f"mails: {subjects(host.place)}")
    await until(lambda: not host.local.mailer._sending)
    assert subjects(host.place) == sorted(expected)


def test_the_start_is_told_once(place: Place) -> None:
    """bsub -B -N: the next agent sees the job's end, and tells nothing but that."""

    async def story() -> None:
        async with Host(place) as host:
            welcome(host)
            await host.run(blob(place, 1, WAITS, mail_begin=True, mail_end=True))
            await mails(host, "started")
            await host.replace()
            welcome(host)
            place.out("stop").touch()
            await host.report(KEY, "finished")
            await mails(host, "started", "Exited")
            await host.replace()
            welcome(host)
            await mails(host, "started", "Exited")

    run(story())


def test_an_end_without_an_agent_is_told_by_the_next(place: Place) -> None:
    """bsub -N: with an output file the report is in the mail alone. Other agents after it do not send it again."""

    async def story() -> None:
        async with Host(place) as host:
            welcome(host)
            await host.run(blob(place, 1, WAITS, mail_end=True))
            await host.report(KEY, "started")
            shepherd = host.shepherd_of(KEY)
            await host.leave()
            place.out("stop").touch()
            await until(lambda: not alive(shepherd))
            await host.start()
            assert subjects(place) == []
            for _ in range(2):
                welcome(host)
                await mails(host, "Exited")
                await host.replace()
            await host.forget(KEY)

    run(story())


def test_what_happens_before_the_master_is_there_is_told_then(place: Place) -> None:
    """The agent knows the site's mail program from the master; the job's output comes by mail."""

    async def story() -> None:
        async with Host(place) as host:
            welcome(host)
            await host.run(blob(place, 1, f"echo said; {WAITS}", output="", mail_begin=True))
            await mails(host, "started")
            await host.replace()
            place.out("stop").touch()
            await host.report(KEY, "finished")
            welcome(host)
            await mails(host, "started", "Exited")
            assert any("said" in path.read_text().splitlines() for path in place.work.glob("*.mail"))

    run(story())


def test_a_job_whose_shepherd_is_killed_has_its_mail(place: Place) -> None:
    """bsub -N: the agent reports the end itself. So it does when the shepherd was killed while there was no agent."""

    async def story() -> None:
        async with Host(place) as host:
            welcome(host)
            await host.run(blob(place, 1, WAITS, mail_end=True))
            await host.report(KEY, "started")
            os.kill(host.shepherd_of(KEY), signal.SIGKILL)
            await host.report(KEY, "finished")
            await mails(host, "Exited")
            (mail,) = place.work.glob("*.mail")
            assert "Exited with signal termination: 9." in mail.read_text().splitlines()

            await host.run(blob(place, 2, WAITS, mail_end=True))
            await host.report((2, 0, 1), "started")
            shepherd = host.shepherd_of((2, 0, 1))
            await host.leave()
            os.kill(shepherd, signal.SIGKILL)
            await until(lambda: not alive(shepherd))
            await host.start()
            welcome(host)
            await mails(host, "Exited", "Exited")
            await host.forget(KEY)
            await host.forget((2, 0, 1))

    run(story())
