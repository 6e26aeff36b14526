"""Variables of a container: values, those of ConfigMaps and Secrets of the same file, and what a pod knows of itself.

A value that only the task knows, such as its address, is set by the line of the shell that runs the command. A secret
becomes one of the job: tasks have it, and nothing shows it.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field

from lavactl.errors import CommandError
from lavactl.job_files.importers.kubernetes.expansion import expand, refers, shell_word
from lavactl.job_files.importers.tables import Anything, Flag, Part, Required, Table, Text
from lavactl.job_files.model import JobFile
from lavactl.job_files.text.fields import Fields, Reading
from lavactl.job_files.text.nodes import Mapping
from lavactl.job_files.text.quantities import read_quantity, whole
from lavactl.wire import messages

SIZE_MAX = 4 << 20  # characters of all values: no job can be larger
CONFIG_MAP, SECRET = "ConfigMap", "Secret"
# Fields of a pod, as a task's shell knows them. ``metadata.name`` and labels are below.
OF_POD = {
    "status.podIP": '"$LAVA_TASK_ADDRESS"',
    "status.podIPs": '"$LAVA_TASK_ADDRESS"',
    "status.hostIP": '"$LAVA_TASK_ADDRESS"',
    "status.hostIPs": '"$LAVA_TASK_ADDRESS"',
    "spec.nodeName": '"$HOSTNAME"',
    "metadata.namespace": "default",
}
FIELD_PATH = re.compile(
    r"metadata\.(name|namespace|uid|(labels|annotations)\['[^']+'\])|spec\.(nodeName|serviceAccountName)"
    r"|status\.(host|pod)IPs?"
)
# Labels and annotations that hold the place of a pod, by their ends.
INDICES = {
    "job-completion-index": '"${JOB_COMPLETION_INDEX-$LAVA_ROLE_INDEX}"',
    "job-index": '"$JOB_INDEX"',
    "worker-index": '"${LWS_WORKER_INDEX-$LAVA_ROLE_INDEX}"',
    "group-index": "0",
    "replica-index": '"$LAVA_ROLE_INDEX"',
    "task-index": '"$LAVA_ROLE_INDEX"',
}


NOT_HERE = "of the same file; without one the variables are not set, which is told"


class FieldRef(Table):
    """``fieldRef`` of a variable."""

    page = "pod"
    version = Text("apiVersion", "v1", "the form of the path", moot=True)
    path = Required("fieldPath", "a field of the pod", here="its counterpart: the task's address, host, job, index")


class AmountRef(Table):
    """``resourceFieldRef`` of a variable."""

    page = "pod"
    resource = Required("resource", "an amount of the container", here="cpu and memory of each task; others are told")
    container = Text("containerName", "", "the container whose amount it is", absent="the container itself",
                     here="that of the task; another is told")  # fmt: skip
    divisor = Text("divisor", "1", "the unit", here="the unit")


class KeyRef(Table):
    """``configMapKeyRef`` and ``secretKeyRef`` of a variable."""

    page = "pod"
    name = Required("name", "the ConfigMap or Secret", here=NOT_HERE)
    key = Required("key", "its key", here="its key")
    optional = Flag("optional", False, "it may be missing", here="then nothing is told of its lack")


class SetRef(Table):
    """``configMapRef`` and ``secretRef`` of ``envFrom``."""

    page = "pod"
    name = Required("name", "the ConfigMap or Secret", here=NOT_HERE)
    optional = Flag("optional", False, "it may be missing", here="then nothing is told of its lack")


class Source(Table):
    """``valueFrom`` of a variable."""

    page = "pod"
    field = Part("fieldRef", FieldRef, "a field of the pod")
    amount = Part("resourceFieldRef", AmountRef, "an amount of the container")
    config_map = Part("configMapKeyRef", KeyRef, "a key of a ConfigMap")
    secret = Part(
        "secretKeyRef", KeyRef, "a key of a Secret", here="a secret of the job: tasks have it, nothing shows it"
    )
    file = Anything(
        "fileKeyRef", None, "a key of a file in a volume", told="the variable is not set: lava has no volumes"
    )


class Variable(Table):
    """One of ``env`` of a container."""

    page = "pod"
    name = Required("name", "its name")
    value = Text("value", "", "its value, with $(NAME) of those before it")
    source = Part("valueFrom", Source, "another source")


class EnvFrom(Table):
    """One of ``envFrom`` of a container."""

    page = "pod"
    prefix = Text("prefix", "", "stands before each name")
    config_map = Part("configMapRef", SetRef, "all keys of a ConfigMap")
    secret = Part("secretRef", SetRef, "all keys of a Secret", here="secrets of the job")


@dataclass
class Variables:
    """Variables of one container.

    Attributes:
        known: values that the file has.
        told: words of the shell for those that only the task knows, in their order.
        secret: values of secrets, which the job keeps.
    """

    known: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    secret: dict[str, str] = field(default_factory=dict)
    size: int = 0  # characters of all values

    def put(self, name: str, kind: "dict[str, str]", value: str) -> None:
        """Set a variable, of one kind alone: a later one of its name takes its place."""
        for one in (self.known, self.told, self.secret):
            self.size -= len(one.pop(name, ""))
        self.size += len(value)
        if self.size > SIZE_MAX:
            raise CommandError(f"The variables of a container are longer than {SIZE_MAX >> 20} MiB together.")
        kind[name] = value


def read_variables(job: JobFile, role: messages.Role, main: Fields) -> Variables:
    """Variables of a container, whose resources are read."""
    found = Variables()
    for source in main.children("envFrom"):
        _read_all(found, EnvFrom(source))
    for one in main.children("env"):
        _read_one(job, role, found, Variable(one), main.text("name"))
    for name, value in found.secret.items():
        _keep_secret(job, name, value, main)
    return found


def _read_one(job: JobFile, role: messages.Role, found: Variables, one: Variable, container: str) -> None:
    name = one.name
    if "=" in name:
        raise one.wrong(Variable.name, f"{name} is no name of a variable.")
    if one.has(Variable.value) and one.has(Variable.source):
        raise one.wrong(Variable.source, f"the variable {name} has a value already.")
    if one.has(Variable.source):
        if (amount := one.source.amount).container not in ("", container):
            amount.note(AmountRef.container, f"ignored: the amounts are those of {container}, the task.")
        amount.same(AmountRef.container)
        _read_source(job, role, found, name, one.source)
        return
    text = one.fields.quoted("value")
    if refers(text, found.told):
        found.put(name, found.told, shell_word(text, found.known, found.told))
    elif refers(text, found.secret):
        found.put(name, found.secret, expand(text, {**found.known, **found.secret}))
    else:
        found.put(name, found.known, expand(text, found.known))


def _read_source(job: JobFile, role: messages.Role, found: Variables, name: str, source: Source) -> None:
    known = Source.rows()
    given = [key for key in known if source.fields.has(key)]
    if len(given) != 1:
        raise source.wrong(
            None, f"a variable has one source, of {', '.join(known)}; found {', '.join(given) or 'none'}."
        )
    if source.has(Source.field):
        _read_field(job, role, found, name, source.field)
    elif source.has(Source.amount):
        _read_amount(role, found, name, source.amount)
    elif source.has(Source.config_map):
        value = _value(source.config_map, CONFIG_MAP, name)
        if value is not None:
            found.put(name, found.known, value)
    elif source.has(Source.secret):
        value = _value(source.secret, SECRET, name)
        if value is not None:
            found.put(name, found.secret, value)


def _read_field(job: JobFile, role: messages.Role, found: Variables, name: str, ref: FieldRef) -> None:
    path = ref.path
    if not FIELD_PATH.fullmatch(path):
        raise ref.wrong(FieldRef.path, f"a pod tells its variables no field {path[:80]}.")
    word = _word_of_pod(job, role, path)
    if word is None:
        ref.note(FieldRef.path, f"ignored: the variable {name} is not set: a task has no {path}.")
    else:
        found.put(name, found.told, word)


def _word_of_pod(job: JobFile, role: messages.Role, path: str) -> str | None:
    own = job.labels.get(role.name, {})
    if path in own:
        return own[path]
    if path == "metadata.name":
        return f'{job.tasks_rules.owner_name}-{role.name}-"$LAVA_ROLE_INDEX"'
    if path == "metadata.uid":
        return '"$LSB_JOBID"-"$LAVA_TASK_INDEX"'
    if path.startswith(("metadata.labels[", "metadata.annotations[")):
        key = path.partition("[")[2].strip("'\"]")
        if key in own:
            return own[key]
        if key.endswith(("/job-name", "/jobset-name")) or key == "job-name":
            return job.tasks_rules.owner_name
        return next((word for end, word in INDICES.items() if key.endswith(f"/{end}")), None)
    return OF_POD.get(path)


def _read_amount(role: messages.Role, found: Variables, name: str, ref: AmountRef) -> None:
    """Read an amount of the task's resources, in units of the divisor."""
    kind = ref.resource.partition(".")[2]
    amounts = {"cpu": role.slots_per_task, "memory": role.memory_limit_mib << 20}
    try:
        unit = read_quantity(ref.divisor)
    except ValueError:
        raise ref.wrong(AmountRef.divisor, f"expected a quantity, found {ref.divisor[:80]}.") from None
    if amounts.get(kind):
        found.put(name, found.known, str(whole(amounts[kind] / unit) if unit else amounts[kind]))
    else:
        ref.note(AmountRef.resource, f"ignored: the variable {name} is not set: the role has no bound of {kind}.")


