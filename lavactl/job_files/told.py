"""Options of each convention, and the roles that it finds by their names: so that none is taken and says nothing.

The agents read the same words (agents/job_setup/told); a test compares both lists.
"""

from lavactl.job_files.text.fields import one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lavactl.job_files.model import JobFile
    from protos.jobs_pb2 import Convention

_RENDEZVOUS = (
    "nnodes", "min", "max", "nproc-per-node", "max-restarts", "rdzv-backend", "rdzv-host", "rdzv-port", "rdzv-id",
    "rdzv-conf", "standalone",
)  # fmt: skip
_TORCH = ("master", "worker", "port", "style", *_RENDEZVOUS)
_RAY = ("head", "worker", "port", "dashboardPort", "dashboard-port", "clientPort", "client-port")
# Options of each convention, in the order of docs/reference/conventions.md.
OPTIONS: dict[str, tuple[str, ...]] = {
    "env": (),
    "svc": ("inject-hosts-env",),
    "dns": (),
    "ssh": ("ssh-key-file-path", "ssh-port"),
    "tensorflow": ("port", "ps", "worker", "chief", "evaluator", "style", "dynamic-worker"),
    "tfjob": ("port", "dynamic-worker"),
    "pytorch": _TORCH,
    "pytorchjob": _TORCH,
    "torchelastic": ("master", "worker", *_RENDEZVOUS),
    "mpi": ("master", "worker"),
    "mpijob": (
        "implementation", "slots", "slots-per-worker", "style", "version", "launcher", "worker", "launcher-as-worker",
    ),
    "horovod": ("worker", "slots", "slots-in-discovery"),
    "deepspeed": ("worker", "slots", "port"),
    "mindspore": ("scheduler", "worker", "server", "port"),
    "ray": _RAY,
    "rayjob": _RAY,
    "pai": ("generation", "user", "job", "virtual-cluster", "vc", "data-dir", "output-dir", "code-dir", "jobssh"),
    "slurm": ("roles",),
    "jobset": ("network", "subdomain"),
    "leaderworkerset": ("size", "group", "subdomain"),
    "indexed": (),
    "trainjob": ("framework", "launcher", "worker", "nproc-per-node", "port", "slots", "launcher-as-worker"),
    "jaxjob": ("worker", "port"),
    "hcclrank": ("master", "worker"),
    "code": ("source", "limit-mib"),
}  # fmt: skip
NUMBERS = frozenset(
    ("port", "ssh-port", "rdzv-port", "dashboardPort", "dashboard-port", "clientPort", "client-port", "slots",
     "slots-per-worker", "min", "max", "max-restarts", "size", "group", "limit-mib", "generation")
)  # fmt: skip
# Written by earlier versions into jobs that `lavactl show` still gives back; they never had a meaning.
_EARLIER = frozenset(
    ("publish-not-ready-addresses", "disable-network-policy", "ssh-auth-path", "ssh-barrier", "ssh-barrier-minutes")
)
_OF_PAI = ("cpu", "gpu", "memory-mb", "mem", "shm-mb", "shm", "min-failed", "min-succeeded")  # NAME.ROLE or ROLE.NAME
_TENSORFLOW = ("ps", "worker", "chief", "evaluator")
# Roles of which one is needed, by the options that name them, else by these names; of each group.
_WANTED: dict[str, tuple[tuple[str, ...], ...]] = {
    "tensorflow": (_TENSORFLOW,),
    "tfjob": ((*_TENSORFLOW, "master"),),
    **dict.fromkeys(("pytorch", "pytorchjob", "torchelastic", "hcclrank"), (("master", "worker"),)),
    "mpi": (("master",), ("worker",)),
    "mpijob": (("launcher", "worker"),),
    "mindspore": (("scheduler", "worker"),),
    **dict.fromkeys(("trainjob", "jaxjob"), (("worker",),)),
    **dict.fromkeys(("ray", "rayjob"), (("head",),)),
}
_OF_ONE_ROLE = ("pytorch", "pytorchjob", "torchelastic")  # take the only role of a job, whatever its name
# Conventions that tell the tasks of those roles alone, with the roles that they look for.
_ALONE = {
    "tensorflow": _TENSORFLOW,
    "tfjob": (*_TENSORFLOW, "master"),
    **dict.fromkeys(_OF_ONE_ROLE, ("master", "worker")),
    "hcclrank": ("master", "worker"),
    "mpi": ("master",),
    "mindspore": ("scheduler", "worker", "server"),
    "trainjob": ("launcher", "worker"),
    "jaxjob": ("worker",),
}
_ROLE_OPTIONS = frozenset((*_TENSORFLOW, "master", "launcher", "scheduler", "server", "head"))


