"""lavactl run: submit the jobs of a job file, or say what lava understands of it.

Exit code: 0 submitted or understood, 255 not.
"""

from lavactl.commands.bsub import announce, not_submitted, submit
from lavactl.errors import CommandError
from lavactl.options import FLAG, VALUE, Grammar, Options, answered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lavactl run -f file [--dry-run] [-o yaml | json] [-q "queue ..."] [command [arguments]]
       lavactl run -h | -V
  -f file     job file; - is standard input
  --dry-run   submit nothing: print what was understood, and each field that is ignored
  -o form     submit nothing: print the jobs in lava's own form
  -q queue    in place of the file's; bsub -yaml file takes bsub's other options, too
  command     of roles that have none, as where it is that of an image
"""
GRAMMAR = Grammar("lavactl run", USAGE, {"f": VALUE, "o": VALUE, "q": VALUE, "-dry-run": FLAG}, words_end=True)
FORMS = ("yaml", "json")


def main(argv: list[str], io: "Io") -> int:
    """Run lavactl run."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    path, form = options.last("f"), options.last("o")
    if path is None:
        raise GRAMMAR.wrong("a job file is expected: -f file")
    if form is not None and form not in FORMS:
        raise GRAMMAR.wrong(f"-o takes yaml or json, not {form}")
    line = Options()
    line.words = options.words
    line.items = [("q", queue) for queue in options.all("q")]
    if form is not None or "-dry-run" in options:
        io.print(understood(path, form, line, io))
        return 0
    from lavactl.job_files.handing_in import hand_in

    try:
        sent = hand_in(path, line, io, submit)
    except CommandError as error:
        raise CommandError(not_submitted(error), error.code) from None
    for submission, result in sent:
        announce(submission, result, io)
    return 0


def understood(path: str, form: str | None, line: Options, io: "Io") -> str:
    """Text of what lava makes of a job file: in words, or in lava's own form.

    Raises:
        CommandError: the file is wrong, or a submission would refuse it before it asks the master.
    """
    from lavactl.job_files.handing_in import check
    from lavactl.job_files.understanding import understand

    found = understand(path, io)
    check(found, line, io)
    if form is None:
        from lavactl.job_files.dry_run import describe

        return describe(found)
    from lavactl.job_files.own.writer import as_values, write_json, write_yaml

    if not found.jobs:
        raise CommandError(f"{found.file}: there is no job in this file.")
    values = [as_values(job) for job in found.jobs]
    return write_yaml(values) if form == "yaml" else write_json(values)
