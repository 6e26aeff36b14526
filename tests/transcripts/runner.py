"""Runs a transcript: lines that begin with ``>`` are commands to a cluster, the indented ones below are the results.

``python -m tests.transcripts.runner --rewrite [FILE...]`` writes the real results into the files; read the difference
before you keep it. The commands are the functions of ``Player`` whose names begin with ``do_``; jobs have letters.
"""

import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from lavad.api.jobs.checkpoint_defaults import fill_in
from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.decide.jobs.request import request_of, rules_for
from lavad.core.language.requirements.rusage import PARTS
from lavad.core.model import NO_OPTIONS, HostShare, JobState, Key, Launch, PostState, RoleAsked
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import NotNow, Refused
from lavad.core.notices import NoticeOrder, RevokeOrder
from lavad.core.orders import (
    CheckpointOrder,
    ForgetOrder,
    LaunchOrder,
    Order,
    ReleaseOrder,
    ResizeOrder,
    SignalOrder,
    StageOrder,
)
from lavad.core.queries.pending_reasons import explain
from lavad.core.state.records import ArrayRecord
from lavad.core.step import Outcome
from protos import jobs_pb2
from tests.builders import ANN, BOB, ROOT, Story, a_host, a_job
from tests.transcripts import rules, site

HERE = Path(__file__).resolve().parent
CALLERS = {"ann": ANN, "bob": BOB, "cel": c.Caller("cel", 1002), "root": ROOT}
QUIET = (e.HostJoined, e.JobSubmitted, e.HostStaged)
FLAGS = {"exclusive", "resizable", "rerunnable", "hold", "each", "one_host", "ends_orphan"}
NUMBERS = {"slots", "limit", "priority", "ptile", "gpus", "memory_mib", "run_limit_s", "tasks_min", "tasks_max"}


_POSTS = {"awaiting": PostState.AWAITED, "post_done": PostState.DONE, "post_err": PostState.ERR}


