"""Accounts of budgets: what has been used in the present period, what runs, and what running jobs may still use.

An attempt is used up to now; the rest of its run limit is reserved. Of what its hosts have not reported yet, processor
time is reserved as slots times the run limit. An attempt without a run limit reserves nothing: it counts as it goes.
At its end what it really used stays. What lies before the period does not count.
"""

from collections.abc import Iterable
from datetime import tzinfo
from typing import TYPE_CHECKING

from lavad.core.model.policy import Policy
from lavad.core.model.rules.budgets import Amounts, Budget, Span

if TYPE_CHECKING:
    from lavad.core.model import Key
    from lavad.core.state.limits import Charge

NOTHING = Amounts()


class BudgetAccount:
    """One budget of one consumer. ``ended``: used by ended attempts in ``span``."""

    __slots__ = ("consumer", "ended", "has_warned", "rule", "running", "span", "zone")

    def __init__(self, rule: Budget, consumer: str, zone: tzinfo) -> None:
        self.rule = rule
        self.consumer = consumer
        self.zone = zone
        self.span = Span(0.0, 0.0)
        self.ended = NOTHING
        self.has_warned = False
        self.running: dict[Key, Charge] = {}

    @property
    def name(self) -> str:
        """Name of the budget and, if each consumer has his own, of the consumer."""
        return f"{self.rule.name} {self.consumer}".rstrip()

    def turn(self, now: float) -> None:
        """Begin anew if the period is another one."""
        if not self.span.begin <= now < self.span.end:
            span = self.rule.span(now, self.zone)
            if span != self.span:
                self.span, self.ended, self.has_warned = span, NOTHING, False

    def end(self, key: "Key", one: "Charge", now: float, cpu_s: float) -> None:
        """Count an attempt that has ended."""
        self.turn(now)
        self.running.pop(key, None)
        if self.counts(now):
            run_s = max(0.0, now - max(one.start, self.span.begin))
            part = run_s / (now - one.start) if now > one.start else 1.0
            self.ended = self.ended.plus(Amounts(one.slots * run_s, cpu_s * part, one.gpus * run_s))

    def add_cpu(self, cpu_s: float, now: float) -> None:
        """Count processor time that was reported after the end."""
        self.turn(now)
        if self.counts(now):
            self.ended = self.ended.plus(Amounts(0.0, cpu_s, 0.0))

    def counts(self, now: float) -> bool:
        """Return True within the budget's period; one from a date to a date has an end."""
        span = self.rule.span(now, self.zone)
        return span.begin <= now < span.end

    def used(self, now: float) -> Amounts:
        """Return what ended attempts and, up to now, running ones have used in the period."""
        span = self.rule.span(now, self.zone)
        total = self.ended if span == self.span else NOTHING
        for one in self.running.values():
            run_s = max(0.0, now - max(one.start, span.begin))
            total = total.plus(Amounts(one.slots * run_s, one.cpu_s, one.gpus * run_s))
        return total

    def reserved(self, now: float) -> Amounts:
        """Return what running attempts may use beyond that, by their run limits."""
        total = NOTHING
        for one in self.running.values():
            left_s = max(0.0, one.start + one.run_limit_s - now) if one.run_limit_s else 0.0
            cpu_s = max(0.0, one.slots * one.run_limit_s - one.cpu_s) if one.run_limit_s else 0.0
            total = total.plus(Amounts(one.slots * left_s, cpu_s, one.gpus * left_s))
        return total

    def left(self, now: float) -> Amounts:
        """Return what new jobs may still use; below 0 if too much was used."""
        if not self.counts(now):
            return Amounts(*(float("inf"),) * 3)
        return self.rule.amounts.plus(self.used(now), -1.0).plus(self.reserved(now), -1.0)


class Budgets:
    """All budgets of the policy with their accounts. False if there are none."""

    def __init__(self, policy: Policy) -> None:
        self.rules = policy.budgets
        self.by_project = any(rule.projects is not None or rule.per_project is not None for rule in self.rules)
        self._zone = policy.zone
        self.accounts: dict[tuple[str, str], BudgetAccount] = {}
        self._by_kind: dict[tuple[str, str, str], tuple[BudgetAccount, ...]] = {}
        self.touched: dict[tuple[str, str], BudgetAccount] = {}  # those whose rows are to be written
        self.look_at = 0.0  # when the warnings are due next

    def __bool__(self) -> bool:
        return bool(self.rules)

    def has(self, queue: str) -> bool:
        """Return True if jobs of the queue may be under a budget."""
        return any(rule.queues is None or queue in rule.queues for rule in self.rules)

    def of(self, user: str, project: str, queue: str) -> tuple[BudgetAccount, ...]:
        """Return the accounts that a job is charged to."""
        kind = (user, project, queue)
        found = self._by_kind.get(kind)
        if found is None:
            consumers = ((rule, rule.consumer(user, project, queue)) for rule in self.rules)
            found = tuple(self.account(rule, name) for rule, name in consumers if name is not None)
            self._by_kind[kind] = found
        return found

    def account(self, rule: Budget, consumer: str) -> BudgetAccount:
        """Return the account of a consumer, made if it is new."""
        key = (rule.name, consumer)
        if key not in self.accounts:
            self.accounts[key] = BudgetAccount(rule, consumer, self._zone)
        return self.accounts[key]

    def turns_at(self, now: float) -> float:
        """Return the next time at which a period begins or ends; infinite without budgets."""
        spans = (rule.span(now, self._zone) for rule in self.rules)
        return min((moment for span in spans for moment in span if moment > now), default=float("inf"))

    def touch(self, account: BudgetAccount) -> None:
        """Note that an account has changed."""
        self.touched[account.rule.name, account.consumer] = account

    def adopt(self, rule: str, consumer: str, span: Span, ended: Amounts, has_warned: bool) -> None:
        """Restore an account; one of a budget that is no longer configured is dropped."""
        known = next((one for one in self.rules if one.name == rule), None)
        if known is not None:
            account = self.account(known, consumer)
            account.span, account.ended, account.has_warned = span, ended, has_warned

    def take_over(self, before: Iterable[BudgetAccount]) -> None:
        """Take over what was used before a reconfiguration, if a budget still has the period."""
        for one in before:
            self.adopt(one.rule.name, one.consumer, one.span, one.ended, one.has_warned)
