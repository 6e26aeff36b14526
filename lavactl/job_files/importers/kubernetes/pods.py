"""Pod templates as roles: command, environment, resources, ports, restarts of the container.

Only the first container becomes the tasks' command; a fraction of a processor becomes a whole slot. Fields of a pod
that have no meaning on a host without containers are noted, never taken silently.
"""

import re

from lavactl.job_files.importers.kubernetes import metadata
from lavactl.job_files.importers.kubernetes.expansion import expand, is_open, is_shell_name, shell_line
from lavactl.job_files.importers.kubernetes.variables import Variables, read_variables
from lavactl.job_files.model import UNLIMITED, JobFile, gpus_per_task
from lavactl.job_files.text import quantities
from lavactl.job_files.text.fields import Fields, Note
from lavactl.job_files.text.nodes import Mapping, Node, Scalar
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

RESTARTS = {
    "Always": messages.RESTART_ALWAYS,
    "OnFailure": messages.RESTART_ON_FAILURE,
    "Never": messages.RESTART_NEVER,
}
SSH_PORT = 22
PLACED_BY = "kueue.x-k8s.io/podset-"
GPU = re.compile(r"(nvidia\.com|amd\.com|gpu\.intel\.com)/(gpu|i915|xe)|volcano\.sh/gpu-number")
SLOTS_MAX = 1 << 20
NO_COMMAND = (
    "role ROLE has no command: its image's own is not known to lava; give one beside the file, as in "
    "bsub -yaml FILE COMMAND."
)
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?")
AMOUNTS = re.compile(r"cpu|memory|ephemeral-storage|storage|hugepages-\w+|[\w.-]+/[\w./-]+")
PULLS = ("Always", "IfNotPresent", "Never")
SHELLS = frozenset(("sh", "bash", "ash", "dash"))
_SSHD_ONLY = re.compile(r"(mkdir( -p)? \S*sshd\S*|(exec )?(\S*/)?sshd( -\S+| \S*sshd_config\S*)*|sleep infinity)?")


def fill_role(job: JobFile, role: messages.Role, template: Fields, container: str = "") -> None:
    """Fill in a role from a pod template.

    Args:
        container: name of the container that runs; the first one without it.

    Raises:
        FileError: the template is wrong.
    """
    pod = template.child("spec")
    _ignore_metadata(template.child("metadata"))
    main = _main_container(pod, container)
    _fill_resources(role, main)
    variables = read_variables(job, role, main)
    fill_environment(role, variables)
    role.cwd = main.text("workingDir")
    _read_directory(role, pod)
    role.image = main.text("image")
    if role.image:
        main.note("image", f"{role.image} is used only where hosts are configured to run containers.")
    fill_command(job, role, main, variables)
    _fill_ports(role, main)
    _fill_selector(role, pod)
    role.restart = pod.word("restartPolicy", RESTARTS, messages.RESTART_NEVER)
    if role.restart != messages.RESTART_NEVER:
        role.restarts_max = UNLIMITED
    if pod.has("activeDeadlineSeconds"):
        role.run_limit_s = pod.number("activeDeadlineSeconds", 0, 1)
    pod.get("activeDeadlineSeconds")
    _ignore(pod, main)


def _main_container(pod: Fields, name: str) -> Fields:
    nodes = pod.items("containers")
    if not nodes:
        raise pod.wrong("containers", "a pod needs a container.")
    names = _names(pod, nodes)
    if name and name not in names:
        raise pod.wrong("containers", f"there is no container named {name}.")
    chosen = names.index(name) if name else 0
    main = None
    for at, node in enumerate(nodes):
        if at == chosen and isinstance(node, Mapping):
            main = pod.reading.open(node, f"{pod.path_of('containers')}[{at}]")
        else:
            pod.reading.note(
                node.place, f"{pod.path_of('containers')}[{at}]", f"ignored: container {names[chosen]} is the task."
            )
    assert main is not None
    main.text("name")
    return main


def _names(pod: Fields, nodes: "list[Node]") -> list[str]:
    """Names of a pod's containers; each needs one of its own."""
    names: list[str] = []
    for at, node in enumerate(nodes):
        if not isinstance(node, Mapping):
            raise pod.expected(f"containers[{at}]", "a mapping", node)
        where = Fields(pod.reading, node, f"{pod.path_of('containers')}[{at}]")
        name = where.required("name")
        metadata.check_label(where, "name", name)
        if name in names:
            raise where.wrong("name", f"there are two containers named {name}.")
        names.append(name)
    return names


def _read_directory(role: messages.Role, pod: Fields) -> None:
    """A working directory that stands beside the containers, as in some of Volcano's examples, is no field of a pod."""
    if pod.has("workingDir"):
        pod.ignore(("workingDir",), "a working directory is a field of the container")


