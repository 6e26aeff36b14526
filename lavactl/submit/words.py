"""Words of a job: those of the ``#BSUB`` lines of its script, and those of its command line as a line of the shell.

Rules for a script (docs/reference has them for users): a directive starts in the first column with ``#BSUB`` and a
blank, anywhere in the script; words are split as a shell would, quotes included, nothing is expanded; a ``#`` at the
start of a word begins a comment. An indented line is no directive: ipyparallel's default template repeats ``-J``
without its index list on an indented line, and would start one engine instead of n. Such lines are reported.

Rules for a command line: the first word stays as it is, so that ``bsub "a; b"`` is a line of the shell. A later word
that contains blanks is quoted whole and taken literally; in one without blanks only quotes, backslashes and parentheses
are escaped, so that ``$LSB_JOBID``, ``*`` and ``\\>`` are left to the shell of the job.
"""

from lavactl.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = "#BSUB"
BLANKS = " \t\r"

SHELL_BLANKS = frozenset(" \t\n\r\v\f")
ESCAPED = str.maketrans({letter: f"\\{letter}" for letter in "\"'\\()"})
LITERAL_ONLY = frozenset('"$`\\')  # between double quotes the shell would interpret these


def directive_words(script: str) -> list[tuple[int, list[str]]]:
    """(line number from 1, words after #BSUB) of every directive that has words.

    Raises:
        CommandError: a quote is left open.
    """
    found = []
    for number, line in enumerate(script.split("\n"), 1):
        if is_directive(line):
            try:
                words = split_words(line[len(MARK) :])
            except CommandError as error:
                raise CommandError(f"Line {number} of the job script: {error}") from None
            if words:
                found.append((number, words))
    return found


def has_windows_ends(script: str) -> bool:
    """True if the first line of a script ends in CR LF, as then all do."""
    return script.partition("\n")[0].endswith("\r")


def is_directive(line: str) -> bool:
    """True if a line is a directive."""
    return line.startswith(MARK) and line[len(MARK) : len(MARK) + 1] in ("", " ", "\t", "\r")


def indented_directives(script: str) -> list[int]:
    """Numbers of lines that would be directives if they were not indented."""
    if MARK not in script:
        return []
    return [
        number
        for number, line in enumerate(script.split("\n"), 1)
        if line[:1] in (" ", "\t") and is_directive(line.lstrip())
    ]


def split_words(text: str) -> list[str]:
    """Words of one line; quotes group, a backslash escapes the next character, ``#`` begins a comment.

    Raises:
        CommandError: a quote is left open.
    """
    words: list[str] = []
    place = 0
    while True:
        while place < len(text) and text[place] in BLANKS:
            place += 1
        if place == len(text) or text[place] == "#":
            return words
        word, place = _word(text, place)
        words.append(word)


def _word(text: str, place: int) -> tuple[str, int]:
    """(word that starts at ``place``, position of its end)."""
    end = text.find(" ", place)
    plain = text[place:end] if end >= 0 else text[place:]
    if not ('"' in plain or "'" in plain or "\\" in plain or "\t" in plain or "\r" in plain):  # as most in a pack
        return plain, place + len(plain)
    taken: list[str] = []
    quote = ""
    while place < len(text) and (quote or text[place] not in BLANKS):
        letter = text[place]
        place += 1
        if letter == quote:
            quote = ""
        elif not quote and letter in "'\"":
            quote = letter
        elif letter == "\\" and place < len(text) and (not quote or (quote == '"' and text[place] in '"\\')):
            taken.append(text[place])
            place += 1
        else:
            taken.append(letter)
    if quote:
        raise CommandError(f"the quote {quote} is not closed.")
    return "".join(taken), place


def shell_line(words: "Sequence[str]") -> str:
    """Command line that gives a shell these words."""
    return " ".join([*words[:1], *map(quoted, words[1:])])


def quoted(word: str) -> str:
    """Second or later word, quoted for the line."""
    if not word:
        return '""'
    if SHELL_BLANKS.isdisjoint(word):
        return word.translate(ESCAPED)
    if LITERAL_ONLY.isdisjoint(word):
        return f'"{word}"'
    return "'" + word.replace("'", "'\\''") + "'"
