"""Resource request of a job, from its -R and -gpu and its queue's defaults, as roles that can be placed.

Merging follows LSF: conditions of job and queue are and-ed; the job's order, span, same, cu and affinity replace the
queue's; reservations are united, and the queue's amounts of memory, swap and temporary space are the job's maximum.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from lavad.core.language.requirements import affinity, cu, fixed_ports, gpu, parser, rusage, span
from lavad.core.language.requirements.gpu import GpuRequirement
from lavad.core.language.requirements.parser import Choice, CompoundTerm, Requirement
from lavad.core.language.requirements.rusage import Per, Reserve, Usage
from lavad.core.language.requirements.vocabulary import RESERVABLE, Vocabulary
from lavad.core.model import PARTS, RACK, SPREAD, Alternative, JobOptions, Request, RoleAsked, RoleRequest
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import Queue
from lavad.core.state.hosts.load_thresholds import start_condition
from lavad.core.state.hosts.table import HostTable

CHOICES_MAX = 16
SLOTS_MAX = 1_000_000
UNBOUNDED = -1  # span[stripe] without a number
MOST_FREE_FIRST = "slots"  # order of hosts that makes tasks take few of them


@dataclass(frozen=True, slots=True)
class RequestRules:
    """Parts of the requirement that are not the job's own: known names, the queue's defaults, reservations per task."""

    vocabulary: Vocabulary
    queue: Requirement | None = None  # and the application profile's
    queue_gpu: str = ""  # the queue's GPU_REQ, or the profile's
    default_gpu: str = ""  # LSB_GPU_REQ: meaning of ``-gpu -`` without a GPU_REQ of the queue
    per_task: bool = False
    type: str = ""  # of the submission host if types differ: select[type==local] is LSF's default
    has_units: bool = False  # compute units are configured
    has_slices: bool = False  # a host has MIG devices: a plain number of GPUs must say that it means whole ones


def vocabulary_of(policy: Policy, table: HostTable, from_host: str = "") -> Vocabulary:
    """Names that a requirement may use now, and the submission host's meaning of ``local``."""
    row = table.rows.get(from_host)
    facts = table.facts[row] if row is not None else None
    booleans = table.cached("booleans", lambda: frozenset(name for one in table.facts for name in one.resources))
    own_type, model = (facts.type, facts.model) if facts else ("", "")
    units = policy.size_units
    return Vocabulary(policy.resources, booleans, False, own_type, model, units.size_mib, units.tmp_mib)


def rules_for(policy: Policy, table: HostTable, queue: Queue | None, from_host: str = "") -> RequestRules:
    """Rules for a job submitted to that queue from that host."""
    vocabulary = vocabulary_of(policy, table, from_host)
    text = f"{queue.defaults.requirement} {start_condition(queue, table)}".strip() if queue is not None else ""
    parsed = _queue_requirement(text, vocabulary) if text else None
    if queue is not None and queue.defaults.application_requirement:
        parsed = _profile_requirement(queue.defaults.application_requirement, RequestRules(vocabulary, parsed))
    types = table.cached("types", lambda: {facts.type for facts in table.facts if facts.server})
    gpus = queue.defaults.gpu_requirement if queue is not None else ""
    own_type = vocabulary.local_type if len(types) > 1 else ""
    has_units = bool(policy.compute_unit_types)
    has_slices = table.cached("slices", lambda: any(one.slices for facts in table.facts for one in facts.devices))
    return RequestRules(
        vocabulary, parsed, gpus, policy.gpu_requirement, policy.reserves_per_task, own_type, has_units, has_slices
    )


def _queue_requirement(text: str, vocabulary: Vocabulary) -> Requirement:
    try:
        return parser.parse(text, vocabulary)
    except Refused as error:
        raise Refused(f"The queue's RES_REQ: {error}") from None


def _profile_requirement(text: str, rules: RequestRules) -> Requirement:
    try:
        return combined(text, rules)
    except Refused as error:
        raise Refused(f"The application profile's RES_REQ: {error}") from None


def combined(text: str, rules: RequestRules) -> Requirement:
    """The job's requirement combined with its queue's.

    Raises:
        Refused: bad syntax, an unknown name, or more reserved than the queue allows.
    """
    own = parser.parse(text, rules.vocabulary)
    if rules.queue is None:
        return own
    if not text.strip():
        return rules.queue
    if not rules.queue.is_simple:
        return own
    return Requirement(tuple([_merged(choice, rules.queue.term) for choice in own.choices]))


def _merged(choice: Choice, queue: CompoundTerm) -> Choice:
    terms = tuple([(times, _merged_term(term, queue)) for times, term in choice.terms])
    return replace(choice, terms=terms)


