"""squeue: list jobs that have not ended, or those of the states asked for."""

from lavactl.slurm.words import formats, job_fields
from lavactl.slurm.words.ids import arrays, read_id
from lavactl.slurm.words.jobs import JobView, Waiting
from lavactl.slurm.words.json_text import jobs_text
from lavactl.slurm.words.options import FLAG, MAYBE, STANDARD, Given, Option, Parser, answered, fail, ignored, refused
from lavactl.slurm.words.selection import hosts_of, listed, split_ids, states_of
from lavactl.slurm.words.states import State, may_have
from lavactl.slurm.words.variables import with_variables
from lavactl.text import units
from lavactl.views.job_details import Completion
from lavactl.wire import messages
from lavactl.wire.listed import jobs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from lavactl.io import Io

USAGE = "Usage: squeue [options]"
NO_CLUSTERS = "a command speaks to the one cluster of its agent"
OPTIONS = (
    *STANDARD[1:],
    Option("help", "", FLAG, words="this text"),
    Option("account", "A", words="jobs of these projects", env="ACCOUNT"),
    Option("all", "a", FLAG, words="every queue is shown, as always here", env="ALL"),
    Option("array", "r", FLAG, words="a line for each pending element of an array", env="ARRAY"),
    Option("format", "o", words="columns by letters: %.18i %.9P", env="FORMAT"),
    Option("Format", "O", words="columns by names: jobarrayid:20,state", env="FORMAT2"),
    Option("iterate", "i", words="list again after so many seconds, until interrupted"),
    Option("jobs", "j", MAYBE, words="these jobs"),
    Option("json", "", MAYBE, words="the main fields of Slurm's JSON"),
    Option("long", "l", FLAG, words="with state and time limit"),
    Option("me", "", FLAG, words="the caller's jobs"),
    Option("name", "n", words="jobs of these names", env="NAMES"),
    Option("noconvert", "", FLAG, words="sizes in M, as always here"),
    Option("noheader", "h", FLAG, words="no line of titles"),
    Option("nodelist", "w", words="jobs on these hosts"),
    Option("partition", "p", words="jobs of these queues", env="PARTITION"),
    Option("sort", "S", words="by these letters, each with - for the reverse", env="SORT"),
    Option("start", "", FLAG, words="pending jobs with their start estimates"),
    Option("states", "t", words="jobs of these states; all", env="STATES"),
    Option("user", "u", words="jobs of these users", env="USERS"),
    ignored("array-unique", "elements that run have lines of their own", FLAG),
    ignored("federation", "there is one cluster", FLAG),
    ignored("hide", "every queue is shown", FLAG),
    ignored("local", "there is one cluster", FLAG),
    ignored("priority", "a job has one line whatever its queues", FLAG, "P"),
    ignored("sibling", "there is one cluster", FLAG),
    ignored("verbose", "there is nothing more to tell", FLAG, "v"),
    refused("clusters", NO_CLUSTERS, letter="M"),
    refused("licenses", "see bhosts -s", letter="L"),
    refused("qos", "lava has no quality of service", letter="q"),
    refused("reservation", "see brsvs", letter="R"),
    refused("steps", "steps of srun are not recorded", MAYBE, "s"),
    refused("yaml", "use --json", MAYBE),
)
PARSER = Parser("squeue", OPTIONS)
DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20R"


def main(argv: list[str], io: "Io") -> int:
    """Run squeue."""
    given = PARSER.parse(argv)
    if answered(given, PARSER, USAGE, io):
        return 0
    forms = ("Format", "format", "long", "start")
    given = with_variables(PARSER, given, io, {"format": forms, "Format": forms})
    PARSER.say_ignored(given, io)
    pause = given.last("iterate")
    if pause is None:
        return show(given, io)
    try:
        pause_s = units.read_count(pause)
    except ValueError:
        raise fail("squeue", f"--iterate {pause}: expected a number of seconds.") from None
    io.stay()
    while True:
        show(given, io)
        io.flush()
        io.sleep(pause_s)


def show(given: Given, io: "Io") -> int:
    """List the jobs once."""
    columns = columns_of(given, io)
    formats.check(columns, io)
    names = formats.names_of(columns)
    keys = sort_keys(given.last("sort") or "")
    needed = job_fields.needs_details(names | {job_fields.LETTERS[letter] for letter, _ in keys}) or "json" in given
    query = Query(given, io)
    views = query.views(details=needed)
    if query.wanted is not None:
        views = (view for view in views if view.state in query.wanted)
    if keys:
        views = iter(in_order(list(views), keys))
    if "json" in given:
        io.print(jobs_text(views))
        return query.code
    if "long" in given and "format" not in given and "noheader" not in given:
        import time

        io.print(time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(io.now())))
    if "noheader" not in given:
        io.print(formats.head(columns))
    readers = {name: job_fields.reader(name) for name in names}
    for view in views:
        io.print(formats.line(columns, lambda name, view=view: readers[name](view)))  # type: ignore[misc]
    return query.code


