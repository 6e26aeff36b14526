"""sd_notify without a library: readiness messages of a daemon to its starter (systemd, or `lavactl up`).

A message never stops or blocks a daemon: without $NOTIFY_SOCKET, or without a listener, it is dropped.
"""

import os
import socket


def notify(*assignments: str) -> bool:
    """Send lines such as READY=1 or STATUS=text; False if there is no $NOTIFY_SOCKET or no listener."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    message = "\n".join(assignments).encode()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            # Never block: a listener that does not read must not hold up a daemon's event loop.
            sender.setblocking(False)
            sender.sendto(message, address)
    except OSError:
        return False
    return True


def ready(status: str = "") -> bool:
    """Report that start-up is over and requests are answered; `status` is one line for people."""
    return notify("READY=1", f"MAINPID={os.getpid()}", *([f"STATUS={status}"] if status else []))


def status(text: str) -> bool:
    """Report one line for people, shown by `systemctl status`."""
    return notify(f"STATUS={text}")


def stopping() -> bool:
    """Report that the daemon has begun to stop."""
    return notify("STOPPING=1")
