"""The style of the house as a test: what a reviewer would otherwise have to look for in every change."""

import ast
import gc
import importlib
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from protos.version import RELEASE

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("lavad", "lavactl", "agents", "protos")
SCRIPTS = ("examples", "benchmarks", "tests")
FUNCTION_LINES_MAX = 70
GENERATED = re.compile(r"_pb2(_grpc)?\.py$")

# Only the fork server, what it forks, and a master without threads may make processes by these; everywhere else
# gRPC's threads may be alive.
FORKING = {"os.fork", "os.forkpty", "pty.fork"}
MAY_FORK = ("agents/launcher.py", "agents/shepherd/", "lavad/store/child_process.py")
DANGEROUS = {
    "pickle.load",
    "pickle.loads",
    "pickle.Unpickler",
    "yaml.load",
    "eval",
    "exec",
    "os.system",
    "os.popen",
    "tempfile.mktemp",
}
SQL_DOORS = {"text", "execute", "exec_driver_sql", "executemany"}


def sources(*folders: str) -> list[Path]:
    """The hand-written Python files of these folders."""
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if not GENERATED.search(path.name) and "__pycache__" not in path.parts]


@cache
def tree_of(path: Path) -> ast.Module:
    """A file's syntax."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a file's syntax."""
    return list(ast.walk(tree_of(path)))


@pytest.fixture(scope="module", autouse=True)
def _no_collections() -> Iterator[None]:
    """The trees stay to the end: looking for garbage among them takes most of the time."""
    gc.disable()
    yield
    gc.enable()


def name_of(path: Path) -> str:
    """A file's name as a reader would say it."""
    return path.relative_to(ROOT).as_posix()