def columns_of(given: Given, io: "Io") -> list[formats.Column]:
    """Columns that the options ask for."""
    try:
        if (text := given.last("Format")) is not None:
            return formats.read_names(text, job_fields.BY_NAME, lambda name: job_fields.WIDTH)
        chosen = LONG if "long" in given else START if "start" in given else None
        text = given.last("format") or chosen or DEFAULT
        return formats.read_letters(text.replace("\\n", "\n"), job_fields.LETTERS, job_fields.TITLES)
    except ValueError as error:
        raise fail("squeue", f"Invalid job format specification: {error}") from None


class Query:
    """Jobs that the options select."""

    def __init__(self, given: Given, io: "Io") -> None:
        self.io = io
        self.code = 0
        self.is_expanded = "array" in given
        self.refs = [
            read_id(word, "squeue", io) for text in (*given.all("jobs"), *given.words) for word in split_ids(text)
        ]
        self.is_all = False
        self.wanted = self._states(given)
        self.users = listed(given, "user")
        if "me" in given:
            self.users = [io.user_name()]
        self.queues, self.names = listed(given, "partition"), listed(given, "name")
        self.projects = listed(given, "account")
        self.hosts = hosts_of(given, "nodelist", "squeue")
        self.is_start = "start" in given

    def _states(self, given: Given) -> frozenset[State] | None:
        """States that are listed; None for all that have not ended, or for all of named jobs."""
        if "start" in given:
            return states_of(["PD"], "squeue")
        text = given.last("states") or ""
        self.is_all = text.lower() == "all"
        return None if self.is_all else states_of([word for word in text.split(",") if word.strip()], "squeue")

    def views(self, *, details: bool) -> "Iterator[JobView]":
        """The jobs, as the pages come; pending elements of an array are joined."""
        now, bases_of, limits = self.io.now(), dict[int, int](), dict[int, int]()
        waiting = Waiting()
        for page in self._pages(details):
            if details:
                bases_of |= {job.job: job.spec.slurm.array_base for job in page if job.index}
                limits |= {job.job: job.spec.array_limit for job in page if job.index}
            elif new := {job.job for job in page if job.index and job.job not in bases_of}:
                terms = arrays(new, self.io)
                bases_of |= dict.fromkeys(new, 0) | {job: one.base for job, one in terms.items()}
                limits |= {job: one.limit for job, one in terms.items()}
            for job in page:
                view = JobView(job, bases_of.get(job.job, 0), now)
                is_joined = bool(job.index) and view.is_waiting and not self.is_expanded
                if not (is_joined and waiting.takes(job)):
                    yield from waiting.drained()
                if is_joined:
                    waiting.add(view, limits.get(job.job, 0))
                else:
                    yield view
        yield from waiting.drained()

    def _pages(self, details: bool) -> "Iterator[list[messages.JobRecord]]":
        completion = Completion() if details else None
        for wanted in self._filters():
            request = messages.ListJobsRequest(
                filter=wanted,
                details=details,
                reasons=details,
                shares_details=details,
                basic_too=True,
                columns=not details,
            )
            for page in self.io.client().list_jobs(request):
                jobs = jobs_of(page) if completion is None else completion.complete(list(page.jobs))
                yield [job for job in jobs if self._is_wanted(job)]
                for ref in page.missing:
                    self.code = 1
                    self.io.error("slurm_load_jobs error: Invalid job id specified" + f" {ref.job}")

    def _filters(self) -> "Iterator[messages.JobFilter]":
        if self.wanted is not None and not self.wanted:
            return  # only states that no job here has
        states = sorted({number for state in self.wanted or () for number in may_have(state)})
        for user in dict.fromkeys(self.users or ["all"]):
            for queue in dict.fromkeys(self.queues or [""]):
                yield messages.JobFilter(
                    refs=self.refs,
                    user=user,
                    queue=queue,
                    states=states,  # type: ignore[arg-type]
                    finished_too=self.is_all or bool(self.refs and not states),
                )

    def _is_wanted(self, job: messages.JobRecord) -> bool:
        if self.names and job.name.partition("[")[0] not in self.names and job.name not in self.names:
            return False
        if self.projects and (job.project or "default") not in self.projects:
            return False
        return not self.hosts or any(share.host in self.hosts for share in job.hosts)


def sort_keys(text: str) -> list[tuple[str, bool]]:
    """(letter, whether it is reversed) of each field of --sort.

    Raises:
        CommandError: it is no list of letters of fields, each with + or - before it or none.
    """
    import re

    keys: list[tuple[str, bool]] = []
    for sign, letter in re.findall(r"([+-]?)[%]?(.)", re.sub(r"[,\s]", "", text)):
        if letter not in job_fields.LETTERS:
            raise fail("squeue", f"Invalid sort specification: {letter}")
        keys.append((letter, sign == "-"))
    return keys


def in_order(views: list[JobView], keys: "list[tuple[str, bool]]") -> list[JobView]:
    """Jobs in the order of these fields, the first one before the others."""
    for letter, is_reversed in reversed(keys):
        views.sort(key=job_fields.sort_key(letter), reverse=is_reversed)
    return views
