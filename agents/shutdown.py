"""End of all jobs of a host without a running agent, and of their shepherds.

Used to take a personal cluster down. The ends are recorded as any other, with the reason, so an agent started later
reports them; rerunnable jobs are then pending again.
"""

import asyncio
from pathlib import Path

from agents.assembly import Local
from agents.gpus.vendors import vendor
from agents.job_setup.host_context import HostContext
from agents.shepherd import messages
from agents.shepherd.confinement import hierarchy
from agents.shepherd.messages import pack

PATIENCE_S = 10.0


def shut_down(state: Path) -> None:
    """End everything; return when nothing is left.

    Raises:
        StateInUse: an agent is running there.
        TimeoutError: something cannot be killed.
    """
    if not (state / "shepherds").is_dir():
        return
    context = HostContext("", "", "", "", has_gpus=False, oversubscribed=False, gpu_vendor=vendor().words)
    local = Local(context, state.absolute(), slots=0)
    asyncio.run(_end_all(local))
    hierarchy.remove(local.base)


async def _end_all(local: Local) -> None:
    try:
        await local.start()
        for handle in local.pool.handles():
            if handle.key is not None:
                handle.send(pack(messages.RELEASE, *handle.key, messages.TAKEN_DOWN))
        async with asyncio.timeout(PATIENCE_S):
            await local.pool.drained()
            for handle in local.pool.handles():
                handle.send(pack(messages.RETIRE))
            await local.pool.deserted()
    finally:
        await local.close()
