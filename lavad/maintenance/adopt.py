"""Request to a lavad to adopt its database: a file in its state directory, which only its user and root may write.

It needs no network, no agent and no certificate, and waits there for a lavad that does not run yet.
"""

import json
import os
import secrets
import time
from pathlib import Path

from lavad.commit_mark import ANSWER, REQUEST
from lavad.store.errors import StoreRefused
from protos.trust.private import follow_owner

_POLL_S = 0.1


def ask(state: Path, wait_s: float) -> list[str]:
    """Leave the request and wait for its answer, line by line.

    Raises:
        StoreRefused: lavad refused, or did not answer in time.
        OSError: the request can't be written.
    """
    token = secrets.token_hex(8)
    request = state / REQUEST
    temporary = state / f"{REQUEST}.{token}"
    temporary.write_text(f"{token}\n")
    follow_owner(temporary)  # root's umask may hide it from lavad
    os.replace(temporary, request)
    end = time.monotonic() + wait_s
    while time.monotonic() < end:
        answer = _answer(state / ANSWER, token)
        if answer is not None:
            return answer
        time.sleep(_POLL_S)
    raise StoreRefused(f"lavad has not answered within {wait_s:.0f} s. When it starts it will carry out {request}.")


def _answer(path: Path, token: str) -> list[str] | None:
    try:
        answer = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if answer.get("token") != token:
        return None
    path.unlink(missing_ok=True)
    if answer["failed"]:
        raise StoreRefused(" ".join(answer["lines"]))
    return [str(line) for line in answer["lines"]]
