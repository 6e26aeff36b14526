"""Queries of the job service to the store: ended jobs that memory has forgotten, and job histories.

The reader process answers them with whole messages; the master says who asks, and passes them on.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress

from lavad.api import checks
from lavad.api.history.question import ACCOUNTS, HISTORIES, RECORDS, USAGE, Question, question_of
from lavad.api.history.reader import HistoryReader
from lavad.api.jobs import listing
from lavad.core.cluster import Cluster
from lavad.core.commands import Caller
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import Names
from lavad.store.store import Store
from protos import common_pb2
from protos import jobs_pb2 as pb

Clock = Callable[[], float]
_FACTOR_MAX = 1e9
COMMIT_WAIT_S = 5.0  # longer than a commit of a database that works


class Stored:
    """Queries of the job service to the store."""

    def __init__(self, store: Store, reader: HistoryReader, clock: Clock = time.time) -> None:
        self.store = store
        self._reader = reader
        self._clock = clock

    async def job_of_request(self, request_id: bytes, user: str) -> tuple[int, str] | None:
        """Return the job and queue that a submission with this request id made, or None."""
        jobs = await self.store.find_request(request_id, user)
        if not jobs:
            return None
        spec = pb.JobSpec.FromString(await self.store.spec(jobs[0]))
        return jobs[0], spec.queues[0] if spec.queues else ""

    def records(
        self,
        refs: Sequence[common_pb2.JobRef],
        caller: Caller,
        policy: Policy,
        request: pb.ListJobsRequest | None = None,
        needs_details: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """Return the JobPages of jobs that memory has forgotten, or named elements, as far as the caller may see them.

        Args:
            request: a listing that says which details are added.
            needs_details: leave out jobs whose details the caller may not see.
        """
        wanted = pb.ListJobsRequest(filter=pb.JobFilter(refs=refs))
        if request is not None:
            wanted.details, wanted.shares_details = request.details, request.shares_details
        question = question_of(RECORDS, wanted, self._clock(), caller, policy, needs_details=needs_details)
        return self._settled(question)

    def history(self, request: pb.HistoryRequest, caller: Caller, cluster: Cluster) -> AsyncGenerator[bytes, None]:
        """Return the HistoryPages of bhist's answer.

        Raises:
            Refused: the filter is out of bounds, or no host or host model has the name that CPU times are for.
        """
        checks.check_filter(request.filter)
        checks.check_filter(pb.JobFilter(host=request.normalized_to))
        question = question_of(HISTORIES, request, self._clock(), caller, cluster.policy, request.filter.user)
        if request.normalized_to:
            question = _normalizing(question, request.normalized_to, cluster)
        return self._settled(question)

    def accounts(self, request: pb.AccountsRequest, caller: Caller, cluster: Cluster) -> AsyncGenerator[bytes, None]:
        """Return the AccountPages of bacct's answer.

        Raises:
            Refused: a filter is out of bounds, or no host or host model has the name that CPU times are for.
        """
        checks.check_accounts(request)
        policy = cluster.policy
        users = " ".join(request.users) or ("all" if request.refs else caller.user)
        question = question_of(ACCOUNTS, request, self._clock(), caller, policy)
        if request.normalized_to:
            question = _normalizing(question, request.normalized_to, cluster)
        owners = _plain(listing.users_meant(users, cluster))
        places = _plain(listing.hosts_meant(" ".join(request.hosts), cluster))
        return self._settled(question._replace(owners=owners, places=places))

    def usage(self, request: pb.UsageRequest, caller: Caller, cluster: Cluster) -> AsyncGenerator[bytes, None]:
        """Return the UsagePages of busage's answer.

        Raises:
            Refused: a filter is out of bounds.
        """
        checks.check_usage(request)
        question = question_of(USAGE, request, self._clock(), caller, cluster.policy)
        owners = _plain(listing.users_meant(" ".join(request.users) or "all", cluster))
        return self._settled(question._replace(owners=owners))

    async def _settled(self, question: Question) -> AsyncGenerator[bytes, None]:
        """Yield the pages of an answer that has all that memory has shown: the commits in progress come first.

        While commits fail the answer is that of the last one.
        """
        if not self.store.is_stuck:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.store.flush(), COMMIT_WAIT_S)
        async with aclosing(self._reader.pages(question)) as pages:
            async for page in pages:
                yield page


def _plain(names: Names | None) -> tuple[bool, list[str]] | None:
    """Return names as they cross to the reader process; None for any."""
    return None if names is None or names == Names() else (names.is_all, sorted(names.names))


def _normalizing(question: Question, to: str, cluster: Cluster) -> Question:
    """Return a question with the factors of hosts in that of another host, of a host model, or in a CPU factor.

    Jobs ran on hosts, too, that the cluster no longer has: those count as hosts without a factor of their own.
    """
    hosts = {name: host.facts.cpu_factor for name, host in cluster.hosts.items()}
    factor = hosts.get(to) or cluster.policy.cpu_factors.get(to)
    if factor is None:
        factor = next((host.facts.cpu_factor for host in cluster.hosts.values() if host.facts.model == to), None)
    if factor is None:
        try:
            factor = float(to)
        except ValueError:
            factor = 0.0
    if not 0 < factor < _FACTOR_MAX:
        raise Refused(f"{to}: Bad host name, host model or CPU factor")
    factors = {name: own / factor for name, own in hosts.items()}
    return question._replace(cpu_factors=factors, other_factor=1.0 / factor)
