"""MPS control daemon of a job: NVIDIA's program that lets processes compute on a device at the same time.

It is started as the job's user among the job's processes, before any of them, and so ends with them; pipes and logs are
in a directory of the attempt's own, which the agent makes and removes.
"""

import os

from agents.shepherd.messages import JobSetup, Key, Program

PROGRAM = "nvidia-cuda-mps-control"
PIPE_DIRECTORY, LOG_DIRECTORY = "pipe", "log"
START_S = 30.0  # longest start of the daemon


def directory_of(base: str, key: Key) -> str:
    """Return the directory of one attempt."""
    return f"{base}/{'-'.join(map(str, key))}"


def variables(setup: JobSetup, key: Key) -> dict[bytes, bytes]:
    """Return the variables by which the job's processes find its daemon; none without one."""
    if not setup.mps:
        return {}
    own = os.fsencode(directory_of(setup.mps[1], key))
    return {
        b"CUDA_MPS_PIPE_DIRECTORY": own + b"/" + PIPE_DIRECTORY.encode(),
        b"CUDA_MPS_LOG_DIRECTORY": own + b"/" + LOG_DIRECTORY.encode(),
    }


def program(setup: JobSetup) -> Program:
    """Return the program that starts the daemon in the background and exits when it is ready."""
    return Program(setup.mps[0], (setup.mps[0], "-d"))
