"""Commands of containers: ``$(NAME)`` is replaced by the container's variables, as Kubernetes does it.

``$$`` is a dollar sign. A variable that the file does not define may still be one that the tasks are told, such as
VK_TASK_INDEX: then the arguments become a line of the shell that takes it from the environment, or else leaves the
reference as it stands.
"""

import re
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_REFERENCE = re.compile(r"\$(\$|\(([^()]*)\))")
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def expand(text: str, variables: "Mapping[str, str]") -> str:
    """Text with its references replaced; unknown ones stay."""
    return _REFERENCE.sub(lambda found: "$" if found[1] == "$" else variables.get(found[2], found[0]), text)


def is_open(text: str, variables: "Mapping[str, str]") -> bool:
    """True if a text refers to a variable that is not among these and could be one of the environment."""
    return any(
        found[1] != "$" and found[2] not in variables and _SHELL_NAME.fullmatch(found[2])
        for found in _REFERENCE.finditer(text)
    )


def shell_line(words: "Sequence[str]", variables: "Mapping[str, str]", exports: str = "") -> str:
    """Line of the shell that runs these words, with open references left to the environment of the task."""
    return f"{exports}exec " + " ".join(shell_word(word, variables) for word in words)


def shell_word(word: str, variables: "Mapping[str, str]") -> str:
    """Word of a line of the shell, with open references left to the environment of the task."""
    if not is_open(word, variables):
        return shlex.quote(expand(word, variables))
    parts, end = [], 0
    for found in _REFERENCE.finditer(word):
        parts.append(_quoted(word[end : found.start()]))
        end = found.end()
        if found[1] == "$":
            parts.append("\\$")
        elif found[2] in variables:
            parts.append(_quoted(variables[found[2]]))
        elif _SHELL_NAME.fullmatch(found[2]):
            parts.append(f"${{{found[2]}-\\$({found[2]})}}")
        else:
            parts.append(_quoted(found[0]))
    return f'"{"".join(parts)}{_quoted(word[end:])}"'


def _quoted(text: str) -> str:
    """Text between double quotes of the shell."""
    return re.sub(r'([\\"$`])', r"\\\1", text)
