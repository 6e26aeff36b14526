"""bpost: attach a message to a job, and a small file with it."""

from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import key_text
from lavactl.options import VALUE, Grammar, answered, printable
from lavactl.posting import NO_TEXT, checked_text, index_of, label, named_job
from lavactl.text.render import clean
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bpost [-i index] [-d "text" [-N INFO | WARNING | ERROR | CRITICAL]] [-a file] job_id | "job_id[index]" | -J name
       bpost -h | -V
  -i  which of the job's messages, 0 to 127: one that is there is replaced; 0 is the job's external status
  -d  at most 512 characters
  -a  a file of at most 256 KiB, which bread -a gives back
  -J  the newest unfinished job of that name
"""
GRAMMAR = Grammar("bpost", USAGE, dict.fromkeys(("i", "d", "N", "a", "J"), VALUE))
LEVELS = ("INFO", "WARNING", "ERROR", "CRITICAL")
DATA_MAX = 256 << 10


def main(argv: list[str], io: "Io") -> int:
    """Run bpost."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    ref, job_filter = named_job(options, GRAMMAR)
    level, text = options.last("N") or "", options.last("d")
    if level and (level not in LEVELS or text is None):
        raise GRAMMAR.wrong(f"-N is one of {', '.join(LEVELS)}, and goes with -d")
    message = messages.JobMessage(
        number=index_of(options, "bpost"),
        text=checked_text(NO_TEXT if text is None else text, "bpost"),
        level=level,
        data=attached(options.last("a"), io),
    )
    reply = io.client().post(messages.PostRequest(ref=ref, filter=job_filter, message=message))
    if reply.error:
        io.error(f"Job <{label(options)}>: {clean(reply.error)}")
        return FAILURE
    io.print(f"Message <{message.number}> is posted to job <{key_text(reply.job, reply.index)}>")
    return 0


def attached(path: str | None, io: "Io") -> bytes:
    """Content of the file of -a; empty without it.

    Raises:
        CommandError: the file cannot be read, is empty, or is too large.
    """
    if path is None:
        return b""
    data = io.read_file(io.path(path), DATA_MAX + 1)
    if data is None:
        raise CommandError(f"bpost -a {printable(path)}: the file cannot be read.")
    if not data:
        raise CommandError(f"bpost -a {printable(path)}: the file is empty.")
    if len(data) > DATA_MAX:
        raise CommandError(f"bpost -a {printable(path)}: the file is larger than {DATA_MAX >> 10} KiB.")
    return data