def _merged_term(job: CompoundTerm, queue: CompoundTerm) -> CompoundTerm:
    wanted = job.span if job.span != span.NONE else queue.span
    return CompoundTerm(
        parser.and_ed(queue.select, job.select),
        job.order or queue.order,
        _merged_usages(job.usages, queue.usages),
        span.NONE if wanted.is_cancelled else wanted,
        job.same or queue.same,
        job.cu or queue.cu,
        job.affinity or queue.affinity,
    )


def _merged_usages(job: tuple[Usage, ...], queue: tuple[Usage, ...]) -> tuple[Usage, ...]:
    if not queue or not job:
        return job or queue
    first = queue[0]
    for usage in job:
        for one in usage.reserves:
            bound = first.of(one.name)
            if bound is not None and one.name in RESERVABLE and one.largest > bound.largest:
                raise Refused(f"Cannot exceed queue's resource reservation: {one.name}")
    return tuple([parser.united(first, usage) for usage in job])


# -- roles -------------------------------------------------------------------------------------------------------------


def request_of(asked: Sequence[RoleAsked], options: JobOptions, rules: RequestRules) -> tuple[Request, str]:
    """Request for placement, and the combined requirement as text.

    Raises:
        Refused: bad -R, -n, -m or -gpu, in one sentence.
    """
    asked = asked or (RoleAsked(),)
    wanted = [combined(one.requirement, rules) for one in asked]
    text = parser.text_of(wanted[0])
    is_of_tasks = asked[0].is_of_tasks
    if len(asked) == 1 and not is_of_tasks:
        choices = list(_choices(asked[0], wanted[0], rules))
        first, *others = choices
        request = Request(first.roles, same=first.same, cu=first.cu, alternatives=tuple(others), **options._asdict())
        return request, text
    if not all(one.is_simple for one in wanted):
        raise Refused("A job with several roles takes one simple -R for each: no terms in braces, no alternatives")
    roles = [
        _role(one, parsed.term, _usage(parsed.term), one.tasks_min, one.tasks_max, rules)
        for one, parsed in zip(asked, wanted, strict=True)
    ]
    return Request(tuple(roles), **options._asdict(), is_of_tasks=is_of_tasks), text


def known_request(
    asked: tuple[RoleAsked, ...],
    options: JobOptions,
    policy: Policy,
    table: HostTable,
    queue: Queue | None,
    from_host: str,
) -> tuple[Request, str]:
    """Request of a job in a queue, as by ``request_of``. Cached until hosts or rules change: many jobs are alike."""

    def make() -> tuple[Request, str]:
        return request_of(asked, options, rules_for(policy, table, queue, from_host))

    place = (queue.name, queue.application) if queue is not None else ("", "")
    return table.cached(("request", asked, options, place, from_host), make)


def _choices(asked: RoleAsked, wanted: Requirement, rules: RequestRules) -> Iterator[Alternative]:
    """Each alternative of -R with each alternative of its rusage, in order."""
    found = 0
    for choice in wanted.choices:
        counts = list(_task_counts(asked, choice))
        for usages in product(*[term.usages or (Usage(),) for _, term in choice.terms]):
            found += 1
            if found > CHOICES_MAX:
                raise Refused(f"Bad resource requirement syntax: more than {CHOICES_MAX} alternatives")
            parts = zip(choice.terms, usages, counts, strict=True)
            roles = tuple([_role(asked, term, usage, *count, rules) for (_, term), usage, count in parts])
            yield Alternative(roles, ":".join(choice.same), cu.text_of(choice.cu) if choice.cu else "", choice.delay_s)


def _task_counts(asked: RoleAsked, choice: Choice) -> Iterator[tuple[int, int]]:
    """Minimum and maximum of tasks for each term; the term without a number is for all the others."""
    named = sum(times for times, _ in choice.terms)
    rest = any(not times for times, _ in choice.terms)
    given = asked.tasks_min if asked.tasks_max > 1 or rest else named  # -n may be left out
    if (rest and given <= named and named) or (not rest and not given <= named <= max(asked.tasks_max, given)):
        raise Refused(f"Bad resource requirement syntax: the terms are for {named} tasks, -n says {given}")
    for times, _ in choice.terms:
        yield (times, times) if times else (asked.tasks_min - named, asked.tasks_max - named)


def _usage(term: CompoundTerm) -> Usage:
    if len(term.usages) > 1:
        raise Refused("A job with several roles takes one simple -R for each: no alternatives in rusage")
    return term.usages[0] if term.usages else Usage()