def _ignore_metadata(found: Fields) -> None:
    """Note labels and annotations of pods, but those that Kueue places by: nothing here looks at them."""
    found.asked |= {"name", "creationTimestamp", "namespace"}
    for kind in ("labels", "annotations"):
        words = found.child(kind)
        words.ignore([name for name, _ in words.node if not name.startswith(PLACED_BY)], "tasks have no labels")


def fill_environment(role: messages.Role, variables: Variables) -> None:
    """Fill in the variables whose values the file has."""
    role.environment.extend(
        f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in variables.known.items()
    )


def fill_command(job: JobFile, role: messages.Role, main: Fields, variables: Variables) -> None:
    """Fill in the command of a container, in which its variables are expanded."""
    words = main.quoted_texts("command") + main.quoted_texts("args")
    if main.has("args") and not main.texts("command"):
        main.note("args", "the image's entry point is not known: the arguments are run as a command.")
    if not words:
        note_lack(job, role.name, main)
        for name in variables.told:
            main.note("env", f"ignored: the variable {name} is not set: the command is not the file's.")
    elif variables.told or any(is_open(word, variables.known) for word in words):
        role.command = shell_line(words, variables.known, variables.told)
        for name in variables.secret:
            if not is_shell_name(name):
                main.note("env", f"ignored: the variable {name} is not set: the shell takes no such name of a secret.")
    else:
        role.argv.extend(expand(word, variables.known) for word in words)


def note_lack(job: JobFile, name: str, fields: Fields) -> None:
    """Note that a role has no command, which submission needs."""
    job.lacks.append(Note(fields.place(), fields.path_of("command"), NO_COMMAND.replace("ROLE", name)))
    fields.note("command", f"missing: submission of role {name} needs one beside the file.")


def drop_lack(job: JobFile, role: messages.Role, notes: "list[Note]") -> None:
    """Take back that a role needs a command."""
    paths = {lack.field for lack in job.lacks if f"role {role.name} " in lack.text}
    job.lacks = [lack for lack in job.lacks if lack.field not in paths]
    notes[:] = [note for note in notes if note.field not in paths or not note.text.startswith("missing")]


def is_ssh_server(role: messages.Role) -> bool:
    """True if a role's command only runs an SSH server: lava starts processes on its hosts by itself."""
    words = list(role.argv)
    if not words:
        return False
    program = words[0].rpartition("/")[2]
    if program == "sshd":
        return True
    if program not in SHELLS or len(words) != 3 or not words[1].startswith("-") or "c" not in words[1]:
        return False
    statements = [one.strip() for one in re.split(r";|&&|\n", words[2])]
    return any("sshd" in one.split("/")[-1] for one in statements) and all(map(_SSHD_ONLY.fullmatch, statements))


def hold_without_process(role: messages.Role, fields: Fields, why: str) -> None:
    """Let the tasks of a role only hold their slots, for ranks that another role starts there."""
    role.launch, role.restart, role.restarts_max = messages.LAUNCH_NONE, messages.RESTART_NEVER, 0
    del role.argv[:]
    role.command = ""
    fields.note("", f"role {role.name} holds its slots without a process: {why}.")


# -- resources ---------------------------------------------------------------------------------------------------------


def _fill_resources(role: messages.Role, main: Fields) -> None:
    resources = main.child("resources")
    fill_amounts(role, resources)


def fill_amounts(role: messages.Role, resources: Fields) -> None:
    """Fill in slots, memory and GPUs of each task from requests and limits; a request that is absent is its limit."""
    limits, requests = resources.child("limits"), resources.child("requests")
    amounts: dict[str, tuple[Fields, Fraction]] = {}
    for fields in (limits, requests):
        for name, _ in fields.node:
            if not AMOUNTS.fullmatch(name):
                raise fields.wrong(name, "there is no such resource; a device has a name such as nvidia.com/gpu.")
            amount = _quantity(fields, name)
            if name in amounts and amount > amounts[name][1]:
                raise fields.wrong(name, f"{fields.text(name)} is more than the limit, {limits.text(name)}.")
            amounts[name] = fields, amount
    _check_devices(limits, requests)
    gpus = 0
    for name, (fields, amount) in amounts.items():
        if name == "cpu":
            _fill_slots(role, fields, amount)
        elif name == "memory":
            if memory := quantities.mib(amount):
                role.requirement = f"rusage[mem={memory}/task]"
        elif GPU.fullmatch(name):
            gpus += quantities.whole(amount)
        else:
            fields.note(name, "ignored: lava gives out slots, memory and GPUs by a job file.")
    if gpus:
        role.gpu.CopyFrom(gpus_per_task(gpus))
    if "memory" in limits.node.entries:
        role.memory_limit_mib = quantities.mib(_quantity(limits, "memory"))


