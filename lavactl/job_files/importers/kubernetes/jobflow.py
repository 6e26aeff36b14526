"""Volcano's JobFlow and JobTemplate: each flow becomes a job that waits for those it depends on."""

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, volcano
from lavactl.job_files.importers.tables import Anything, Keys, Part, Parts, Required, Table, Texts, Word
from lavactl.job_files.model import JobFile
from lavactl.job_files.text.fields import Fields, Reading
from lavactl.job_files.text.merging import merged
from lavactl.job_files.text.nodes import Mapping, Node, Place, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

KIND = "Volcano JobFlow"
RETAIN = {"retain": True, "delete": False}


def names_of(document: Mapping) -> set[str]:
    """Names of the templates that a flow uses."""
    spec = document.get("spec")
    flows = spec.get("flows") if isinstance(spec, Mapping) else None
    items = flows.items if isinstance(flows, Sequence) else []
    return {one.text("name") for one in items if isinstance(one, Mapping)}


class Probe(Table):
    """``dependsOn`` of a flow."""

    targets = Texts("targets", None, "flows whose jobs must be completed first", here="must be done first")
    probe = Anything("probe", None, "not read by the controller",
                     told="the job starts when those before it are done")  # fmt: skip


class Patch(Table):
    """``patch`` of a flow."""

    spec = Keys("jobSpec", None, "not read by the controller", here="fields over those of the template")


class Flow(Table):
    """One of ``flows``."""

    name = Required("name", "the JobTemplate; the Job is FLOW-NAME", here="one of the same file")
    depends = Part("dependsOn", Probe, "order")
    patch = Part("patch", Patch, "changes of the template")


class FlowSpec(Table):
    """``spec`` of a JobFlow."""

    flows = Parts("flows", Flow, "the jobs", absent="refused")
    retain = Word("jobRetainPolicy", RETAIN, "retain", "delete: jobs are deleted after the flow's success",
                  told="records of jobs stay as long as the site keeps them")  # fmt: skip


class JobFlow(metadata.Document):
    """JobFlow of Volcano: jobs that are started one after the other; one that fails leaves those behind it waiting."""

    spec = Part("spec", FlowSpec, "the jobs and their order")


class JobTemplate(metadata.Document):
    """JobTemplate of Volcano: no job by itself; a JobFlow of the same file makes one of it."""

    spec = Part("spec", volcano.JobSpec, "the job")


def read_template(fields: Fields, shared: Shared) -> list[JobFile]:
    """No job if a flow of the file uses it; otherwise a template is read, to find its errors, and not submitted."""
    document = JobTemplate(fields)
    job = metadata.start(document, "Volcano JobTemplate", "volcano")
    volcano.read_spec(job, document.spec, shared)
    if job.name not in shared.used_templates:
        fields.note("", f"JobTemplate {job.name} is no job and is left out: no JobFlow of this file uses it.")
    return []


def read_flow(fields: Fields, shared: Shared) -> list[JobFile]:
    """Jobs of a flow, those that others depend on first.

    Raises:
        FileError: a template is missing, or the flows depend on each other in a circle.
    """
    document = JobFlow(fields)
    metadata.start(document, KIND, "volcano")
    name, spec = document.metadata.name, document.spec
    if not spec.flows:
        raise spec.wrong(FlowSpec.flows, "a flow needs jobs.")
    jobs: dict[str, JobFile] = {}
    for flow in spec.flows:
        job = _job(flow, name, shared)
        if job.name in jobs:
            raise flow.wrong(Flow.name, f"there are two flows named {flow.name}.")
        jobs[job.name] = job
    for flow in spec.flows:
        _read_order(flow.depends, jobs[f"{name}-{flow.name}"], name, jobs)
    return _ordered(spec, jobs)


def _job(flow: Flow, flow_name: str, shared: Shared) -> JobFile:
    name, reading = flow.name, flow.fields.reading
    template = shared.templates.get(name)
    if template is None:
        raise flow.wrong(Flow.name, f"there is no JobTemplate named {name} in this file.")
    spec = template.get("spec")
    if not isinstance(spec, Mapping):
        raise flow.wrong(Flow.name, f"the JobTemplate {name} has no spec.")
    patch = flow.patch.spec
    patch.asked |= set(patch.node.entries)  # they are read with the template's
    job = JobFile(reading.file, flow.fields.place(), KIND, own_queue=False)
    job.options.append(("J", f"{flow_name}-{name}"))
    job.tasks_rules.origin, job.tasks_rules.owner_name = "volcano", f"{flow_name}-{name}"
    both = Reading(reading.file, reading.beside)
    volcano.read_spec(job, volcano.JobSpec(both.open(merged(spec, patch.node), "spec")), shared)
    _tell_patch(both, patch)
    return job


def _tell_patch(both: Reading, patch: Fields) -> None:
    """Tell what is ignored of a patch; the template's own document tells that of the template."""
    places = set(_places(patch.node))
    for note in both.close():
        if note.place in places:
            patch.reading.note(note.place, patch.path + note.field.removeprefix("spec"), note.text)


def _places(node: Node) -> "Iterator[Place]":
    inner = [one for _, one in node] if isinstance(node, Mapping) else node.items if isinstance(node, Sequence) else []
    yield from node.keys.values() if isinstance(node, Mapping) else ()
    for one in inner:
        yield from _places(one)


def _read_order(depends: Probe, job: JobFile, flow_name: str, jobs: dict[str, JobFile]) -> None:
    for target in depends.targets:
        if f"{flow_name}-{target}" not in jobs:
            raise depends.wrong(Probe.targets, f"there is no flow named {target}.")
        job.after.append(f"{flow_name}-{target}")


def _ordered(spec: FlowSpec, jobs: dict[str, JobFile]) -> list[JobFile]:
    left, found = dict(jobs), []
    while left:
        free = [name for name, job in left.items() if not left.keys() & set(job.after)]
        if not free:
            raise spec.wrong(FlowSpec.flows, f"the flows {', '.join(left)} depend on each other in a circle.")
        found += [left.pop(name) for name in free]
    return found
