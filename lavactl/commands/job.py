"""lavactl job: what a job can ask its host about itself, and tell it, by the job socket."""

import json
import os

from lavactl.errors import FAILURE, CommandError
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.text.render import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.client import HTTPResponse
    from typing import Any

    from lavactl.io import Io

USAGE = """\
Usage: lavactl job whoami | peers [--wait version] | left | notice [--wait | --follow] [-json]
       lavactl job progress [percent] [--left seconds] [--text words]
Inside a job only. notice: exit code 0 if there is one, 1 if not; --wait: wait for the next one.
"""
KINDS: "dict[str, dict[str, int | str]]" = {
    "whoami": {},
    "peers": {"-wait": VALUE},
    "left": {},
    "notice": {"-wait": FLAG, "-follow": FLAG},
    "progress": {"-left": VALUE, "-text": VALUE},
}
GRAMMARS = {word: Grammar(f"lavactl job {word}", USAGE, {"json": FLAG, **kinds}) for word, kinds in KINDS.items()}
AGAIN_S, PATIENCE_S = 0.5, 60.0  # while an agent is replaced
WAIT_S = 600  # of one question


def main(argv: list[str], io: "Io") -> int:
    """Run lavactl job."""
    if answered(argv, USAGE, io):
        return 0
    word, rest = (argv[0], argv[1:]) if argv else ("", [])
    if word not in GRAMMARS:
        raise Grammar("lavactl job", USAGE, {}).wrong(
            f"{' | '.join(GRAMMARS)} is expected, not {printable(word) or 'nothing'}"
        )
    options = GRAMMARS[word].parse(rest)
    if word == "progress":
        return _report(options.words, options.last("-left"), options.last("-text"), io)
    if options.words:
        raise CommandError(f"lavactl job {word}: {printable(options.words[0])}: nothing is expected here.")
    if word == "notice":
        return _notice(io, "-wait" in options, "-follow" in options, "json" in options)
    if word == "peers" and (version := options.last("-wait")) is not None:
        found = {"version": version}
        while found["version"] == version:
            found = ask(io, f"/v1/peers?version={_quoted(version)}&wait={WAIT_S}")
    else:
        found = ask(io, f"/v1/{word}")
    _show(word, found, "json" in options, io)
    return 0


def _show(word: str, found: "dict[str, Any]", is_json: bool, io: "Io") -> None:
    if is_json:
        io.print(json.dumps(found))
    elif word == "left":
        left = found["seconds_left"]
        io.print("unlimited" if left is None else f"{left:.0f}")
    elif word == "peers":
        for one in found["tasks"]:
            ports = " ".join(f"{name}={','.join(map(str, numbers))}" for name, numbers in one["ports"].items())
            io.print(f"{one['role']}/{one['index']} {one['host']} {one['address']} {ports}".rstrip())
        for one in found["hosts"] if not found["tasks"] else ():
            io.print(f"{one['host']} {one['slots']} {','.join(map(str, one['gpus']))}".rstrip())
    else:
        for name, value in found.items():
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            io.print(f"{name}={clean(text)}")


def _notice(io: "Io", waits: bool, follows: bool, is_json: bool) -> int:
    found = ask(io, "/v1/notices")["notices"]
    after = found[-1]["number"] if found else 0
    if not (waits or follows):
        _print_notices(found[-1:], is_json, io)
        return 0 if found else FAILURE
    while True:
        new = ask(io, f"/v1/notices?after={after}&wait={WAIT_S}")["notices"]
        _print_notices(new, is_json, io)
        if new and not follows:
            return 0
        after = new[-1]["number"] if new else after


def _print_notices(found: "list[dict[str, Any]]", is_json: bool, io: "Io") -> None:
    for one in found:
        left = "-" if one["seconds_left"] is None else f"{one['seconds_left']:.0f}"
        io.print(json.dumps(one) if is_json else f"{one['event']} {left} {clean(one['reason'])}")
        io.flush()


def _report(words: list[str], left: str | None, text: str | None, io: "Io") -> int:
    if len(words) > 1:
        raise CommandError(f"lavactl job progress: {printable(words[1])}: one percentage is expected.")
    report: dict[str, object] = {"percent": _number("percent", words[0].removesuffix("%"))} if words else {}
    if left is not None:
        report["seconds_left"] = _number("--left", left)
    if text is not None:
        report["text"] = text
    ask(io, "/v1/progress", "POST", json.dumps(report))
    return 0


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CommandError(f"lavactl job progress: {name}: {printable(text)} is not a number.") from None


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text)


def ask(io: "Io", path: str, method: str = "GET", body: str = "") -> "dict[str, Any]":
    """Answer of the job socket; an agent that is being replaced is waited for.

    Raises:
        CommandError: there is no job around, the agent does not come back, or it refuses the request.
    """
    where = io.environ.get("LAVA_JOB_SOCKET", "")
    if not where:
        raise CommandError("lavactl job: this command works only inside a job: LAVA_JOB_SOCKET is not set.")
    until = io.now() + PATIENCE_S
    while True:
        try:
            status, text = _exchange(where, method, path, body)
        except OSError as error:
            if io.now() >= until:
                raise CommandError(f"lavactl job: the agent of this host does not answer: {error.strerror}.") from None
            _pause()
            continue
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError:
            found = {"error": "the answer cannot be read"}
        if status != 200:
            raise CommandError(f"lavactl job: {clean(str(found.get('error', status)))}.", FAILURE)
        return found


def _pause() -> None:
    import time

    time.sleep(AGAIN_S)


def _exchange(where: str, method: str, path: str, body: str) -> tuple[int, bytes]:
    """Status and body of one answer; OSError if the agent is not there or leaves."""
    import http.client
    import socket

    class Unix(http.client.HTTPConnection):
        def connect(self) -> None:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(where)

    connection = Unix("job")
    try:
        connection.request(method, path, body or None)
        answer: HTTPResponse = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise OSError(os.EX_IOERR, f"the connection was lost ({type(error).__name__})") from None
    finally:
        connection.close()