class Player:
    """One transcript's cluster, and the letters of its jobs."""

    def __init__(self) -> None:
        self.story = Story()
        self.numbers: dict[str, int] = {}

    def play(self, line: str) -> list[str]:
        """Run the command of a line; its results, a line each."""
        word, *rest = shlex.split(line)
        try:
            return list(getattr(self, f"do_{word}")(*rest))
        except Refused as refusal:
            return [f"refused: {refusal}"]
        except NotNow as refusal:
            return [f"refused for now: {refusal}"]

    # -- the commands

    def do_hosts(self, *words: str) -> Iterator[str]:
        """hosts n1 8 n2 8 4: names with their slots and, if there is a third number, GPUs."""
        described: list[list[str]] = []
        for word in words:
            if word.isdigit():
                described[-1].append(word)
            else:
                described.append([word])
        for name, slots, *gpus in described:
            self.story.join(a_host(name, int(slots), gpus=int(gpus[0]) if gpus else 0))
        yield from ()

    def do_rules(self, *words: str) -> Iterator[str]:
        """rules user_priority_max=100 slots.ann=2 ...: before the hosts; ``rules.py`` lists the words."""
        self.story = Story(policy=rules.policy(words))
        yield from ()

    def do_site(self, *words: str) -> Iterator[str]:
        """site lic=4@all scratch=100@each group.big=n1,n2 rack.r1=n1,n2: before the hosts; see ``site.py``."""
        self.story = Story(policy=site.policy(words, self.story.cluster.policy))
        yield from ()

    def do_host(self, name: str, slots: str, *words: str) -> Iterator[str]:
        """host n1 8 memory=16000 model=epyc has=ib,fast gpus=8 links=4: one host in full."""
        self.story.join(site.host(name, slots, words))
        yield from ()

    def do_load(self, name: str, *words: str) -> Iterator[str]:
        """load n1 r15s=0.5 mem=4000: the agent reports."""
        indices, external = site.load(words)
        cluster = self.story.cluster
        cluster.table.set_external(cluster.table.rows[name], external)
        cluster.observe_load(name, indices)
        if cluster.load_rules.stops:
            yield from self._outcome(self.story.do(c.Tick()))

    def do_held(self, letter: str) -> Iterator[str]:
        """held A: devices, processors and resources of its shares."""
        attempt = self.story.job(*self._split(letter)).attempt
        for share in attempt.allocation if attempt else ():
            yield " ".join([share.host, *_held(share)])

    def do_move(self, letter: str, place: str, *words: str) -> Iterator[str]:
        """move A 1 (btop), move A -1 (bbot), move A 1 by root."""
        caller = CALLERS[words[1]] if words[:1] == ("by",) else ANN
        outcome = self.story.do(c.MoveJob(self._target(letter), int(place), caller))
        yield f"moved to position {outcome.reply.place}"

    def do_submit(self, letter: str, *words: str) -> Iterator[str]:
        """submit A slots=4 queue=short user=bob array=1-9 each rerunnable ...; dependency=done({B}), begin_at=60,

        checkpoints=/saved.
        """
        options: dict[str, Any] = {}
        for word in words:
            name, _, value = word.partition("=")
            options[name] = True if name in FLAGS else int(value) if name in NUMBERS else value
        asked = {name: options.pop(name) for name in ("R", "gpu") if name in options}
        if asked:
            options |= self._requested(asked, options)
        options["caller"] = CALLERS[options.pop("user", "ann")]
        if options.pop("each", False):
            options["launch"] = Launch.EACH
        if "dependency" in options:
            options["dependency"] = options["dependency"].format(**self.numbers)
        for name in ("begin_at", "terminate_at"):
            if name in options:
                options[name] = self.story.now + float(options[name])
        if "hosts" in options:
            options["hosts"] = tuple(options["hosts"].split(","))
        directory = options.pop("checkpoints", "")
        job = a_job(**options)
        terms = self._terms(job, directory)
        shared = replace(job.shared, special=replace(job.shared.special, checkpointable=bool(terms.directory)))
        self.numbers[letter] = self.story.submit(job._replace(shared=shared))
        if terms.directory:
            yield f"checkpoints in {terms.directory}" + (
                f" every {terms.period_s / 60:.0f} min." * bool(terms.period_s)
            )

    def _terms(self, job: c.NewJob, directory: str) -> jobs_pb2.Checkpoint:
        """Those of -k, here the word "checkpoints", or else of the job's profile or queue."""
        shared = job.shared
        spec = jobs_pb2.JobSpec(application=shared.application, cwd="/jobs")
        if directory:
            spec.checkpoint.directory = directory
        item = jobs_pb2.SubmitItem(spec=spec)
        fill_in(self.story.cluster, item, c.Caller(shared.user, shared.uid), (shared.queue,))
        return item.spec.checkpoint

    def _requested(self, asked: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Request of R="..." and gpu="...", for ``slots`` tasks."""
        cluster = self.story.cluster
        tasks = options.pop("slots", 1)
        one = RoleAsked(tasks, tasks, requirement=asked.get("R", ""), gpu=str(asked["gpu"]) if "gpu" in asked else None)
        rules_ = rules_for(cluster.policy, cluster.table, cluster.policy.queue(options.get("queue", "normal")))
        return {"request": request_of([one], NO_OPTIONS, rules_)[0]}

    def do_reserve(self, slots: str, *words: str) -> Iterator[str]:
        """reserve 2 begin=60 end=120 hosts=n1,n2 users=ann is_open queues=idle: brsvadd."""
        options: dict[str, Any] = {}
        for word in words:
            name, is_given, value = word.partition("=")
            options[name] = True if not is_given else float(value) if name in ("begin", "end") else value
        for name in ("hosts", "users", "queues"):
            if name in options:
                options[name] = tuple(options[name].split(","))
        one = self.story.reserve(int(slots), **options)
        yield f"{one.name}: " + " ".join(f"{host}({number})" for host, number in one.hosts)

    def do_pass(self) -> Iterator[str]:
        """pass: an incremental scheduling pass."""
        before = len(self.story.events)
        orders = self.story.plan()
        yield from self._told(self.story.events[before:], orders)

    def do_staged(self, host: str, letter: str) -> Iterator[str]:
        """staged n1 A: the host is ready."""
        return self._report(c.ReportStaged(host, self._key(letter)))

    def do_started(self, host: str, letter: str) -> Iterator[str]:
        """started n1 A."""
        return self._report(c.ReportStarted(host, self._key(letter), 4711, self.story.now))

    def do_finished(self, host: str, letter: str, status: str = "0", *rest: str) -> Iterator[str]:
        """finished n1 A 3, with the exit code; the word "leaving" means that processes are left, "awaiting",
        "post_done" and "post_err" are of the post-execution commands, TERM_CHKPNT is why it was ended there.
        """
        code, key, now = int(status) << 8, self._key(letter), self.story.now
        why = next((word for word in rest if word.startswith("TERM_")), "")
        post = next((known for word, known in _POSTS.items() if word in rest), PostState.NONE)
        is_over = not {"leaving", "awaiting"} & set(rest)
        return self._report(
            c.ReportFinished(host, key, code, now, why, also_released=is_over, post=post, posted_at=now)
        )

    def do_released(self, host: str, letter: str) -> Iterator[str]:
        """released n1 A: no process is left there."""
        return self._report(c.ReportReleased(host, self._key(letter)))

    def do_resized(self, host: str, letter: str, *words: str) -> Iterator[str]:
        """resized n1 A: the job has been notified of its newest allocation; "failed": it refuses it."""
        key = self._key(letter)
        version = self.story.cluster.attempts[key].resizing.version
        return self._report(c.ReportResized(host, key, version, "failed" in words))

    def do_release(self, letter: str, *words: str) -> Iterator[str]:
        """release A all ^n1, release A 2*n1 n2: bresize release."""
        return self._report(c.ShrinkJob(self._target(letter), " ".join(words), ANN))

    def do_wish(self, letter: str, tasks: str = "0") -> Iterator[str]:
        """wish A 4: bresize request; wish A: bresize cancel."""
        return self._report(c.WishSize(self._target(letter), int(tasks), ANN))

    def do_refused(self, host: str, letter: str, pre_exec: str = "") -> Iterator[str]:
        """refused n1 A: the order was not carried out; refused n1 A job: because of the job's pre-execution command."""
        why = f"the {pre_exec}'s pre-execution command exited with code 1" if pre_exec else "the order is too old"
        return self._report(c.ReportRefused(host, self._key(letter), why, pre_exec=pre_exec))

    def do_hello(self, host: str, *held: str) -> Iterator[str]:
        """hello n1 A=running B=staged@2: a new session, with the attempts held and their allocation versions."""
        reports = {"running": c.ReportStarted, "staged": c.ReportStaged}
        attempts = []
        for word in held:
            letter, _, how = word.partition("=")
            how, _, version = how.partition("@")
            key = self._key(letter)
            more = (4711, self.story.now) if how == "running" else ()
            attempts.append(
                c.HeldAttempt(key, reports[how](host, key, *more), how == "running", self._version(key, host, version))
            )
        before = len(self.story.events)
        orders = self.story.back(host, *attempts)
        yield from self._told(self.story.events[before:], orders)

    def do_wait(self, seconds: str, *heard: str) -> Iterator[str]:
        """wait 20 n1 n2: time passes; only the named hosts report."""
        self.story.now += float(seconds)
        self.story.hear(*heard)
        yield from self._outcome(self.story.do(c.Tick()))

    def do_hear(self, host: str) -> Iterator[str]:
        """hear n1: a silent host reports again."""
        self.story.cluster.heard(host, self.story.now)
        return self._report(c.AgentHeard(host))

    def do_kill(self, letter: str, *words: str) -> Iterator[str]:
        """kill A, kill A by bob, kill A force."""
        caller = CALLERS[words[1]] if words[:1] == ("by",) else ANN
        return self._report(c.KillJob(self._target(letter), caller, "force" in words))

    def do_signal(self, letter: str, number: str) -> Iterator[str]:
        """signal A 10."""
        return self._report(c.SignalJob(self._target(letter), int(number), ANN))

    def do_stop(self, letter: str) -> Iterator[str]:
        """stop A."""
        return self._report(c.StopJob(self._target(letter), ANN))

    def do_resume(self, letter: str) -> Iterator[str]:
        """resume A."""
        return self._report(c.ResumeJob(self._target(letter), ANN))

    def do_checkpoint(self, letter: str, *words: str) -> Iterator[str]:
        """checkpoint A, checkpoint A force ends: bchkpnt."""
        return self._report(c.CheckpointJob(self._target(letter), ANN, "force" in words, "ends" in words))

    def do_checkpointed(self, host: str, letter: str, number: str, *words: str) -> Iterator[str]:
        """checkpointed n1 A 1, checkpointed n1 A 1 failed: how that request ended; the word "ends" is of those that the
        job ends by; 0 is one by the job's period.
        """
        key, error = self._key(letter), "no room" if "failed" in words else ""
        return self._report(c.ReportCheckpoint(host, key, int(number), self.story.now, error, "ends" in words))

    def do_migrate(self, letter: str, *hosts: str) -> Iterator[str]:
        """migrate A: bmig; migrate A n1 n2: with -m."""
        states = frozenset({JobState.STAGING, JobState.RUN, JobState.USUSP, JobState.SSUSP})
        moved = c.RequeueJob(self._target(letter), ANN, states, migrates=True, may_stay=bool(hosts))
        if not hosts:
            return self._report(moved)
        shared = self.story.cluster.jobs[moved.target.job].shared
        new = a_job()._replace(shared=replace(shared, request=replace(shared.request, hosts=hosts)))
        changed = c.ModifyJob(moved.target, new, ANN, "hosts", frozenset({"hosts"}), migrates=True)
        return self._report(c.MigrateJob(changed, moved))

    def do_close(self, host: str) -> Iterator[str]:
        """close n1."""
        return self._report(c.CloseHost(host, ROOT))

    def do_open(self, host: str) -> Iterator[str]:
        """open n1."""
        return self._report(c.OpenHost(host, ROOT))

    def do_queue(self, name: str, action: str) -> Iterator[str]:
        """queue normal inactivate: open, close, activate or inactivate it."""
        return self._outcome(self.story.do(c.RuleQueue(name, c.QueueAction[action.upper()], ROOT)))

    def do_reconfigure(self, *words: str) -> Iterator[str]:
        """reconfigure without=short slots.n1=2: other rules from now on; words as in ``rules``."""
        return self._outcome(self.story.do(c.Reconfigure(rules.policy(words))))

    def do_bgadd(self, path: str, *words: str) -> Iterator[str]:
        """bgadd /a, bgadd /a 2 by bob: a job group, with its limit."""
        return self._set_group(path, words, exists=False)

    def do_bgmod(self, path: str, *words: str) -> Iterator[str]:
        """bgmod /a 2, bgmod /a by bob: another limit, or none."""
        return self._set_group(path, words, exists=True)

    def _set_group(self, path: str, words: tuple[str, ...], exists: bool) -> Iterator[str]:
        limit = int(words[0]) if words and words[0].isdigit() else None
        return self._report(c.SetJobGroup(path, limit, _caller(words), exists))

    def do_bgdel(self, path: str, *words: str) -> Iterator[str]:
        """bgdel /a, bgdel /a below, bgdel ann user, bgdel all, each with "by bob"."""
        kinds = {"below": c.Removed.BELOW, "user": c.Removed.OF_USER}
        what = kinds[words[0]] if words and words[0] in kinds else c.Removed.ONE
        what = c.Removed.ALL if path == "all" else what
        return self._report(c.RemoveJobGroups(what, path, _caller(words)))

    def do_groups(self) -> Iterator[str]:
        """Job groups with the jobs of their own by state, and those that count for the limit."""
        cluster = self.story.cluster
        for group in sorted(cluster.job_groups, key=lambda one: one.path):
            counted = [(state.name, cluster.counters.jobs_by_group[group.path, state]) for state in JobState]
            jobs = " ".join(f"{name}={count}" for name, count in counted if count)
            limit = "-" if group.limit is None else group.limit
            yield f"{group.path} of {group.owner}: {cluster.limits.used_by_group(group.path)}/{limit} {jobs}".rstrip()

    def do_jobs(self) -> Iterator[str]:
        """State of every job."""
        for letter, number in self.numbers.items():
            record = self.story.cluster.jobs.get(number)
            if record is None:
                yield f"{letter}  forgotten"
            elif isinstance(record, ArrayRecord):
                yield f"{letter}  {_array_text(record)}"
            else:
                hosts = " on " + _shares(record.attempt.allocation) if record.attempt else ""
                reason = f"  {record.end.reason}" if record.end and record.end.reason else ""
                yield f"{letter}  {record.state.name}{hosts}{reason}"

    def do_why(self, letter: str) -> Iterator[str]:
        """Pending reasons of a job."""
        number, index = self._split(letter)
        story = self.story
        for reason in explain(
            story.cluster, story.cluster.jobs[number], index, story.now, story.worklist.reservation_table
        ):
            hosts = f": {' '.join(reason.hosts)}" if reason.hosts else ""
            yield f"{reason.text}{hosts}" + (f"  ({reason.advice})" if reason.advice else "")

    # -- names

    def _split(self, word: str) -> tuple[int, int]:
        letter, _, index = word.removesuffix("]").partition("[")
        return self.numbers[letter], int(index or 0)

    def _key(self, word: str) -> Key:
        """A is A's newest attempt, A#1 its first."""
        word, _, attempt = word.partition("#")
        number, index = self._split(word)
        return Key(number, index, int(attempt)) if attempt else self.story.key(number, index)

    def _version(self, key: Key, host: str, said: str) -> int:
        """The given version, or the newest that the host can have."""
        attempt = self.story.cluster.attempts.get(key)
        if said or attempt is None:
            return int(said or 1)
        here = attempt.share_on(host) is not None
        return attempt.resizing.version if here else attempt.joined_with(host)

    def _target(self, word: str) -> c.Target:
        letter, _, indices = word.removesuffix("]").partition("[")
        return c.Target(self.numbers[letter], Ranges.parse(indices) if indices else None)

    def _name(self, key: Key) -> str:
        letter = next(letter for letter, number in self.numbers.items() if number == key.job)
        return f"{letter}[{key.index}]#{key.attempt}" if key.index else f"{letter}#{key.attempt}"

    # -- telling

    def _report(self, command: c.Command) -> Iterator[str]:
        return self._outcome(self.story.do(command))

    def _outcome(self, outcome: Outcome) -> Iterator[str]:
        return self._told(outcome.events, outcome.orders)

    def _told(self, events: Iterable[e.Event], orders: Iterable[Order]) -> Iterator[str]:
        for event in events:
            if not isinstance(event, QUIET):
                yield self._event_text(event)
        for order in orders:
            if isinstance(order, RevokeOrder):
                yield from () if order.seconds < 0 else (f"-> {order.host}: revoke in {order.seconds:.0f} s",)
            else:
                yield f"-> {order.host}: {_order_text(order)} {self._name(order.key)}"

    def _event_text(self, event: e.Event) -> str:
        parts = [type(event).__name__]
        for name in getattr(event, "_fields", None) or [field.name for field in fields(event)]:
            value = getattr(event, name)
            if name == "key":
                parts.append(self._name(value))
            elif name == "allocation":
                parts.append(f"on {_shares(value)}")
            elif name == "job":
                wanted = value.id if isinstance(value, e.NewJob) else value
                parts.append(next(letter for letter, number in self.numbers.items() if number == wanted))
            elif name == "additions":
                parts.append(f"by {_shares(value)}")
            elif name == "holding":
                parts.append(" ".join(sorted(value)) or "none")
            elif name == "name" or (name == "reservation" and isinstance(value, str)):
                parts.append(value)
            elif name in ("tasks", "version"):
                parts.append(f"{name}={value}")
            elif name in ("host", "status", "signal", "assumed", "avoid_host", "indices", "state"):
                is_plain = value in ("", False) or value is JobState.RUN
                parts.extend([] if is_plain else [_value_text(name, value)])
            elif name == "group":
                parts.append(value.path + ("" if value.limit is None else f" limit={value.limit}"))
            elif name == "paths":
                parts.extend(value)
            elif name in ("post", "pre_exec") and value:
                parts.append(_value_text(name, value))
            elif name == "reason" and value:
                parts.append(f"({value})")
        return " ".join(parts)


def _caller(words: tuple[str, ...]) -> c.Caller:
    """The user after the word "by"."""
    return CALLERS[words[words.index("by") + 1]] if "by" in words else ANN


def _value_text(name: str, value: Any) -> str:
    if name == "host":
        return str(value)
    if name == "indices":
        return str(value.text())
    return name if value is True else f"{name}={getattr(value, 'name', value)}"


def _shares(allocation: Any) -> str:
    return " ".join(f"{share.host}({share.slots})" for share in allocation)


def _order_text(order: Order) -> str:
    match order:
        case StageOrder(launch_now=now):
            return "stage and launch" if now else "stage"
        case LaunchOrder():
            return "launch"
        case SignalOrder(signal=0):
            return "terminate"
        case SignalOrder(signal=signal):
            return f"signal {signal}"
        case ReleaseOrder():
            return "release"
        case ResizeOrder(version=version, allocation=allocation):
            return f"resize to {_shares(allocation)} version {version}"
        case ForgetOrder():
            return "forget"
        case CheckpointOrder(request=request):
            return f"checkpoint {request.number}" + " and end" * request.ends + " of"
        case NoticeOrder(event=event):
            return f"notice of {event}"


def _held(share: HostShare) -> Iterator[str]:
    if share.memory_mib:
        yield f"mem={share.memory_mib}"
    if share.gpus:
        memory = f" with {share.gpu_memory_mib[0]} MB each" if any(share.gpu_memory_mib) else ""
        memory = memory or (" shared" if share.gpu_memory_mib else "")
        yield f"gpus={','.join(map(str, share.gpus))}{memory}"
    if share.cpus:
        yield "cpus=" + " ".join([",".join(map(str, task)) for task in share.cpus])
    for one in share.resources:
        numbers = f" ({','.join(map(str, one.devices))})" if one.devices else ""
        yield f"{one.name}={one.amount / PARTS:g}{numbers}"


def _array_text(array: ArrayRecord) -> str:
    live = " ".join(f"[{index}] {job.state.name}" for index, job in array.live.items())
    parts = [
        ("pending", array.pending.text()),
        ("blocked", array.blocked.text()),
        ("held", array.held.text()),
        ("live", live),
    ]
    parts += [("done", array.done or ""), ("exited", array.exited or "")]
    return ", ".join(f"{name} {value}" for name, value in parts if value)


def played(text: str) -> str:
    """The transcript with its real results: comments, blank lines and commands kept, all else made anew."""
    player = Player()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(">"):
            lines.append(line)
            lines += [f"    {told}".rstrip() for told in player.play(line[1:].strip())]
        elif not line.startswith(" "):
            lines.append(line)
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Show or, with --rewrite, write the real results of transcripts; 1 if one differs."""
    rewrite = "--rewrite" in arguments
    chosen = [Path(word) for word in arguments if not word.startswith("-")] or sorted(HERE.glob("*.txt"))
    differ = 0
    for path in chosen:
        text = path.read_text(encoding="utf-8")
        now = played(text)
        differ += now != text
        if rewrite:
            path.write_text(now, encoding="utf-8")
        elif now != text:
            sys.stdout.write(f"{path.name} differs:\n{now}")
    return 0 if rewrite else min(differ, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
