"""Options of a submission from their three places: the command line, then the environment, then the script."""

from lavactl.errors import CommandError
from lavactl.options import printable
from lavactl.slurm.submit.options import PARSERS
from lavactl.slurm.words.options import FAILURE, Given, Parser
from lavactl.slurm.words.variables import options_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import TypeVar

    from lavactl.io import Io

    Value = TypeVar("Value")

MARK = "#SBATCH"


# Options of which a job has one, as Slurm's manual says.
EXCLUSIVE = (
    ("mem", "mem-per-cpu", "mem-per-gpu"),
    ("core-spec", "thread-spec"),
    ("extra-node-info", "hint"),
    ("extra-node-info", "threads-per-core"),
    ("extra-node-info", "ntasks-per-core"),
    ("hint", "threads-per-core"),
    ("hint", "ntasks-per-core"),
)


def refuse_components(command: str, words: "Sequence[str]") -> None:
    """Refuse the sign between the components of a heterogeneous job among these words."""
    if ":" in words:
        why = "lava has no heterogeneous jobs of this kind; a job file has several roles"
        raise CommandError(f"{command}: error: a : between components is not supported: {why}.", FAILURE)


class Choices:
    """Options of one submission, those of the command line over those of the environment over those of the script."""

    def __init__(self, command: str, *layers: Given) -> None:
        self.command = command
        self.layers = layers

    def check_exclusive(self) -> None:
        """Refuse options that exclude each other; one of the environment gives way to the others.

        Raises:
            CommandError: two of them were typed, or stand in the script, or both are variables.
        """
        variables = self.layers[1]
        for names in EXCLUSIVE:
            typed = {name for layer in self.layers if layer is not variables for name in names if name in layer}
            found = typed or {name for name in names if name in variables}
            if len(found) > 1:
                given = " and ".join(f"--{name}" for name in names if name in found)
                raise self.wrong(f"{given} are mutually exclusive")
            if typed:
                variables.items = [item for item in variables.items if item[0] not in names or item[0] in typed]

    def __contains__(self, name: str) -> bool:
        return any(name in layer for layer in self.layers)

    def last(self, *names: str) -> str | None:
        """Value of the winning one of these options; None if none was given."""
        return next((value for layer in self.layers if (value := layer.last(*names)) is not None), None)

    def which(self, *names: str) -> str:
        """Name of the winning one of these options; empty if none was given."""
        for layer in self.layers:
            if found := next((name for name, _ in reversed(layer.items) if name in names), ""):
                return found
        return ""

    def read(self, name: str, reader: "Callable[[str], Value]", expected: str) -> "Value | None":
        """Value of an option as its reader makes it; None if it was not given.

        Raises:
            CommandError: a malformed value; the sentence says what was expected.
        """
        text = self.last(name)
        if text is None:
            return None
        try:
            return reader(text)
        except (ValueError, OverflowError):
            raise self.wrong(f"--{name} {text}: expected {expected}") from None

    def wrong(self, sentence: str) -> CommandError:
        """Error of the command, as Slurm writes it."""
        return CommandError(f"{self.command}: error: {printable(sentence).rstrip('.')}.", FAILURE)

    def say_ignored(self, io: "Io") -> None:
        """Name the options that have no effect, with their reasons."""
        if "quiet" in self:
            return
        whole = Given()
        for layer in self.layers:
            whole.items += layer.items
        PARSERS[self.command].say_ignored(whole, io)


def environment_options(command: str, io: "Io", of_job: "Collection[str]" = ()) -> Given:
    """Options that variables give: SBATCH_PARTITION, SRUN_CPUS_PER_TASK, SALLOC_TIMELIMIT, ..."""
    return options_given(PARSERS[command], io, of_job)


def script_options(text: str, parser: Parser) -> Given:
    """Options of the #SBATCH lines before the first command of a script.

    Raises:
        CommandError: a malformed line, with its number.
    """
    from lavactl.submit.words import split_words

    found = Given()
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if bare and not bare.startswith("#"):
            break
        words = directive_text(line)
        if words is None:
            continue
        try:
            given = parser.parse(split_words(words))
        except CommandError as error:
            raise CommandError(
                f"{parser.command}: error: line {number} of the script: {_bare(error)}", FAILURE
            ) from None
        if given.words:
            word = printable(given.words[0])
            raise CommandError(
                f"{parser.command}: error: line {number} of the script: {word} is no option; quote values.",
                FAILURE,
            )
        found.items += given.items
    return found


def directive_text(line: str) -> str | None:
    """Text behind the word of a directive, with or without a blank; None for any other line."""
    text = line[len(MARK) :]
    return text if line.startswith(MARK) and text[:1] in ("", " ", "\t", "\r", "-") else None


def _bare(error: CommandError) -> str:
    """Sentence of an error without the command's name."""
    first = str(error).partition("\n")[0]
    return first.partition(": ")[2].removeprefix("error: ") if first.startswith("sbatch: ") else first
