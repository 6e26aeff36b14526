"""Words of a command line joined into one line for the job's shell.

Rules: the first word stays as it is, so that ``bsub "a; b"`` is a line of the shell. A later word that contains blanks
is quoted whole and taken literally; in one without blanks only quotes, backslashes and parentheses are escaped, so that
``$LSB_JOBID``, ``*`` and ``\\>`` are left to the shell of the job.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

BLANKS = frozenset(" \t\n\r\v\f")
ESCAPED = str.maketrans({letter: f"\\{letter}" for letter in "\"'\\()"})
LITERAL_ONLY = frozenset('"$`\\')  # between double quotes the shell would interpret these


def shell_line(words: "Sequence[str]") -> str:
    """Command line that gives a shell these words."""
    return " ".join([*words[:1], *map(quoted, words[1:])])


def quoted(word: str) -> str:
    """Second or later word, quoted for the line."""
    if not word:
        return '""'
    if BLANKS.isdisjoint(word):
        return word.translate(ESCAPED)
    if LITERAL_ONLY.isdisjoint(word):
        return f'"{word}"'
    return "'" + word.replace("'", "'\\''") + "'"
