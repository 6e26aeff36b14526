"""Rows of what jobs were submitted with, and of what elements have instead that were changed by themselves."""

from typing import TYPE_CHECKING

from lavad.core import events as e
from lavad.core.model.ranges import Ranges
from lavad.core.state.records import ArrayRecord, Job
from lavad.store.rows import values as v
from lavad.store.writer.batch import Row

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster


def spec_row(cluster: "Cluster", new: e.NewJob) -> Row:
    """Build the row of a submission."""
    record = cluster.jobs[new.id]
    shared = record.shared
    return (
        new.id,
        v.clean(shared.user),
        v.clean(shared.queue),
        v.clean(shared.project),
        v.name_of(record.text),
        record.submitted_at,
        v.shared_text(shared),
        record.text,
        new.spec,
    )


def part_row(array: ArrayRecord, event: e.JobModified) -> Row:
    """Build the row of what elements have instead; all of them have the same."""
    job = array.job_of(event.indices.first())
    assert job is not None, f"elements {event.indices} of {array.id} were changed and are no jobs"
    shared = job.shared
    names = v.clean(shared.queue), v.clean(shared.project), v.name_of(job.text)
    return (array.id, event.part, *names, v.shared_text(shared), job.text, event.job.spec)


def but_changed(record: Job | ArrayRecord) -> dict[str, str]:
    """Return which elements a change of the whole array is not about: those changed by themselves are told apart."""
    changed = record.changed if isinstance(record, ArrayRecord) else ()
    return {"but": Ranges.from_sorted(sorted(changed)).text()} if changed else {}
