"""sd_notify by hand: how a daemon tells whoever started it (systemd, or `lavactl up`) that it is ready.

Nothing here can stop a daemon: where nobody asked ($NOTIFY_SOCKET unset), or nobody listens any more, the word is
dropped.
"""

import os
import socket


def notify(*assignments: str) -> bool:
    """Send lines such as READY=1 or STATUS=text; False when nobody asked for them or nobody could be reached."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    message = "\n".join(assignments).encode()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            # Never wait: a listener that does not read must not hold up a daemon's event loop.
            sender.setblocking(False)
            sender.sendto(message, address)
    except OSError:
        return False
    return True


def ready(status: str = "") -> bool:
    """Start-up is over and requests are answered; `status` is one line for people."""
    return notify("READY=1", f"MAINPID={os.getpid()}", *([f"STATUS={status}"] if status else []))


def status(text: str) -> bool:
    """One line for people, shown by `systemctl status`."""
    return notify(f"STATUS={text}")


def stopping() -> bool:
    """The daemon has begun to stop."""
    return notify("STOPPING=1")
