"""One function for each command: command in, decision (events, extra orders, reply) out, or Refused. Nothing is
changed here."""

from collections.abc import Callable, Iterable
from typing import Any

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide import (
    clockwork,
    control,
    forcing,
    hosts,
    leases,
    moves,
    plans,
    recovery,
    removal,
    reports,
    requeueing,
    reservations,
    resizes,
    rules,
    submission,
    ticks,
)
from lavad.core.decide.decision import Decision
from lavad.core.events import Event

DECIDERS: dict[type, Callable[[Cluster, Any, float], Decision]] = {
    c.SubmitJob: submission.submit,
    c.ModifyJob: submission.modify,
    c.MoveJob: moves.move,
    c.RequeueJob: requeueing.requeue,
    c.ForceJob: forcing.force,
    c.KillJob: control.kill,
    c.SignalJob: control.signal,
    c.StopJob: control.stop,
    c.ResumeJob: control.resume,
    c.RecoverAttempt: recovery.recover,
    c.AgentHello: hosts.hello,
    c.AgentGone: hosts.gone,
    c.AgentHeard: hosts.heard,
    c.ReportStaged: reports.staged,
    c.ReportRefused: reports.refused,
    c.ReportStarted: reports.started,
    c.ReportFinished: reports.finished,
    c.ReportReleased: reports.released,
    c.ReportResized: resizes.resized,
    c.ReportLimit: reports.limit_reached,
    c.ShrinkJob: resizes.shrink_job,
    c.WishSize: resizes.wish_size,
    c.ApplyPlan: plans.apply_plan,
    c.CloseHost: hosts.close,
    c.OpenHost: hosts.reopen,
    c.RemoveHost: removal.remove,
    c.Reconfigure: rules.reconfigure,
    c.RuleQueue: rules.rule_queue,
    c.AddReservation: reservations.add,
    c.ChangeReservation: reservations.change,
    c.RemoveReservation: reservations.remove,
    c.Tick: ticks.tick,
    c.EndLeases: leases.end_leases,
}

# What else a command brings about: each decides in the state that those before it have left, and refuses nothing.
AFTERWARDS: dict[type, tuple[Callable[[Cluster, float], Iterable[Event]], ...]] = {
    c.Tick: ticks.LATER,
    c.Reconfigure: (clockwork.window_events,),  # nothing starts where the new rules have a closed window
}
