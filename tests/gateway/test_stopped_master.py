"""A master whose process is stopped: its kernel still takes connections and data, and no answer ever comes."""

import asyncio
import os
import signal
import subprocess
import sys

import grpc
import grpc.aio
import pytest

from protos import wire

# Answers each call with its request.
ECHO = """
import sys
from concurrent import futures
import grpc
from protos import wire

class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)

server = grpc.server(futures.ThreadPoolExecutor(1), options=wire.SERVER_OPTIONS)
server.add_generic_rpc_handlers((Echo(),))
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_stopped_master_is_noticed_as_a_dead_one_is() -> None:
    """L12: commands said nothing for 65 s, and gave up after 148; a ping without an answer breaks the connection."""

    async def call(port: int, server: int) -> grpc.StatusCode:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=wire.CHANNEL_OPTIONS) as channel:
            echo = channel.unary_unary("/lava.v1.JobService/Echo")
            assert await echo(b"1") == b"1"
            os.kill(server, signal.SIGSTOP)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await echo(b"2", timeout=50)
            return error.value.code()

    words = [sys.executable, "-c", ECHO]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            assert asyncio.run(call(int(server.stdout.readline()), server.pid)) is grpc.StatusCode.UNAVAILABLE
        finally:
            server.kill()
