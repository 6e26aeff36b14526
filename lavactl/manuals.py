"""Manual pages of all commands, and their completion for bash, from the parsers.

`lavactl link` writes them beside the links, and as a program this module writes them to a folder for packages.
"""

import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from lavactl import main
from lavactl.options import Grammar, Ignored, Reasoned, RefusedLater
from lavactl.parsers import every, module_of, parsers, refused, title_of
from protos import __version__

LAVACTL = "lavactl \\- commands of lava's own, and every other command as its first word."
EXIT_STATUS = (
    "0 if all was done, 255 after an error. bsub \\-K and the commands that run a program have that of the job."
)


def purpose_of(command: str) -> str:
    """Purpose of a command, in the words of its module."""
    first = (module_of(command).__doc__ or "").strip().partition("\n")[0]
    return first.partition(": ")[2].rstrip(".") or first


def usage_of(command: str) -> str:
    """Usage text of a command, as -h prints it."""
    module = module_of(command)
    if hasattr(module, "USAGE"):
        return str(module.USAGE)
    if parsers(command):
        return parsers(command)[0].usage
    asked = [sys.executable, "-m", "lavactl", command, "-h"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def synopsis(usage: str) -> str:
    """Usage text without its first word, and without the room that the word takes in the lines below."""
    return usage.strip().partition(": ")[2].replace("\n       ", "\n")


def roff(text: str) -> str:
    """Text for a manual page: its backslashes, dashes and leading dots are no requests."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in escaped.split("\n"))


def manual(command: str) -> str:
    """Manual page of a command."""
    name = title_of(command).replace(" ", "-")
    parts = [head(name), ".SH NAME", f"{roff(name)} \\- {roff(purpose_of(command))}"]
    parts += [
        ".SH SYNOPSIS",
        ".nf",
        roff(synopsis(usage_of(command))),
        ".fi",
    ]
    for parser in parsers(command):
        parts += options_of(parser)
    if refused(command):
        parts += [".SH SUBCOMMANDS THAT ARE NOT SUPPORTED"]
        parts += [f".TP\n.B {roff(word)}\n{roff(why)}" for word, why in refused(command).items()]
    parts += [".SH EXIT STATUS", EXIT_STATUS, ".SH SEE ALSO", ".BR lavactl (1)"]
    return "\n".join(parts) + "\n"


def head(name: str) -> str:
    """First line of a manual page."""
    return f'.TH "{name.upper()}" 1 "" "lava {__version__}" "lava"'


def options_of(parser: Grammar) -> Iterator[str]:
    """Options of a parser: those that are honoured, then each of the others with the reason."""
    honoured = [name for name, kind in parser.kinds.items() if not isinstance(kind, str | Reasoned)]
    takes_value = [f"\\-{roff(name)}" + (" \\fIvalue\\fR" if parser.kinds[name] else "") for name in honoured]
    yield f".SH OPTIONS OF {roff(parser.command.upper())}"
    yield ", ".join([*takes_value, "\\-h", "\\-V"])
    for name, kind in parser.kinds.items():
        if isinstance(kind, Ignored):
            yield f".TP\n.B \\-{roff(name)}\nHas no effect: {roff(kind.why)}"
    for name, kind in parser.kinds.items():
        if isinstance(kind, str | RefusedLater):
            why = kind if isinstance(kind, str) else kind.why
            yield f".TP\n.B \\-{roff(name)}\nRefused: {roff(why)}"


def manual_of_lavactl() -> str:
    """Manual page of lavactl: its commands, each with what it does."""
    parts = [head("lavactl"), ".SH NAME", LAVACTL]
    parts += [".SH SYNOPSIS", "lavactl [\\-h] [\\-V] \\fIcommand\\fR [arguments]", ".SH COMMANDS"]
    parts += [f".TP\n.B {roff(name)}\n{roff(purpose_of(name))}" for name in every()]
    parts += [".SH EXIT STATUS", EXIT_STATUS]
    return "\n".join(parts) + "\n"


def completion() -> str:
    """Completion for bash: options of each command, and subcommands at their place."""
    cases = []
    for command in every():
        known = parsers(command)
        first = [parser.command.split()[-1] for parser in known if parser.command != title_of(command)]
        subcommands = first if len(known) > 1 else []
        if subcommands:
            cases.append((title_of(command), [*subcommands, "-h", "-V"]))
        for parser in known:
            title = parser.command if subcommands else title_of(command)
            cases.append(
                (
                    title,
                    [f"-{name}" for name, kind in parser.kinds.items() if not isinstance(kind, str | RefusedLater)]
                    + ["-h", "-V"],
                )
            )
    lines = "".join(f"    {quoted(title)}) words={quoted(' '.join(words))} ;;\n" for title, words in cases)
    nested = " | ".join(quoted(title_of(command)) for command in every() if len(parsers(command)) > 1)
    return SCRIPT.format(
        own=" | ".join(main.SUBCOMMANDS), all=quoted(" ".join((*every(), "-h", "-V"))), nested=nested, cases=lines,
        names=" ".join(("lavactl", *main.COMMANDS)),
    )  # fmt: skip


def quoted(text: str) -> str:
    """A word of the shell."""
    return f"'{text}'"


SCRIPT = """\
# Completion of lava's commands for bash: options and subcommands, else names of files.
# Written by lavactl.manuals from the parsers of the commands.
_lava() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} command=${{COMP_WORDS[0]##*/}} place=1 words=''
    if [ "$command" = lavactl ]; then
        if [ "$COMP_CWORD" -eq 1 ]; then
            COMPREPLY=($(compgen -W {all} -- "$word"))
            return
        fi
        command=${{COMP_WORDS[1]}} place=2
        case $command in
        {own}) command="lavactl $command" ;;
        esac
    fi
    case $command in
    {nested}) [ "$COMP_CWORD" -eq "$place" ] || command="$command ${{COMP_WORDS[place]}}" ;;
    esac
    case $command in
{cases}    esac
    case $word in
    -*) ;;
    *) [ "$COMP_CWORD" -eq "$place" ] && case $words in -*) words='' ;; esac || words='' ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _lava {names}
"""


def write(share: Path, left_out: Collection[str] = ()) -> None:
    """Write all pages and the completion below a folder like /usr/share; files of other programs are left alone.

    Args:
        left_out: commands whose names are those of other programs.
    """
    manuals, completions = share / "man" / "man1", share / "bash-completion" / "completions"
    manuals.mkdir(parents=True, exist_ok=True)
    completions.mkdir(parents=True, exist_ok=True)
    for command in every():
        name = title_of(command).replace(" ", "-")
        if name not in left_out:
            _write(manuals / f"{name}.1", manual(command))
    _write(manuals / "lavactl.1", manual_of_lavactl())
    _write(completions / "lava", completion())
    for name in ("lavactl", *main.COMMANDS):  # bash reads the file of a command's name when that is completed
        place = completions / name
        if name not in left_out and not os.path.lexists(place):
            place.symlink_to("lava")


def _write(place: Path, text: str) -> None:
    """Write a file, unless another program's has its name."""
    if place.exists() and "lava" not in place.read_text("utf-8", "replace").partition("\n")[0]:
        return
    place.write_text(text, encoding="utf-8")
    place.chmod(0o644)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
