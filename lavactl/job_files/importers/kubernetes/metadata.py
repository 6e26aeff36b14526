"""Metadata of Kubernetes' objects, and the fields that jobs of several kinds share."""

import re

from lavactl.job_files.importers.tables import Anything, Flag, Number, Others, Part, Required, Table, Text, Word
from lavactl.job_files.model import JobFile
from lavactl.job_files.text.fields import Fields

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
TIME_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
MANAGER = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[\w./-]+")
CRON_NAME_MAX = 52
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
NAME_MAX = 253
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL_MAX = 63
HOST_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_CRON = r"[\d*,/?LW#A-Za-z-]+"
SCHEDULE = re.compile(
    rf"((CRON_)?TZ=\S+\s+)?(@(yearly|annually|monthly|weekly|daily|midnight|hourly|every \S+)|{_CRON}(\s+{_CRON}){{4}})"
)


OF_SCHEDULE = "it belongs to the schedule"
RANGES = (
    ("minute", 0, 59), ("hour", 0, 23), ("day of a month", 1, 31), ("month", 1, 12), ("day of a week", 0, 7),
)  # fmt: skip


class Labels(Table):
    """``metadata.labels``, those of Kueue among them."""

    page = "metadata"
    queue = Text(QUEUE_LABEL, "", "the job waits in this queue until all of it fits", here="the queue of the job")
    time_s = Number(
        TIME_LABEL, None, "an admitted job is evicted after so many seconds", 1, here="the run limit of the job"
    )
    priority = Text(PRIORITY_LABEL, "", "the order in the queue", told="the queue's priority counts")
    others = Others("other objects select by them", told="jobs have no labels")


class Annotations(Table):
    """``metadata.annotations``."""

    page = "metadata"
    queue = Text(QUEUE_LABEL, "", "an older place of the label", here="as the label, where there is none")
    others = Others("programs beside the cluster read them", told="jobs have no annotations")


class Metadata(Table):
    """``metadata`` of a document."""

    page = "metadata"
    name = Text("name", "", "the object's name", here="the job's name", absent="generateName is needed")
    generate_name = Text(
        "generateName", "", "the beginning of a name", here="the job's name; its id tells jobs of this name apart"
    )
    namespace = Text("namespace", "default", "objects of one name are told apart by it",
                     told="lava has none; users and queues tell jobs apart")  # fmt: skip
    labels = Part("labels", Labels, "Kueue's queue and limit are labels")
    annotations = Part("annotations", Annotations, "settings of other programs")
    finalizers = Anything("finalizers", None, "the object stays until others have seen its end",
                     told="the record of a job stays as long as the site keeps it")  # fmt: skip
    owners = Anything("ownerReferences", None, "the object goes with its owner", told="a job has no owner but its user")
    version = Anything("resourceVersion", None, "written by the server", moot=True)
    uid = Anything("uid", None, "written by the server", moot=True)
    created = Anything("creationTimestamp", None, "written by the server", moot=True)
    generation = Anything("generation", None, "written by the server", moot=True)
    managed_fields = Anything("managedFields", None, "written by the server", moot=True)
    self_link = Anything("selfLink", None, "written by the server", moot=True)


class Document(Table):
    """Document of Kubernetes."""

    version = Required("apiVersion", "the group of the kind and its version", here="with kind, what the document is")
    kind = Required("kind", "the kind", here="with apiVersion, what the document is")
    metadata = Part("metadata", Metadata, "name, labels, annotations")
    status = Anything("status", None, "written by the server", told="it is the state of a job that was")


def start(document: Document, kind: str, origin: str) -> JobFile:
    """A job of tasks with the name of its metadata, and the queue of its label.

    Raises:
        FileError: it has no name, or one that Kubernetes refuses.
    """
    fields = document.fields
    job = JobFile(fields.reading.file, fields.place(), kind, own_queue=False)
    fields.asked |= {"apiVersion", "kind"}
    name = _name(document.metadata)
    job.options.append(("J", name))
    job.tasks_rules.origin = origin
    job.tasks_rules.owner_name = name
    _read_queue(job, document.metadata)
    return job


