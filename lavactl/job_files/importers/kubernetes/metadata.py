"""Metadata of Kubernetes' objects, and the fields that jobs of several kinds share."""

import re

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


RANGES = (
    ("minute", 0, 59), ("hour", 0, 23), ("day of a month", 1, 31), ("month", 1, 12), ("day of a week", 0, 7),
)  # fmt: skip


def start(fields: Fields, kind: str, origin: str) -> JobFile:
    """A job of tasks with the name of its metadata, and the queue of its label.

    Raises:
        FileError: it has no name, or one that Kubernetes refuses.
    """
    job = JobFile(fields.reading.file, fields.place(), kind, own_queue=False)
    fields.asked |= {"apiVersion", "kind"}
    fields.ignore(("status",), "it is the state of a job that was")
    name = _name(fields.child("metadata"))
    job.options.append(("J", name))
    job.tasks_rules.origin = origin
    job.tasks_rules.owner_name = name
    _read_queue(job, fields.child("metadata"))
    return job


def _name(metadata: Fields) -> str:
    metadata.asked |= {"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink"}
    if metadata.text("namespace") == "default":
        metadata.asked.add("namespace")
    else:
        metadata.ignore(("namespace",), "lava has none; users and queues tell jobs apart")
    if metadata.has("name") or not metadata.has("generateName"):
        name = metadata.required("name")
        metadata.text("generateName")
        key = "name"
    else:
        name, key = metadata.text("generateName").rstrip("-."), "generateName"
        metadata.note(key, "the job id tells jobs of this name apart.")
    if not NAME.fullmatch(name) or len(name) > NAME_MAX:
        raise metadata.wrong(
            key, "a name has small letters, digits, - and . and begins and ends with a letter or digit."
        )
    return name


def _read_queue(job: JobFile, metadata: Fields) -> None:
    labels = metadata.child("labels")
    if labels.has(QUEUE_LABEL):
        queue = labels.required(QUEUE_LABEL)
        if not LABEL_VALUE.fullmatch(queue):
            raise labels.wrong(
                QUEUE_LABEL, f"{queue[:80]!r} is no name of a queue: it has no blanks or signs but - _ and ."
            )
        job.options.append(("q", queue))
    if labels.has(TIME_LABEL):
        job.run_limit_s = labels.number(TIME_LABEL, 0, 1)
    labels.ignore((PRIORITY_LABEL,), "the queue's priority counts")


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


def read_manager(fields: Fields) -> None:
    """Note who manages a job elsewhere; a name without a domain is none."""
    if fields.has("managedBy") and not MANAGER.fullmatch(fields.text("managedBy")):
        raise fields.wrong(
            "managedBy", f"expected a name such as kueue.x-k8s.io/multikueue, found {fields.text('managedBy')[:80]}."
        )
    fields.ignore(("managedBy",), "lava runs the job")


def read_schedule(spec: Fields, owner: Fields) -> None:
    """Note the schedule of a CronJob, whose job runs once and now.

    Raises:
        FileError: it is none that cron knows, or has a word that the origin refuses.
    """
    text = spec.required("schedule")
    if not SCHEDULE.fullmatch(text.strip()):
        raise spec.wrong("schedule", f"{text[:80]!r} is no schedule: it has five fields, such as */5 * * * *.")
    _check_ranges(spec, text.strip())
    if len(name := owner.child("metadata").text("name")) > CRON_NAME_MAX:
        raise owner.child("metadata").wrong("name", f"{name[:20]}... is longer than {CRON_NAME_MAX} characters.")
    if spec.has("timeZone") and not _is_zone(spec.text("timeZone")):
        raise spec.wrong("timeZone", f"there is no time zone {spec.text('timeZone')[:80]}.")
    spec.note("schedule", "ignored: the job runs once, now; cron or systemd can submit this file again.")
    spec.word("concurrencyPolicy", {one: one for one in ("Allow", "Forbid", "Replace")}, "")
    for key in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        spec.number(key, 0)
        spec.ignore((key,), "it belongs to the schedule")
    spec.flag("suspend")
    spec.ignore(("concurrencyPolicy", "timeZone", "suspend"), "it belongs to the schedule")


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


def set_queue(job: JobFile, fields: Fields, key: str) -> None:
    """Take a job's queue from a field; one named ``default`` may be the cluster's default queue."""
    if fields.has(key):
        job.options.append(("q", fields.required(key)))
    fields.get(key)


def has_queue_label(fields: Fields) -> bool:
    """True if Kueue would hold the job until all of it fits."""
    return fields.child("metadata").child("labels").has(QUEUE_LABEL)


def read_suspend(job: JobFile, fields: Fields, is_queued: bool) -> None:
    """Hold a suspended job, unless it is suspended for Kueue to release it."""
    if fields.flag("suspend"):
        if is_queued:
            fields.note("suspend", "the scheduler starts the job, as Kueue would.")
        else:
            job.options.append(("H", ""))


def read_times(job: JobFile, fields: Fields) -> None:
    """Read the run limit of a job, and how long it is remembered."""
    if fields.has("activeDeadlineSeconds"):
        limit = fields.number("activeDeadlineSeconds", 0, 1)
        job.run_limit_s = min(limit, job.run_limit_s or limit)
    fields.get("activeDeadlineSeconds")
    if fields.has("ttlSecondsAfterFinished"):
        rules = job.tasks_rules
        rules.has_ttl, rules.ttl_s = True, float(fields.number("ttlSecondsAfterFinished", 0))


def check_label(fields: Fields, key: str, name: str) -> None:
    """Refuse a name that Kubernetes would not take for a part of a host name."""
    if not LABEL.fullmatch(name) or len(name) > LABEL_MAX:
        raise fields.wrong(key, f"{name[:80]!r} is no name: it has up to 63 small letters, digits and -.")
