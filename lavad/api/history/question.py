"""One query of stored jobs as it crosses to the reader process: the request, its caller, and the policy he is under.

The master says who asks: the reader believes nothing else. Plain values only, as marshal takes them.
"""

from collections.abc import Mapping
from typing import NamedTuple

from google.protobuf.message import Message

from lavad.core.commands import Caller
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import JobDefaults, Queue
from lavad.store.reading.history_text import CpuFactors

HISTORIES, RECORDS, ACCOUNTS, USAGE = "histories", "records", "accounts", "usage"


class Question(NamedTuple):
    """Query in progress.

    ``kind`` tells the message in ``request``: a HistoryRequest, a ListJobsRequest whose jobs memory has forgotten, or
    an AccountsRequest or a UsageRequest; with these, ``owners`` and ``places`` are the users and hosts that their names
    stand for.
    ``cpu_factors`` are those of the hosts if CPU times are to be normalized, ``other_factor`` that of any other host.
    ``groups`` are those of the caller, and the one that the request names; all for a UsageRequest. ``needs_details``:
    jobs whose details the caller may not see are left out.
    """

    kind: str
    request: bytes
    now: float
    user: str
    uid: int
    is_administrator: bool
    job_info_level: int
    history_access: str
    groups: Mapping[str, tuple[bool, list[str]]]
    process_limits: Mapping[str, tuple[tuple[str, int, int], ...]]  # by queue
    needs_details: bool = False
    owners: tuple[bool, list[str]] | None = None
    places: tuple[bool, list[str]] | None = None
    cpu_factors: Mapping[str, float] | None = None
    other_factor: float = 1.0

    @property
    def caller(self) -> Caller:
        """Caller, without what only commands need."""
        return Caller(self.user, self.uid, self.is_administrator)

    def factors(self) -> CpuFactors | None:
        """Return the factors by which CPU times are multiplied; None if they are told as used."""
        return None if self.cpu_factors is None else CpuFactors(self.cpu_factors, self.other_factor)

    def policy(self) -> Policy:
        """Build the part of the policy that answers depend on."""
        limits = self.process_limits.items()
        return Policy(
            queues=tuple([Queue(name, defaults=JobDefaults(rlimits=some)) for name, some in limits]),
            user_groups={name: Names(is_all, frozenset(names)) for name, (is_all, names) in self.groups.items()},
            job_info_level=self.job_info_level,
            history_access=self.history_access,
        )


def question_of(
    kind: str,
    request: Message,
    now: float,
    caller: Caller,
    policy: Policy,
    named: str = "",
    needs_details: bool = False,
) -> Question:
    """Build the question of a caller; ``named`` is the user or group whose jobs are meant."""
    groups = {
        name: (members.is_all, sorted(members.names))
        for name, members in policy.user_groups.items()
        if name == named or kind == USAGE or (not caller.is_administrator and caller.user in members)
    }
    return Question(
        kind,
        request.SerializeToString(),
        now,
        caller.user,
        caller.uid,
        caller.is_administrator,
        policy.job_info_level,
        policy.history_access,
        groups,
        {queue.name: queue.defaults.rlimits for queue in policy.queues if queue.defaults.rlimits},
        needs_details,
    )
