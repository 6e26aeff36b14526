"""Parsers of all commands by name, for what is made from them: pages of the manual and the completion of shells."""

from importlib import import_module

from lavactl.main import COMMANDS, SUBCOMMANDS
from lavactl.options import Grammar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def module_of(command: str) -> "ModuleType":
    """Module of a command."""
    return import_module(f"lavactl.commands.{command.replace('-', '_')}")


def title_of(command: str) -> str:
    """The command as it is typed: `bjobs`, `lavactl up`."""
    return command if command in COMMANDS else f"lavactl {command}"


def parsers(command: str) -> list[Grammar]:
    """Parsers of a command, one for each of its subcommands; none where a program of the master parses its words."""
    module = module_of(command)
    if hasattr(module, "GRAMMARS"):
        return list(module.GRAMMARS.values())
    if hasattr(module, "GRAMMAR"):
        return [module.GRAMMAR]
    if hasattr(module, "KINDS"):  # of a personal cluster or a cluster directory: options of two dashes
        kinds = {f"-{name}": kind for name, kind in module.KINDS.items()}
        return [Grammar(title_of(command), module.USAGE, kinds)]
    return []


def refused(command: str) -> dict[str, str]:
    """Subcommands of LSF that a command refuses, with the reason."""
    reasons: dict[str, str] = getattr(module_of(command), "REFUSED", {})
    return reasons


def every() -> tuple[str, ...]:
    """Names of all commands, those of LSF first."""
    return (*COMMANDS, *SUBCOMMANDS)
