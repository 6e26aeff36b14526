"""lavactl show: a job in lava's own form of job files, to be read, kept, changed and submitted again."""

from lavactl.errors import CommandError
from lavactl.jobrefs import read_ref, ref_text
from lavactl.options import VALUE, Grammar, answered, printable
from lavactl.text.render import clean
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lavactl show [-o yaml | json] job_id
       lavactl show -h | -V
"""
GRAMMAR = Grammar("lavactl show", USAGE, {"o": VALUE})
FORMS = ("yaml", "json")


def main(argv: list[str], io: "Io") -> int:
    """Run lavactl show."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    form = options.last("o") or "yaml"
    if len(options.words) != 1:
        raise GRAMMAR.wrong("one job id is expected")
    if form not in FORMS:
        raise GRAMMAR.wrong(f"-o takes yaml or json, not {form}")
    ref = read_ref(options.words[0])
    if not ref.job:
        raise CommandError(f"{printable(options.words[0])}: Illegal job ID.")
    name = f"Job <{ref_text(ref)}>"
    io.print(job_text(find(ref, io), name, form))
    return 0


def find(ref: messages.JobRef, io: "Io") -> messages.JobSpec:
    """Submission of a job, as the master has it; raises what ``record`` raises."""
    return record(ref, io).spec


def record(ref: messages.JobRef, io: "Io") -> messages.JobRecord:
    """Record of a job with its submission, as the master has it.

    Raises:
        CommandError: there is no such job, or the caller may not see its details.
    """
    request = messages.ListJobsRequest(
        filter=messages.JobFilter(refs=[ref], user="all"), details=True, shares_details=True
    )
    for page in io.client().list_jobs(request):
        for job in page.jobs:
            if not job.HasField("spec"):
                raise CommandError(f"Job <{ref_text(ref)}>: its details are not yours to see.")
            return job
    raise CommandError(f"Job <{ref_text(ref)}> is not found")


def job_text(spec: messages.JobSpec, name: str, form: str) -> str:
    """Job file of a submission. What it cannot hold is said in comments, which JSON has none of."""
    from lavactl.job_files.own.shown import job_file_of
    from lavactl.job_files.own.writer import as_values, write_json, write_yaml

    values = as_values(job_file_of(spec, name))
    if form == "json":
        return write_json([values])
    head = f"# {name}. Its environment is not shown: submitted again, it has that of its new submitter.\n"
    if spec.interactive:
        head += "# It was interactive; submitted again, it is a batch job.\n"
    if spec.tasks.secrets:
        names = ", ".join(clean(entry.partition(b"=")[0].decode("utf-8", "replace")) for entry in spec.tasks.secrets)
        head += f"# Secrets are not shown: {names}.\n"
    return head + write_yaml([values])
