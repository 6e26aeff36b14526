"""Warnings of budgets: once in a period, when the set part of one is used or reserved, its running jobs are told."""

from collections.abc import Iterator

from lavad.core import activity_events as a
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.language.numbers import number_text
from lavad.core.model.rules.budgets import HOUR_S, UNITS
from lavad.core.state.budgets import BudgetAccount

LOOK_EVERY_S = 10.0


def budget_events(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events of budgets that have come to their warning; looked for every few seconds."""
    budgets = cluster.budgets
    if not budgets or now < budgets.look_at:
        return
    budgets.look_at = now + LOOK_EVERY_S
    for account in budgets.accounts.values():
        text = warning_of(account, now)
        if text and not (account.has_warned and account.span == account.rule.span(now, account.zone)):
            yield a.BudgetWarned(now, account.rule.name, account.consumer)
            for key in account.running:
                if key in cluster.attempts and not cluster.attempts[key].over:
                    yield a.JobWarned(now, key, f"budget {account.name}", text)


def warning_of(account: BudgetAccount, now: float) -> str:
    """Return the sentence about the first amount of which so much is used or reserved; empty if there is none."""
    if not account.counts(now):
        return ""
    left = account.left(now)
    for unit, bound, have in zip(UNITS, account.rule.amounts, left, strict=True):
        if bound != float("inf") and bound - have >= account.rule.warns_at * bound:
            part = (bound - have) / bound if bound else 1.0
            hours = number_text(bound / HOUR_S)
            return f"budget {account.name}: {part:.0%} of {hours} {unit} hours are used or reserved"
    return ""
