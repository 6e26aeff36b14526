"""bread: a message of a job, and the file that is attached to it."""

import os

from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import key_text
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.posting import index_of, label, named_job
from lavactl.text.render import clean, short_time
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bread [-i index] [-a file] [-N] [-w] job_id | "job_id[index]" | -J name
       bread -h | -V
  -i  which of the job's messages, 0 to 127; by default 0
  -a  copies the attached file there; for the job's owner
  -N  also the level of the message
  -w  nothing is cut
  -J  the newest unfinished job of that name
"""
GRAMMAR = Grammar(
    "bread", USAGE, {**dict.fromkeys(("i", "a", "J"), VALUE), "N": FLAG, "w": FLAG, "d": "bpost -d posts a text."}
)


def main(argv: list[str], io: "Io") -> int:
    """Run bread."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    ref, job_filter = named_job(options, GRAMMAR)
    number, path = index_of(options, "bread"), options.last("a")
    request = messages.ReadRequest(ref=ref, filter=job_filter, number=number, with_data=path is not None)
    reply = io.client().read(request)
    if reply.error or not reply.HasField("message"):
        io.error(f"Job <{label(options)}>: {clean(reply.error) or f'No message with index <{number}>'}")
        return FAILURE
    message = reply.message
    titles, values = ["JOBID", "MSG_ID", "FROM", "POST_TIME"], [key_text(reply.job, reply.index), str(number)]
    values += [clean(message.user) if "w" in options else clean(message.user)[:10], short_time(message.time)]
    if "N" in options:
        titles.append("NOTIFY")
        values.append(message.level or "-")
    widths = (8, 8, 10, 16, 10)
    for row, last in ((titles, "MESSAGE"), (values, clean(message.text))):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        io.print(" ".join([*cells, last]))
    if path is not None:
        io.flush()
        keep(message.data, path, io)
    return 0


def keep(data: bytes, path: str, io: "Io") -> None:
    """Write the attached file.

    Raises:
        CommandError: there is none, or it cannot be written.
    """
    if not data:
        raise CommandError(f"bread -a {printable(path)}: no file is attached to the message.")
    try:
        descriptor = os.open(io.path(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        with open(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        raise CommandError(f"bread -a {printable(path)}: {error.strerror}.") from None
