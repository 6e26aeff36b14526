"""bsub -jsdl and -jsdl_strict: what becomes of each element, and what is refused by name."""

from pathlib import Path

import pytest

from tests.lavactl.scripted import Desk

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<jsdl:JobDefinition xmlns="http://www.example.org/" xmlns:jsdl="http://schemas.ggf.org/jsdl/2005/11/jsdl"
  xmlns:posix="http://schemas.ggf.org/jsdl/2005/11/jsdl-posix" xmlns:site="http://site.example/"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="a b">
<jsdl:JobDescription>
"""
TAIL = "</jsdl:JobDescription></jsdl:JobDefinition>"
IDENTITY = """<jsdl:JobIdentification>
  <jsdl:JobName>plot</jsdl:JobName><jsdl:Description>A plot.</jsdl:Description>
  <jsdl:JobAnnotation>mine</jsdl:JobAnnotation><jsdl:JobProject>maps</jsdl:JobProject>
</jsdl:JobIdentification>
"""
APPLICATION = """<jsdl:Application><jsdl:ApplicationName>gnuplot</jsdl:ApplicationName>
<posix:POSIXApplication name="x">
  <posix:Executable>/usr/local/bin/gnu plot</posix:Executable>
  <posix:Argument>control.txt</posix:Argument><posix:Argument>$HOME &amp; more</posix:Argument><posix:Argument/>
  <posix:Input>in.dat</posix:Input><posix:Output>out.png</posix:Output><posix:Error>err</posix:Error>
  <posix:WorkingDirectory>/scratch</posix:WorkingDirectory>
  <posix:Environment name="COLOUR">a, b=c</posix:Environment><posix:Environment name="EMPTY"/>
  <posix:WallTimeLimit>61</posix:WallTimeLimit><posix:CPUTimeLimit>60</posix:CPUTimeLimit>
  <posix:FileSizeLimit>1073741824</posix:FileSizeLimit><posix:CoreDumpLimit>0</posix:CoreDumpLimit>
  <posix:DataSegmentLimit>4096</posix:DataSegmentLimit><posix:StackSizeLimit>1025</posix:StackSizeLimit>
  <posix:MemoryLimit>67108865</posix:MemoryLimit><posix:VirtualMemoryLimit>134217728</posix:VirtualMemoryLimit>
  <posix:ProcessCountLimit>8</posix:ProcessCountLimit><posix:ThreadCountLimit>9</posix:ThreadCountLimit>
</posix:POSIXApplication></jsdl:Application>
"""
RESOURCES = """<jsdl:Resources>
  <jsdl:CandidateHosts><jsdl:HostName>h1</jsdl:HostName><jsdl:HostName>h2</jsdl:HostName></jsdl:CandidateHosts>
  <jsdl:ExclusiveExecution>true</jsdl:ExclusiveExecution>
  <jsdl:OperatingSystem><jsdl:OperatingSystemType><jsdl:OperatingSystemName>LINUX</jsdl:OperatingSystemName>
  </jsdl:OperatingSystemType></jsdl:OperatingSystem>
  <jsdl:CPUArchitecture><jsdl:CPUArchitectureName>x86_64</jsdl:CPUArchitectureName></jsdl:CPUArchitecture>
  <jsdl:TotalCPUCount><jsdl:Exact epsilon="0.5">4.0</jsdl:Exact></jsdl:TotalCPUCount>
  <jsdl:TotalResourceCount><jsdl:Exact>2</jsdl:Exact></jsdl:TotalResourceCount>
  <jsdl:TotalPhysicalMemory><jsdl:LowerBoundedRange>2097152.0</jsdl:LowerBoundedRange></jsdl:TotalPhysicalMemory>
  <jsdl:IndividualPhysicalMemory><jsdl:Range><jsdl:LowerBound>1048577</jsdl:LowerBound>
    <jsdl:UpperBound>9000000</jsdl:UpperBound></jsdl:Range></jsdl:IndividualPhysicalMemory>
</jsdl:Resources>
"""
STAGING = """<jsdl:DataStaging><jsdl:FileName>control.txt</jsdl:FileName>
  <jsdl:CreationFlag>overwrite</jsdl:CreationFlag>
  <jsdl:Source><jsdl:URI>file:///home/alice/control%2Etxt</jsdl:URI></jsdl:Source></jsdl:DataStaging>
<jsdl:DataStaging><jsdl:FileName>log</jsdl:FileName><jsdl:CreationFlag>append</jsdl:CreationFlag>
  <jsdl:DeleteOnTermination>false</jsdl:DeleteOnTermination>
  <jsdl:Target><jsdl:URI>logs/log</jsdl:URI></jsdl:Target></jsdl:DataStaging>