def _check_devices(limits: Fields, requests: Fields) -> None:
    """Refuse amounts of devices that Kubernetes refuses: fractions, and requests that differ from the limit."""
    for fields in (limits, requests):
        for name in (name for name, _ in fields.node if "/" in name):
            amount = _quantity(fields, name)
            if amount.denominator != 1:
                raise fields.wrong(name, f"{fields.text(name)} is no whole number of devices.")
            if name in limits.node.entries and amount != _quantity(limits, name):
                raise fields.wrong(name, f"{fields.text(name)} differs from the limit, {limits.text(name)}.")


def _quantity(fields: Fields, name: str) -> "Fraction":
    node = fields.scalar(name, "a quantity")
    if node is None:
        return quantities.read_quantity("0")
    try:
        return quantities.read_quantity(node.text)
    except ValueError:
        raise fields.expected(name, "a quantity such as 2, 500m or 4Gi", node) from None


def _fill_slots(role: messages.Role, fields: Fields, amount: "Fraction") -> None:
    slots = max(quantities.whole(amount), 1)
    if slots > SLOTS_MAX:
        raise fields.wrong("cpu", "that many processors are in no cluster.")
    if slots != amount:
        fields.note("cpu", f"{fields.text('cpu')} of a processor is {slots} slot{'s' * (slots > 1)} of each task.")
    role.slots_per_task = slots


def _fill_ports(role: messages.Role, main: Fields) -> None:
    seen: set[str] = set()
    for one in main.children("ports"):
        number = one.number("containerPort", 0, 1, 65535)
        if not number:
            raise one.wrong("containerPort", "it is missing.")
        one.word("protocol", {word: word for word in ("TCP", "UDP", "SCTP")}, "")
        one.asked.add("hostIP")
        wanted = one.number("hostPort", 0, 0, 65535)
        name = one.text("name") or f"port-{number}"
        if one.has("name") and not _PORT_NAME.fullmatch(name):
            raise one.wrong("name", f"{name[:80]!r} is no name of a port: it has up to 15 small letters, digits and -.")
        if one.has("name") and name in seen:
            raise one.wrong("name", f"there are two ports named {name}.")
        seen.add(name)
        if number == SSH_PORT:
            one.ignore(("containerPort",), "no SSH server is needed")
        elif all(port.name != name for port in role.ports):
            role.ports.add(name=name, count=1, number=wanted or number, is_preferred=not wanted)


def add_port(role: messages.Role, name: str, number: int, *known: str) -> None:
    """Add the port that a convention tells of under ``name``, unless the role has it under one of the names ``known``.

    A port of the file with that number is this one, whatever its name.
    """
    if any(port.name in (name, *known) for port in role.ports):
        return
    for port in role.ports:
        if port.number == number:
            port.name = name
            return
    role.ports.add(name=name, count=1, number=number, is_preferred=True)


def _fill_selector(role: messages.Role, pod: Fields) -> None:
    selector = pod.child("nodeSelector")
    for label, node in selector.node:
        value = node.text if isinstance(node, Scalar) else ""
        if label == "kubernetes.io/hostname" and re.fullmatch(r"[\w.-]+", value):
            selector.text(label)
            role.requirement = f'select[hname=="{value}"] {role.requirement}'.strip()
        elif label == "kubernetes.io/os" and value == "linux":
            selector.text(label)
        else:
            selector.ignore((label,), "lava's hosts have no labels; a resource requirement selects them")


def _ignore(pod: Fields, main: Fields) -> None:
    pod.ignore(("schedulerName",), "lava is the scheduler")
    pod.ignore(("initContainers",), "they are not run")
    pod.ignore(("hostNetwork", "dnsPolicy", "hostIPC", "hostPID"), "tasks have the network and processes of their host")
    pod.ignore(("tolerations", "affinity", "topologySpreadConstraints"), "lava's hosts have no labels or taints")
    pod.ignore(("terminationGracePeriodSeconds",), "the site sets the time between SIGTERM and SIGKILL")
    pod.ignore(("serviceAccountName", "automountServiceAccountToken"), "tasks run as the user who submits them")
    main.ignore(("lifecycle",), "a task has its command alone")
    pod.ignore(("volumes",), "lava expects a shared file system")
    main.ignore(("volumeMounts",), "lava expects a shared file system")
    main.word("imagePullPolicy", {word: word for word in PULLS}, "")
    main.ignore(("imagePullPolicy",), "images are prepared by the site")
    pod.ignore(("imagePullSecrets",), "images are prepared by the site")
    pod.ignore(("securityContext",), "tasks run as the user who submits them")
    main.ignore(("securityContext",), "tasks run as the user who submits them")
    main.ignore(("livenessProbe", "readinessProbe", "startupProbe"), "a task is ready when it runs")
    pod.ignore(("priorityClassName",), "the queue's priority counts")
