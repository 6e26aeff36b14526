"""Volcano's JobFlow and JobTemplate: each flow becomes a job that waits for those it depends on."""

from lavactl.job_files.importers.kinds import Shared
from lavactl.job_files.importers.kubernetes import metadata, volcano
from lavactl.job_files.model import JobFile
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.merging import merged
from lavactl.job_files.text.nodes import Mapping, Sequence

KIND = "Volcano JobFlow"
RETAIN = {"retain": True, "delete": False}


def names_of(document: Mapping) -> set[str]:
    """Names of the templates that a flow uses."""
    spec = document.get("spec")
    flows = spec.get("flows") if isinstance(spec, Mapping) else None
    items = flows.items if isinstance(flows, Sequence) else []
    return {one.text("name") for one in items if isinstance(one, Mapping)}


def read_template(fields: Fields, shared: Shared) -> list[JobFile]:
    """No job if a flow of the file uses it; otherwise a template is read, to find its errors, and not submitted."""
    job = metadata.start(fields, "Volcano JobTemplate", "volcano")
    volcano.read_spec(job, fields.child("spec"), shared)
    if job.name not in shared.used_templates:
        fields.note("", f"JobTemplate {job.name} is no job and is left out: no JobFlow of this file uses it.")
    return []


def read_flow(fields: Fields, shared: Shared) -> list[JobFile]:
    """Jobs of a flow, those that others depend on first.

    Raises:
        FileError: a template is missing, or the flows depend on each other in a circle.
    """
    metadata.start(fields, KIND, "volcano")
    name = fields.child("metadata").text("name")
    spec = fields.child("spec")
    spec.word("jobRetainPolicy", RETAIN, True)
    spec.ignore(("jobRetainPolicy",), "records of jobs stay as long as the site keeps them")
    flows = spec.children("flows")
    if not flows:
        raise spec.wrong("flows", "a flow needs jobs.")
    jobs: dict[str, JobFile] = {}
    for flow in flows:
        job = _job(flow, name, shared)
        if job.name in jobs:
            raise flow.wrong("name", f"there are two flows named {flow.text('name')}.")
        jobs[job.name] = job
    for flow in flows:
        _read_order(flow, jobs[f"{name}-{flow.text('name')}"], name, jobs)
    return _ordered(spec, jobs)


def _job(flow: Fields, flow_name: str, shared: Shared) -> JobFile:
    name = flow.required("name")
    template = shared.templates.get(name)
    if template is None:
        raise flow.wrong("name", f"there is no JobTemplate named {name} in this file.")
    spec = template.get("spec")
    if not isinstance(spec, Mapping):
        raise flow.wrong("name", f"the JobTemplate {name} has no spec.")
    patch = flow.child("patch").child("jobSpec")
    patch.asked |= set(patch.node.entries)  # they are read with the template's
    spec = merged(spec, patch.node)
    reading = type(flow.reading)(
        flow.reading.file, flow.reading.beside
    )  # the template's own document tells what is ignored in it
    job = JobFile(flow.reading.file, flow.place(), KIND, own_queue=False)
    job.options.append(("J", f"{flow_name}-{name}"))
    job.tasks_rules.origin, job.tasks_rules.owner_name = "volcano", f"{flow_name}-{name}"
    return volcano.read_spec(job, reading.open(spec, "spec"), shared)


def _read_order(flow: Fields, job: JobFile, flow_name: str, jobs: dict[str, JobFile]) -> None:
    depends = flow.child("dependsOn")
    for target in depends.texts("targets"):
        if f"{flow_name}-{target}" not in jobs:
            raise depends.wrong("targets", f"there is no flow named {target}.")
        job.after.append(f"{flow_name}-{target}")
    depends.ignore(("probe",), "the job starts when those before it are done")


def _ordered(spec: Fields, jobs: dict[str, JobFile]) -> list[JobFile]:
    left, found = dict(jobs), []
    while left:
        free = [name for name, job in left.items() if not left.keys() & set(job.after)]
        if not free:
            raise spec.wrong("flows", f"the flows {', '.join(left)} depend on each other in a circle.")
        found += [left.pop(name) for name in free]
    return found