<jsdl:DataStaging><jsdl:FileName>seen</jsdl:FileName><jsdl:CreationFlag>overwrite</jsdl:CreationFlag></jsdl:DataStaging>
"""
FOREIGN = "<site:Colour>red</site:Colour>\n"


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """Path of the description."""
    return tmp_path / "job.jsdl"


def posix(body: str) -> str:
    """Description with these elements of a POSIX application."""
    return f"{HEAD}<jsdl:Application><posix:POSIXApplication>{body}</posix:POSIXApplication></jsdl:Application>{TAIL}"


def resources(body: str) -> str:
    """Description with these resources."""
    return f"{HEAD}<jsdl:Resources>{body}</jsdl:Resources>{TAIL}"


def staging(body: str) -> str:
    """Description with this copy of a file."""
    return f"{HEAD}<jsdl:DataStaging>{body}</jsdl:DataStaging>{TAIL}"


def test_each_element_becomes_an_option(desk: Desk, described: Path) -> None:
    """lsf.md 1.1: the elements of JSDL 1.0 and its POSIX extension; arguments reach the program as they are."""
    described.write_text(HEAD + IDENTITY + APPLICATION + RESOURCES + STAGING + TAIL)
    desk.environ["COLOUR"] = "grey"
    result = desk.type("bsub", "-jsdl_strict", str(described))
    assert (result.code, result.out) == (0, "Job <1201> is submitted to queue <normal>.\n")
    spec = desk.spec
    assert spec.command == "'/usr/local/bin/gnu plot' control.txt '$HOME & more' ''"
    assert not spec.is_script
    assert (spec.name, spec.project, spec.description, spec.application) == ("plot", "maps", "A plot.", "gnuplot")
    assert (spec.input, spec.output, spec.error, spec.cwd) == ("in.dat", "out.png", "err", "/scratch")
    assert {b"COLOUR=a, b=c", b"EMPTY="} <= set(spec.environment)
    assert b"COLOUR=grey" not in spec.environment
    assert (spec.run_limit_s, spec.memory_limit_mib, spec.exclusive, list(spec.hosts)) == (120, 65, True, ["h1", "h2"])
    assert {one.name: one.soft for one in spec.rlimits} == {
        "cpu": 60, "fsize": 1 << 30, "core": 0, "data": 4096, "stack": 2048, "swap": 1 << 27, "nproc": 8, "threads": 9,
    }  # fmt: skip
    (role,) = spec.roles
    wanted = "select[type==X86_64] span[ptile=2] rusage[mem=2MB/job:mem=2MB/host]"
    assert (role.tasks_min, role.tasks_max) == (4, 4)
    assert sorted(role.requirement.split()) == sorted(wanted.split())
    assert list(spec.file_copies) == ["/home/alice/control.txt > control.txt", "/home/alice/run/logs/log << log"]
    assert "line 8: <jsdl:JobAnnotation>: left out: it is a remark." in result.err
    assert "<jsdl:DataStaging>: no copy is made" in result.err


def test_what_is_typed_wins(desk: Desk, described: Path) -> None:
    """Options and command of the command line; -env in place of the file's variables."""
    described.write_text(HEAD + IDENTITY + APPLICATION + TAIL)
    desk.type("bsub", "-jsdl", str(described), "-J", "mine", "-o", "typed", "-env", "none", "sleep", "1")
    assert (desk.spec.command, desk.spec.name, desk.spec.output) == ("sleep 1", "mine", "typed")
    assert desk.spec.project == "maps"
    assert not any(one.startswith(b"COLOUR=") for one in desk.spec.environment)


def test_a_script_goes_with_a_description_without_a_program(desk: Desk, described: Path) -> None:
    """Its #BSUB lines win over the description, as in LSF."""
    described.write_text(HEAD + IDENTITY + TAIL)
    desk.type("bsub", "-jsdl", str(described), stdin=b"#BSUB -P other\ndate\n")
    assert (desk.spec.is_script, desk.spec.name, desk.spec.project) == (True, "plot", "other")


def test_extensions_are_noted_and_strictly_refused(desk: Desk, described: Path) -> None:
    """lsf.md 1.1: -jsdl_strict takes JSDL and its POSIX extension only; -jsdl names what it leaves out."""
    described.write_text(HEAD + FOREIGN + APPLICATION + TAIL)
    result = desk.type("bsub", "-jsdl", str(described))
    assert result.code == 0
    assert f"{described}, line 6: <Colour>: ignored: lava has no such extension of JSDL." in result.err
    result = desk.type("bsub", "-jsdl_strict", str(described))
    assert (result.code, result.out) == (255, "")
    assert "<Colour>: it belongs neither to JSDL nor to its POSIX extension. Job not submitted." in result.err


