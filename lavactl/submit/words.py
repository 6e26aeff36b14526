"""Words of a job: those of the ``#BSUB`` lines of its script, and those of its command line as a line of the shell.

Rules for a script (docs/reference has them for users): a directive starts in the first column with ``#BSUB`` and a
blank, or at once an option, anywhere in the script; a backslash at its end joins the next line, unless that is a
directive itself; words are split as a shell would, quotes included, nothing is expanded; a ``#`` at the start of a word
begins a comment. Blanks behind the ``#`` are skipped, as LSF does. An indented line is no directive: ipyparallel's
default template repeats ``-J`` without its index list on an indented line, and would start one engine instead of n.
Such lines are reported, as are those that only look like a directive.

Rules for a command line: the first word stays as it is, so that ``bsub "a; b"`` is a line of the shell. A later word
that contains blanks is quoted whole and taken literally; in one without blanks only quotes, backslashes and parentheses
are escaped, so that ``$LSB_JOBID``, ``*`` and ``\\>`` are left to the shell of the job.
"""

from lavactl.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORD = "BSUB"
MARK = f"#{WORD}"
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
    for number, text, _ in _directives(script):
        try:
            words = split_words(text)
        except CommandError as error:
            raise CommandError(f"Line {number} of the job script: {error}") from None
        if words:
            found.append((number, words))
    return found


def continuations(script: str) -> list[int]:
    """Numbers of the lines that go on the directive before them."""
    return [number for start, _, end in _directives(script) for number in range(start + 1, end + 1)]


def _directives(script: str) -> "Iterator[tuple[int, str, int]]":
    """(number of its line, its text behind the word, number of its last line) of every directive."""
    if WORD not in script:
        return
    lines = script.split("\n")
    place = 0
    while place < len(lines):
        start, text = place + 1, directive_text(lines[place])
        place += 1
        while text is not None and text.endswith("\\"):
            text = text[:-1]
            if place == len(lines) or directive_text(lines[place]) is not None:
                break
            text, place = text + lines[place], place + 1
        if text is not None:
            yield start, text, place


def directive_text(line: str) -> str | None:
    """Text behind the word of a directive; None for any other line."""
    if not line.startswith("#"):
        return None
    bare = line[1:].lstrip(" \t")
    if not bare.startswith(WORD) or bare[len(WORD) : len(WORD) + 1] not in ("", " ", "\t", "\r", "-"):
        return None
    text = bare[len(WORD) :]
    return text if line.startswith(MARK) or text.lstrip(BLANKS).startswith("-") else None


def directive_notes(script: str) -> list[str]:
    """A note for each line that is a directive in spite of its form, or is none because of it."""
    if WORD.lower() not in script.lower():
        return []
    notes = [(number, _note(line)) for number, line in enumerate(script.split("\n"), 1) if "#" in line]
    return [f"Line {number} of the job script: {note}" for number, note in notes if note]


def _note(line: str) -> str:
    if directive_text(line) is not None:
        return "" if line.startswith(MARK) else f'"# {WORD}" is read as "{MARK}", as in LSF.'
    bare = line.lstrip(" \t")
    if bare != line and directive_text(bare) is not None:
        return f'"{MARK}" is not at the start of the line and is ignored.'
    written = bare[: len(MARK)]
    if written.upper() == MARK and written != MARK and directive_text(MARK + bare[len(MARK) :]) is not None:
        return f'"{written}" is not "{MARK}" and is ignored.'
    return ""


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
