"""Column ``waits`` of jobs and arrays: what a pending job waits for, as JSON."""

import json
from typing import Any

from lavad.core.language.dependency import parse, text_of
from lavad.core.model import NO_RETRY, JobState, Retry
from lavad.core.model.priorities.absolute import Given
from lavad.core.model.ranges import Ranges
from lavad.core.state.records import ArrayRecord, Job, StartConditions

_encode = json.JSONEncoder(separators=(",", ":")).encode


def waits_text(job: Job) -> str:
    """Encode the start conditions of a plain job, or the retry of an element."""
    if job.start_conditions is not None:
        return start_conditions_text(job.start_conditions)
    return retry_text(job.retry) if job.retry != NO_RETRY else ""


def retry_text(retry: Retry) -> str:
    """Encode what an element's next try waits for."""
    return _encode({"retry": retry})


def start_conditions_text(conditions: StartConditions) -> str:
    """Encode the start conditions of a pending job as JSON."""
    return _encode(_start_conditions_values(conditions))


def array_waits_text(array: ArrayRecord) -> str:
    """Encode the start conditions of an array, with elements that wait for a dependency, or never ran and are DONE."""
    conditions = array.start_conditions
    values = {} if conditions is None else _start_conditions_values(conditions)
    if array.unmet:
        values["unmet"] = array.unmet.text()
    if array.shared.tasks is not None and array.done and array.killed:
        completed = Ranges.from_sorted(index for index in array.killed if array.ended[index] == JobState.DONE)
        values |= {"completed": completed.text()} if completed else {}
    return _encode(values) if values or conditions is not None else ""


def decode_completed(text: str) -> Ranges:
    """Return the elements that a policy completed while they were pending."""
    return Ranges.parse(json.loads(text).get("completed", "")) if '"completed"' in text else Ranges()


def _start_conditions_values(conditions: StartConditions) -> dict[str, Any]:
    values: dict[str, str | float | tuple[str, ...] | Retry | Given] = {
        "if": text_of(conditions.condition) if conditions.condition is not None else "",
        "begin": conditions.begin_at,
        "early": conditions.is_early,
        "orphan": conditions.ends_orphan,
        "barred": conditions.excluded_hosts,
        "detached": conditions.detached,
        "queued": conditions.queued_at,
        "restarts": conditions.restarts,
        "admin_held": conditions.admin_held.text(),
        "retry": conditions.retry if conditions.retry != NO_RETRY else "",
        "aps": conditions.absolute if conditions.absolute.kind else "",
    }
    return {name: value for name, value in values.items() if value}


def decode_start_conditions(text: str) -> tuple[StartConditions | None, Ranges]:
    """Decode the JSON of ``start_conditions_text`` or ``array_waits_text``."""
    values = json.loads(text) if text else {}
    if not text or values.keys() == {"completed"}:
        return None, Ranges()
    condition = parse(values["if"]) if "if" in values else None
    early, orphan = bool(values.get("early")), bool(values.get("orphan"))
    barred, detached = tuple(values.get("barred", ())), values.get("detached", "")
    begin, queued = values.get("begin", 0.0), values.get("queued", 0.0)
    restarts = int(values.get("restarts", 0))
    retry = Retry(*values["retry"]) if "retry" in values else NO_RETRY
    admin_held = Ranges.parse(values.get("admin_held", ""))
    given = Given(*values.get("aps", ()))
    first = (condition, begin, early, orphan, barred, detached, queued, restarts, retry, admin_held)
    conditions = StartConditions(*first, absolute=given)
    return conditions, Ranges.parse(values.get("unmet", ""))
