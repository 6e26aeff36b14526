"""Demand of a job: what it requests, with all that the constraints of a cluster distinguish jobs by."""

from typing import NamedTuple

from lavad.core.model import Allocation, Key, Request, Shared


class Demand(NamedTuple):
    """Resources that a job requests, with all that constraints distinguish jobs by.

    ``given`` are booked shares that count as free, because their holders release them to the job. ``attempt`` is that
    of a running job that requests more.
    """

    user: str
    queue: str
    project: str
    request: Request
    run_limit_s: int = 0  # 0: none
    job_group: str = ""
    given: Allocation = ()
    attempt: Key | None = None
    application: str = ""


def demand_of(shared: Shared, request: Request | None = None) -> Demand:
    """Demand of a job, with another request if one is given."""
    return Demand(
        shared.user, shared.queue, shared.project, request or shared.request, shared.run_limit_s, shared.job_group,
        application=shared.application,
    )  # fmt: skip
