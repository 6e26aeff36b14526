"""Daemon of a job that lets its processes compute on a GPU at the same time, such as NVIDIA's MPS control daemon.

It is started as the job's user among the job's processes, before any of them, and so ends with them; its directories
are in one of the attempt's own, which the agent makes and removes.
"""

import os

from agents.shepherd.messages import GpuDaemon, JobSetup, Key, Program

START_S = 30.0  # longest start of the daemon


def directory_of(base: str, key: Key) -> str:
    """Return the directory of one attempt."""
    return f"{base}/{'-'.join(map(str, key))}"


def variables(setup: JobSetup, key: Key) -> dict[bytes, bytes]:
    """Return the variables by which the job's processes find its daemon."""
    daemon = _of(setup)
    own = directory_of(daemon.base, key)
    return {os.fsencode(variable): os.fsencode(f"{own}/{name}") for variable, name in daemon.directories}


def own_variables(setup: JobSetup) -> dict[bytes, bytes]:
    """Return the variables of the daemon itself: it sees all the job's devices, whatever the job's command sees."""
    daemon = _of(setup)
    return {os.fsencode(daemon.visible): os.fsencode(daemon.devices)}


def program(setup: JobSetup) -> Program:
    """Return the program that starts the daemon in the background and exits when it is ready."""
    daemon = _of(setup)
    return Program(daemon.program, (daemon.program, *daemon.arguments))


def failure(setup: JobSetup, status: int) -> str:
    """Return the reason why the job cannot run here, if the program exited with that status."""
    daemon = _of(setup)
    return f"the {daemon.label} {daemon.program} did not start: wait status {status}"


def _of(setup: JobSetup) -> GpuDaemon:
    if setup.gpu_daemon is None:
        raise ValueError("the job has no daemon for its GPUs")
    return setup.gpu_daemon
