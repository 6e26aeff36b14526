"""Mutants: small changes that a tired author could make, planted one at a time.

``by`` names the suite that must detect it: "history" the seeds of tests/simulation, for bugs that show only over time;
"properties" the twins named in ``run.py``; "any" whichever detects it first.
"""

from dataclasses import dataclass

CORE = "lavad/core"


@dataclass(frozen=True, slots=True)
class Mutant:
    """In ``file`` the text ``old``, which occurs exactly once, becomes ``new``."""

    name: str
    file: str
    old: str
    new: str
    by: str = "any"


MUTANTS = (
    Mutant(
        "an old attempt's report is believed",
        f"{CORE}/decide/reports.py",
        "    attempt = cluster.attempts.get(key)\n    return attempt if",
        "    job = cluster.element(key.job, key.index)\n"
        "    attempt = (job.attempt if job is not None else None) or cluster.attempts.get(key)\n    return attempt if",
        "history",
    ),
    Mutant(
        "a plan is not verified again",
        f"{CORE}/decide/plans.py",
        "        except KeyError:\n            return False",
        "        except KeyError:\n            return False\n        return True",
        "history",
    ),
    Mutant(
        "an old plan passes for a fresh one",
        f"{CORE}/decide/plans.py",
        "    if plan.version == cluster.version and not",
        "    if plan.version >= 0 and not",
        "history",
    ),
    Mutant(
        "the short way forgets a job's memory",
        f"{CORE}/scheduling/fast/single_task.py",
        "            free.take(slots, memory_mib, chosen)",
        "            free.take(slots, 0, chosen)",
    ),
    Mutant(
        "a start is not looked at again",
        f"{CORE}/decide/plans.py",
        "        if not record.has_startable(start.index, len(before)):",
        "        if start.index not in record.pending:",
        "history",
    ),
    Mutant(
        "launched before every host has staged",
        f"{CORE}/decide/reports.py",
        "    if attempt.staged | {command.host} == {share.host for share in attempt.allocation}:",
        "    if command.host == attempt.lead:",
        "history",
    ),
    Mutant(
        "spoken before it is durable",
        "lavad/engine.py",
        "        self._append(outcome.events, speak)",
        "        self._append(outcome.events, lambda: None)\n        speak()",
    ),
    Mutant(
        "a share is taken for free although a launch was sent",
        f"{CORE}/decide/hosts.py",
        "    if not attempt.launched:\n        return give_up_staging",
        "    if len(attempt.allocation) > 1 or job.shared.rerunnable:\n        return give_up_staging",
        "history",
    ),
    Mutant(
        "shares are free when the job ends, not when the host says so",
        f"{CORE}/apply/jobs.py",
        "    _note_finished(cluster, job)\n\n\ndef _used_at_end",
        "    _note_finished(cluster, job)\n    for share in attempt.allocation:\n"
        "        if share.host in attempt.unreleased:\n"
        "            booking.give_back(cluster, attempt, share.host, event.at)\n\n\ndef _used_at_end",
        "history",
    ),
    Mutant(
        "staging is given up twice",
        f"{CORE}/decide/clock/tick.py",
        '    return [event for event in events if getattr(event, "key", None) not in given_up]',
        "    return events",
    ),
    Mutant(
        "a kill during staging is only a signal",
        f"{CORE}/decide/jobs/control.py",
        "    return not attempt.launched or attempt.lead not in attempt.unreleased",
        "    return attempt.lead not in attempt.unreleased",
    ),
    Mutant(
        "a refused order brings a killed job back",
        f"{CORE}/decide/reports.py",
        "    if attempt.kill_reason:\n        decision.events.append(e.JobFinished(now, key, r.EXIT_STATUS_KILLED",
        "    if False:\n        decision.events.append(e.JobFinished(now, key, r.EXIT_STATUS_KILLED",
    ),
    Mutant(
        "an array runs one element too many",
        f"{CORE}/state/records.py",
        "min(len(self.pending), self.limit - len(self.live))",
        "min(len(self.pending), self.limit - len(self.live) + 1)",
        "history",
    ),
    Mutant(
        "a GPU is given to two jobs",
        f"{CORE}/state/hosts/table.py",
        "            self._gpu_held[row] |= 1 << gpu",
        "            self._gpu_held[row] |= 0",
    ),
    Mutant(
        "a failed job is repeated beside what is left of it",
        f"{CORE}/decide/reports.py",
        "    elif host == attempt.lead and not attempt_is_repeated(job, attempt):",
        "    elif host == attempt.lead:",
    ),
    Mutant(
        "a job that may not be repeated is",
        f"{CORE}/decide/reports.py",
        "    return (job.shared.rerunnable or attempt.again) and not attempt.kill_reason",
        "    return not attempt.kill_reason",
    ),
    Mutant(
        "a retried submit makes a second job",
        f"{CORE}/decide/jobs/submit.py",
        "    if known is not None:",
        "    if known is not None and known == 1:",
        "history",
    ),
    Mutant(
        "the newest signal is sent again, whatever it was",
        f"{CORE}/apply/jobs.py",
        "    if reason or (not attempt.kill_reason and (is_state or not had_state)):",
        "    if True:",
    ),
    Mutant(
        "a missed launch is not repeated",
        f"{CORE}/decide/hosts.py",
        "        decision.orders.append(LaunchOrder(name, attempt.key, attempt.version))",
        "        pass",
    ),
    Mutant(
        "a missed stage order is not repeated",
        f"{CORE}/decide/hosts.py",
        "        return Decision(orders=list(stage_orders(cluster, attempt, frozenset({name}))))",
        "        return Decision()",
        "history",
    ),
    Mutant(
        "part of a job is left alone when another part is lost",
        f"{CORE}/decide/reports.py",
        "    elif not is_expected and not attempt.doomed and not attempt.kill_reason:",
        "    elif False:",
    ),
    Mutant(
        "room that appears wakes nobody",
        f"{CORE}/scheduling/worklist.py",
        "        self.freed_hosts |= changes.freed_hosts\n",
        "        pass\n",
        "history",
    ),
    Mutant(
        "the simulated agent carries out orders of any age",
        "lavad/simulator/cluster/fleet.py",
        "        is_stale = age_s > self.world.order_validity_s",
        "        is_stale = False",
        "history",
    ),
    Mutant(
        "the real agent carries out orders of any age",
        "agents/attempts/ledger.py",
        "        if too_old:\n            return [Say(refused(",
        "        if False:\n            return [Say(refused(",
    ),
    Mutant(
        "new rules wake nobody",
        f"{CORE}/scheduling/worklist.py",
        "return cluster.policy is not self.policy or cluster.reserved.version",
        "return cluster.reserved.version",
    ),
    Mutant(
        "a queue that the files have no more is forgotten with its jobs",
        f"{CORE}/decide/reconfigure.py",
        "    return replace(policy, queues=(*policy.queues, *shut))\n",
        "    return policy\n",
    ),
    Mutant(
        "a suspended job goes on while others use its room",
        f"{CORE}/scheduling/preemption/preempt.py",
        "    if not unclaimed.holds(wanted):\n        return False\n",
        "",
    ),
    Mutant(
        "a borrower is left with less than its own",
        f"{CORE}/scheduling/preemption/pool_reclaim.py",
        "    return all(amount <= max(0.0, surplus[name]) for name, amount in amounts.items() if amount)",
        "    return True",
    ),
    Mutant(
        "what victims leave is for anybody",
        f"{CORE}/apply/claims.py",
        "        host.claims[claim.job, claim.index] = share\n        cluster.table.take(host.row, share, False)",
        "        host.claims[claim.job, claim.index] = share",
    ),
    Mutant(
        "jobs shrink below their minimum",
        f"{CORE}/decide/jobs/resize.py",
        "if not (gives and left) or not has_minima(request, left):",
        "if not (gives and left):",
    ),
    Mutant(
        "an elastic job gives all it has",
        f"{CORE}/model/allocation.py",
        "    spare = min(tasks, tasks_of(allocation) - role.tasks_min)",
        "    spare = min(tasks, tasks_of(allocation) - 1)",
    ),
    Mutant(
        "what a shrunk job gives up is free before its hosts say so",
        f"{CORE}/state/attempts.py",
        "        return grown(grown(self.allocation, change.growth), change.leaving)",
        "        return grown(self.allocation, change.growth)",
    ),
    Mutant(
        "others are stopped although elastic jobs could shrink",
        f"{CORE}/scheduling/preemption/victim_search.py",
        "search.with_shrinks(elastic, victims) if elastic else",
        "search.with_shrinks(elastic, victims) if not elastic else",
    ),
    Mutant(
        "elastic jobs give more than is needed",
        f"{CORE}/scheduling/preemption/victim_search.py",
        "            return self._sparing(min(found, key=len))",
        "            return min(found, key=len)",
    ),
    Mutant(
        "an elastic borrower is shrunk below its pool's own",
        f"{CORE}/scheduling/preemption/shrink.py",
        "lambda one: may_give_together([*found, one]))",
        "lambda one: True)",
    ),
    Mutant(
        "what is being given up is asked for twice",
        f"{CORE}/scheduling/preemption/lent_resources.py",
        "        for share in attempt.resizing.leaving if key not in gone else ():",
        "        for share in ():",
    ),
    Mutant(
        "a job that grew is charged as if it had been so large all the time",
        f"{CORE}/apply/resize.py",
        "        since = at - (at - attempt.charged_since) * before / now",
        "        since = attempt.charged_since",
    ),
    Mutant(
        "a growth is used before all its hosts are ready",
        f"{CORE}/decide/jobs/resize.py",
        "    if new - attempt.staged - {host}:",
        "    if False:",
    ),
    Mutant(
        "a growth that the job will not have is kept",
        f"{CORE}/decide/jobs/resize.py",
        "    if command.failed and change.added and not attempt.is_ending:",
        "    if False:",
    ),
    Mutant(
        "what a user has used is not charged to the user's group",
        f"{CORE}/state/fairshare.py",
        "        for one in account.chain():\n            one.used",
        "        for one in (account,):\n            one.used",
    ),
    Mutant(
        "slots that an account has just been given do not count in its next turn",
        f"{CORE}/state/fairshare.py",
        "        jobs = (1 + running.slots + slots)",
        "        jobs = (1 + running.slots)",
    ),
    Mutant(
        "an elastic job that loses two hosts at once keeps one of them",
        f"{CORE}/decide/hosts.py",
        "    lost = [share.host for share in attempt.allocation if share.host in silent & attempt.unreleased]",
        "    lost = [name]",
    ),
    Mutant(
        "a host that was away never hears of other limits",
        f"{CORE}/decide/hosts.py",
        "        decision.orders.extend(_limits_again(cluster, name, one))\n",
        "",
    ),
    Mutant(
        "an agent takes older limits for newer ones",
        "agents/attempts/ledger.py",
        "order.limits.version <= version_of(entry.limits)",
        "order.limits.version == version_of(entry.limits)",
    ),
    Mutant(
        "the end of a closed reservation is ignored",
        f"{CORE}/state/advance_reservations.py",
        "        if one is not None and not one.is_open:\n            end = min(end, self._ceases(booked, one))\n",
        "",
        "properties",
    ),
    Mutant(
        "jobs that come later may have what is promised on certain hosts",
        f"{CORE}/scheduling/backfill/gate.py",
        "            self._says_where = not is_anywhere(self._simulated, one.key) or",
        "            self._says_where = False and",
        "properties",
    ),
    Mutant(
        "a job that starts beside a promise may take all that is left again and again",
        f"{CORE}/scheduling/capacity/backfill_window.py",
        "        self.slots -= share.slots\n        self.memory_mib -= share.memory_mib\n",
        "        self.memory_mib -= share.memory_mib\n",
        "properties",
    ),
    Mutant(
        "promised memory is not kept",
        f"{CORE}/scheduling/capacity/backfill_window.py",
        "        free.memory_mib = min(free.memory_mib, max(0, self.memory_mib))\n",
        "",
        "properties",
    ),
    Mutant(
        "promised devices are not kept",
        f"{CORE}/scheduling/capacity/backfill_window.py",
        "        free.gpus = lowest(free.gpus & ~self.gpus_kept, self.gpus)\n",
        "",
        "properties",
    ),
    Mutant(
        "promised resources of the site are not kept",
        f"{CORE}/scheduling/placement/within_limits.py",
        "                found.amount = self._window.amount(self.table, name, row, found.amount)\n",
        "                pass\n",
        "properties",
    ),
    Mutant(
        "what two reservations have together is not looked at",
        f"{CORE}/decide/advance_reservations.py",
        "        return max(0, slots - max(taken, default=0))\n",
        "        return max(0, slots - min(taken, default=0))\n",
        "history",
    ),
    Mutant(
        "jobs of a reservation have more than it sets apart",
        f"{CORE}/scheduling/capacity/advance_reservations.py",
        " - self._reserved.own(self._cluster, name, self._now)\n",
        "\n",
        "history",
    ),
    Mutant(
        "who is held back is not asked again when a reservation has changed",
        f"{CORE}/scheduling/cycle.py",
        "        if self.gate.is_upset and",
        "        if False and",
    ),
    Mutant(
        "a bucket whose first job is gone goes on standing where that stood",
        f"{CORE}/state/pending.py",
        "            if len(bucket) > 1 and bucket.head() == entry:",
        "            if False:",
    ),
)
