"""eswitch programs of the site: run before jobs are switched to another queue, with the rights of who switches them.

Invariants: as with esub, only the master's lsf.conf names their directory; each program runs once, in LSF's order:
``eswitch``, then those of LSB_ESWITCH_METHOD (the master's, then the caller's own), then those of bswitch -a; each one
sees the queue that those before it chose.
"""

from lavactl.errors import CommandError
from lavactl.files import read_whole
from lavactl.submit import esub
from lavactl.submit import esub_parameters as told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

METHOD = "LSB_ESWITCH_METHOD"
KIND, ABORTED = "eswitch", "Request aborted by eswitch"
QUEUE = "LSB_SWITCH_QUEUE"


def queue_for(queue: str, jobs: list[str], names: str | None, io: "Io") -> str:
    """Queue to which the jobs are switched, as the programs want it.

    Args:
        jobs: job ids as the caller has given them.
        names: value of -a.

    Raises:
        CommandError: one of them refuses the switch, fails, or is missing.
    """
    directory = io.site_setting(esub.DIRECTORY) or ""
    texts = (io.site_setting(METHOD), io.environ.get(METHOD), names)
    wanted = list(dict.fromkeys(one for text in texts for one in esub.read_names(text or "")))
    if not directory:
        if wanted:
            missing = f"eswitch.{wanted[0].name} is asked for, but the cluster's lsf.conf has no {esub.DIRECTORY}."
            raise CommandError(f"{ABORTED}: {missing}")
        return queue
    has_plain = esub.is_program(f"{directory}/{KIND}", io, ABORTED)
    for one in wanted:
        if not esub.is_program(f"{directory}/{KIND}.{one.name}", io, ABORTED):
            raise CommandError(f"{ABORTED}: there is no eswitch.{one.name} in {directory}.")
    if has_plain or wanted:
        io.stay()
    for one in [*([esub.Named("")] if has_plain else []), *wanted]:
        queue = _run(directory, one, queue, jobs, io)
    return queue


def _run(directory: str, one: esub.Named, queue: str, jobs: list[str], io: "Io") -> str:
    """Run a program; the queue that it leaves."""
    import subprocess
    import tempfile

    title = f"{KIND}.{one.name}" if one.name else KIND
    path = f"{directory}/{title}"
    parameters = {
        "LSB_SWITCH": told.YES,
        "LSB_SWITCH_ADDITIONAL": one.name,
        "LSB_SWITCH_JOB": " ".join(jobs),
        QUEUE: queue,
    }
    io.flush()
    with tempfile.TemporaryDirectory(prefix="lava-eswitch-") as place:
        asked, answer = f"{place}/PARM_FILE", f"{place}/MODIFY_FILE"
        for file, text in ((asked, told.written(parameters)), (answer, "")):
            with open(file, "w", encoding="utf-8", errors="surrogateescape") as stream:
                stream.write(text)
        variables = {**io.environ, "LSB_SWITCH_PARM_FILE": asked, "LSB_SWITCH_MODIFY_FILE": answer}
        variables |= {"LSB_SWITCH_ABORT_VALUE": str(esub.ABORT), "LSF_INVOKE_CMD": "bswitch"}
        try:
            done = subprocess.run(
                [path, *one.arguments], stdin=subprocess.DEVNULL, env=variables, cwd=io.cwd, check=False
            )
        except OSError as error:
            raise CommandError(f"{path} cannot be run: {error.strerror}.") from None
        _judge(done.returncode, title, io)
        text = (read_whole(answer) or b"").decode("utf-8", "surrogateescape")
    changes = told.assignments(text, title)
    if other := next((name for name in changes if name != QUEUE), None):
        raise CommandError(f"{title} wrote {other}: only {QUEUE} can be changed.")
    return changes.get(QUEUE) or queue


def _judge(code: int, title: str, io: "Io") -> None:
    if code == esub.ABORT:
        raise CommandError(f"{ABORTED}.")
    if code < 0:
        raise CommandError(f"{title} was ended by signal {-code}.")
    if code:
        io.error(
            f"{title} ended with exit code {code}; only {esub.ABORT} ($LSB_SWITCH_ABORT_VALUE) refuses the switch."
        )
