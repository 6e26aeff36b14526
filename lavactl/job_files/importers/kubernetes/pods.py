"""Pod templates as roles: command, environment, resources, ports, restarts of the container.

Only the first container becomes the tasks' command; a fraction of a processor becomes a whole slot. Fields of a pod
that have no meaning on a host without containers are noted, never taken silently.
"""

import re
import shlex

from lavactl.job_files.importers.kubernetes import metadata
from lavactl.job_files.importers.kubernetes.expansion import expand, is_open, is_shell_name, shell_line
from lavactl.job_files.importers.kubernetes.variables import EnvFrom, Variable, Variables, read_variables
from lavactl.job_files.importers.tables import (
    Anything,
    Flag,
    Keys,
    Number,
    Others,
    Part,
    Parts,
    Required,
    Table,
    Text,
    Texts,
    Word,
)
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
REQUIRED_TOPOLOGY, PREFERRED_TOPOLOGY = f"{PLACED_BY}required-topology", f"{PLACED_BY}preferred-topology"
HOST_LABEL = "kubernetes.io/hostname"
GPU = re.compile(r"(nvidia\.com|amd\.com|gpu\.intel\.com)/(gpu|i915|xe)|volcano\.sh/gpu-number")
SLOTS_MAX = 1 << 20
COMMAND_SHOWN = 80  # characters of one that is not run
NO_COMMAND = (
    "role ROLE has no command: its image's own is not known to lava; give one beside the file, as in "
    "bsub -yaml FILE COMMAND."
)
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?")
AMOUNTS = re.compile(r"cpu|memory|ephemeral-storage|storage|hugepages-\w+|[\w.-]+/[\w./-]+")
SHELLS = frozenset(("sh", "bash", "ash", "dash"))
_SSHD_ONLY = re.compile(r"(mkdir( -p)? \S*sshd\S*|(exec )?(\S*/)?sshd( -\S+| \S*sshd_config\S*)*|sleep infinity)?")


NO_LABELS = "lava's hosts have no labels or taints"
AS_USER = "tasks run as the user who submits them"
FILES = "lava expects a shared file system"
IMAGES = "images are prepared by the site"
OF_HOST = "tasks have the network and processes of their host"
READY = "a task is ready when it runs"
NO_SERVICE = "names of tasks are those that the job's conventions tell"


class Port(Table):
    """One of ``ports`` of a container."""

    page = "pod"
    number = Number("containerPort", None, "the port of the pod's own address that the program listens on", 1, 65535,
                    here="this port, which a host has once; a preferred one, where the conventions tell it",
                    absent="refused")  # fmt: skip
    host = Number("hostPort", 0, "the port of the host", 0, 65535, here="this port, which a host has once")
    name = Text("name", "", "its name", here="the name of the port", absent="port-NUMBER")
    protocol = Word("protocol", {word: word for word in ("TCP", "UDP", "SCTP")}, "TCP", "the protocol",
                    told="a reserved port is kept for all protocols")  # fmt: skip
    address = Text("hostIP", "", "the address of the host that is bound", told="a program binds its port by itself")


class Amounts(Table):
    """``limits`` or ``requests`` of a container; where a request is absent, the limit is the request."""

    page = "pod"
    cpu = Text("cpu", "1", "processors, also parts of one",
               here="the request: slots of each task, rounded up; a higher limit is told")  # fmt: skip
    memory = Text("memory", "", "bytes", here="the request is reserved on the host, the limit is that of each task")
    gpus = Text(
        "nvidia.com/gpu", "", "whole devices, request and limit alike",
        here="GPUs of each task; so amd.com/gpu, gpu.intel.com/i915, gpu.intel.com/xe, volcano.sh/gpu-number",
    )  # fmt: skip
    others = Others("other resources of hosts", here="told: lava gives out slots, memory and GPUs by a job file")


class Resources(Table):
    """``resources`` of a container."""

    page = "pod"
    limits = Part("limits", Amounts, "the most that the container uses", here="memory: the limit of each task")
    requests = Part("requests", Amounts, "what the host must have free", here="the share of each task",
                    absent="limits")  # fmt: skip
    claims = Anything("claims", None, "devices of the pod's resourceClaims", told="GPUs are asked for by number")


