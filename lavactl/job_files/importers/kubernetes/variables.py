"""Variables of a container: values, those of ConfigMaps and Secrets of the same file, and what a pod knows of itself.

A value that only the task knows, such as its address, is set by the line of the shell that runs the command. A secret
becomes one of the job: tasks have it, and nothing shows it.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field

from lavactl.job_files.importers.kubernetes.expansion import expand, refers, shell_word
from lavactl.job_files.model import JobFile
from lavactl.job_files.text.fields import Fields, Reading
from lavactl.job_files.text.nodes import Mapping
from lavactl.job_files.text.quantities import read_quantity, whole
from lavactl.wire import messages

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
SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
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

    def put(self, name: str, kind: "dict[str, str]", value: str) -> None:
        """Set a variable, of one kind alone: a later one of its name takes its place."""
        for one in (self.known, self.told, self.secret):
            one.pop(name, None)
        kind[name] = value


def read_variables(job: JobFile, role: messages.Role, main: Fields) -> Variables:
    """Variables of a container, whose resources are read."""
    found = Variables()
    for one in main.children("envFrom"):
        _read_all(found, one)
    for one in main.children("env"):
        _read_one(job, role, found, one)
    for name, value in found.secret.items():
        _keep_secret(job, name, value, main)
    return found


def _read_one(job: JobFile, role: messages.Role, found: Variables, one: Fields) -> None:
    name = one.required("name")
    if "=" in name:
        raise one.wrong("name", f"{name} is no name of a variable.")
    if one.has("value") and one.has("valueFrom"):
        raise one.wrong("valueFrom", f"the variable {name} has a value already.")
    if one.has("valueFrom"):
        _read_source(job, role, found, name, one.child("valueFrom"))
        return
    text = one.quoted("value")
    if refers(text, found.told):
        found.put(name, found.told, shell_word(text, found.known, found.told))
    elif refers(text, found.secret):
        found.put(name, found.secret, expand(text, {**found.known, **found.secret}))
    else:
        found.put(name, found.known, expand(text, found.known))


def _read_source(job: JobFile, role: messages.Role, found: Variables, name: str, source: Fields) -> None:
    given = [key for key in SOURCES if source.has(key)]
    if len(given) != 1:
        raise source.wrong(
            "", f"a variable has one source, of {', '.join(SOURCES)}; found {', '.join(given) or 'none'}."
        )
    if source.has("fieldRef"):
        ref = source.child("fieldRef")
        ref.text("apiVersion")
        path = ref.required("fieldPath")
        if not FIELD_PATH.fullmatch(path):
            raise ref.wrong("fieldPath", f"a pod tells its variables no field {path[:80]}.")
        word = _word_of_pod(job, role, path)
        if word is None:
            ref.note("fieldPath", f"ignored: the variable {name} is not set: a task has no {ref.text('fieldPath')}.")
        else:
            found.put(name, found.told, word)
    elif source.has("resourceFieldRef"):
        _read_amount(role, found, name, source.child("resourceFieldRef"))
    elif source.has("configMapKeyRef"):
        value = _value(source.child("configMapKeyRef"), CONFIG_MAP, name)
        if value is not None:
            found.put(name, found.known, value)
    elif source.has("secretKeyRef"):
        value = _value(source.child("secretKeyRef"), SECRET, name)
        if value is not None:
            found.put(name, found.secret, value)


def _word_of_pod(job: JobFile, role: messages.Role, path: str) -> str | None:
    if path == "metadata.name":
        return f'{job.tasks_rules.owner_name}-{role.name}-"$LAVA_ROLE_INDEX"'
    if path == "metadata.uid":
        return '"$LSB_JOBID"-"$LAVA_TASK_INDEX"'
    if path.startswith(("metadata.labels[", "metadata.annotations[")):
        key = path.partition("[")[2].strip("'\"]")
        if key.endswith(("/job-name", "/jobset-name")) or key == "job-name":
            return job.tasks_rules.owner_name
        return next((word for end, word in INDICES.items() if key.endswith(f"/{end}")), None)
    return OF_POD.get(path)


def _read_amount(role: messages.Role, found: Variables, name: str, ref: Fields) -> None:
    """Read an amount of the task's resources, in units of the divisor."""
    kind = ref.required("resource").partition(".")[2]
    ref.text("containerName")
    amounts = {"cpu": role.slots_per_task, "memory": role.memory_limit_mib << 20}
    try:
        unit = read_quantity(ref.text("divisor", "1"))
    except ValueError:
        raise ref.wrong("divisor", f"expected a quantity, found {ref.text('divisor')[:80]}.") from None
    if amounts.get(kind):
        found.put(name, found.known, str(whole(amounts[kind] / unit) if unit else amounts[kind]))
    else:
        ref.note("resource", f"ignored: the variable {name} is not set: the role has no bound of {kind}.")


# -- ConfigMaps and Secrets --------------------------------------------------------------------------------------------


def _read_all(found: Variables, source: Fields) -> None:
    """Read all variables of a ConfigMap or a Secret."""
    prefix = source.text("prefix")
    for key, kind in (("configMapRef", CONFIG_MAP), ("secretRef", SECRET)):
        if not source.has(key):
            continue
        ref = source.child(key)
        name, is_optional = ref.required("name"), ref.flag("optional")
        document = ref.reading.beside.get((kind, name))
        if document is None:
            if not is_optional:
                ref.note("name", f"ignored: its variables are not set: there is no {kind} {name} in this file.")
            continue
        for word, value in _data_of(ref, document, kind).items():
            found.put(prefix + word, found.secret if kind == SECRET else found.known, value)


def _value(ref: Fields, kind: str, variable: str) -> str | None:
    name, key, is_optional = ref.required("name"), ref.required("key"), ref.flag("optional")
    document = ref.reading.beside.get((kind, name))
    if document is None:
        if not is_optional:
            text = f"ignored: the variable {variable} is not set: there is no {kind} {name} in this file."
            ref.note("name", text)
        return None
    value = _data_of(ref, document, kind).get(key)
    if value is None and not is_optional:
        raise ref.wrong("key", f"the {kind} {name} has no key {key}.")
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
