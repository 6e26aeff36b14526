"""Parser of command lines in LSF's style: options of one dash and any length, short ones bundled (``-aJ name``).

Invariants: an unknown option is refused; a value glued to its option is taken only where the word cannot be a misspelt
option (``-n4`` and ``-Rspan[hosts=1]`` are read, ``-outdirr`` is not).
"""

from lavactl.errors import CommandError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from lavactl.io import Io

FLAG = 0
VALUE = 1
# Options of lists and controls whose values are names: of users, queues, hosts, and resources.
NAMES = "uqmR"


class Reasoned(int):
    """Kind of an option (FLAG or VALUE) that is read and not honoured; ``why`` is a sentence."""

    why: str

    def __new__(cls, kind: int, why: str) -> "Reasoned":
        """Kind with its reason."""
        made = super().__new__(cls, kind)
        made.why = why
        return made


class Ignored(Reasoned):
    """Kind of an option that has no effect; its user is told why."""


class RefusedLater(Reasoned):
    """Kind of an option that the master refuses, wherever the job was written: job files have it, too."""


class Options:
    """A parsed command line: options in order, and the words that are no options."""

    def __init__(self) -> None:
        self.items: list[tuple[str, str]] = []
        self.words: list[str] = []

    def __contains__(self, name: str) -> bool:
        return any(given == name for given, _ in self.items)

    def last(self, *names: str) -> str | None:
        """Value of the last of these options; None if none was given."""
        for given, value in reversed(self.items):
            if given in names:
                return value
        return None

    def all(self, name: str) -> list[str]:
        """Values of an option that may be given several times, in order."""
        return [value for given, value in self.items if given == name]


class Grammar:
    """The options of one command.

    Args:
        kinds: option name without its dash to FLAG, VALUE, either of them as Reasoned, or a sentence: the option is
            LSF's, and refused with these words.
        words_end: the first word that is no option ends the options (``bsub command -x``).
        glued: letters of options that take any glued value: the cluster refuses a wrong one (``-uall``, ``-qshort``).
    """

    def __init__(
        self, command: str, usage: str, kinds: "Mapping[str, int | str]", *, words_end: bool = False, glued: str = NAMES
    ) -> None:
        self.command = command
        self.usage = usage
        self.kinds = kinds
        self.words_end = words_end
        self.glued = glued

    def parse(self, argv: list[str]) -> Options:
        """Parse a command line.

        Raises:
            UsageError: an unknown option, or one that lacks its value.
            CommandError: an option of LSF that is not supported yet.
        """
        options = Options()
        rest = list(reversed(argv))
        while rest:
            word = rest.pop()
            if word == "--":
                options.words += reversed(rest)
                break
            if len(word) < 2 or word[0] != "-":
                options.words.append(word)
                if self.words_end:
                    options.words += reversed(rest)
                    break
                continue
            self._option(word[1:], rest, options)
        return options

    def _option(self, name: str, rest: list[str], options: Options) -> None:
        kind = self.kinds.get(name)
        if kind is None:
            self._glued(name, rest, options)
        elif kind == FLAG:
            options.items.append((name, ""))
        elif kind == VALUE:
            if not rest:
                raise self.wrong(f"option requires an argument -- {name}")
            options.items.append((name, rest.pop()))
        else:
            raise CommandError(f"{self.command} -{name}: {kind}")

    def _glued(self, name: str, rest: list[str], options: Options) -> None:
        """Parse an option with its value glued on, or several one-letter options in one word."""
        for size in range(min(len(name) - 1, 3), 0, -1):
            if self.kinds.get(name[:size]) == VALUE and (is_plainly_value(name[size:]) or name[:size] in self.glued):
                options.items.append((name[:size], name[size:]))
                return
        if len(name) > 1 and self._is_bundle(name):
            for letter in name:
                self._option(letter, rest, options)
            return
        raise self.wrong(f"illegal option -- {name}{self._instead(name)}")

    def _instead(self, name: str) -> str:
        """End of the sentence about an unknown option: the one for signals, where it is one, as in kill."""
        from signal import Signals

        is_signal = name.isdigit() or name.upper() in {one.name.removeprefix("SIG") for one in Signals}
        return f" (a signal is -s {name})" if is_signal and self.command == "bkill" else ""

    def _is_bundle(self, name: str) -> bool:
        return all(self.kinds.get(letter) == FLAG for letter in name[:-1]) and name[-1] in self.kinds

    def notes(self, options: Options) -> list[str]:
        """A sentence for each given option that has no effect."""
        given = dict.fromkeys(name for name, _ in options.items)
        kinds = [(name, self.kinds[name]) for name in given]
        return [f"{self.command} -{name}: {kind.why}" for name, kind in kinds if isinstance(kind, Ignored)]

    def wrong(self, sentence: str) -> UsageError:
        """Usage error of this command, to be raised."""
        return UsageError(f"{self.command}: {printable(sentence)}", self.usage)


def is_plainly_value(text: str) -> bool:
    """True if a glued word cannot be the rest of an option name."""
    return not text.replace("_", "").replace("-", "").isalpha()


def printable(text: str) -> str:
    """Text without terminal control characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def answer_standard(argv: list[str], usage: str) -> str | None:
    """Answer to a command line with -h or -V; None for any other."""
    if not argv or argv[0] not in ("-h", "-V", "--help", "--version"):
        return None
    if argv[0] in ("-h", "--help"):
        return usage.rstrip()
    from protos import __version__

    return f"lava {__version__}"


def answered(argv: list[str], usage: str, io: "Io") -> bool:
    """Print the answer to -h or -V; False for any other command line. Requested help goes to standard output."""
    text = answer_standard(argv, usage)
    if text is None:
        return False
    io.print(text)
    return True


def answered_version(argv: list[str], io: "Io") -> bool:
    """Print the answer to -V, for a command whose help is that of another program; False for other command lines."""
    return argv[:1] in (["-V"], ["--version"]) and answered(argv, "", io)
