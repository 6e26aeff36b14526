"""Requests out of bounds are refused with a sentence before any other processing."""

from typing import Any

import pytest

from lavad.api import checks, texts
from lavad.core.model.reasons import Refused
from protos import jobs_pb2
from protos.cluster_pb2 import Gpu, HostFacts
from protos.common_pb2 import GpuRequest, IndexRange, JobRef, Role
from protos.jobs_pb2 import HostFile, JobFilter, JobSpec, Rlimit, SignalRequest


def test_a_script_may_hold_anything_below_its_first_line() -> None:
    """Self-extracting scripts carry binary data; the first line names the interpreter."""
    job = JobSpec(command="#!/bin/sh\nexit\n\0\0", is_script=True)
    texts.check(job)
    checks.check_spec(job)
    with pytest.raises(Refused, match="first line"):
        checks.check_spec(JobSpec(command="#!/bin/s\0h\n", is_script=True))


@pytest.mark.parametrize(
    "fields",
    [
        {"memory_limit_mib": 2**64 - 1},
        {"umask_plus_one": 2**32 - 1},
        {"terminate_time": float("nan")},
        {"terminate_time": float("inf")},
        {"terminate_time": -1.0},
        {"rlimits": [Rlimit(name="core", soft=2**64 - 1)]},
        {"roles": [Role(launch=77)]},  # type: ignore[arg-type]
        {"roles": [Role(gpu=GpuRequest(num=2**32 - 1))]},
        {"roles": [Role()] * 1000},
        {"hosts": ["n"] * 20_000},
        {"queues": ["normal"] * 1000},
        {"environment": [b"A=\0"]},
        {"host_file": HostFile(path="/f", hosts=["n1", "n2"], slots=[1])},
    ],
)
def test_absurd_jobs(fields: dict[str, Any]) -> None:
    """Each alone is enough."""
    with pytest.raises(Refused):
        checks.check_spec(JobSpec(command="true", **fields))


@pytest.mark.parametrize(
    "wanted",
    [
        JobFilter(states=[99]),  # type: ignore[list-item]
        JobFilter(name="[a*?" * 500_000),
        JobFilter(queue="\0"),
        JobFilter(refs=[JobRef(job=2**64 - 1)]),
        JobFilter(refs=[JobRef(job=1)] * 20_000),
        JobFilter(refs=[JobRef(job=1, indices=[IndexRange(first=1, last=2**32 - 1)])]),
    ],
)
def test_absurd_filters(wanted: JobFilter) -> None:
    """They would delay all other callers, or break the store's query."""
    with pytest.raises(Refused):
        checks.check_filter(wanted)


def test_overlapping_ranges_are_bounded() -> None:
    """They are written out to be sorted: a million of a million would take for ever."""
    with pytest.raises(Refused, match="several ranges"):
        checks.ranges_of([IndexRange(first=1, last=1_000_000)] * 100)
    assert checks.ranges_of([IndexRange(first=1, last=1_000_000)]) == (range(1, 1_000_001),)


@pytest.mark.parametrize("request_", [SignalRequest(action=jobs_pb2.SEND, signal=2**31), SignalRequest(action=77)])  # type: ignore[arg-type]
def test_signals_that_do_not_exist(request_: SignalRequest) -> None:
    """Neither numbers nor actions."""
    with pytest.raises(Refused, match="Unknown"):
        checks.check_signal(request_)


@pytest.mark.parametrize(
    "facts",
    [
        HostFacts(memory_mib=2**64 - 1),
        HostFacts(slots=2**32 - 1),
        HostFacts(cpu_factor=float("nan")),
        HostFacts(gpus=[Gpu()] * 2000),
    ],
)
def test_absurd_hosts(facts: HostFacts) -> None:
    """One host with a wrong idea of itself must not break the sums over all."""
    with pytest.raises(Refused):
        checks.check_facts(facts)
    checks.check_facts(HostFacts(memory_mib=1 << 20, slots=512, cpu_factor=1.0))


def test_what_agents_measure_is_kept_storable() -> None:
    """Invalid times become now, amounts stay within bounds."""
    assert checks.moment_of(float("nan"), 7.0) == checks.moment_of(0.0, 7.0) == checks.moment_of(1e300, 7.0) == 7.0
    assert checks.moment_of(1000.5, 7.0) == 1000.5
    assert checks.amount_of(float("inf")) == checks.amount_of(-1.0) == 0.0
    assert checks.amount_of(1e300) == checks.AMOUNT_MAX


def test_a_request_id_is_short() -> None:
    """A hundred thousand of them stay in memory."""
    checks.check_batch(jobs_pb2.SubmitBatch(items=[jobs_pb2.SubmitItem(request_id=b"i" * 16)]))
    with pytest.raises(Refused, match="request id"):
        checks.check_batch(jobs_pb2.SubmitBatch(items=[jobs_pb2.SubmitItem(request_id=b"i" * 1000)]))
