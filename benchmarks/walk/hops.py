"""Functions that only pass a call on: their body is one call of another product function with nothing computed."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
# Methods of dict, list, set and deque, too: on an attribute of ``self`` they are taken for those.
_CONTAINER = {name for kind in (dict, list, set, str, bytes) for name in vars(kind)} | {"popleft", "put"}


class Hop(NamedTuple):
    """A forwarding function, with the line of its first decorator or ``def``, as a code object has it."""

    file: str
    line: int
    name: str
    target: str


def forwarding(root: Path, files: list[str]) -> list[Hop]:
    """Forwarding functions of these files; their targets may be in any of them."""
    trees = {file: ast.parse((root / file).read_text(encoding="utf-8")) for file in files}
    known = {node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, Function)}
    return [hop for file, tree in trees.items() for hop in _hops_in(file, tree, known)]


def _hops_in(file: str, tree: ast.Module, known: set[str]) -> Iterator[Hop]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            call = _only_call(node)
            if call is not None and _target(call.func) in known and _passes_on(node, call):
                line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                yield Hop(file, line, node.name, ast.unparse(call.func))


def _only_call(function: Function) -> ast.Call | None:
    """The call that is the whole body, beside a docstring; also when its result is awaited or returned."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return None
    value = body[0].value
    while isinstance(value, ast.Await | ast.YieldFrom):
        value = value.value
    return value if isinstance(value, ast.Call) else None


def _target(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        is_field = isinstance(function.value, ast.Attribute)
        return "" if is_field and function.attr in _CONTAINER else function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _passes_on(function: Function, call: ast.Call) -> bool:
    """Return True if each argument is a parameter, a constant or an attribute of these: nothing is computed."""
    own = {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return all(_is_plain(value, own) for value in given) and _is_path(call.func)


def _is_plain(value: ast.expr, own: set[str]) -> bool:
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id in own)


def _is_path(function: ast.expr) -> bool:
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name)
