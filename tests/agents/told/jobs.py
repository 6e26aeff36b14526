"""Jobs of tasks in a line: roles, places of their tasks, and the telling of one of them."""

from collections.abc import Iterable

from agents.job_setup.told.tell import tell
from agents.job_setup.told.values import HostFacts, Told
from protos.agents_pb2 import JobSpecBlob
from protos.common_pb2 import PortRequest, Role, RoleTasks, TaskHost, TaskRun
from protos.jobs_pb2 import Convention, JobSpec, TaskRules

DIRECTORY = "/var/lib/lava/taskfiles/7-0-1"


def role(name: str, *ports: str, **fields: object) -> Role:
    """A role with these ports, each NAME or NAME*COUNT."""
    requests = [PortRequest(name=port.partition("*")[0], count=int(port.partition("*")[2] or 0)) for port in ports]
    return Role(name=name, ports=requests, **fields)  # type: ignore[arg-type]


def job(roles: Iterable[Role], *conventions: str, name: str = "mnist", **fields: object) -> JobSpecBlob:
    """A job with conventions, each "NAME OPTION=VALUE ..."."""
    known = [Convention(name=line.split()[0], options=line.split()[1:]) for line in conventions]
    rules = TaskRules(conventions=known, format=1)
    return JobSpecBlob(
        job=7, user="ada", uid=1000, queue="gpu", spec=JobSpec(name=name, roles=roles, tasks=rules, **fields)
    )  # type: ignore[arg-type]


def at(host: str, address: str, **tasks: str) -> TaskHost:
    """A host with tasks: r0="0,1" for indices of role 0, r0="0:4001/4002,1:4003/4004" with ports."""
    parts = []
    for key, text in tasks.items():
        words = [word.partition(":") for word in text.split(",")]
        ports = [int(port) for _, _, numbers in words for port in numbers.split("/") if port]
        parts.append(RoleTasks(role=int(key[1:]), indices=[int(index) for index, _, _ in words], ports=ports))
    return TaskHost(host=host, address=address, roles=parts)


def facts(host: str = "n1", **fields: object) -> HostFacts:
    """A host of the job."""
    values: dict[str, object] = {"directory": DIRECTORY, "key": (7, 0, 1), "cwd": "/home/ada", "bin_dir": "/opt/lava"}
    return HostFacts(host, **(values | fields))  # type: ignore[arg-type]


def told(blob: JobSpecBlob, hosts: Iterable[TaskHost], role: int, index: int, run: int = 1, **fields: object) -> Told:
    """The telling of one task."""
    return tell(blob, TaskRun(role=role, index=index, run=run), list(hosts), facts(**fields))


def variables(result: Told, *beginnings: str) -> dict[str, str]:
    """Its variables whose names begin so."""
    return {name: value for name, value in result.environment.items() if name.startswith(beginnings)}


def text(result: Told, path: str) -> str:
    """A file at a fixed path."""
    return result.files[path].content.decode()


# Two hosts: the parameter server and the first worker share n1.
PS_AND_WORKERS = (at("n1", "10.0.0.1", r0="0", r1="0"), at("n2", "10.0.0.2", r1="1"))
