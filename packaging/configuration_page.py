"""Writes docs/reference/configuration.md from the tables that LSF's files are read with, so that the page can't lie."""

import sys
from collections.abc import Mapping
from pathlib import Path

from lavad.config import applications, cluster, conf, hosts, params, queues, resources, users
from lavad.config.guarantees import service_classes
from lavad.config.load import UNREAD_FILES
from lavad.config.site import Honoured, Ignored, Table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "configuration.md"

HEAD = """\
# Configuration: LSF's own files

<!-- Written by packaging/configuration_page.py from lavad/config: change it there, then run make docs. -->

The rules of a cluster are in the files LSF has, in LSF's own grammar.
Settings of lava's daemons are in [lava.conf](ports-and-files.md).
[Coming from LSF](../howto/from-lsf.md) says how to point lava at an existing directory.

## Where the files are

1. The directory that `LAVA_LSF_DIR` of `lava.conf` names, relative to that of `lava.conf`.
2. Else the directory of `lava.conf` itself, if it holds an `lsb` file, `lsf.shared` or an `lsf.cluster` file.
3. Else the directory that the environment variable `LSF_ENVDIR` names, if it holds an `lsf.conf`.

There `LSF_CONFDIR` and `LSB_CONFDIR` of `lsf.conf` may send on to others:
`lsf.shared` and `lsf.cluster.NAME` are looked for in `LSF_CONFDIR`, the `lsb` files in
`LSB_CONFDIR/NAME/configdir`, then `LSB_CONFDIR`, then `LSF_CONFDIR/lsbatch/NAME/configdir`, and all of them beside
`lsf.conf` in the end. A directory named there that does not exist is worth a warning.
NAME is `LAVA_CLUSTER_NAME`; where there is no `lsf.cluster` file of that name, the first cluster of `lsf.shared`
that has one.

A file that is not there says nothing: without `lsb.queues` the built-in queues (`priority`, `short`, `normal`,
`idle`) stand, and so on.

## How they are read

- All errors are told at once, each with file, line and what was expected. With an error nothing changes: a running
  master keeps its rules, a starting one ends.
- A section without its `Begin` or `End` is one error, and is read all the same; lines may end in CR LF.
- A line that LSF reports and leaves out is a warning that says so: a row with more or fewer cells than its table has
  columns, a table without a column that it needs or without its line of keywords, prose in a section, a line behind
  the last section, a resource of a host that `lsf.shared` lacks.
- A parameter or section that lava does not know is a warning, with the name that may have been meant.
- One that LSF has and lava does not need is ignored; `badmin ckconfig -v` lists each with the reason. One that a site
  may count on all the same (`CONTAINER`, `SWAPLIMIT`) is a warning.
- `#INCLUDE "file"` is followed. Of a block `#if time(8:00-18:00 6:0:00-0:23:59)`, `#elif time(...)`, `#else`, `#endif`
  the branch counts that holds now; conditions may be joined by `&&`, `||` and `!`. The master changes over by itself,
  to the files as they were read last: one that was edited since waits for `badmin reconfig`. What is wrong in a branch
  for another time is an error at once. A comment may begin with `# If`.
- A user group is looked for in `lsb.users`, then among users, then among the Unix groups of the master's host;
  `name/` is always a group. `(!)` asks `egroup` in `LSF_SERVERDIR`, for at most 10 seconds, when the files are read
  and never else. Without that program the group has no members, which is worth a warning; where the program fails,
  nothing changes.
- A name that is neither a user of the master's host nor a group is worth a warning, with the known one that is near to
  it: accounts may come later.
- A host need not have joined to be named. If `lsf.cluster` lists hosts, other names are worth a warning; if it lists
  none, `badmin ckconfig` and `badmin reconfig` warn of those that have not joined.
- A name in `RES_REQ`, `STOP_COND` or `RESUME_COND` that is neither built in nor in `lsf.shared` (where there is no such
  file: none of the resources that LSF's installer writes there) is an error: every
  submission to the queue would be refused. So is a word that a section of `lsb.resources` does not have: without the
  `USERS` that was misspelt, say, a limit would hold for everybody.
- Windows are in the time zone of the master's host.
- `badmin reconfig` lets the files take effect at once. Running jobs go on, whatever the new rules say; a queue that
  is gone but still has jobs stays, closed and inactive, whatever was done to it; when they have ended or been
  moved, the next `badmin reconfig` forgets it.

## What each file may say
"""


def page() -> str:
    """The page's text."""
    lines = [HEAD]
    lines += _section("lsf.conf", "", conf.CONF)
    for file, sections in (
        ("lsf.shared", cluster.SHARED_SECTIONS),
        ("lsf.cluster.NAME", cluster.CLUSTER_SECTIONS),
        ("lsb.params", params.SECTIONS),
        ("lsb.queues", queues.SECTIONS),
        ("lsb.applications", applications.SECTIONS),
        ("lsb.hosts", hosts.SECTIONS),
        ("lsb.users", users.SECTIONS),
        ("lsb.resources", resources.SECTIONS),
        ("lsb.serviceclasses", service_classes.SECTIONS),
    ):
        lines += _file(file, sections)
    lines += ["### Other files", "", "Named by `badmin ckconfig` when they are there, and not read:", ""]
    lines += [f"- `{name}`: {why}" for name, why in UNREAD_FILES.items()]
    return "\n".join(lines) + "\n"


def _file(name: str, sections: Mapping[str, Table | Ignored]) -> list[str]:
    lines = []
    for section, meaning in sections.items():
        if isinstance(meaning, Ignored):
            lines += [f"### {name}, section {section}", "", f"Ignored: {meaning.reason}.", ""]
        else:
            lines += _section(name, section, meaning)
    return lines


def _section(file: str, section: str, table: Table) -> list[str]:
    title = f"### {file}, section {section}" if section else f"### {file}"
    lines = [title, ""]
    honoured = [(name, known.about) for name, known in table.items() if isinstance(known, Honoured)]
    if honoured:
        lines += ["| honoured | |", "| --- | --- |"]
        lines += [f"| `{name}` | {about.replace('|', chr(92) + '|')} |" for name, about in honoured]
        lines.append("")
    if section in ("Queue", "Host"):
        lines += ["Load indices (`r15s r1m r15m ut pg io ls it tmp swp mem` and numeric resources of `lsf.shared`) are honoured as `loadSched/loadStop`.", ""]  # fmt: skip  # noqa: E501
    reasons: dict[str, list[str]] = {}
    for name, known in table.items():
        if isinstance(known, Ignored):
            reasons.setdefault(known.reason, []).append(name)
    if reasons:
        lines += ["| ignored | why |", "| --- | --- |"]
        lines += [f"| {' '.join(f'`{name}`' for name in names)} | {reason} |" for reason, names in reasons.items()]
        lines.append("")
    return lines


def main() -> int:
    """Write the page; returns the exit code."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
