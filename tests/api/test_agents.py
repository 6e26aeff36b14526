"""Bounds on agents' reports, applied before any use of the values."""

import math

from lavad.api import agents, checks
from lavad.api.jobs import listing
from lavad.core.apply.charge import observe
from protos import agents_pb2 as pb
from protos.cluster_pb2 import Load
from protos.common_pb2 import AttemptKey, Usage
from tests.builders import Story, a_host, a_job

ENDLESS = float("inf")


def test_loads_that_are_no_numbers() -> None:
    """Load values are compared, sorted and shown, so NaN and infinity are refused."""
    load = Load(r1m=math.nan, ut=ENDLESS, pg=-1.0, mem_mib=2**64 - 1, external={"scratch": math.nan})
    checks.tidy_load(load)
    assert (load.r1m, load.ut, load.pg, load.mem_mib) == (0.0, 0.0, 0.0, checks.MEMORY_MAX_MIB)


def test_use_without_end() -> None:
    """It would stay in the account of the job's owner, and no sum over hosts would fit its message."""
    most = 2**64 - 1
    said = Usage(memory_mib=most, memory_mib_max=most, swap_mib=most, threads=2**32 - 1)
    said.cpu_s, said.memory_mib_mean = ENDLESS, math.nan
    usage = agents._usage(said)
    assert (usage.cpu_s, usage.memory_mib_mean, usage.threads) == (0.0, 0.0, checks.THREADS_MAX)
    assert {usage.memory_mib, usage.memory_mib_max, usage.swap_mib} == {checks.MEMORY_MAX_MIB}


def test_usage_has_the_time_of_its_report() -> None:
    """Of several hosts the newest; bjobs -l dates its figures by it, however long a host has been silent since."""
    story = Story(a_host("n1"), a_host("n2"))
    key = story.run(a_job(8))
    for host, said in (("n1", 30.0), ("n2", 20.0)):
        observe(story.cluster, host, ((key, agents._usage(Usage(cpu_s=1.0), said)),))
    job = story.cluster.jobs[key.job]
    record = listing.record_message(story.cluster, (job, 0, job), 40.0, True, None)  # type: ignore[arg-type]
    assert (record.usage.collected_at, [one.collected_at for one in record.usage_by_host]) == (30.0, [30.0, 20.0])


def test_the_reports_of_a_held_attempt_are_about_it() -> None:
    """A report with another attempt's key is ignored."""
    own, other = AttemptKey(job=7, attempt=1), AttemptKey(job=8, attempt=1)
    held = pb.Held(key=own, last=pb.Report(key=other, released=pb.Released()))
    assert agents._held("n1", held).last.key == (7, 0, 1)  # type: ignore[union-attr]
