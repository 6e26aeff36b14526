"""Hosts of tasks are notified of their command's end, however many commands a user starts and ends."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from agents.local_socket.local_methods import TELLING_MAX, LocalMethods
from protos.agents_pb2 import TaskStart
from protos.common_pb2 import HostShare


class _Silent:
    """Channels to hosts that do not answer."""

    def to(self, host: str, address: str) -> "_Silent":
        return self

    async def __aenter__(self) -> None:
        await asyncio.Event().wait()

    async def __aexit__(self, *_: object) -> None:
        return


def test_one_user_takes_no_more_than_a_part_of_the_agent() -> None:
    """Each ended command left a task behind for minutes, in unbounded number."""

    async def told() -> tuple[int, int, int]:
        methods = LocalMethods(
            "n1", cast("Any", SimpleNamespace(patience_s=60.0)), cast("Any", None), cast("Any", _Silent())
        )
        part = HostShare(host="n2", address="n2:1", slots=1)
        for number in range(TELLING_MAX + 500):
            methods._tell_gone(1001, part, TaskStart(token=b"%d" % number))
        greedy = len(methods._telling)
        methods._tell_gone(1002, part, TaskStart(token=b"x"))
        other = len(methods._telling)
        await methods.close()
        await asyncio.sleep(0)
        return greedy, other, len(methods._telling_of)

    assert asyncio.run(told()) == (TELLING_MAX, TELLING_MAX + 1, 0)
