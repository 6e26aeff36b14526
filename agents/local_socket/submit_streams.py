"""Streams of submissions to the master, kept for a moment for the next submission of the same user.

``Submit`` takes one batch after the other, and the master asks once who calls. A loop of ``bsub`` in a shell so costs
one call to the master in place of one each, which is 0.5 ms of the agent's CPU and 0.6 of the master's. Invariants: a
stream is one user's, and carries one batch at a time; after a failure, and after LIFE_S, it is not used again, so that
what the master has learnt about its caller's rights meanwhile holds for the next one.
"""

import asyncio

import grpc.aio

from agents.local_socket.callers import Caller, CallFailed
from protos import frames

METHOD = "/lava.v1.JobService/Submit"
IDLE_S, LIFE_S = 1.0, 5.0
IDLE_MAX = 16  # of all users
ENDED = "the master ended the submission without an answer"


class SubmitStreams:
    """Streams of all users of this host."""

    def __init__(self) -> None:
        self._idle: list[_Stream] = []  # the one used last is last
        self._closing: asyncio.TimerHandle | None = None

    async def submit(self, channel: grpc.aio.Channel, caller: Caller, batch: bytes) -> bytes:
        """Return the master's answer to one batch.

        Raises:
            AioRpcError: the master, or the network, ended the stream with an error.
            CallFailed: UNAVAILABLE, it was ended without an answer.
        """
        stream = self._taken(channel, caller)
        try:
            await stream.call.write(batch)
            answer = await stream.call.read()
        except asyncio.InvalidStateError:  # it has ended
            raise CallFailed(frames.UNAVAILABLE, ENDED) from None
        except BaseException:
            stream.call.cancel()
            raise
        if not isinstance(answer, bytes):
            raise CallFailed(frames.UNAVAILABLE, ENDED)
        self._give_back(stream)
        return answer

    def close(self) -> None:
        """End all that are idle."""
        if self._closing is not None:
            self._closing.cancel()
        for stream in self._idle:
            stream.call.cancel()
        self._idle = []

    def _taken(self, channel: grpc.aio.Channel, caller: Caller) -> "_Stream":
        """Return an idle stream of this caller to the present master, or a new one."""
        now = asyncio.get_running_loop().time()
        for at in range(len(self._idle) - 1, -1, -1):
            stream = self._idle[at]
            if stream.channel is channel and stream.caller == _identity(caller):
                del self._idle[at]
                if now < stream.ends_at and not stream.call.done():
                    return stream
                stream.call.cancel()
        return _Stream(channel, caller, now + LIFE_S)

    def _give_back(self, stream: "_Stream") -> None:
        loop = asyncio.get_running_loop()
        stream.idle_since = loop.time()
        self._idle.append(stream)
        if len(self._idle) > IDLE_MAX:
            self._idle.pop(0).call.cancel()
        if self._closing is None:
            self._closing = loop.call_later(IDLE_S, self._close_idle)

    def _close_idle(self) -> None:
        """End those that were idle for long."""
        loop = asyncio.get_running_loop()
        while self._idle and self._idle[0].idle_since <= loop.time() - IDLE_S:
            self._idle.pop(0).call.cancel()
        self._closing = loop.call_later(IDLE_S / 2, self._close_idle) if self._idle else None


class _Stream:
    """One stream: its caller, and until when it is used."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller, ends_at: float) -> None:
        self.channel = channel
        self.caller = _identity(caller)
        self.ends_at = ends_at
        self.idle_since = 0.0
        method = channel.stream_stream(METHOD, request_serializer=None, response_deserializer=None)
        self.call: grpc.aio.StreamStreamCall[bytes, bytes] = method(None, metadata=caller.metadata())


def _identity(caller: Caller) -> tuple[str, int, int]:
    return caller.user, caller.uid, caller.gid