# -- ConfigMaps and Secrets --------------------------------------------------------------------------------------------


def _read_all(found: Variables, source: EnvFrom) -> None:
    """Read all variables of a ConfigMap or a Secret."""
    prefix = source.prefix
    for row, kind in ((EnvFrom.config_map, CONFIG_MAP), (EnvFrom.secret, SECRET)):
        if not source.has(row):
            continue
        ref = row.read(source.fields)
        name, is_optional = ref.name, ref.optional
        document = ref.fields.reading.beside.get((kind, name))
        if document is None:
            if not is_optional:
                ref.note(SetRef.name, f"ignored: its variables are not set: there is no {kind} {name} in this file.")
            continue
        for word, value in _data_of(ref.fields, document, kind).items():
            found.put(prefix + word, found.secret if kind == SECRET else found.known, value)


def _value(ref: KeyRef, kind: str, variable: str) -> str | None:
    name, key, is_optional = ref.name, ref.key, ref.optional
    document = ref.fields.reading.beside.get((kind, name))
    if document is None:
        if not is_optional:
            text = f"ignored: the variable {variable} is not set: there is no {kind} {name} in this file."
            ref.note(KeyRef.name, text)
        return None
    value = _data_of(ref.fields, document, kind).get(key)
    if value is None and not is_optional:
        raise ref.wrong(KeyRef.key, f"the {kind} {name} has no key {key}.")
    return value


