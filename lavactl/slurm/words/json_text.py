"""Jobs in the form of Slurm's JSON: its main fields, numbers with Slurm's marks for those that are not set."""

import json

from lavactl.slurm.words.jobs import JobView
from protos import __version__
from protos.slurm_words import compressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def jobs_text(views: "Iterable[JobView]") -> str:
    """The whole document."""
    meta = {"plugins": {}, "Slurm": {"release": f"lava {__version__}"}}
    return json.dumps({"jobs": [_job(view) for view in views], "meta": meta, "errors": [], "warnings": []}, indent=2)


def _number(value: float, is_set: bool = True, is_infinite: bool = False) -> dict[str, object]:
    return {"set": is_set, "infinite": is_infinite, "number": int(value) if is_set else 0}


def _job(view: JobView) -> dict[str, object]:
    job, spec = view.job, view.job.spec
    code, _, signal = view.exit_code.partition(":")
    return {
        "account": job.project or "default",
        "array_job_id": _number(job.job if job.index else 0),
        "array_task_id": _number(job.index - view.base, bool(job.index) and not view.indices),
        "array_task_string": view.elements if view.indices else "",
        "batch_host": view.hosts[0] if view.hosts else "",
        "command": spec.command.partition("\n")[0],
        "comment": spec.description,
        "cpus": _number(view.cpus),
        "current_working_directory": spec.cwd,
        "dependency": spec.dependency,
        "end_time": _number(view.end_time),
        "exit_code": {
            "status": [view.state.word],
            "return_code": _number(int(code)),
            "signal": {"id": _number(int(signal))},
        },
        "job_id": job.job,
        "job_state": [view.state.word],
        "name": view.name,
        "node_count": _number(view.nodes),
        "nodes": compressed(view.hosts),
        "partition": job.queue,
        "priority": _number(job.priority),
        "standard_error": view.file(spec.error, spec.output),
        "standard_input": view.file(spec.input, "/dev/null"),
        "standard_output": view.file(spec.output),
        "start_time": _number(job.start_time or job.estimated_start),
        "state_reason": view.reason,
        "submit_time": _number(job.submit_time),
        "tasks": _number(view.tasks),
        "time_limit": _number(view.limit_s // 60, bool(view.limit_s), not view.limit_s),
        "tres_req_str": view.resources,
        "user_name": job.user,
    }