def dotted(node: ast.expr) -> str:
    """`os.fork` for the expression os.fork; nothing for what is no plain name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def offences(check: Callable[[ast.AST, Path], str | None], *folders: str) -> list[str]:
    """Complaints of `check` about each syntax node, with file and line."""
    found = []
    for path in sources(*folders):
        for node in nodes_of(path):
            said = check(node, path)
            if said:
                found.append(f"{name_of(path)}:{getattr(node, 'lineno', 1)} {said}")
    return found


def test_every_module_says_what_it_is_for() -> None:
    """Each hand-written module begins with a docstring."""
    silent = [
        name_of(path)
        for path in sources(*PACKAGES, *SCRIPTS)
        if path.stat().st_size and not ast.get_docstring(tree_of(path))
    ]
    assert silent == []


def test_every_test_says_what_it_shows() -> None:
    """Each test has a docstring: the behaviour in a sentence."""

    def check(node: ast.AST, _path: Path) -> str | None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            return None if ast.get_docstring(node) else node.name
        return None

    assert offences(check, "tests") == []


QUESTION = re.compile(
    r"(what|who|whom|whose|which|whether|is|are|was|were|has|have|had|does|do|did|may|might|can|could|must|shall|should"
    r"|will|would|how|why|when|where|if)\b",
    re.IGNORECASE,
)
NO_ONE = re.compile(r"\b(some(body|one)|no(body|\sone)|who(m)?ever|anybody|everybody)\b", re.IGNORECASE)


def test_docstrings_begin_with_a_statement() -> None:
    """The first sentence is a noun phrase or an imperative: no question, no unnamed person."""

    def check(node: ast.AST, _path: Path) -> str | None:
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        text = ast.get_docstring(node) or ""
        first = re.split(r"(?<=[.?!:;])\s", text, maxsplit=1)[0]
        if QUESTION.match(first) or first.endswith("?"):
            return f"asks: {first}"
        found = NO_ONE.search(text)
        return f"says {found[0]}" if found else None

    assert offences(check, *PACKAGES, *SCRIPTS) == []


def test_functions_are_short() -> None:
    """No function is longer than a screen."""

    def check(node: ast.AST, _path: Path) -> str | None:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        return f"{node.name} has {lines} lines" if lines > FUNCTION_LINES_MAX else None

    assert offences(check, *PACKAGES, *SCRIPTS) == []


def test_nothing_prints_behind_the_back_of_its_caller() -> None:
    """Output goes to a stream that was handed in, or to the log."""

    def check(node: ast.AST, _path: Path) -> str | None:
        if isinstance(node, ast.Call) and dotted(node.func) == "print":
            return None if any(word.arg == "file" for word in node.keywords) else "print without a stream"
        return None

    assert offences(check, *PACKAGES) == []


def test_nothing_is_left_for_later() -> None:
    """Work that is not done is an issue, not a note in the code."""
    mark = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|NotImplemented" r"Error")
    left = [
        f"{name_of(path)}:{number}"
        for path in sources(*PACKAGES, *SCRIPTS)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if mark.search(line)
    ]
    assert left == []


def test_no_error_is_swallowed() -> None:
    """Nothing catches everything without naming it, or catches every Exception to do nothing."""

    def check(node: ast.AST, _path: Path) -> str | None:
        if not isinstance(node, ast.ExceptHandler):
            return None
        if node.type is None:
            return "bare except"
        idle = all(isinstance(part, ast.Pass) for part in node.body)
        return "swallows every error" if idle and dotted(node.type) in {"Exception", "BaseException"} else None

    assert offences(check, *PACKAGES, *SCRIPTS) == []


def test_no_dangerous_calls() -> None:
    """Nothing evaluates foreign text, and no shell is asked to parse what a user gave."""

    def check(node: ast.AST, path: Path) -> str | None:
        if not isinstance(node, ast.Call):
            return None
        called = dotted(node.func)
        if called in DANGEROUS:
            return called
        for word in node.keywords:
            if word.arg == "shell" and not (isinstance(word.value, ast.Constant) and not word.value.value):
                return f"{called}(shell=...)"
            if word.arg == "preexec_fn":
                return f"{called}(preexec_fn=...)"
        if called in FORKING and not name_of(path).startswith(MAY_FORK):
            return called
        return None

    assert offences(check, *PACKAGES) == []


def test_no_sql_is_glued_together() -> None:
    """Statements are built by SQLAlchemy or are constants; values are always parameters."""

    def is_glued(argument: ast.expr) -> bool:
        if isinstance(argument, ast.JoinedStr):
            # SQLite's settings take no parameters, and theirs are constants of ours.
            first = argument.values[0]
            return not (isinstance(first, ast.Constant) and str(first.value).startswith("PRAGMA "))
        if isinstance(argument, ast.BinOp):
            return isinstance(argument.op, ast.Mod | ast.Add)
        return isinstance(argument, ast.Call) and dotted(argument.func).endswith("format")

    def check(node: ast.AST, _path: Path) -> str | None:
        if not isinstance(node, ast.Call) or dotted(node.func).rpartition(".")[2] not in SQL_DOORS:
            return None
        return "SQL from pieces of text" if any(map(is_glued, node.args)) else None

    assert offences(check, *PACKAGES) == []


def documents() -> list[Path]:
    """Every page a reader may open."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "packaging").glob("*.md")),
        *sorted((ROOT / "lavad").rglob("*.md")),
    ]


