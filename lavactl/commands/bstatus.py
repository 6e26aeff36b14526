"""bstatus: the external status of a job, which is its message 0."""

from lavactl.errors import FAILURE
from lavactl.jobrefs import key_text
from lavactl.options import VALUE, Grammar, answered
from lavactl.posting import checked_text, label, named_job
from lavactl.text.render import clean, short_time
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bstatus [-d "text"] job_id | "job_id[index]" | -J name
       bstatus -h | -V
  -d  sets the status; without it the status is shown
"""
GRAMMAR = Grammar("bstatus", USAGE, {"d": VALUE, "J": VALUE})


def main(argv: list[str], io: "Io") -> int:
    """Run bstatus."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    ref, job_filter = named_job(options, GRAMMAR)
    text = options.last("d")
    if text is not None:
        message = messages.JobMessage(text=checked_text(text, "bstatus"))
        posted = io.client().post(messages.PostRequest(ref=ref, filter=job_filter, message=message))
        if posted.error:
            io.error(f"Job <{label(options)}>: {clean(posted.error)}")
            return FAILURE
        io.print(f"Status of job <{key_text(posted.job, posted.index)}> is set")
        return 0
    reply = io.client().read(messages.ReadRequest(ref=ref, filter=job_filter))
    if reply.error or not reply.HasField("message"):
        io.error(f"Job <{label(options)}>: {clean(reply.error) or 'No status was posted'}")
        return FAILURE
    row = (key_text(reply.job, reply.index), clean(reply.message.user), short_time(reply.message.time))
    for values in (("JOBID", "FROM", "UPDATE_TIME", "STATUS"), (*row, clean(reply.message.text))):
        io.print("{:<10} {:<10} {:<15} {}".format(*values))
    return 0