class Container(Table):
    """One of ``containers``."""

    page = "pod"
    name = Required("name", "its name", here="the first container is the task, or that which the kind names")
    image = Text("image", "", "its files", here="where the site runs containers; always told")
    command = Texts("command", None, "the program in place of the image's own", here="the command of each task",
                    absent="the image's own, which lava does not know")  # fmt: skip
    args = Texts(
        "args", None, "words behind the command, or behind the image's own",
        here="words behind the command; alone they are the command, unless one is given beside the file",
    )  # fmt: skip
    env_from = Parts("envFrom", EnvFrom, "variables from a ConfigMap or Secret", here="one of the same file")
    env = Parts("env", Variable, "variables")
    cwd = Text("workingDir", "", "the directory of the program", here="the directory of each task",
               absent="the image's own; here that of the submission")  # fmt: skip
    ports = Parts("ports", Port, "ports that it listens on; they reserve nothing", here="ports of each task")
    resources = Part("resources", Resources, "its share of the host", here="that of each task")
    pull = Word("imagePullPolicy", {word: word for word in ("Always", "IfNotPresent", "Never")}, None,
                "when the image is fetched", told=IMAGES)  # fmt: skip
    lifecycle = Anything("lifecycle", None, "programs at its start and end", told="a task has its command alone")
    mounts = Anything("volumeMounts", None, "where volumes are", told=FILES)
    devices = Anything("volumeDevices", None, "where block devices are", told=FILES)
    security = Anything("securityContext", None, "user, rights and capabilities", told=AS_USER)
    liveness = Anything("livenessProbe", None, "a failing probe restarts the container", told=READY)
    readiness = Anything("readinessProbe", None, "a failing probe takes it out of services", told=READY)
    startup = Anything("startupProbe", None, "the other probes begin after it", told=READY)
    restart = Text("restartPolicy", "", "a rule of this container alone", told="the pod's restartPolicy counts")
    rules = Anything("restartPolicyRules", None, "restarts by exit code", told="the pod's restartPolicy counts")
    resize = Anything("resizePolicy", None, "what happens when resources are changed", told="resources are not changed")
    stdin = Flag("stdin", False, "its input stays open", told="the input of tasks is empty")
    stdin_once = Flag("stdinOnce", False, "its input is closed after the first client",
                      told="the input of tasks is empty")  # fmt: skip
    tty = Flag("tty", False, "a terminal", told="tasks have no terminal; lavactl attach opens one")
    message_path = Text("terminationMessagePath", "/dev/termination-log", "the file of its last words",
                        told="exit code and output are kept")  # fmt: skip
    message_policy = Text("terminationMessagePolicy", "File", "where its last words come from",
                          told="exit code and output are kept")  # fmt: skip


