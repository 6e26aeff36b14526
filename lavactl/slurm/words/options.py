"""Parser of command lines in the style of getopt_long, and the fate of each of Slurm's options.

Invariants: an unknown option is refused; a long name may be cut to an unambiguous beginning; an option that has no
effect here is named with the reason, and one that cannot be honoured is refused with it: none is taken silently.
"""

from lavactl.errors import CommandError
from lavactl.options import Options, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lavactl.io import Io

FLAG, VALUE, MAYBE = range(3)  # MAYBE: a value only with = or glued to the letter
HONOURED, IGNORED, REFUSED = "honoured", "ignored", "not supported"
FAILURE = 1  # exit code of Slurm's commands


class Option:
    """One option: its names, its kind and its fate.

    Args:
        words: for HONOURED a remark for the table; else the reason, as the end of a sentence.
        environment: end of the variables that give its value: SBATCH_..., SLURM_... (srun), SALLOC_...
    """

    def __init__(
        self, name: str, letter: str = "", kind: int = VALUE, fate: str = HONOURED, words: str = "", env: str = ""
    ) -> None:
        self.name, self.letter, self.kind, self.fate, self.words, self.environment = (
            name,
            letter,
            kind,
            fate,
            words,
            env,
        )


def ignored(name: str, words: str, kind: int = VALUE, letter: str = "") -> Option:
    """Option that has no effect, for this reason."""
    return Option(name, letter, kind, IGNORED, words)


def refused(name: str, words: str, kind: int = VALUE, letter: str = "") -> Option:
    """Option that cannot be honoured, for this reason."""
    return Option(name, letter, kind, REFUSED, words)


Given = Options  # by their long names


class Parser:
    """The options of one command.

    Args:
        words_end: the first word that is no option ends the options.
    """

    def __init__(self, command: str, options: "Iterable[Option]", *, words_end: bool = False) -> None:
        self.command = command
        self.options = tuple(options)
        self.words_end = words_end
        self._by_name = {option.name: option for option in self.options}
        self._by_letter = {option.letter: option for option in self.options if option.letter}

    def parse(self, argv: "Sequence[str]") -> Given:
        """Parse a command line.

        Raises:
            CommandError: an unknown option, one that lacks its value, or one that is not supported.
        """
        given, rest = Given(), list(reversed(argv))
        while rest:
            word = rest.pop()
            if word == "--":
                given.words += reversed(rest)
                break
            if word.startswith("--"):
                self._long(word[2:], rest, given)
            elif len(word) > 1 and word[0] == "-":
                self._short(word[1:], rest, given)
            else:
                given.words.append(word)
                if self.words_end:
                    given.words += reversed(rest)
                    break
        return given

    def named(self, name: str) -> Option | None:
        """Option of this long name; None if there is none."""
        return self._by_name.get(name)

    def _long(self, text: str, rest: list[str], given: Given) -> None:
        name, equals, value = text.partition("=")
        option = self._find(name)
        if option.kind == FLAG and equals:
            raise self.wrong(f"option '--{option.name}' doesn't allow an argument")
        if option.kind == VALUE and not equals:
            value = self._next(f"--{option.name}", rest)
        self.take(option, value, given)

    def _find(self, name: str) -> Option:
        name = name.replace("_", "-")
        if name in self._by_name:
            return self._by_name[name]
        found = [one for one in self.options if name and one.name.startswith(name)]
        if len(found) != 1:
            raise self.wrong(f"{'ambiguous' if found else 'unrecognized'} option '--{name}'")
        return found[0]

    def _short(self, letters: str, rest: list[str], given: Given) -> None:
        while letters:
            letter, letters = letters[0], letters[1:]
            option = self._by_letter.get(letter)
            if option is None:
                raise self.wrong(f"invalid option -- '{letter}'")
            if option.kind == FLAG:
                self.take(option, "", given)
                continue
            value = (
                letters.removeprefix("=") if letters else self._next(f"-{letter}", rest) if option.kind == VALUE else ""
            )
            self.take(option, value, given)
            return

    def _next(self, name: str, rest: list[str]) -> str:
        if not rest:
            raise self.wrong(f"option '{name}' requires an argument")
        return rest.pop()

    def take(self, option: Option, value: str, given: Given) -> None:
        """Add an option to those given."""
        if option.fate == REFUSED:
            raise CommandError(f"{self.command}: error: --{option.name} is not supported: {option.words}.", FAILURE)
        given.items.append((option.name, value))

    def wrong(self, sentence: str) -> CommandError:
        """Error about this command's options."""
        return CommandError(
            f'{self.command}: {printable(sentence)}\nTry "{self.command} --help" for more information', FAILURE
        )

    def say_ignored(self, given: Given, io: "Io") -> None:
        """Name each option that has no effect, once, with the reason."""
        for name in dict.fromkeys(name for name, _ in given.items):
            option = self._by_name[name]
            if option.fate == IGNORED:
                io.error(f"{self.command}: --{name} has no effect: {option.words}.")

    def usage(self, head: str) -> str:
        """Text of --help: the head, then the options by their fate."""
        lines = [head.rstrip(), ""]
        for fate, title in ((HONOURED, "Options:"), (IGNORED, "Taken without effect:"), (REFUSED, "Not supported:")):
            found = [one for one in self.options if one.fate == fate]
            if found:
                lines.append(title)
                lines += [f"  {spelled(one):<34} {one.words}".rstrip() for one in found]
        return "\n".join(lines)


def spelled(option: Option) -> str:
    """Option as its user writes it: -n, --ntasks=VALUE."""
    tail = {FLAG: "", VALUE: "=VALUE", MAYBE: "[=VALUE]"}[option.kind]
    letter = f"-{option.letter}, " if option.letter else "    "
    return f"{letter}--{option.name}{tail}"


def typed(option: Option, value: str) -> str:
    """Word by which an option is given with this value."""
    has_value = option.kind == VALUE or (option.kind == MAYBE and value)
    return f"--{option.name}={value}" if has_value else f"--{option.name}"


def answered(given: Given, parser: Parser, head: str, io: "Io") -> bool:
    """Print the answer to --help, --usage or --version; False if none was asked for."""
    if "help" in given or "usage" in given:
        io.print(parser.usage(head))
        return True
    if "version" in given:
        from protos import __version__

        io.print(f"lava {__version__} (in Slurm's words)")
        return True
    return False


STANDARD = (
    Option("help", "h", FLAG, words="this text"),
    Option("usage", "", FLAG, words="this text"),
    Option("version", "V", FLAG, words="lava's version"),
)


def fail(command: str, sentence: str, code: int = FAILURE) -> CommandError:
    """Error of a command, as Slurm writes it."""
    return CommandError(f"{command}: error: {printable(sentence)}", code)
