"""Variables of a container: values, those of ConfigMaps and Secrets of the same file, and what a pod knows of itself.

A value that only the task knows, such as its address, is set by the line of the shell that runs the command. A secret
becomes one of the job: tasks have it, and nothing shows it.
"""

import base64
import binascii
from dataclasses import dataclass, field

from lavactl.job_files.importers.kubernetes.expansion import expand, shell_word
from lavactl.job_files.model import JobFile
from lavactl.job_files.text.fields import Fields
from lavactl.job_files.text.nodes import Mapping, Scalar
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
    """

    known: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    @property
    def exports(self) -> str:
        """Command of the shell that sets what only the task knows."""
        return "".join(f"export {name}={word}; " for name, word in self.told.items())


def read_variables(job: JobFile, role: messages.Role, main: Fields) -> Variables:
    """Variables of a container, whose resources are read."""
    found = Variables()
    for one in main.children("envFrom"):
        _read_all(job, found, one)
    for one in main.children("env"):
        _read_one(job, role, found, one)
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
    text = one.text("value")
    open_names = [known for known in found.told if f"$({known})" in text]
    if open_names:
        found.told[name] = shell_word(text, found.known)
        found.known.pop(name, None)
    else:
        found.known[name] = expand(text, found.known)
        found.told.pop(name, None)


def _read_source(job: JobFile, role: messages.Role, found: Variables, name: str, source: Fields) -> None:
    if source.has("fieldRef"):
        ref = source.child("fieldRef")
        ref.text("apiVersion")
        word = _word_of_pod(job, role, ref.required("fieldPath"))
        if word is None:
            ref.note("fieldPath", f"ignored: the variable {name} is not set: a task has no {ref.text('fieldPath')}.")
        else:
            found.told[name] = word
    elif source.has("resourceFieldRef"):
        _read_amount(role, found, name, source.child("resourceFieldRef"))
    elif source.has("configMapKeyRef"):
        value = _value(source.child("configMapKeyRef"), CONFIG_MAP, name)
        if value is not None:
            found.known[name] = value
    elif source.has("secretKeyRef"):
        value = _value(source.child("secretKeyRef"), SECRET, name)
        if value is not None:
            _keep_secret(job, name, value, source)


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
        found.known[name] = str(whole(amounts[kind] / unit) if unit else amounts[kind])
    else:
        ref.note("resource", f"ignored: the variable {name} is not set: the role has no bound of {kind}.")


# -- ConfigMaps and Secrets --------------------------------------------------------------------------------------------


def _read_all(job: JobFile, found: Variables, source: Fields) -> None:
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
        for word, value in _data(document, kind).items():
            if kind == SECRET:
                _keep_secret(job, prefix + word, value, source)
            else:
                found.known[prefix + word] = value


def _value(ref: Fields, kind: str, variable: str) -> str | None:
    name, key, is_optional = ref.required("name"), ref.required("key"), ref.flag("optional")
    document = ref.reading.beside.get((kind, name))
    if document is None:
        if not is_optional:
            text = f"ignored: the variable {variable} is not set: there is no {kind} {name} in this file."
            ref.note("name", text)
        return None
    value = _data(document, kind).get(key)
    if value is None and not is_optional:
        raise ref.wrong("key", f"the {kind} {name} has no key {key}.")
    return value


def _data(document: Mapping, kind: str) -> dict[str, str]:
    """Texts of a ConfigMap or a Secret; those of a Secret's ``data`` are in base64."""
    found: dict[str, str] = {}
    for part in ("data", "stringData"):
        held = document.get(part)
        for name, node in held if isinstance(held, Mapping) else ():
            text = node.text if isinstance(node, Scalar) else ""
            if kind == SECRET and part == "data":
                try:
                    text = base64.b64decode(text, validate=False).decode("utf-8", "surrogateescape")
                except (binascii.Error, ValueError):
                    continue
            found[name] = text
    return found


def _keep_secret(job: JobFile, name: str, value: str, where: Fields) -> None:
    entry = f"{name}={value}".encode("utf-8", "surrogateescape")
    secrets = job.tasks_rules.secrets
    if any(one.startswith(f"{name}=".encode()) and one != entry for one in secrets):
        where.note("", f"the secret {name} has another value in another role: all tasks have the first one.")
    elif entry not in secrets and "\0" not in value:
        secrets.append(entry)