def _data_of(ref: Fields, document: Mapping, kind: str) -> dict[str, str]:
    """Texts of a document beside that of the job."""
    return read_data(Reading(ref.reading.file).open(document), kind)


def read_data(document: Fields, kind: str) -> dict[str, str]:
    """Texts of a ConfigMap or a Secret; those of a Secret's ``data`` are in base64.

    Raises:
        FileError: a value is no text, or no base64.
    """
    found = document.pairs("data")
    if kind == SECRET:
        data = document.child("data")
        found = {name: _decoded(data, name, text) for name, text in found.items()} | document.pairs("stringData")
    return found


def _decoded(data: Fields, name: str, text: str) -> str:
    try:
        value = base64.b64decode(re.sub(r"[\r\n]", "", text), validate=True)
    except (binascii.Error, ValueError):
        raise data.wrong(name, "this is no base64; a value in plain text stands in stringData.") from None
    return value.decode("utf-8", "surrogateescape")


def _keep_secret(job: JobFile, name: str, value: str, where: Fields) -> None:
    entry = f"{name}={value}".encode("utf-8", "surrogateescape")
    secrets = job.tasks_rules.secrets
    if "\0" in value:
        where.note("env", f"ignored: the secret {name} is not set: a variable takes no NUL characters.")
    elif any(one.startswith(f"{name}=".encode()) and one != entry for one in secrets):
        where.note("env", f"the secret {name} has another value in another role: all tasks have the first one.")
    elif entry not in secrets:
        secrets.append(entry)
