"""Dispatch table of the commands: one function each, command in, decision (events, extra orders, reply) out, or
Refused. Nothing is changed here."""

from collections.abc import Callable, Iterable
from typing import Any

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide import (
    activity,
    advance_reservations,
    evict,
    gpu_use,
    health_checks,
    hosts,
    leases,
    plans,
    reconfigure,
    recovery,
    removal,
    reports,
)
from lavad.core.decide.checkpoints import requests as checkpoints
from lavad.core.decide.clock import host_locks, tick, windows
from lavad.core.decide.decision import Decision
from lavad.core.decide.jobs import (
    control,
    force_run,
    job_groups,
    messages,
    reorder,
    resize,
    submit,
    task_control,
    task_reports,
)
from lavad.core.decide.jobs.sizes import autoscale, scale
from lavad.core.events import Event

DECIDERS: dict[type, Callable[[Cluster, Any, float], Decision]] = {
    c.SubmitJob: submit.submit,
    c.ModifyJob: submit.modify,
    c.MoveJob: reorder.move,
    c.PostMessage: messages.post,
    c.RequeueJob: checkpoints.requeued,
    c.MigrateJob: checkpoints.migrated,
    c.CheckpointJob: checkpoints.checkpoint,
    c.ForceJob: force_run.force,
    c.KillJob: messages.with_reason(task_control.kill, "kill"),
    c.SignalJob: task_control.signal,
    c.StopJob: messages.with_reason(control.stop, "suspend"),
    c.ResumeJob: messages.with_reason(task_control.resume, "resume"),
    c.RecoverAttempt: recovery.recover,
    c.AgentHello: hosts.hello,
    c.AgentLacks: hosts.lacks,
    c.AgentGone: hosts.gone,
    c.AgentHeard: hosts.heard,
    c.ReportStaged: reports.staged,
    c.ReportRefused: reports.refused,
    c.ReportStarted: reports.started,
    c.ReportFinished: reports.finished,
    c.ReportReleased: reports.released,
    c.ReportResized: resize.resized,
    c.ReportLimit: reports.limit_reached,
    c.ReportProgress: reports.progressed,
    c.ReportTasks: task_reports.reported,
    c.ReportActivity: activity.reported,
    c.ReportStacks: activity.stacks_saved,
    c.ReportCheckpoint: checkpoints.reported,
    c.CheckGpus: gpu_use.check,
    c.ShrinkJob: resize.shrink_job,
    c.WishSize: resize.wish_size,
    c.ScaleJob: scale.scale_job,
    c.ApplyPlan: plans.apply_plan,
    c.CloseHost: hosts.close,
    c.OpenHost: hosts.reopen,
    c.LockHost: host_locks.lock,
    c.UnlockHost: host_locks.unlock,
    c.HostChecked: health_checks.checked,
    c.HostNoticed: evict.noticed,
    c.NoticeTaken: evict.notice_taken,
    c.ReportWanted: autoscale.wanted,
    c.RevokeHost: evict.revoke,
    c.RemoveHost: removal.remove,
    c.Reconfigure: reconfigure.reconfigure,
    c.ChangeHostGroup: reconfigure.change_host_group,
    c.RuleQueue: reconfigure.rule_queue,
    c.AddReservation: advance_reservations.add,
    c.ChangeReservation: advance_reservations.change,
    c.RemoveReservation: advance_reservations.remove,
    c.SetJobGroup: job_groups.set_group,
    c.RemoveJobGroups: job_groups.remove,
    c.Tick: tick.tick,
    c.EndLeases: leases.end_leases,
}

# Decisions that follow a command: each is made in the state that the ones before it leave, and refuses nothing.
AFTERWARDS: dict[type, tuple[Callable[[Cluster, float], Iterable[Event]], ...]] = {
    c.Tick: tick.LATER,
    c.Reconfigure: (windows.window_events,),  # no dispatch into a window that the new rules have closed
    c.ChangeHostGroup: (windows.window_events,),
}
