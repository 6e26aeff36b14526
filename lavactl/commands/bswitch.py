"""bswitch: move jobs to another queue; running ones stay on their hosts."""

from lavactl.control import change, chosen_jobs, tell
from lavactl.errors import FAILURE
from lavactl.options import VALUE, Grammar, answered
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.options import Options

METHOD = "LSB_ESWITCH_METHOD"
USAGE = """\
Usage: bswitch [-a "eswitch[(argument,...)] ..."] [-J name] [-m host] [-q queue] [-u user | -u all] [-g /job/group]
               [-app profile] [-sla class] destination_queue [job_id | 0 ...]
       bswitch -h | -V
"""
GRAMMAR = Grammar(
    "bswitch",
    USAGE,
    dict.fromkeys(("a", "J", "m", "q", "u", "g", "app", "sla"), VALUE),
)


def main(argv: list[str], io: "Io") -> int:
    """Run bswitch."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if not options.words:
        raise GRAMMAR.wrong("The destination queue must be specified")
    queue = options.words.pop(0)
    job_filter, newest, bad = chosen_jobs(options, GRAMMAR, io)
    if bad and not job_filter.refs:
        return FAILURE
    queue = _as_the_site_wants(queue, options, io)
    request = messages.ModifyRequest(spec=messages.JobSpec(queues=[queue]), fields=["queues"], is_switch=True)
    results = change(job_filter, newest, request, options, io)
    return tell(results, f"Job <{{}}> is switched to queue <{queue}>", io, failed=bad) if results else FAILURE


def _as_the_site_wants(queue: str, options: "Options", io: "Io") -> str:
    """Queue that the site's eswitch programs choose; the one asked for where there are none."""
    names, settings = options.last("a"), ("LSF_SERVERDIR", METHOD)
    if names is None and METHOD not in io.environ and not any(io.site_setting(name) for name in settings):
        return queue
    from lavactl.submit import eswitch

    return eswitch.queue_for(queue, options.words, names, io)
