"""The pages about AI jobs: their commands as a reader types them, in order."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from subprocess import STDOUT

import pytest

from tests.frameworks import environments
from tests.seeds.site import Site
from tests.virtual_environments import ROOT

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

PAGES = ROOT / "docs" / "ai"
# What the commands of a page print at the end of its story.
SAYS = {
    "roles": ("server/0", "worker/1"),
    "volcano": ("worker/0: server: ", "I am worker 1"),
    "mpijob": ("nearly-pi-worker-0.nearly-pi.default.svc slots=1", "worker 1 answers"),
    "openpai": ("I am 0", "I am 1", "trained with mnist"),
    "recovery": ("run 1 of worker 1", "run 2 of worker 1", "restarted 1 time", "spares: 1"),
    "notebook": ("http://",),
    "notices": ("10%", "epoch 1", "run-limit", "saved, with "),
    "elastic-pytorch": ("worker/2", "trained 40 steps: "),
    "elastic-script": ("step 0: ", "done after 100 steps"),
    "ray": ("sum of squares 285",),
    "jax": ("process 0 of 2: 3", "process 1 of 2: 3"),
}
# The framework that a page needs, and programs of examples/ that it has in its folder.
FRAMEWORKS = {"elastic-pytorch": "torch", "ray": "ray", "jax": "jax"}
# The longest that a block takes on a busy machine; below the time after which pytest shows the stacks of a test.
LIMIT_S = 240
PROGRAMS = {"elastic-pytorch": ("elastic_torch.py",), "elastic-script": ("elastic_steps.py",)}


def test_every_page_is_tried() -> None:
    """A page with commands and no entry here would go untested."""
    with_commands = {path.stem for path in PAGES.glob("*.md") if "```sh" in path.read_text(encoding="utf-8")}
    assert with_commands == set(SAYS)


def test_pages_bear_any_machine() -> None:
    """They wait for what happens, and follow the newest job: a reader may have tried one before, or another page."""
    blocks = {page: "".join(commands(page)) for page in SAYS}
    assert [page for page, text in blocks.items() if re.search(r"^sleep", text, re.MULTILINE)] == []
    named = re.compile(r"\$\(bjobs [^)]*-J[^)]*\)")
    assert [one for text in blocks.values() for one in named.findall(text) if not one.endswith("| tail -1)")] == []
    waits = re.compile(r"^until bjobs .*DONE.*", re.MULTILINE)
    assert [one for text in blocks.values() for one in waits.findall(text) if "EXIT" not in one] == []


def commands(page: str) -> list[str]:
    """The blocks of a page."""
    return re.findall(r"```sh\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)


def framework(name: str) -> Path:
    """Directory of a framework's programs; the page is left out where it cannot be had."""
    try:
        return environments.programs(name)
    except environments.Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("page", sorted(SAYS))
def test_the_commands_of_the_page_work(site: Site, page: str) -> None:
    """Each block is run in one folder, and stops at its first failing command; other jobs bear its names."""
    environment = {**site.cluster.environment, "PATH": f"{site.cluster.environment['PATH']}:{os.defpath}"}
    if page in FRAMEWORKS:
        environment["PATH"] = f"{framework(FRAMEWORKS[page])}:{environment['PATH']}"
    for program in PROGRAMS.get(page, ()):
        shutil.copy(ROOT / "examples" / program, site.folder)
    for name in re.findall(r"-J ([\w-]+)", "".join(commands(page))):
        site.cluster.submit("-J", name, "true")
    said = "".join(shell(site, block, environment) for block in commands(page))
    assert [words for words in SAYS[page] if words not in said] == [], said + account(site)


def shell(site: Site, block: str, environment: dict[str, str]) -> str:
    """Run a block as a reader types it; return its output. One that hangs is ended with all that it has started."""
    words = ("sh", "-e", "-c", block)
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(
            words, cwd=site.folder, env=environment, stdout=output, stderr=STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            status: int | None = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        said = output.read()
    how = f"did not end within {LIMIT_S} s" if status is None else f"exits with {status}"
    assert status == 0, f"the page {how}:\n{block}\n{said}\n{account(site)}"
    return said


def account(site: Site) -> str:
    """Return what the cluster knows of the jobs of a page that failed: those of its last minutes, and their output."""
    listed = site.cluster.run("bjobs", "-a", "-noheader", "-o", "jobid").stdout.split()[-2:]
    asked = [
        words for job in listed for words in (("bjobs", "-l", job), ("lavactl", "tasks", job), ("lavactl", "logs", job))
    ]
    return "".join(f"$ {' '.join(words)}\n{site.cluster.run(*words).stdout[-4000:]}" for words in asked)
