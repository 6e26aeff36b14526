"""Options of a submission from their three places: the command line, then the environment, then the script."""

from lavactl.errors import CommandError
from lavactl.options import printable
from lavactl.slurm.submit.options import NOT_OF_SBATCH, PARSERS, PREFIXES
from lavactl.slurm.words.options import FAILURE, FLAG, IGNORED, REFUSED, Given, Parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import TypeVar

    from lavactl.io import Io

    Value = TypeVar("Value")

MARK = "#SBATCH"
NO = ("", "0", "no")  # values of a variable that do not set a flag


class Choices:
    """Options of one submission, those of the command line over those of the environment over those of the script."""

    def __init__(self, command: str, *layers: Given) -> None:
        self.command = command
        self.layers = layers

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
    """Options that variables give: SBATCH_PARTITION, SRUN_CPUS_PER_TASK, SALLOC_TIMELIMIT, ...

    Args:
        of_job: names of options whose SLURM_ variables tell of the surrounding job: only SRUN_ is read for them.
    """
    given = Given()
    for option in PARSERS[command].options:
        end = option.environment
        if not end or option.fate in (REFUSED, IGNORED) or (command != "srun" and end in NOT_OF_SBATCH):
            continue
        own = [] if option.name in of_job else [PREFIXES[command]]
        prefixes = ["SRUN_", *own] if command == "srun" else own
        value = next((io.environ[name + end] for name in prefixes if name + end in io.environ), None)
        if value is None or (option.kind == FLAG and value.lower() in NO):
            continue
        given.items.append((option.name, "" if option.kind == FLAG else value))
    return given


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