class Pod(Table):
    """``spec`` of a pod template."""

    page = "pod"
    containers = Parts("containers", Container, "the programs of the pod",
                       here="the first one is the task, or that which the kind names; the others are told",
                       absent="refused")  # fmt: skip
    restart = Word("restartPolicy", RESTARTS, None, "when the node starts a container again",
                   here="as the page of the kind says", absent="as the page of the kind says")  # fmt: skip
    deadline_s = Number("activeDeadlineSeconds", None, "the pod fails so long after its start", 1,
                        here="the run limit of each task")  # fmt: skip
    selector = Keys("nodeSelector", None, "labels of the hosts",
                    here="kubernetes.io/hostname: that host; all others are told")  # fmt: skip
    host = Text("nodeName", "", "the host", here="the host")
    init_containers = Anything("initContainers", None, "programs before the containers", told="they are not run")
    ephemeral = Anything("ephemeralContainers", None, "for debugging; never in a template", told="they are not run")
    scheduler = Text("schedulerName", "default-scheduler", "the scheduler", told="lava is the scheduler")
    gates = Anything("schedulingGates", None, "the pod waits until they are removed", told="lava is the scheduler")
    host_network = Flag("hostNetwork", False, "the network of the host", told=OF_HOST)
    host_ipc = Flag("hostIPC", False, "shared memory of the host", told=OF_HOST)
    host_pid = Flag("hostPID", False, "processes of the host", told=OF_HOST)
    host_users = Flag("hostUsers", True, "user numbers of the host", told=AS_USER)
    shared_processes = Flag("shareProcessNamespace", False, "containers see each other's processes", told=OF_HOST)
    dns_policy = Text("dnsPolicy", "ClusterFirst", "the servers of names", told=OF_HOST)
    dns = Anything("dnsConfig", None, "the servers of names", told=OF_HOST)
    aliases = Anything("hostAliases", None, "lines of /etc/hosts", told="/etc/hosts has the tasks of the job alone")
    hostname = Text("hostname", "", "the pod's name for itself", told=NO_SERVICE)
    hostname_override = Text("hostnameOverride", "", "the pod's name for itself", told=NO_SERVICE)
    subdomain = Text("subdomain", "", "with a headless Service of that name: HOSTNAME.SUBDOMAIN is the pod",
                     told=NO_SERVICE)  # fmt: skip
    fqdn = Flag("setHostnameAsFQDN", False, "the pod's name for itself has its domain", told=NO_SERVICE)
    service_links = Flag("enableServiceLinks", True, "variables of the namespace's Services", told=NO_SERVICE)
    tolerations = Anything("tolerations", None, "taints of hosts that do not matter", told=NO_LABELS)
    affinity = Anything("affinity", None, "hosts and pods to be near to or far from", told=NO_LABELS)
    spread = Anything("topologySpreadConstraints", None, "spreading over domains", told=NO_LABELS)
    grace_s = Number("terminationGracePeriodSeconds", 30, "time between SIGTERM and SIGKILL",
                     told="the site sets the time between SIGTERM and SIGKILL")  # fmt: skip
    account = Text("serviceAccountName", "default", "the pod's rights in the cluster", told=AS_USER)
    old_account = Text("serviceAccount", "default", "the older name of serviceAccountName", told=AS_USER)
    token = Flag("automountServiceAccountToken", True, "a token of these rights", told=AS_USER)
    volumes = Anything("volumes", None, "directories", told=FILES)
    pull_secrets = Anything("imagePullSecrets", None, "passwords of registries", told=IMAGES)
    security = Anything("securityContext", None, "user and groups", told=AS_USER)
    priority_class = Text("priorityClassName", "", "the order of pods", told="the queue's priority counts",
                          absent="the cluster's default")  # fmt: skip
    priority = Number("priority", None, "written by the server from the class", -(2**31), 2**31 - 1,
                      told="the queue's priority counts")  # fmt: skip
    preemption = Text("preemptionPolicy", "PreemptLowerPriority", "whether others are evicted for it",
                      told="the queue's rules count")  # fmt: skip
    overhead = Anything("overhead", None, "written by the server from the runtime class", told="tasks have no overhead")
    gates_ready = Anything("readinessGates", None, "conditions of being ready", told=READY)
    claims = Anything("resourceClaims", None, "devices by their classes", told="GPUs are asked for by number")
    resources = Anything("resources", None, "the share of all containers together",
                    told="the container's own requests and limits count")  # fmt: skip
    runtime = Text("runtimeClassName", "", "the program that runs containers", told=IMAGES)
    system = Anything("os", None, "the operating system", told="all hosts run Linux")
    workload = Anything(
        "workloadRef", None, "the group that the pod is scheduled with", told="each job is a gang by itself"
    )
    cwd = Anything("workingDir", None, "no field of a pod", told="a working directory is a field of the container")


class PodLabels(Table):
    """``metadata.labels`` of a pod template."""

    page = "pod"
    others = Others("Services and other objects select by them", told="tasks have no labels")


class PodAnnotations(Table):
    """``metadata.annotations`` of a pod template; those of Kueue that place."""

    page = "pod"
    required = Text(REQUIRED_TOPOLOGY, "", "all pods in one domain of this level",
                    here="kubernetes.io/hostname: on one host; else in one rack")  # fmt: skip
    preferred = Text(PREFERRED_TOPOLOGY, "", "in few domains of this level", here="on few hosts")
    unconstrained = Flag(f"{PLACED_BY}unconstrained-topology", False, "anywhere with room", moot=True)
    slice_required = Text(f"{PLACED_BY}slice-required-topology", "", "each slice of the pods in one domain",
                          told="tasks of a role are placed together, not in slices")  # fmt: skip
    slice_size = Text(f"{PLACED_BY}slice-size", "", "pods of a slice",
                      told="tasks of a role are placed together, not in slices")  # fmt: skip
    group = Text(f"{PLACED_BY}group-name", "", "two roles in one domain", told="each role is placed by itself")
    others = Others("programs beside the cluster read them", told="tasks have no labels")


class TemplateMetadata(Table):
    """``metadata`` of a pod template."""

    page = "pod"
    name = Text("name", "", "ignored: pods are named by their controller",
                told="tasks are named by their job and role")  # fmt: skip
    generate_name = Text("generateName", "", "ignored: pods are named by their controller",
                         told="tasks are named by their job and role")  # fmt: skip
    namespace = Text("namespace", "default", "that of the job", told="lava has no namespaces")
    labels = Part("labels", PodLabels, "labels of each pod")
    annotations = Part("annotations", PodAnnotations, "annotations of each pod")
    created = Anything("creationTimestamp", None, "written by the server", moot=True)


