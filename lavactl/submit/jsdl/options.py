"""A JSDL 1.0 job description as options of bsub, and its command.

Invariant: an element is honoured, or refused by name; those that only tell people something are noted. LSF's mapping of
elements to options is kept where lava has the same option.
"""

import shlex
from math import ceil
from urllib.parse import unquote, urlsplit

from lavactl.errors import CommandError
from lavactl.options import Options, printable
from lavactl.submit.jsdl.document import JSDL, SIZE_MAX, Element, Walk, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lavactl.io import Io

    Handlers = dict[str, Callable[[Element], None]]

NAMES = ("jsdl", "jsdl_strict")
# Limits of POSIXApplication: option of bsub, and the size of its unit; bytes become KiB, seconds minutes.
LIMITS = {
    "WallTimeLimit": ("W", 60), "CPUTimeLimit": ("c", 60), "FileSizeLimit": ("F", 1024), "CoreDumpLimit": ("C", 1024),
    "DataSegmentLimit": ("D", 1024), "StackSizeLimit": ("S", 1024), "VirtualMemoryLimit": ("v", 1024),
    "ProcessCountLimit": ("p", 1), "ThreadCountLimit": ("T", 1),
}  # fmt: skip
FILES = {"Input": "i", "Output": "o", "Error": "e", "WorkingDirectory": "cwd"}
REFUSED = {
    **dict.fromkeys(("LockedMemoryLimit", "OpenDescriptorsLimit", "PipeSizeLimit"), "lava sets no such limit."),
    **dict.fromkeys(("UserName", "GroupName"), "a job runs as the user who submits it."),
    "ApplicationVersion": "application profiles have no versions; name the profile in ApplicationName.",
    "FileSystem": "lava expects a shared file system, and mounts none; paths are those of the hosts.",
    "OperatingSystemVersion": "lava does not select hosts by it; -R with a resource of the site does.",
    "IndividualCPUSpeed": "lava does not select hosts by the speed of processors; -R with cpuf does.",
    "IndividualCPUTime": "lava limits CPU time for each process: CPUTimeLimit or TotalCPUTime names it.",
    "IndividualCPUCount": "TotalCPUCount and TotalResourceCount say how many on how many hosts.",
    "IndividualNetworkBandwidth": "lava does not select hosts by it.",
    **dict.fromkeys(
        ("IndividualVirtualMemory", "TotalVirtualMemory"),
        "lava reserves physical memory; VirtualMemoryLimit limits it.",
    ),
    **dict.fromkeys(
        ("IndividualDiskSpace", "TotalDiskSpace"), 'lava does not keep track of it; -R "select[tmp>...]" does.'
    ),
}
MACHINES = {"x86_64": ("X86_64",), "arm": ("AARCH64", "ARMV7L"), "powerpc": ("PPC64LE", "PPC64"), "x86_32": ("I686",)}
MIB = 1 << 20


class Described:
    """Content of a description: options, the command (empty: none is named), variables, remarks for the user."""

    def __init__(self) -> None:
        self.options = Options()
        self.command = ""
        self.environment: dict[str, str] = {}
        self.notes: list[str] = []

    def add(self, option: str, value: str = "") -> None:
        """Add an option."""
        self.options.items.append((option, value))


def described_by(line: Options, io: "Io") -> Described | None:
    """Job of the file that -jsdl or -jsdl_strict names; None without one.

    Raises:
        CommandError: both are given, or the file is wrong.
    """
    given = [(name, value) for name, value in line.items if name in NAMES]
    if not given:
        return None
    if len(given) > 1:
        raise CommandError("-jsdl and -jsdl_strict name one file: either of them, and once.")
    name, path = given[0]
    data = io.read_file(io.path(path), SIZE_MAX + 1)
    if data is None:
        raise CommandError(f"-{name}: {printable(path)} cannot be read.")
    return _Reader(name == "jsdl_strict").job(read(path, data))


