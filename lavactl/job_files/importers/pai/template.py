"""Templates of OpenPAI's protocol: ``<% $parameters.x %>`` and others, in texts of a job.

Unknown names stay as they are written, as in the original. A secret is never copied into a text: its place is taken by
a variable that tasks have and that nothing shows.
"""

import re

from lavactl.job_files.text.nodes import Mapping, Node, Scalar, Sequence

_TAG = re.compile(r"<%\s*(\$[^%]*?)\s*%>")
_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d{1,6})\]")
_NAME = re.compile(r"\$([A-Za-z_]\w*)")
SECRET = "LAVA_SECRET_"


def render(text: str, values: "dict[str, Node]", secrets: set[str]) -> str:
    """Text with its tags replaced; ``secrets`` collects the secrets that it names."""

    def replaced(found: "re.Match[str]") -> str:
        name = _NAME.match(found[1])
        if name is None:
            return found[0]
        if name[1] == "secrets":
            reference = _secret(found, name.end(), values, secrets)
            is_closed = reference != found[0] and _is_in_single_quotes(text[: found.start()])
            return f"'\"{reference}\"'" if is_closed else reference
        node = _follow(values.get(name[1]), found[1][name.end() :])
        return node.text if isinstance(node, Scalar) else found[0]

    return _TAG.sub(replaced, text)


def _secret(found: "re.Match[str]", end: int, values: "dict[str, Node]", secrets: set[str]) -> str:
    step = _STEP.fullmatch(found[1], end)
    held = values.get("secrets")
    if step is None or not isinstance(held, Mapping) or not isinstance(held.get(step[1] or ""), Scalar):
        return found[0]
    secrets.add(step[1])
    return f"${{{variable(step[1])}}}"


def left_over(text: str) -> list[str]:
    """Return the tags of a rendered text that stand for nothing, each once."""
    return list(dict.fromkeys(found[0] for found in _TAG.finditer(text)))


def _is_in_single_quotes(text: str) -> bool:
    """True if a command that begins so is within single quotes, where the shell does not look for variables."""
    quote, at = "", 0
    while at < len(text):
        letter = text[at]
        if letter == "\\" and quote != "'":
            at += 1
        elif letter == quote:
            quote = ""
        elif letter in "'\"" and not quote:
            quote = letter
        at += 1
    return quote == "'"


def variable(name: str) -> str:
    """Name of the variable that holds a secret."""
    return SECRET + re.sub(r"\W", lambda found: f"_{ord(found[0]):x}_", name, flags=re.ASCII)


def _follow(node: Node | None, path: str) -> Node | None:
    """Node at the end of a path such as ``.uri[0]``; None if there is none. Of a single value [0] is the value."""
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        at = step.end()
        if step[1] is not None:
            node = node.get(step[1]) if isinstance(node, Mapping) else None
        elif isinstance(node, Sequence):
            node = node.items[int(step[2])] if int(step[2]) < len(node.items) else None
        elif not isinstance(node, Scalar) or int(step[2]):
            return None
    return node
