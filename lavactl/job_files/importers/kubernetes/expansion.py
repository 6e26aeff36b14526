"""Commands of containers: ``$(NAME)`` is replaced by the container's variables, as Kubernetes does it.

``$$`` is a dollar sign. A variable that the file does not define may still be one that the tasks are told, such as
VK_TASK_INDEX: then the arguments become a line of the shell that takes it from the environment, or else leaves the
reference as it stands.
"""

import re
import shlex

from lavactl.errors import CommandError
from lavactl.options import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

VALUE_MAX = 128 << 10  # the kernel's bound on one variable, and on one word of a command
_REFERENCE = re.compile(r"\$(\$|\(([^()]*)\))")
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def expand(text: str, variables: "Mapping[str, str]") -> str:
    """Text with its references replaced; unknown ones stay.

    Raises:
        CommandError: it would become longer than a variable or a word of a command can be.
    """
    room = Room(text)

    def value(found: "re.Match[str]") -> str:
        return room.take("$" if found[1] == "$" else variables.get(found[2], found[0]))

    return _REFERENCE.sub(value, text)


class Room:
    """Characters that the references of one text may still become."""

    def __init__(self, text: str) -> None:
        self._left = VALUE_MAX
        self._begin = text[:40]

    def take(self, value: str) -> str:
        """The value, counted.

        Raises:
            CommandError: there is no room for it.
        """
        self._left -= len(value)
        if self._left < 0:
            raise CommandError(
                f"{printable(self._begin)}: with its $(NAME) replaced it would be longer than {VALUE_MAX} characters."
            )
        return value


def is_open(text: str, variables: "Mapping[str, str]", told: "Collection[str]" = ()) -> bool:
    """True if a text refers to a variable that the line of the shell sets, or to one that is not among these and could
    be one of the environment.
    """
    return any(
        found[1] != "$" and found[2] not in variables and (found[2] in told or is_shell_name(found[2]))
        for found in _REFERENCE.finditer(text)
    )


def refers(text: str, names: "Collection[str]") -> bool:
    """True if a text refers to one of these variables."""
    return any(found[1] != "$" and found[2] in names for found in _REFERENCE.finditer(text))


def is_shell_name(name: str) -> bool:
    """True if the shell can have a variable of this name; Kubernetes also allows - and . in names."""
    return _SHELL_NAME.fullmatch(name) is not None


def shell_name(name: str) -> str:
    """Name under which the line of the shell knows a variable that it sets."""
    if is_shell_name(name):
        return name
    return "lava_" + re.sub(r"[^A-Za-z0-9]", lambda found: f"_{ord(found[0]):x}_", name)


def shell_line(words: "Sequence[str]", variables: "Mapping[str, str]", told: "Mapping[str, str]") -> str:
    """Line of the shell that sets what is told and runs these words.

    Open references are left to the environment of the task. Variables whose names the shell does not allow are handed
    over by env: the shell would drop them.

    Args:
        told: words of the shell for variables that only the task knows.
    """
    set_first = "".join(f"{'export ' * is_shell_name(name)}{shell_name(name)}={word}; " for name, word in told.items())
    by_env = [f'{shlex.quote(name)}="${shell_name(name)}"' for name in told if not is_shell_name(name)]
    by_env += [shlex.quote(f"{name}={value}") for name, value in variables.items() if not is_shell_name(name)]
    program = ["exec", *(["env", *by_env] if by_env else []), *(shell_word(word, variables, told) for word in words)]
    return set_first + " ".join(program)


def shell_word(word: str, variables: "Mapping[str, str]", told: "Collection[str]" = ()) -> str:
    """Word of a line of the shell, with open references left to the environment of the task."""
    if not is_open(word, variables, told):
        return shlex.quote(expand(word, variables))
    parts, end, room = [], 0, Room(word)
    for found in _REFERENCE.finditer(word):
        parts.append(_quoted(word[end : found.start()]))
        end = found.end()
        if found[1] == "$":
            parts.append("\\$")
        elif found[2] in variables:
            parts.append(_quoted(room.take(variables[found[2]])))
        elif found[2] in told or is_shell_name(found[2]):
            parts.append(f"${{{shell_name(found[2])}-\\$({found[2]})}}")
        else:
            parts.append(_quoted(found[0]))
    return f'"{"".join(parts)}{_quoted(word[end:])}"'


def _quoted(text: str) -> str:
    """Text between double quotes of the shell."""
    return re.sub(r'([\\"$`])', r"\\\1", text)