class Template(Table):
    """Pod template."""

    page = "pod"
    metadata = Part("metadata", TemplateMetadata, "labels and annotations of each pod")
    pod = Part("spec", Pod, "the pod", here="each task")


def fill_role(job: JobFile, role: messages.Role, template: Template, container: str = "") -> None:
    """Fill in a role from a pod template.

    Args:
        container: name of the container that runs; the first one without it.

    Raises:
        FileError: the template is wrong.
    """
    pod = template.pod
    _ = template.metadata.labels  # told, one by one
    main = _main_container(pod, container)
    fill_amounts(role, main.resources)
    variables = read_variables(job, role, main.fields)
    fill_environment(role, variables)
    role.cwd = main.cwd
    role.image = main.image
    if role.image:
        main.note(Container.image, f"{role.image} is used only where hosts are configured to run containers.")
    fill_command(job, role, main.fields, variables)
    _fill_ports(role, main.ports)
    _fill_selector(role, pod)
    _read_placement(role, template.metadata.annotations)
    role.restart = pod.restart or messages.RESTART_NEVER
    if role.restart != messages.RESTART_NEVER:
        role.restarts_max = UNLIMITED
    if pod.deadline_s is not None:
        role.run_limit_s = pod.deadline_s


def _read_placement(made: messages.Role, annotations: PodAnnotations) -> None:
    """Read where Kueue would place the pods."""
    if annotations.required and annotations.preferred:
        raise annotations.wrong(None, f"it has one of {REQUIRED_TOPOLOGY} and {PREFERRED_TOPOLOGY}, not both.")
    for row, spread in ((PodAnnotations.required, "rack"), (PodAnnotations.preferred, "pack")):
        level = row.read(annotations.fields)
        if not level:
            continue
        if level == HOST_LABEL and spread == "rack":
            made.requirement = f"span[hosts=1] {made.requirement}".strip()
            annotations.note(row, f"the tasks of role {made.name} keep to one host.")
        else:
            made.spread = spread
            words = "one rack" if spread == "rack" else "few hosts"
            annotations.note(row, f"the tasks of role {made.name} keep to {words}, in place of one {level}.")


def _main_container(pod: Pod, name: str) -> Container:
    fields = pod.fields
    nodes = fields.items("containers")
    if not nodes:
        raise pod.wrong(Pod.containers, "a pod needs a container.")
    names = _names(fields, nodes)
    if name and name not in names:
        raise pod.wrong(Pod.containers, f"there is no container named {name}.")
    chosen = names.index(name) if name else 0
    main = None
    for at, node in enumerate(nodes):
        if at == chosen and isinstance(node, Mapping):
            main = Container(fields.reading.open(node, f"{fields.path_of('containers')}[{at}]"))
        else:
            fields.reading.note(
                node.place, f"{fields.path_of('containers')}[{at}]", f"ignored: container {names[chosen]} is the task."
            )
    assert main is not None
    main.fields.asked.add("name")
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


def fill_environment(role: messages.Role, variables: Variables) -> None:
    """Fill in the variables whose values the file has."""
    role.environment.extend(
        f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in variables.known.items()
    )


def fill_command(job: JobFile, role: messages.Role, main: Fields, variables: Variables) -> None:
    """Fill in the command of a container, in which its variables are expanded."""
    words = main.quoted_texts("command") + main.quoted_texts("args")
    if main.has("args") and not main.texts("command"):
        job.arguments.add(role.name)
        said = "the image's entry point is not known: the arguments are run as a command"
        main.note("args", f"{said}, unless one is given beside the file.")
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


def pause_restarts(role: messages.Role, longest_s: float = 300.0) -> None:
    """Let restarts wait as those of a node's containers do: 10 s, doubled up to 5 min, and anew after 10 good min."""
    role.restart_pause_s, role.restart_pause_max_s, role.stable_s = 10.0, longest_s, 600.0


def hold_without_process(role: messages.Role, fields: Fields, why: str) -> None:
    """Let the tasks of a role only hold their slots, for ranks that another role starts there."""
    role.launch, role.restart, role.restarts_max = messages.LAUNCH_NONE, messages.RESTART_NEVER, 0
    role.restart_pause_s = role.restart_pause_max_s = role.stable_s = 0.0
    command = role.command or shlex.join(role.argv)
    del role.argv[:]
    role.command = ""
    without = f"without {command[:COMMAND_SHOWN]}" if command else "without a process"
    fields.note("", f"role {role.name} holds its slots {without}: {why}.")


