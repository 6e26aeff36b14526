"""Workers that meet at the first one's port, as torchrun's do, and add up numbers until a file appears.

`rendezvous.py STOP PORT`, once on each host by blaunch. The loss of one worker ends all others.
"""

import os
import socket
import sys
import time

stop, port = sys.argv[1], int(sys.argv[2])
words = os.environ["LSB_MCPU_HOSTS"].split()
hosts = words[::2]
rank = int(os.environ["LSF_PM_TASKID"]) - 1


def line(stream: socket.SocketIO) -> int:
    """The next number; the other one must not have gone."""
    text = stream.readline()
    if not text:
        sys.exit("a worker has gone")
    return int(text)


def lead() -> None:
    """Gather a number from each worker, send the sum."""
    with socket.create_server((socket.gethostbyname(hosts[0]), port)) as server:
        others = [server.accept()[0].makefile("rwb", buffering=0) for _ in hosts[1:]]
    step = 0
    while step >= 0:
        step = -1 if os.path.exists(stop) else step + 1
        total = sum(line(other) for other in others)
        print("step", step, "sum", total, flush=True)
        for other in others:
            other.write(b"%d\n" % step)
        time.sleep(0.2)


def follow() -> None:
    """Send our number until there is no next step."""
    deadline = time.monotonic() + 60
    while True:
        try:
            stream = socket.create_connection((hosts[0], port), 10).makefile("rwb", buffering=0)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
    step = 0
    while step >= 0:
        stream.write(b"%d\n" % rank)
        step = line(stream)


if rank:
    follow()
else:
    lead()