def _role(
    asked: RoleAsked, term: CompoundTerm, usage: Usage, tasks_min: int, tasks_max: int, rules: RequestRules
) -> RoleRequest:
    _check_tasks(tasks_min, tasks_max, asked.slots_per_task)
    if asked.spread:
        term = _spread(asked, term, rules)
    reserves = tuple([_per_task(one) for one in usage.reserves]) if rules.per_task else usage.reserves
    memory = next((one for one in reserves if one.name == "mem" and _is_simple(one)), None)
    rest = tuple([one for one in reserves if one is not memory]) + fixed_ports.reserves_of(asked.ports, asked.launch)
    gpus = _gpus(asked, usage, rules)
    plain = GpuRequirement(num=gpus.num, per_task=gpus.per_task) if gpus is not None else None
    return RoleRequest(
        tasks_min=tasks_min,
        tasks_max=tasks_max,
        slots_per_task=asked.slots_per_task,
        memory_mib=memory.first // PARTS if memory is not None else 0,
        gpus=gpus.num if gpus is not None else 0,
        gpus_per_task=gpus.per_task if gpus is not None else False,
        one_host=term.span.one_host,
        ptile=term.span.ptile,
        select=term.select or (f"type=='{rules.type}'" if rules.type else ""),
        order=term.order,
        same=":".join(term.same),
        rusage=rusage.text_of(rest),
        gpu=gpu.text_of(gpus) if gpus is not None and (gpus != plain or term.affinity or rules.has_slices) else "",
        cu=cu.text_of(term.cu) if term.cu is not None else "",
        affinity=affinity.text_of(term.affinity) if term.affinity is not None else "",
        ptile_by=term.span.by_value,
        block=term.span.block,
        stripe=(term.span.stripe or UNBOUNDED) if term.span.is_striped else 0,
        launch=asked.launch,
        name=asked.name,
        command=asked.command,
        resizable=asked.resizable,
        spares=asked.spares,
    )


def _spread(asked: RoleAsked, term: CompoundTerm, rules: RequestRules) -> CompoundTerm:
    """The requirement with the placement that the role asks for by name."""
    if asked.spread == RACK:
        if not rules.has_units:
            raise Refused(f"Role {asked.name}: placement in one rack needs compute units, and none is configured")
        if term.cu is not None:
            raise Refused(f"Role {asked.name}: its requirement has a cu section, so it can't be spread as {RACK!r}")
        return replace(term, cu=cu.ComputeUnits(most=1))
    if term.span != span.NONE:
        raise Refused(
            f"Role {asked.name}: its requirement has a span section, so it can't be spread as {asked.spread!r}"
        )
    if asked.spread == SPREAD:
        return replace(term, span=span.Span(is_striped=True))
    return replace(term, order=term.order or MOST_FREE_FIRST)


def _check_tasks(tasks_min: int, tasks_max: int, slots_per_task: int) -> None:
    if tasks_max < tasks_min:
        raise Refused("Bad processor number: the maximum of -n is below its minimum")
    if tasks_max * slots_per_task > SLOTS_MAX:
        raise Refused(f"Too many processors requested: the most is {SLOTS_MAX}")


def _is_simple(one: Reserve) -> bool:
    """True if the amount is for each host and for as long as the job runs."""
    return one.per in (Per.DEFAULT, Per.HOST) and not one.is_timed and not one.threshold and len(one.phases) == 1


def _per_task(one: Reserve) -> Reserve:
    """The reservation under RESOURCE_RESERVE_PER_TASK: one that does not say is for each task."""
    return replace(one, per=Per.TASK) if one.per is Per.DEFAULT else one


def _gpus(asked: RoleAsked, usage: Usage, rules: RequestRules) -> GpuRequirement | None:
    """GPU requirement: -gpu, else rusage[ngpus_physical=], else the queue's GPU_REQ. ``-gpu -`` is the queue's or the
    cluster's default."""
    unit_mib = rules.vocabulary.unit_mib
    if asked.gpu is not None:
        is_default = asked.gpu.strip() in gpu.DEFAULTS
        return gpu.parse((rules.queue_gpu or rules.default_gpu) if is_default else asked.gpu, unit_mib=unit_mib)
    if usage.gpus:
        options = f":{usage.gpu_options}" if usage.gpu_options else ""
        text = f"num={usage.gpus}{'/task' if usage.gpus_per_task else ''}{options}"
        return gpu.parse(text, unit_mib=unit_mib)
    return gpu.parse(rules.queue_gpu, unit_mib=unit_mib) if rules.queue_gpu else None