def fault(convention: str, option: str, value: str, roles: "Iterable[str]") -> str:
    """Sentence about an option that the convention does not have, or that is no number; empty if it is well."""
    if option in OPTIONS[convention]:
        is_wrong = option in NUMBERS and value and not (value.isascii() and value.isdigit())
        return f"expected a whole number, found {value[:80]}." if is_wrong else ""
    if option in _EARLIER or _is_of_a_role(convention, option, roles):
        return ""
    return f"{convention} has no option {option[:80]}{_near(convention, option)}"


def _near(convention: str, option: str) -> str:
    import difflib

    near = difflib.get_close_matches(option, OPTIONS[convention], 1)
    if near:
        return f"; is {near[0]} meant?"
    return f"; it has {', '.join(OPTIONS[convention])}." if OPTIONS[convention] else "."


def _is_of_a_role(convention: str, option: str, roles: "Iterable[str]") -> bool:
    if convention == "jobset":
        return option.endswith(".pods") and option.removesuffix(".pods") in roles
    is_about = (option == f"{role}.{word}" or option == f"{word}.{role}" for role in roles for word in _OF_PAI)
    return convention == "pai" and any(is_about)


def remarks(job: "JobFile") -> "list[tuple[str, str]]":
    """(convention, sentence) for each that finds no role to tell, or whose options name roles that are not there."""
    if job.rules is None:
        return []
    roles = [role.name for role in job.roles]
    return [(one.name, text) for one in job.rules.conventions for text in _remarks(one, roles, _is_one_task(job))]


def _is_one_task(job: "JobFile") -> bool:
    return sum(role.tasks_max for role in job.roles) == 1


def _remarks(convention: "Convention", roles: "Sequence[str]", is_one_task: bool) -> "list[str]":
    name, given = convention.name, _named(convention)
    absent = [(option, role) for option, role in given if role not in roles]
    if absent:
        return [f"{name}: there is no role {role}, which its option {option} names." for option, role in absent]
    if (name in _OF_ONE_ROLE and not given and len(roles) == 1) or (name == "tensorflow" and is_one_task):
        return []
    found = dict(given)
    lacking = [group for group in _WANTED.get(name, ()) if not any(found.get(one, one) in roles for one in group)]
    return [f"tasks are told nothing by {name}: there is no role {one_of(one)}{_remedy(name, one)}" for one in lacking]


def _remedy(name: str, wanted: "tuple[str, ...]") -> str:
    options = [one for one in wanted if one in OPTIONS[name]]
    if not options:
        return "."
    return f"; its option{'s' * (len(options) > 1)} {' and '.join(options)} can name others."


def _named(convention: "Convention") -> "list[tuple[str, str]]":
    """(option, role) of all roles that the options of a convention name."""
    parted = [one.partition("=") for one in convention.options]
    found = {option: value for option, _, value in parted if value}
    if convention.name == "slurm":
        return [("roles", role) for role in found.get("roles", "").split(",") if role]
    return [(option, role) for option, role in found.items() if option in _role_options(convention.name)]


def _role_options(name: str) -> "Iterable[str]":
    return (_ROLE_OPTIONS | {"worker"}) & set(OPTIONS[name])


def told_roles(convention: "Convention", roles: "Sequence[str]") -> "list[str]":
    """Roles whose tasks a convention tells something; all of them where it looks for none."""
    given = _named(convention)
    if convention.name == "slurm" and given:
        wanted = {role for _, role in given}
    elif convention.name not in _ALONE or (convention.name in _OF_ONE_ROLE and not given and len(roles) == 1):
        return list(roles)
    else:
        wanted = {dict(given).get(one, one) for one in _ALONE[convention.name]}
    return [role for role in roles if role in wanted]
