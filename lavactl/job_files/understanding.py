"""Understanding of a job file: which form each document has, and the jobs that they describe.

Told apart by content alone: ``apiVersion`` and ``kind``, ``protocolVersion``, ``jobName`` with ``taskRoles``, and
lava's own form by ``roles``, ``command`` or ``script``. Nothing of a file with a wrong document is a job: all errors
are told at once.
"""

from dataclasses import dataclass, field

from lavactl.errors import CommandError
from lavactl.job_files import told
from lavactl.job_files.importers import kinds
from lavactl.job_files.model import JobFile
from lavactl.job_files.own.reader import read_own
from lavactl.job_files.text.documents import load, read_documents
from lavactl.job_files.text.fields import Fields, Note, Reading
from lavactl.job_files.text.nodes import FileError, Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

OWN = ("roles", "command", "script")
FORMS = "a job of lava (roles:, command: or script:), of Kubernetes (apiVersion:, kind:) or of OpenPAI"


@dataclass
class Understood:
    """The jobs of a file in the order in which they are submitted, and remarks on the documents that are no jobs."""

    file: str
    jobs: list[JobFile] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def understand(path: str, io: "Io") -> Understood:
    """Understand a job file.

    Raises:
        CommandError: it cannot be read, or a document is wrong; a line for each that is.
    """
    name, text = load(path, io)
    return understand_text(text, name, io.user_name())


def understand_text(text: str, name: str, user: str = "") -> Understood:
    """Understand the text of a job file that is called ``name`` in messages."""
    found = Understood(name)
    errors: list[FileError] = []
    documents = [one for document in read_documents(text, name) for one in _listed(document, name)]
    shared = kinds.Shared(user)
    for document in documents:
        kinds.prepare(document, shared)
    for document in documents:
        reading = Reading(name, shared.beside)
        fields = reading.open(document)
        try:
            jobs = _read(fields, shared)
        except FileError as error:
            errors.append(error)
            continue
        notes = reading.close()
        if jobs:
            jobs[0].notes += notes
        else:
            found.notes += notes
        found.jobs += jobs
    if errors:
        raise CommandError("\n".join(dict.fromkeys(map(str, errors))))
    return found


def _listed(document: Mapping, name: str) -> list[Mapping]:
    """Documents of a List, as kubectl prints several; the document itself if it is none."""
    items = document.get("items")
    if document.text("kind") != "List" or not isinstance(items, Sequence):
        return [document]
    for at, one in enumerate(items.items):
        if not isinstance(one, Mapping):
            raise FileError(name, one.place, f"items[{at}]", f"expected a mapping, found {one.kind}.")
    return [one for one in items.items if isinstance(one, Mapping)]


def _read(fields: Fields, shared: kinds.Shared) -> list[JobFile]:
    importer = kinds.importer_of(fields)
    if importer is not None:
        jobs = importer(fields, shared)
        for job in jobs:
            _spare_gpu_hosts(job)
            job.notes += [Note(job.place, "", remark) for _, remark in told.remarks(job)]
        return jobs
    if any(key in fields.node.entries for key in OWN):
        return [read_own(fields)]
    raise fields.wrong("", _unknown(fields.node))


def _spare_gpu_hosts(job: JobFile) -> None:
    """Let roles without GPUs of a job that has some with them prefer hosts without GPUs."""
    if not any(role.gpu.text for role in job.roles):
        return
    for role in job.roles:
        if not role.gpu.text and "order[" not in role.requirement:
            role.requirement = f"{role.requirement} order[-ngpus_physical]".strip()


def _unknown(document: Mapping) -> str:
    keys = ", ".join(list(document.entries)[:5]) or "nothing"
    return f"this is no job: expected {FORMS}, found the keys {keys}."
