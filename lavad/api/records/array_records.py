"""Lines of bjobs -A."""

from lavad.core.model import JobState
from lavad.core.state.records import ArrayRecord
from protos import jobs_pb2


def array_message(record: ArrayRecord) -> jobs_pb2.JobRecord:
    """Build one line of bjobs -A."""
    words = record.words
    states = [job.state for job in record.live.values()]
    counts = jobs_pb2.ArrayCounts(
        total=len(record.indices),
        pend=record.count_waiting(JobState.PEND),
        psusp=record.count_waiting(JobState.PSUSP),
        done=record.done,
        exit=record.exited,
        run=sum(state in (JobState.RUN, JobState.STAGING, JobState.UNKWN, JobState.ZOMBI) for state in states),
        ssusp=states.count(JobState.SSUSP),
        ususp=states.count(JobState.USUSP),
        spec=f"{words['name']}[{record.indices.text()}]" + (f"%{record.limit}" if record.limit else ""),
    )
    return jobs_pb2.JobRecord(
        job=record.id,
        user=record.shared.user,
        queue=record.shared.queue,
        name=words["name"],
        submit_time=record.submitted_at,
        project=record.shared.project,
        array=counts,
    )