def anchors_of(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ +(.+?)\s*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> Iterator[str]:
    """Links of a page to files or headings that do not exist. Links to other machines are not followed."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists() or (anchor and anchor not in anchors_of(linked)):
            yield f"{name_of(page)} -> {target}"


def test_links_between_pages_are_alive() -> None:
    """Each link in the documentation leads to a file and a heading that exist."""
    assert [link for page in documents() for link in dead_links(page)] == []


def test_the_lifecycle_page_is_what_the_code_says() -> None:
    """The page that shows each state and event was written from the table as it is now."""
    script = runpy.run_path(str(ROOT / "packaging" / "lifecycle_page.py"))
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"](), "run make docs"


def test_the_configuration_page_is_what_the_code_says() -> None:
    """The page of honoured and ignored parameters was written from the tables as they are now."""
    script = runpy.run_path(str(ROOT / "packaging" / "configuration_page.py"))
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"](), "run make docs"


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    """No file contains this copy's folder or the home directory of the user who runs this."""
    # Not where more of a path or of a URL stands before it.
    places = re.compile(
        rb"(?<![\w./-])(?:%b|%b)/" % tuple(re.escape(str(place).encode()) for place in (ROOT, Path.home()))
    )
    kept = [path for folder in (*PACKAGES, *SCRIPTS, "packaging") for path in (ROOT / folder).rglob("*")]
    kept += [*documents(), ROOT / "setup.cfg", ROOT / "pyproject.toml", ROOT / "Makefile"]
    named = [
        name_of(path)
        for path in kept
        if path.is_file() and "__pycache__" not in path.parts and places.search(path.read_bytes())
    ]
    assert named == []


def settings() -> ConfigParser:
    """setup.cfg, parsed."""
    parser = ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def lines_of(section: str, option: str) -> list[str]:
    """The entries of a many-line option in setup.cfg."""
    return [line for line in settings()[section][option].splitlines() if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize("entry", lines_of("options.entry_points", "console_scripts"))
def test_every_command_has_a_function(entry: str) -> None:
    """Each command that is installed names a function that exists."""
    module, _, function = entry.partition("=")[2].strip().partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_the_lock_holds_every_dependency() -> None:
    """Each dependency in setup.cfg is in the lock file, in a version that setup.cfg admits."""
    pinned = {}
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            pinned[name.lower().replace("_", "-")] = version
    wanted = lines_of("options", "install_requires")
    wanted += [line for extra in ("mpi", "dev") for line in lines_of("options.extras_require", extra)]
    for requirement in map(Requirement, wanted):
        assert requirement.name in pinned, requirement.name
        assert requirement.specifier.contains(pinned[requirement.name]), requirement


def test_every_dependency_has_its_reason() -> None:
    """Each package needed at run time is justified in the decision records."""
    records = " ".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "decisions").glob("*.md"))
    unjustified = [
        requirement.name
        for requirement in map(Requirement, lines_of("options", "install_requires"))
        if f"`{requirement.name}`" not in records
    ]
    assert unjustified == []


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A copy of the packages, to plant a breach in."""
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def check_contracts(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run the import contracts over a copy of the packages."""
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([program, "--no-cache"], cwd=tree, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_import_contracts_hold(planted: Path) -> None:
    """The packages as they are keep every contract."""
    checked = check_contracts(planted)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.slow
def test_breaches_of_the_contracts_are_found(planted: Path) -> None:
    """An import planted against each contract turns the check red, and it says which contracts are broken."""
    breaches = [
        ("lavad/core/model/__init__.py", "import time", "The core touches no clock"),
        ("lavad/core/model/__init__.py", "import lavad.engine", "The master is layered"),
        ("lavad/core/model/__init__.py", "import lavad.core.step", "The core is layered"),
        ("protos/wire.py", "import lavactl.main", "The wire knows no program"),
        ("agents/main.py", "import lavad.main", "The three programs"),
    ]
    for module, line, _ in breaches:
        with (planted / module).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    checked = check_contracts(planted)
    assert checked.returncode != 0
    for _, line, contract in breaches:
        assert re.search(f"{contract}.*BROKEN", checked.stdout), f"{line}: {checked.stdout}"


@pytest.mark.slow
def test_the_wheel_holds_every_file(tmp_path: Path) -> None:
    """The wheel contains each module, stub and wire definition of the packages, and nothing else."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for package in (*PACKAGES, "tests"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, f"--wheel-dir={tmp_path}", str(source)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    listed = subprocess.run([sys.executable, "-m", "zipfile", "-l", wheel], check=True, capture_output=True, text=True)
    packed = {line.split()[0] for line in listed.stdout.splitlines()[1:] if ".dist-info/" not in line}
    files = (path for package in PACKAGES for path in (source / package).rglob("*") if path.is_file())
    kept = {path.relative_to(source).as_posix() for path in files}
    assert packed == kept


def test_the_installed_version_is_this_one() -> None:
    """The installed distribution is the one described here, and commands report its version."""
    assert metadata.version("lava-hpc") == settings()["metadata"]["version"] == RELEASE
