"""The agent as a process: what it tells of jobs that hang, and the stacks that it saves."""

import asyncio
import os
import signal
import stat
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from protos.agents_pb2 import PartActivity, SavedStacks, StacksRequest
from protos.common_pb2 import HostShare
from protos.jobs_pb2 import HangRule
from tests.agents.hosts import NAME, Key, Place, blob, key_message, key_of, stage
from tests.agents.masters import Agent, Master

pytestmark = pytest.mark.slow

# Other tests use the network of this machine.
RULE = HangRule(after_s=1, network_bytes_s=1e11)
LONGER = HangRule(after_s=5, network_bytes_s=1e11)  # than a job that is active may be kept from the processor
HANGS = "echo begun; exec sleep 1000"


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


def told(master: Master, key: Key) -> list[PartActivity]:
    return [one for message in master.messages for one in message.activities if key_of(one.key) == key]


def saved(master: Master, key: Key) -> list[SavedStacks]:
    return [one for message in master.messages for one in message.stacks if key_of(one.key) == key]


async def hangs(master: Master, key: Key, count: int = 1) -> None:
    """Wait for the n-th report of inactivity."""
    await master.until(lambda: sum(one.inactive_s > 0 for one in told(master, key)) >= count)


def request(key: Key, number: int = 1) -> StacksRequest:
    return StacksRequest(key=key_message(key), number=number, limit_s=20)


def test_a_part_without_activity_is_told_and_its_stacks_are_saved(place: Place) -> None:
    """Only when it changes: not again by what saves the stacks, but when the job is resumed, and after a restart."""

    async def story() -> None:
        async with Master() as master, Agent(place, master) as agent:
            await master.session()
            key = master.start(blob(place, 1, HANGS, hang=RULE))
            other = master.start(
                blob(place, 2, "while :; do echo x; sleep 0.3; done", output=str(place.out("2")), hang=LONGER)
            )
            await hangs(master, key)
            master.send(stacks=[request(key)])
            await master.until(lambda: bool(saved(master, key)))
            (answer,) = saved(master, key)
            assert (answer.error, answer.number, answer.path) == ("", 1, str(place.work / f"stacks.1.1.1.{NAME}"))
            _check_file(place, Path(answer.path))
            assert [one.inactive_s > 0 for one in told(master, key)] == [True]

            master.send(stacks=[request(key)])  # the same again
            await master.until(lambda: len(saved(master, key)) == 2)
            assert saved(master, key)[1] == answer
            for number in (signal.SIGSTOP, signal.SIGCONT):
                master.signal(key, number)
            await hangs(master, key, 2)
            assert [one.inactive_s > 0 for one in told(master, key)] == [True, False, True]

            await asyncio.to_thread(agent.kill)
            agent.start()
            await hangs(master, key, 3)
            assert not told(master, other)

    run(story())


def _check_file(place: Place, path: Path) -> None:
    text, status = path.read_text(), path.stat()
    assert "sleep 1000 =====" in text
    assert "state S, waits in" in text
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (place.user.pw_uid, 0o600)
    assert ("kernel stack of thread" in text) is (os.geteuid() == 0)


def test_python_processes_are_left_to_the_debugger(place: Place) -> None:
    """It is the site's program, run as the user; one that hangs costs its time only, and is killed."""
    debugger = place.root / "py-spy"
    debugger.write_text('#!/bin/sh\nid -u; echo "dump of $3"; [ -e slow ] && exec sleep 1000; exit 0\n')
    debugger.chmod(0o755)
    program = "python3 -c 'import time; time.sleep(1000)'"

    async def story() -> None:
        async with Master() as master, Agent(place, master):
            master.welcome.settings["LAVA_PY_SPY"] = str(debugger)
            await master.session()
            key = master.start(blob(place, 1, f"echo begun; {program} & {program}; true", hang=RULE))
            await hangs(master, key)
            place.out("slow").touch()
            master.send(stacks=[StacksRequest(key=key_message(key), number=1, limit_s=2)])
            await master.until(lambda: bool(saved(master, key)))
            text = Path(saved(master, key)[0].path).read_text()
            assert text.count("py-spy dump =====") == text.count("dump of ") == text.count("not ended after 2 sec") == 2
            assert f"\n{place.user.pw_uid}\n" in text

    run(story())


def test_a_job_without_a_place_for_a_file_has_it_elsewhere(place: Place) -> None:
    """Its output directory cannot be written any more; a job that wants no stacks has none."""
    target = place.work / "gone"

    async def story() -> None:
        async with Master() as master, Agent(place, master):
            await master.session()
            key = master.start(blob(place, 1, HANGS, hang=RULE, output=str(target / "out"), output_dir=str(target)))
            none = master.start(blob(place, 2, HANGS, hang=HangRule(after_s=1, no_stacks=True)))
            await master.report(key, "started")
            (target / "out").unlink()
            target.rmdir()
            await master.report(none, "started")
            for _ in range(40):  # the attempts are watched some time after their start
                master.send(stacks=[request(key), request(none)])
                await asyncio.sleep(1.5)
                if saved(master, key) and saved(master, none):
                    break
            assert saved(master, key)[-1].path == str(place.work / f"stacks.1.1.1.{NAME}")
            assert (saved(master, none)[-1].path, saved(master, none)[-1].error) == ("", "the job wants no stacks")

    run(story())


def test_a_host_without_a_process_of_a_job_on_several_hosts_is_told(place: Place) -> None:
    """The job's command runs elsewhere and starts nothing here; no job on one host is ever told of."""

    async def story() -> None:
        async with Master() as master, Agent(place, master):
            master.welcome.settings["LAVA_UNUSED_HOST"] = "1"
            await master.session()
            shares = (HostShare(host="elsewhere", slots=1), HostShare(host=NAME, slots=1))
            key = master.start(blob(place, 1, HANGS), stage(*shares))
            alone = master.start(blob(place, 2, HANGS, output=str(place.out("2"))))
            await master.report(key, "staged")  # only the lead host of such a job hears that it begins
            await master.until(lambda: bool(told(master, key)))
            assert [one.unused_s >= 1 for one in told(master, key)] == [True]
            assert not told(master, alone)

    run(story())