def _name(metadata: Metadata) -> str:
    if metadata.name or not metadata.generate_name:
        row, name = Metadata.name, metadata.fields.required("name")
    else:
        row, name = Metadata.generate_name, metadata.generate_name.rstrip("-.")
        metadata.note(row, "the job id tells jobs of this name apart.")
    if not NAME.fullmatch(name) or len(name) > NAME_MAX:
        raise metadata.wrong(
            row, "a name has small letters, digits, - and . and begins and ends with a letter or digit."
        )
    return name


def _read_queue(job: JobFile, metadata: Metadata) -> None:
    labels, annotations = metadata.labels, metadata.annotations
    for place in (labels, annotations) if not labels.queue else (labels,):
        queue = place.queue
        if place.fields.has(QUEUE_LABEL) and not LABEL_VALUE.fullmatch(queue):
            raise place.fields.wrong(
                QUEUE_LABEL, f"{queue[:80]!r} is no name of a queue: it has no blanks or signs but - _ and ."
            )
        if queue:
            job.add("q", queue, place.fields, QUEUE_LABEL)
    job.run_limit_s = labels.time_s or 0


def check_own_name(fields: Fields, longest: str) -> None:
    """Refuse a job's name that is no part of a host name, or with which the longest of its hosts' names is none."""
    metadata = fields.child("metadata")
    key = "name" if metadata.has("name") else "generateName"
    name = metadata.text(key).rstrip("-")
    if not HOST_LABEL.fullmatch(name) or len(longest) > LABEL_MAX:
        raise metadata.wrong(
            key,
            f"with it {longest[:80]} would be a name: it begins with a letter and has up to 63 letters, digits and -.",
        )


class Managed(Table):
    """Field of kinds that another controller may run."""

    managed_by = Text("managedBy", "", "the controller that runs the job", told="lava runs the job")


def read_manager(fields: Fields) -> None:
    """Note who manages a job elsewhere; a name without a domain is none."""
    row = Managed.managed_by
    if fields.has(row.name) and not MANAGER.fullmatch(row.read(fields)):
        raise fields.wrong(
            row.name, f"expected a name such as kueue.x-k8s.io/multikueue, found {row.read(fields)[:80]}."
        )


class Schedule(Table):
    """Fields that both kinds of CronJob have."""

    schedule = Required("schedule", "the times at which jobs start", here="read, and told: the job runs once, now")
    time_zone = Text("timeZone", "", "the zone of the schedule", told=OF_SCHEDULE, absent="that of the controller")
    concurrency = Word("concurrencyPolicy", {one: one for one in ("Allow", "Forbid", "Replace")}, "Allow",
                       "what happens while an earlier job runs", told=OF_SCHEDULE)  # fmt: skip
    suspend = Flag("suspend", False, "no job starts", told=OF_SCHEDULE)
    deadline_s = Number("startingDeadlineSeconds", None, "how late a missed job may start", told=OF_SCHEDULE)
    kept_done = Number("successfulJobsHistoryLimit", 3, "so many jobs are kept", told=OF_SCHEDULE)
    kept_failed = Number("failedJobsHistoryLimit", 1, "so many jobs are kept", told=OF_SCHEDULE)


def read_schedule(spec: Schedule, metadata: Metadata) -> None:
    """Note the schedule of a CronJob, whose job runs once and now.

    Raises:
        FileError: it is none that cron knows, or has a word that the origin refuses.
    """
    text = spec.schedule
    if not SCHEDULE.fullmatch(text.strip()):
        raise spec.wrong(Schedule.schedule, f"{text[:80]!r} is no schedule: it has five fields, such as */5 * * * *.")
    _check_ranges(spec.fields, text.strip())
    if len(metadata.name) > CRON_NAME_MAX:
        raise metadata.wrong(Metadata.name, f"{metadata.name[:20]}... is longer than {CRON_NAME_MAX} characters.")
    if spec.has(Schedule.time_zone) and not _is_zone(spec.time_zone):
        raise spec.wrong(Schedule.time_zone, f"there is no time zone {spec.time_zone[:80]}.")
    spec.note(Schedule.schedule, "ignored: the job runs once, now; cron or systemd can submit this file again.")