# -- resources ---------------------------------------------------------------------------------------------------------


def fill_amounts(role: messages.Role, resources: Resources) -> None:
    """Fill in slots, memory and GPUs of each task from requests and limits; a request that is absent is its limit."""
    limits, requests = resources.limits.fields, resources.requests.fields
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
    _note_same(limits, requests)
    gpus = 0
    for name, (fields, amount) in amounts.items():
        if name == "cpu":
            _fill_slots(role, fields, amount)
        elif name == "memory":
            if memory := quantities.mib(amount):
                role.requirement = f"rusage[mem={memory}MB/task]"
        elif GPU.fullmatch(name):
            gpus += quantities.whole(amount)
        else:
            for given in (limits, requests) if fields is requests and limits.has(name) else (fields,):
                given.note(name, "ignored: lava gives out slots, memory and GPUs by a job file.")
    if gpus:
        role.gpu.CopyFrom(gpus_per_task(gpus))
    if limits.has("cpu") and requests.has("cpu") and _quantity(limits, "cpu") > _quantity(requests, "cpu"):
        limits.note("cpu", f"ignored: each task gets the processors of its request, {requests.text('cpu')}.")
    if "memory" in limits.node.entries:
        role.memory_limit_mib = quantities.mib(_quantity(limits, "memory"))


def _note_same(limits: Fields, requests: Fields) -> None:
    """Remember amounts that would be the same without them: one processor, and a request that is its limit."""
    for fields in (limits, requests):
        if fields.has("cpu") and _quantity(fields, "cpu") == 1:
            fields.same.add("cpu")
    for name in (name for name, _ in requests.node if limits.has(name)):
        if _quantity(limits, name) == _quantity(requests, name):
            requests.same.add(name)
            limits.same |= {name} - {"memory"}  # which is a limit of its own


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


def _fill_ports(role: messages.Role, ports: list[Port]) -> None:
    seen: set[str] = set()
    for one in ports:
        one.need(Port.number)
        number, wanted = one.number or 0, one.host
        name = one.name or f"port-{number}"
        if one.has(Port.name) and not _PORT_NAME.fullmatch(name):
            raise one.wrong(
                Port.name, f"{name[:80]!r} is no name of a port: it has up to 15 small letters, digits and -."
            )
        if one.has(Port.name) and name in seen:
            raise one.wrong(Port.name, f"there are two ports named {name}.")
        seen.add(name)
        if number == SSH_PORT:
            one.note(None, "ignored: no SSH server is needed.")
        elif all(port.name != name for port in role.ports):
            role.ports.add(name=name, count=1, number=wanted or number, is_own=not wanted)


def add_port(role: messages.Role, name: str, number: int, *known: str) -> None:
    """Add the port that a convention tells of under ``name``, unless the role has it under one of the names ``known``.

    A port of the file with that number is this one, whatever its name. As tasks are told which one they have, another
    number does where it is taken, but for one of the host.
    """
    if prefer_port(role, name, *known):
        return
    for port in role.ports:
        if port.number == number:
            port.name = name
            _prefer(port)
            return
    role.ports.add(name=name, count=1, number=number, is_preferred=True)


def prefer_port(role: messages.Role, *names: str) -> bool:
    """Let another number do for the first port with one of these names; return False if there is none."""
    found = next((port for port in role.ports if port.name in names), None)
    if found is not None:
        _prefer(found)
    return found is not None


def _prefer(port: messages.PortRequest) -> None:
    port.is_own, port.is_preferred = False, port.is_own or port.is_preferred


def _fill_selector(role: messages.Role, pod: Pod) -> None:
    selector = pod.selector
    hosts = [pod.host] if pod.host else []
    for label, node in selector.node:
        value = node.text if isinstance(node, Scalar) else ""
        if label == HOST_LABEL and re.fullmatch(r"[\w.-]+", value):
            hosts.append(selector.text(label))
        elif label == "kubernetes.io/os" and value == "linux":
            selector.text(label)
            selector.same.add(label)
        else:
            selector.ignore((label,), "lava's hosts have no labels; a resource requirement selects them")
    for name in hosts:
        role.requirement = f'select[hname=="{name}"] {role.requirement}'.strip()
