"""Client that submits as fast as the master accepts: one stream, several batches in flight."""

import os

from lavactl.wire.connection import Connection
from protos import common_pb2, frames, jobs_pb2

SUBMIT = "/lava.v1.JobService/Submit"
WATCH = "/lava.v1.JobService/Watch"
BATCHES_ON_THEIR_WAY = 8

ENVIRONMENT = [f"{name}={value}".encode() for name, value in sorted(os.environ.items())]


def spec(command: str, **fields: object) -> jobs_pb2.JobSpec:
    """A job with this process's environment."""
    made = jobs_pb2.JobSpec(command=command, cwd="/tmp", submit_cwd="/tmp", environment=ENVIRONMENT, **fields)
    if not made.roles:
        made.roles.add(tasks_min=1, tasks_max=1, slots_per_task=1)
    return made


def array(size: int) -> list[common_pb2.IndexRange]:
    """Indices 1 to size."""
    return [common_pb2.IndexRange(first=1, last=size, step=1)]


def _batches(specs: list[jobs_pb2.JobSpec], size: int) -> list[bytes]:
    return [
        jobs_pb2.SubmitBatch(
            items=[jobs_pb2.SubmitItem(request_id=os.urandom(16), spec=one) for one in specs[at : at + size]]
        ).SerializeToString()
        for at in range(0, len(specs), size)
    ]


class SubmitStream:
    """A Submit call kept open, as by a client that submits repeatedly."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._call = 0

    def send(self, batch: bytes) -> None:
        """Submit a batch; the first one opens the call."""
        if self._call:
            self._connection.send(self._call, batch)
        else:
            self._call = self._connection.start(SUBMIT, batch, more=True)

    def replies(self) -> list[int]:
        """Job ids of the oldest unanswered batch; its jobs are durable."""
        while True:
            _, kind, payload = self._connection.receive(60.0)
            if kind == frames.END:
                raise RuntimeError(f"submit failed: {frames.unpack_end(payload)}")
            if kind == frames.MESSAGE:
                self._connection.credit(self._call, 1)
                return _jobs_of(payload)

    def close(self) -> None:
        """End the requests of the call."""
        self._connection.half_close(self._call)
        while self._connection.receive(60.0)[1] != frames.END:
            pass


def _jobs_of(payload: bytes) -> list[int]:
    results = jobs_pb2.SubmitReplies.FromString(payload).results
    wrong = next((result.error for result in results if result.error), "")
    if wrong:
        raise RuntimeError(f"a job was refused: {wrong}")
    return [result.job for result in results]


def submit_one(stream: SubmitStream, spec: jobs_pb2.JobSpec) -> int:
    """Submit a single job; its id."""
    stream.send(_batches([spec], 1)[0])
    return stream.replies()[0]


def submit_all(connection: Connection, specs: list[jobs_pb2.JobSpec], batch: int = 50) -> list[int]:
    """Submit all jobs; their ids, in order, durable on return."""
    stream, payloads = SubmitStream(connection), _batches(specs, batch)
    sent, jobs = 0, list[int]()
    for _ in payloads:
        while sent < len(payloads) and sent - len(jobs) // batch < BATCHES_ON_THEIR_WAY:
            stream.send(payloads[sent])
            sent += 1
        jobs.extend(stream.replies())
    stream.close()
    return jobs


def wait_for_end(connection: Connection, jobs: list[int]) -> None:
    """Wait until the last exit of all these jobs is recorded."""
    request = jobs_pb2.WatchRequest(refs=[common_pb2.JobRef(job=job) for job in jobs], only_end=True)
    for _ in connection.answers(WATCH, request.SerializeToString(), 600.0):
        pass
