"""Fit of past jobs' requests to what a replay knows: unknown names are removed from requests and reported.

An elim's past values are not kept, and names that the policy does not define cannot be requested. Where a condition has
such a name, the smallest possible part is removed: one operand of an ``&&``, or all of it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lavad.core.language.requirements import order, rusage, select
from lavad.core.language.requirements import select_tree as tree
from lavad.core.language.requirements.vocabulary import Vocabulary
from lavad.core.model import HostFacts, Request, RoleRequest, Shared
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.simulator.replay.workload import Submission

AND = "&&"


def fitted(
    submissions: Iterable[Submission], policy: Policy, hosts: Iterable[HostFacts]
) -> tuple[list[Submission], list[str]]:
    """Return submissions that the policy can evaluate, and a line on each kind of thing removed."""
    fitting = _Fitting(policy, hosts)
    return [fitting.submission(one) for one in submissions], list(fitting.notes())


class _Fitting:
    """Rewriter of requests, each shared one once."""

    def __init__(self, policy: Policy, hosts: Iterable[HostFacts]) -> None:
        static = {name: resource for name, resource in policy.resources.items() if not resource.interval_s}
        self._known = Vocabulary(static, frozenset().union(*(facts.resources for facts in hosts)))
        units = policy.size_units
        self._reading = Vocabulary(policy.resources, is_open=True, unit_mib=units.size_mib, tmp_unit_mib=units.tmp_mib)
        self._highest = policy.user_priority_max
        self._made: dict[Shared, tuple[Shared, tuple[str, ...]]] = {}
        self._unknown: Counter[str] = Counter()
        self._priorities = 0

    def submission(self, one: Submission) -> Submission:
        """Return the submission without unknown names, its priority within bounds."""
        new = one.command.job
        made = self._made.get(new.shared)
        if made is None:
            made = self._made[new.shared] = self._shared(new.shared)
        for name in made[1]:
            self._unknown[name] += len(one.runs)
        priority = min(new.priority, self._highest)
        if priority != new.priority:
            self._priorities += len(one.runs)
        if made[0] is new.shared and priority == new.priority:
            return one
        return one._replace(command=replace(one.command, job=new._replace(shared=made[0], priority=priority)))

    def notes(self) -> Iterator[str]:
        """Yield a line on each kind of thing removed."""
        for name, count in self._unknown.items():
            is_defined = name in self._reading.resources
            why = "its past values are not known" if is_defined else "these rules do not define it"
            yield f"{_jobs(count)}: what they asked of {name} is left out: {why}"
        if self._priorities and self._highest:
            yield f"{_jobs(self._priorities)}: their user priority is lowered to MAX_USER_PRIORITY, {self._highest}"
        elif self._priorities:
            yield f"{_jobs(self._priorities)}: their user priority is left out: these rules have no MAX_USER_PRIORITY"

    def _shared(self, shared: Shared) -> tuple[Shared, tuple[str, ...]]:
        unknown: dict[str, None] = {}
        request = shared.request
        fitting = self._request(request, unknown)
        return (shared if fitting == request else replace(shared, request=fitting)), tuple(unknown)

    def _request(self, request: Request, unknown: dict[str, None]) -> Request:
        choices = tuple([one._replace(roles=self._roles(one.roles, unknown)) for one in request.alternatives])
        return replace(request, roles=self._roles(request.roles, unknown), alternatives=choices)

    def _roles(self, roles: Sequence[RoleRequest], unknown: dict[str, None]) -> tuple[RoleRequest, ...]:
        return tuple([self._role(role, unknown) for role in roles])

    def _role(self, role: RoleRequest, unknown: dict[str, None]) -> RoleRequest:
        return replace(
            role,
            select=self._select(role.select, unknown),
            rusage=self._rusage(role.rusage, unknown),
            order=self._order(role.order, unknown),
        )

    def _rusage(self, text: str, unknown: dict[str, None]) -> str:
        if not text:
            return text
        reserves = rusage.parse(text)[0].reserves
        return rusage.text_of(tuple([one for one in reserves if self._knows([one.name], unknown)]))

    def _order(self, text: str, unknown: dict[str, None]) -> str:
        if not text:
            return text
        return order.text_of(tuple([key for key in order.parse(text) if self._knows([key.name], unknown)]))

    def _select(self, text: str, unknown: dict[str, None]) -> str:
        if not text:
            return text
        try:
            node = select.parse(text, vocabulary=self._reading)
        except Refused:  # for example a string that the policy does not define
            unknown[f"select[{text}]"] = None
            return ""
        kept = self._part(node, unknown)
        return text if kept is node else "" if kept is None else select.text_of(kept)

    def _part(self, node: tree.Node, unknown: dict[str, None]) -> tree.Node | None:
        """Return the known part of a condition; None if nothing is left."""
        if not isinstance(node, tree.Chain) or any(sign != AND for sign, _ in node.rest):
            return node if self._knows(_names(node), unknown) else None
        parts = (node.first, *(part for _, part in node.rest))
        left = [part for one in parts if (part := self._part(one, unknown)) is not None]
        if tuple(left) == parts:
            return node
        if len(left) > 1:
            return tree.Chain(left[0], tuple([(AND, part) for part in left[1:]]))
        return left[0] if left else None

    def _knows(self, names: Iterable[str], unknown: dict[str, None]) -> bool:
        """Return True if all names are known; record those that are not."""
        missing = [name for name in names if self._known.kind(name) is None]
        unknown.update(dict.fromkeys(missing))
        return not missing


def _names(node: tree.Node) -> Iterator[str]:
    """Yield the resources that a condition names, including those that must only be defined."""
    match node:
        case tree.Name(word) | tree.Defined(word):
            yield word
        case tree.Unary(_, inner):
            yield from _names(inner)
        case tree.Chain(first, rest):
            for part in (first, *(part for _, part in rest)):
                yield from _names(part)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