@pytest.mark.parametrize(
    ("body", "least", "most"),
    [
        ("<jsdl:Exact>3</jsdl:Exact>", 3, 3),
        ("<jsdl:Range><jsdl:LowerBound>2</jsdl:LowerBound><jsdl:UpperBound>5</jsdl:UpperBound></jsdl:Range>", 2, 5),
        ("<jsdl:LowerBoundedRange>2</jsdl:LowerBoundedRange>", 2, 2),
        ('<jsdl:UpperBoundedRange exclusiveBound="false">6</jsdl:UpperBoundedRange>', 1, 6),
    ],
)
def test_ranges_of_cpus(desk: Desk, described: Path, body: str, least: int, most: int) -> None:
    """A lower bound alone is the size: the job takes no more than it needs."""
    described.write_text(resources(f"<jsdl:TotalCPUCount>{body}</jsdl:TotalCPUCount>"))
    assert desk.type("bsub", "-jsdl_strict", str(described), "true").code == 0
    (role,) = desk.spec.roles
    assert (role.tasks_min, role.tasks_max) == (least, most)


EXACT = "<jsdl:Exact>{}</jsdl:Exact>"
COPY = "<jsdl:FileName>a</jsdl:FileName><jsdl:CreationFlag>overwrite</jsdl:CreationFlag>"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "line 1: this is no well-formed XML: no element found"),
        ("<a><b></a>", "line 1: this is no well-formed XML: mismatched tag"),
        ("<job/>", "line 1: <job>: <jsdl:JobDefinition> of http://schemas.ggf.org/jsdl/2005/11/jsdl is expected"),
        (HEAD.replace("<jsdl:JobDescription>", "") + "</jsdl:JobDefinition>", "<jsdl:JobDescription> is missing"),
        (
            '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
            "line 1: a document type declaration (<!DOCTYPE>) is not accepted",
        ),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "a document type declaration (<!DOCTYPE>) is not accepted"),
        ('<?xml version="1.0" encoding="no-such"?><a/>', "this XML cannot be read"),
        ("<a>" * 40, "<a>: it lies deeper than 32 elements"),
        (
            resources(f"<jsdl:TotalCPUCount>{EXACT.format('1_0')}</jsdl:TotalCPUCount>"),
            "a number that is not negative is expected, found 1_0",
        ),
        (HEAD + "words" + TAIL, "<jsdl:JobDescription>: elements are expected in it, found the text words"),
        (
            HEAD + "<jsdl:Colour/>" + TAIL,
            "line 6: <jsdl:Colour>: JSDL 1.0 has no such element in <jsdl:JobDescription>",
        ),
        (HEAD + IDENTITY * 2 + TAIL, "line 10: <jsdl:JobIdentification>: it stands in <jsdl:JobDescription> twice"),
        (HEAD + IDENTITY.replace("plot", "p[1-3]", 1) + TAIL, "<jsdl:JobName>: p[1-3] would be an array"),
        (HEAD + IDENTITY.replace(">plot", "><b/>", 1) + TAIL, "<b>: it cannot stand in <jsdl:JobName>"),
        (posix("<posix:Argument>x</posix:Argument>"), "<jsdl-posix:Executable> is missing"),
        (posix("<posix:Executable/>"), "<jsdl-posix:Executable>: a value is expected, and it is empty"),
        (posix('<posix:Input filesystemName="HOME">x</posix:Input>'), "its attribute filesystemName is not supported"),
        (posix("<posix:Environment>x</posix:Environment>"), "its attribute name is expected"),
        (
            posix("<posix:WallTimeLimit>soon</posix:WallTimeLimit>"),
            "a number that is not negative is expected, found soon",
        ),
        (
            posix("<posix:WallTimeLimit>nan</posix:WallTimeLimit>"),
            "a number that is not negative is expected, found nan",
        ),
        (posix("<posix:PipeSizeLimit>1</posix:PipeSizeLimit>"), "not supported: lava sets no such limit"),
        (posix("<posix:UserName>bob</posix:UserName>"), "not supported: a job runs as the user who submits it"),
        (posix("<jsdl:Executable>x</jsdl:Executable>"), "has no such element in <jsdl-posix:POSIXApplication>"),
        (resources("<jsdl:IndividualCPUSpeed/>"), "not supported: lava does not select hosts by the speed"),
        (resources("<jsdl:FileSystem/>"), "not supported: lava expects a shared file system"),
        (resources("<jsdl:CandidateHosts/>"), "<jsdl:HostName> is missing"),
        (resources("<jsdl:ExclusiveExecution>yes</jsdl:ExclusiveExecution>"), "true or false is expected, found yes"),
        (
            resources("<jsdl:CPUArchitecture><jsdl:CPUArchitectureName>sparc</jsdl:CPUArchitectureName>"
                      "</jsdl:CPUArchitecture>"),
            "one of x86_64, arm, powerpc, x86_32 is expected, found sparc",
        ),
        (
            resources("<jsdl:OperatingSystem><jsdl:OperatingSystemType><jsdl:OperatingSystemName>SOLARIS"
                      "</jsdl:OperatingSystemName></jsdl:OperatingSystemType></jsdl:OperatingSystem>"),
            "hosts of lava run LINUX; the job asks for SOLARIS",
        ),
        (resources("<jsdl:TotalCPUCount/>"), "is expected, found 0"),
        (resources(f"<jsdl:TotalCPUCount>{EXACT.format(1) * 2}</jsdl:TotalCPUCount>"), "is expected, found 2"),
        (resources(f"<jsdl:TotalCPUCount>{EXACT.format(1.5)}</jsdl:TotalCPUCount>"), "a whole number of at least 1"),
        (
            resources('<jsdl:TotalCPUCount><jsdl:UpperBoundedRange exclusiveBound="true">3</jsdl:UpperBoundedRange>'
                      "</jsdl:TotalCPUCount>"),
            "an exclusive bound is not supported",
        ),
        (
            resources(f"<jsdl:TotalCPUCount>{EXACT.format(3)}</jsdl:TotalCPUCount>"
                      f"<jsdl:TotalResourceCount>{EXACT.format(2)}</jsdl:TotalResourceCount>"),
            "3 CPUs cannot be spread evenly over 2 hosts",
        ),
        (
            resources("<jsdl:TotalPhysicalMemory><jsdl:UpperBoundedRange>9</jsdl:UpperBoundedRange>"
                      "</jsdl:TotalPhysicalMemory>"),
            "the least amount is expected",
        ),
        (staging("<jsdl:FileName>a</jsdl:FileName>"), "a <jsdl:CreationFlag> (overwrite or append) are expected"),
        (staging(COPY.replace("overwrite", "dontOverwrite")), "dontOverwrite is not supported here"),
        (
            staging(f"{COPY}<jsdl:DeleteOnTermination>true</jsdl:DeleteOnTermination>"),
            "lava removes no files after a job",
        ),
        (staging(f"{COPY}<jsdl:Source/>"), "<jsdl:URI> is missing"),
        (
            staging(f"{COPY}<jsdl:Source><jsdl:URI>gsiftp://far/a</jsdl:URI></jsdl:Source>"),
            "a file of the submission host is expected (file:///path), found gsiftp://far/a",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_named(desk: Desk, described: Path, text: str, sentence: str) -> None:
    """One sentence with file, line and element; nothing is submitted, and no entity is expanded."""
    described.write_text(text)
    result = desk.type("bsub", "-jsdl", str(described), "true")
    assert (result.code, result.out) == (255, "")
    assert result.err.startswith(str(described))
    assert sentence in result.err
    assert result.err.endswith("Job not submitted.\n")
    assert not desk.client.asked


def test_one_description_and_no_job_file_beside_it(desk: Desk, described: Path) -> None:
    """Nor in a script's #BSUB lines; a file that is not there is named."""
    described.write_text(HEAD + APPLICATION + TAIL)
    for argv, sentence in (
        (("-jsdl", str(described), "-jsdl_strict", str(described)), "either of them, and once"),
        (("-jsdl", str(described), "-json", "x"), "-json and -jsdl cannot be used together"),
        (("-jsdl", "/nonexistent/x"), "-jsdl: /nonexistent/x cannot be read"),
        (("-jsdl", ""), "-jsdl: "),
    ):
        result = desk.type("bsub", *argv)
        assert (result.code, result.out, sentence in result.err) == (255, "", True), result
    result = desk.type("bsub", stdin=b"#BSUB -jsdl x\ndate\n")
    assert "-jsdl names a job description and belongs on the command line" in result.err


def test_a_file_without_an_end(desk: Desk) -> None:
    """No more of it is read than a description may have."""
    result = desk.type("bsub", "-jsdl", "/dev/zero")
    assert (result.code, result.out) == (255, "")
    assert result.err == "/dev/zero: the file is larger than 4 MiB. Job not submitted.\n"