class _Reader:
    """One description on its way to options."""

    def __init__(self, is_strict: bool) -> None:
        self._walk = Walk(is_strict)
        self._found = Described()
        self._words: list[str] = []
        self._cpus: tuple[int, int] | None = None
        self._hosts = 0
        self._rusage: list[str] = []

    def job(self, root: Element) -> Described:
        """Read the document."""
        if (root.space, root.name) != (JSDL, "JobDefinition"):
            raise root.wrong(f"<jsdl:JobDefinition> of {JSDL} is expected as the first element.")
        jobs: list[Element] = []
        self._walk.over(root, {"JobDescription": jobs.append}, attributes="id")
        if not jobs:
            raise root.wrong("<jsdl:JobDescription> is missing.")
        handlers: Handlers = {
            "JobIdentification": self._identification, "Application": self._application, "Resources": self._resources,
            "DataStaging": self._staging,
        }  # fmt: skip
        self._walk.over(jobs[0], handlers, repeated=("DataStaging",))
        self._size(jobs[0])
        if self._rusage:
            self._found.add("R", f"rusage[{':'.join(self._rusage)}]")
        if self._words:
            self._found.command = shlex.join(self._words)
        self._found.notes = self._walk.notes
        return self._found

    def _identification(self, element: Element) -> None:
        def name(one: Element) -> None:
            if "[" in (text := one.value()):
                raise one.wrong(f"{printable(text)} would be an array; a name without brackets is expected.")
            self._found.add("J", text)

        handlers: Handlers = {
            "JobName": name,
            "JobProject": lambda one: self._found.add("P", one.value()),
            "Description": lambda one: self._found.add("Jd", one.value()),
            "JobAnnotation": self._left_out,
        }
        self._walk.over(element, handlers, repeated=("JobAnnotation",))

    def _left_out(self, element: Element) -> None:
        self._walk.note(element, "left out: it is a remark.")

    def _refuse(self, element: Element) -> None:
        raise element.wrong(f"not supported: {REFUSED[element.name]}")

    # -- what is run ---------------------------------------------------------------------------------------------------

    def _application(self, element: Element) -> None:
        handlers: Handlers = {
            "ApplicationName": lambda one: self._found.add("app", one.value()),
            "ApplicationVersion": self._refuse,
            "Description": self._left_out,
            "POSIXApplication": self._posix,
        }
        self._walk.over(element, handlers)

    def _posix(self, element: Element) -> None:
        executables: list[Element] = []
        arguments: list[Element] = []
        handlers: Handlers = {
            "Executable": executables.append,
            "Argument": arguments.append,
            "Environment": self._variable,
            "MemoryLimit": lambda one: self._found.add("M", f"{ceil(one.number() / MIB)}M"),
            **dict.fromkeys(FILES, self._file),
            **dict.fromkeys(LIMITS, self._limit),
            **{name: self._refuse for name in REFUSED if name in POSIX_REFUSED},
        }
        self._walk.over(element, handlers, repeated=("Argument", "Environment"), attributes="name")
        for one in (*executables, *arguments):
            one.check_attributes()
            if one.children:
                raise one.children[0].wrong(f"it cannot stand in {one.shown}, which holds a text.")
        self._words = [executables[0].value()] if executables else []
        if arguments and not executables:
            raise arguments[0].wrong("<jsdl-posix:Executable> is missing.")
        self._words += [one.text for one in arguments]

    def _file(self, element: Element) -> None:
        self._found.add(FILES[element.name], element.value())

    def _variable(self, element: Element) -> None:
        name = element.attributes.pop("name", "")
        if not name or "=" in name:
            raise element.wrong("its attribute name is expected to have the name of a variable.")
        element.check_attributes()
        if element.children:
            raise element.children[0].wrong(f"it cannot stand in {element.shown}, which holds a text.")
        self._found.environment[name] = element.text

    def _limit(self, element: Element) -> None:
        option, unit = LIMITS[element.name]
        self._found.add(option, str(ceil(element.number() / unit)))

    # -- where it runs -------------------------------------------------------------------------------------------------

    def _resources(self, element: Element) -> None:
        def total_cpu_time(one: Element) -> None:
            self._found.add("c", str(ceil(self._bounds(one)[1] / 60)))

        handlers: Handlers = {
            "CandidateHosts": self._hosts_named,
            "ExclusiveExecution": self._exclusive,
            "OperatingSystem": self._system,
            "CPUArchitecture": self._machine,
            "TotalCPUTime": total_cpu_time,
            "TotalCPUCount": self._cpu_count,
            "TotalResourceCount": self._host_count,
            "TotalPhysicalMemory": lambda one: self._memory(one, "job"),
            "IndividualPhysicalMemory": lambda one: self._memory(one, "host"),
            **{name: self._refuse for name in REFUSED if name not in POSIX_REFUSED},
        }
        self._walk.over(element, handlers, repeated=("FileSystem",))

    def _hosts_named(self, element: Element) -> None:
        names: list[str] = []
        self._walk.over(element, {"HostName": lambda one: names.append(one.value())}, repeated=("HostName",))
        if not names:
            raise element.wrong("<jsdl:HostName> is missing.")
        self._found.add("m", " ".join(names))

    def _exclusive(self, element: Element) -> None:
        if (text := element.value()) not in ("true", "false", "1", "0"):
            raise element.wrong(f"true or false is expected, found {printable(text[:80])}.")
        if text in ("true", "1"):
            self._found.add("x")

    def _system(self, element: Element) -> None:
        def name(one: Element) -> None:
            if (text := one.value()).upper() != "LINUX":
                raise one.wrong(f"hosts of lava run LINUX; the job asks for {printable(text[:80])}.")

        def kind(one: Element) -> None:
            self._walk.over(one, {"OperatingSystemName": name})

        handlers: Handlers = {
            "OperatingSystemType": kind, "OperatingSystemVersion": self._refuse, "Description": self._left_out,
        }  # fmt: skip
        self._walk.over(element, handlers)

    def _machine(self, element: Element) -> None:
        def name(one: Element) -> None:
            if (types := MACHINES.get(text := one.value())) is None:
                raise one.wrong(f"one of {', '.join(MACHINES)} is expected, found {printable(text[:80])}.")
            self._found.add("R", f"select[{' || '.join(f'type=={one}' for one in types)}]")

        self._walk.over(element, {"CPUArchitectureName": name})

    def _cpu_count(self, element: Element) -> None:
        least, most = self._bounds(element)
        self._cpus = self._whole(element, least or 1), self._whole(element, most or least)

    def _host_count(self, element: Element) -> None:
        least, most = self._bounds(element)
        if least != most:
            raise element.wrong("one number of hosts is expected: <jsdl:Exact>.")
        self._hosts = self._whole(element, least)

    def _whole(self, element: Element, number: float) -> int:
        if number != int(number) or number < 1:
            raise element.wrong(f"a whole number of at least 1 is expected, found {number:g}.")
        return int(number)

    def _size(self, element: Element) -> None:
        """Add the size: CPUs are slots; those of a number of hosts are spread evenly over them."""
        if self._cpus is None and not self._hosts:
            return
        least, most = self._cpus or (self._hosts, self._hosts)
        self._found.add("n", f"{least},{most}" if least != most else str(least))
        if self._hosts:
            if least % self._hosts or least != most:
                raise element.wrong(
                    f"{least if least == most else f'{least} to {most}'} CPUs cannot be spread evenly over "
                    f"{self._hosts} hosts: <jsdl:TotalCPUCount> and <jsdl:TotalResourceCount> disagree."
                )
            self._found.add("R", f"span[ptile={least // self._hosts}]")

    def _memory(self, element: Element, of: str) -> None:
        least, _ = self._bounds(element)
        if not least:
            raise element.wrong("the least amount is expected: <jsdl:LowerBoundedRange>, <jsdl:Exact> or <jsdl:Range>.")
        self._rusage.append(f"mem={ceil(least / MIB)}MB/{of}")

    def _bounds(self, element: Element) -> tuple[float, float]:
        """Least and most of a range value; 0 for a bound that it does not have.

        Raises:
            CommandError: it has none, or several.
        """
        found: list[tuple[float, float]] = []

        def exact(one: Element) -> None:
            one.attributes.pop("epsilon", None)  # counts and bytes are whole
            found.append((one.number(), one.number()))

        def both(one: Element) -> None:
            ends: dict[str, float] = {}

            def end(bound: Element) -> None:
                ends[bound.name] = self._bound(bound)

            self._walk.over(one, {"LowerBound": end, "UpperBound": end})
            if len(ends) < 2:
                raise one.wrong("<jsdl:LowerBound> and <jsdl:UpperBound> are expected.")
            if ends["LowerBound"] > ends["UpperBound"]:
                raise one.wrong("its lower bound is above its upper bound.")
            found.append((ends["LowerBound"], ends["UpperBound"]))

        handlers: Handlers = {
            "Exact": exact,
            "Range": both,
            "LowerBoundedRange": lambda one: found.append((self._bound(one), 0.0)),
            "UpperBoundedRange": lambda one: found.append((0.0, self._bound(one))),
        }
        self._walk.over(element, handlers, repeated=tuple(handlers))
        if len(found) != 1:
            raise element.wrong("one <jsdl:Exact>, <jsdl:Range>, <jsdl:LowerBoundedRange> or <jsdl:UpperBoundedRange> "
                                f"is expected, found {len(found)}.")  # fmt: skip
        return found[0]

    def _bound(self, element: Element) -> float:
        if element.attributes.pop("exclusiveBound", "false") not in ("false", "0"):
            raise element.wrong("an exclusive bound is not supported.")
        return element.number()

    # -- files ---------------------------------------------------------------------------------------------------------

    def _staging(self, element: Element) -> None:
        texts: dict[str, str] = {}
        ends: dict[str, str] = {}

        def keep(one: Element) -> None:
            texts[one.name] = one.value()

        def end(one: Element) -> None:
            self._walk.over(one, {"URI": lambda uri: ends.update({one.name: _path(uri)})})
            if one.name not in ends:
                raise one.wrong("<jsdl:URI> is missing: the place of the file is expected.")

        handlers: Handlers = {
            **dict.fromkeys(("FileName", "CreationFlag", "DeleteOnTermination"), keep),
            "FilesystemName": lambda one: self._refuse_file_system(one),
            "Source": end,
            "Target": end,
        }
        self._walk.over(element, handlers, attributes="name")
        name, flag = texts.get("FileName"), texts.get("CreationFlag")
        if not name or flag not in ("overwrite", "append", "dontOverwrite"):
            raise element.wrong("<jsdl:FileName> and a <jsdl:CreationFlag> (overwrite or append) are expected.")
        if texts.get("DeleteOnTermination", "false") not in ("false", "0"):
            raise element.wrong("<jsdl:DeleteOnTermination>: not supported: lava removes no files after a job.")
        if flag == "dontOverwrite" or (flag == "append" and "Source" in ends):
            raise element.wrong(f"<jsdl:CreationFlag>: {flag} is not supported here; a copy overwrites its file.")
        if any(one.isspace() for one in name):
            raise element.wrong(f"<jsdl:FileName>: a name without blanks is expected, found {printable(name[:200])}.")
        if not ends:
            self._walk.note(element, "no copy is made: neither a source nor a target is named.")
        for which, operator in (("Source", ">"), ("Target", "<<" if flag == "append" else "<")):
            if which in ends:
                self._found.add("f", f"{ends[which]} {operator} {name}")

    def _refuse_file_system(self, element: Element) -> None:
        raise element.wrong(f"not supported: {REFUSED['FileSystem']}")


POSIX_REFUSED = ("LockedMemoryLimit", "OpenDescriptorsLimit", "PipeSizeLimit", "UserName", "GroupName")


def _path(element: Element) -> str:
    """Path on the submission host that a URI names.

    Raises:
        CommandError: it is a file elsewhere.
    """
    text = element.value()
    parts = urlsplit(text)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise element.wrong(f"a file of the submission host is expected (file:///path), found {printable(text[:200])}.")
    path = unquote(parts.path)
    if not path or any(one.isspace() for one in path):
        raise element.wrong(f"a path without blanks is expected, found {printable(text[:200])}.")
    return path