def _check_ranges(spec: Fields, text: str) -> None:
    """Refuse numbers and names that no minute, hour, day, month or day of the week has, and ranges that fall.

    Behind a slash is a step, of at least 1.
    """
    if "@" in text:
        return
    for word, (what, least, most) in zip(text.split()[-len(RANGES) :], RANGES, strict=False):
        for part in word.split(","):
            span, slash, step = part.partition("/")
            ends = [] if span in ("*", "?") else [_number_of(one, what) for one in span.split("-")]
            wrong = next((one for one, end in zip(span.split("-"), ends, strict=False) if end is None), "")
            if not wrong and any(not least <= end <= most for end in ends if end is not None):
                wrong = span
            if wrong:
                raise spec.wrong("schedule", f"{text[:80]!r} is no schedule: {wrong} is no {what}.")
            if ends != sorted(ends, key=lambda end: end or 0) or len(ends) > 2:
                raise spec.wrong("schedule", f"{text[:80]!r} is no schedule: {span} is no range.")
            if slash and not (step.isdigit() and int(step)):
                raise spec.wrong("schedule", f"{text[:80]!r} is no schedule: {step or 'nothing'} is no step.")


def _number_of(word: str, what: str) -> int | None:
    """Number of a part of a schedule; of a month or day of the week its name may stand there."""
    if word.isdigit():
        return int(word)
    names = {"month": MONTHS, "day of a week": DAYS}.get(what, ())
    return names.index(word.lower()) + (what == "month") if word.lower() in names else None


def _is_zone(name: str) -> bool:
    """True for a time zone of this system; for any where the system has no list of them."""
    import zoneinfo

    known = zoneinfo.available_timezones()
    return not known or name in known


def has_queue_label(fields: Fields) -> bool:
    """True if Kueue would hold the job until all of it fits."""
    return fields.child("metadata").child("labels").has(QUEUE_LABEL)


class Suspended(Table):
    """Field of kinds that can be suspended."""

    suspend = Flag("suspend", False, "no pod runs", here="the job is held until bresume; one with Kueue's label is not")


def read_suspend(job: JobFile, fields: Fields, is_queued: bool) -> None:
    """Hold a suspended job, unless it is suspended for Kueue to release it."""
    row = Suspended.suspend
    if row.read(fields):
        if is_queued:
            fields.note(row.name, "the scheduler starts the job, as Kueue would.")
        else:
            job.options.append(("H", ""))


class Timed(Table):
    """Fields of kinds whose runs and records end after a time."""

    deadline_s = Number(
        "activeDeadlineSeconds", None, "the job fails so long after its start; waiting for a host counts", 1,
        here="the run limit of the job; waiting does not count",
    )  # fmt: skip
    ttl_s = Number("ttlSecondsAfterFinished", None, "the job is deleted so long after its end",
                   here="the job leaves the lists then")  # fmt: skip


def read_times(job: JobFile, fields: Fields) -> None:
    """Read the run limit of a job, and how long it is remembered."""
    limit = Timed.deadline_s.read(fields)
    if limit is not None:
        job.run_limit_s = min(limit, job.run_limit_s or limit)
    keep(job, Timed.ttl_s.read(fields))


def keep(job: JobFile, ttl_s: int | None) -> None:
    """Keep the record of a job for a time after its end, if one is given."""
    if ttl_s is not None:
        rules = job.tasks_rules
        rules.has_ttl, rules.ttl_s = True, float(ttl_s)


def check_label(fields: Fields, key: str, name: str) -> None:
    """Refuse a name that Kubernetes would not take for a part of a host name."""
    if not LABEL.fullmatch(name) or len(name) > LABEL_MAX:
        raise fields.wrong(key, f"{name[:80]!r} is no name: it has up to 63 small letters, digits and -.")
