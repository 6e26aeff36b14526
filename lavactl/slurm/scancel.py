"""scancel: end jobs, or signal them."""

from lavactl.commands.bkill import action_for
from lavactl.slurm.submit.signals import signal_name
from lavactl.slurm.words.ids import bases, job_id, read_id
from lavactl.slurm.words.options import FAILURE, FLAG, STANDARD, Given, Option, Parser, answered, fail, ignored, refused
from lavactl.slurm.words.selection import hosts_of, listed, split_ids, states_of
from lavactl.slurm.words.states import state_of
from lavactl.slurm.words.variables import with_variables
from lavactl.text.render import clean
from lavactl.wire import messages
from lavactl.wire.listed import jobs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = "Usage: scancel [options] [job_id[_element] ...]"
OPTIONS = (
    *STANDARD[1:],
    Option("help", "", FLAG, words="this text"),
    Option("account", "A", words="jobs of this project", env="ACCOUNT"),
    Option("full", "f", FLAG, words="signal the script and all its processes, as is always done here", env="FULL"),
    Option("jobname", "n", words="jobs of this name"),
    Option("me", "", FLAG, words="the caller's jobs"),
    Option("name", "", words="jobs of this name", env="NAME"),
    Option("nodelist", "w", words="jobs on these hosts"),
    Option("partition", "p", words="jobs of this queue", env="PARTITION"),
    Option("quiet", "Q", FLAG, words="no message about jobs that have ended"),
    Option("signal", "s", words="send this signal to all processes of the job"),
    Option("state", "t", words="jobs of this state: PENDING, RUNNING, SUSPENDED", env="STATE"),
    Option("user", "u", words="jobs of this user", env="USER"),
    Option("verbose", "v", FLAG, words="name each job", env="VERBOSE"),
    ignored("ctld", "signals always go by the master", FLAG),
    ignored("hurry", "lava has no burst buffers", FLAG, "H"),
    refused("batch", "a signal goes to all processes of a job; --signal=B:... of sbatch is for the script", FLAG, "b"),
    refused("clusters", "a command speaks to the one cluster of its agent", letter="M"),
    refused("cron", "lava has no scrontab", FLAG, "c"),
    refused("interactive", "name the jobs", FLAG, "i"),
    refused("qos", "lava has no quality of service", letter="q"),
    refused("reservation", "see brsvs", letter="R"),
    refused("sibling", "there is one cluster"),
    refused("wckey", "lava has no such keys"),
)
PARSER = Parser("scancel", OPTIONS)
SELECTING = ("account", "jobname", "me", "name", "nodelist", "partition", "state", "user")
ENDED = ("already finished", "has finished", "already ended")


def main(argv: list[str], io: "Io") -> int:
    """Run scancel."""
    given = PARSER.parse(argv)
    if answered(given, PARSER, USAGE, io):
        return 0
    given = with_variables(PARSER, given, io)
    if "quiet" in given and "verbose" in given:
        raise fail("scancel", "--quiet and --verbose are mutually exclusive")
    PARSER.say_ignored(given, io)
    refs = [read_id(word.partition(".")[0], "scancel", io) for text in given.words for word in split_ids(text)]
    if not refs and not any(name in given for name in SELECTING):
        raise fail("scancel", "No job identification provided")
    action, number = _action(given)
    if any(name in given for name in SELECTING):
        refs = _selected(given, refs, io)
        if not refs:
            return 0
    request = messages.SignalRequest(filter=messages.JobFilter(refs=refs, user="all"), signal=number)
    request.action = action  # type: ignore[assignment]
    reply = io.client().signal(request)
    if reply.error:
        raise fail("scancel", clean(reply.error))
    return _tell(reply, refs, given, io)


def _action(given: Given) -> tuple[int, int]:
    text = given.last("signal")
    if text is None:
        return messages.TERMINATE, 0
    name = signal_name(text)
    if not name:
        raise fail("scancel", f"Unknown job signal: {text}")
    from signal import Signals

    number = int(Signals[f"SIG{name}"])
    return action_for(number), number


def _selected(given: Given, refs: list[messages.JobRef], io: "Io") -> list[messages.JobRef]:
    """References of the unfinished jobs that the options select."""
    user = io.user_name() if "me" in given else given.last("user") or ("" if not refs else "all")
    wanted = messages.JobFilter(
        refs=refs, user=user, queue=given.last("partition") or "", name=given.last("jobname", "name") or ""
    )
    states, hosts = states_of(listed(given, "state"), "scancel"), hosts_of(given, "nodelist", "scancel")
    found = []
    for page in io.client().list_jobs(messages.ListJobsRequest(filter=wanted, columns=True)):
        for job in jobs_of(page):
            if states is not None and state_of(job) not in states:
                continue
            if hosts and not any(share.host in hosts for share in job.hosts):
                continue
            if (project := given.last("account")) is not None and (job.project or "default") != project:
                continue
            ref = messages.JobRef(job=job.job)
            if job.index:
                ref.indices.add(first=job.index, last=job.index)
            found.append(ref)
    return found


def _tell(reply: messages.SignalReply, refs: list[messages.JobRef], given: Given, io: "Io") -> int:
    code = 0
    failed = [result for result in reply.results if result.error]
    known = bases({result.job for result in reply.results if result.index}, io) if failed or "verbose" in given else {}
    for result in reply.results:
        name = job_id(result.job, result.index, known.get(result.job, 0))
        if result.error:
            reason = clean(result.error).rstrip(".")
            if "quiet" in given and any(part in reason for part in ENDED):
                continue
            io.error(f"scancel: error: Kill job error on job id {name}: {reason}")
            code = FAILURE
        elif "verbose" in given:
            io.error(f"scancel: Terminating job {name}")
    if not reply.results and refs:
        io.error(f"scancel: error: Kill job error on job id {refs[0].job}: Invalid job id specified")
        code = FAILURE
    return code
