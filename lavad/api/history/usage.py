"""Answer to busage: sums over ended attempts by user, group, project, queue and period, as far as the caller sees them.

Made in the reader process. Jobs that name no group count for the first group of lsb.users that has their user.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from lavad.api.history.question import Question
from lavad.api.privacy import Sight
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.store.reading.history import Read
from lavad.store.reading.usage import KEYS, UsageFilter, Used, read_usage
from protos import jobs_pb2 as pb

ROWS_IN_PAGE = 5000
_NAMES = {
    pb.USAGE_USER: "user",
    pb.USAGE_GROUP: "user_group",
    pb.USAGE_PROJECT: "project",
    pb.USAGE_QUEUE: "queue",
    pb.USAGE_PERIOD: "period",
}


def usage_pages(read: Read, question: Question) -> Iterator[bytes]:
    """Yield the serialised UsagePages of an answer."""
    request = pb.UsageRequest.FromString(question.request)
    owners, policy = question.owners, question.policy()
    wanted = UsageFilter(
        tuple(request.bounds),
        None if owners is None else Names(owners[0], frozenset(owners[1])),
        tuple(request.projects),
        tuple(request.queues),
    )
    keys = frozenset(_NAMES[key] for key in request.keys)
    sight, by_group = Sight(question.caller, policy, of_history=True), "user_group" in keys or bool(request.groups)
    asked = keys | {"user", "user_group"} if by_group or not sight.is_whole else keys
    rows: Iterable[Used] = read(lambda connection: read_usage(connection, wanted, asked))
    if asked != keys:
        rows = (one for one in rows if sight.has_summary_of(one.user, one.user_group))
    if by_group:
        rows = _charged(rows, policy, frozenset(request.groups))
    yield from _pages(_joined(rows, keys))


def _charged(rows: Iterable[Used], policy: Policy, wanted: frozenset[str]) -> Iterator[Used]:
    """Yield the rows of the wanted groups, or of all if none is named; those without a group with that of the user."""
    groups: dict[str, str] = {}
    for one in rows:
        group = one.user_group
        if not group:
            if one.user not in groups:
                groups[one.user] = _group_of(one.user, policy)
            group = groups[one.user]
        if not wanted or group in wanted:
            yield one._replace(user_group=group)


def _group_of(user: str, policy: Policy) -> str:
    return next((name for name, members in policy.user_groups.items() if user in members), "")


def _joined(rows: Iterable[Used], keys: frozenset[str]) -> Iterator[Used]:
    """Yield one row for each value of the keys, in the order of these."""
    found: dict[tuple[Any, ...], Used] = {}
    for one in rows:
        place = tuple([value if name in keys else type(value)() for name, value in zip(KEYS, one[:5], strict=True)])
        before, mine = found.get(place), Used._make((*place, *one[5:]))
        found[place] = mine if before is None else before.joined(mine)
    for place in sorted(found, key=lambda one: (one[-1], *one[:-1])):
        yield found[place]


def _pages(rows: Iterable[Used]) -> Iterator[bytes]:
    page = pb.UsagePage()
    for one in rows:
        user, group, project, queue, period, *figures = one
        done, exited, cpu_s, slot_s, gpu_s, wait_s, memory = figures
        page.rows.add(
            user=user, group=group, project=project, queue=queue, period=period, done=done, exited=exited,
            cpu_s=cpu_s, slot_s=slot_s, gpu_s=gpu_s, wait_s=wait_s, memory_mib_max=memory,
        )  # fmt: skip
        if len(page.rows) >= ROWS_IN_PAGE:
            yield page.SerializeToString()
            page = pb.UsagePage()
    yield page.SerializeToString()
