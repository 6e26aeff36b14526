"""The pages about AI jobs: their commands as a reader types them, in order."""

import os
import re
import shutil
import subprocess
from pathlib import Path

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
PROGRAMS = {"elastic-pytorch": ("elastic_torch.py",), "elastic-script": ("elastic_steps.py",)}


def test_every_page_is_tried() -> None:
    """A page with commands and no entry here would go untested."""
    with_commands = {path.stem for path in PAGES.glob("*.md") if "```sh" in path.read_text(encoding="utf-8")}
    assert with_commands == set(SAYS)


def framework(name: str) -> Path:
    """Directory of a framework's programs; the page is left out where it cannot be had."""
    try:
        return environments.programs(name)
    except environments.Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("page", sorted(SAYS))
def test_the_commands_of_the_page_work(site: Site, page: str) -> None:
    """Each block is run in one folder, and stops at its first failing command."""
    blocks = re.findall(r"```sh\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    environment = {**site.cluster.environment, "PATH": f"{site.cluster.environment['PATH']}:{os.defpath}"}
    if page in FRAMEWORKS:
        environment["PATH"] = f"{framework(FRAMEWORKS[page])}:{environment['PATH']}"
    for program in PROGRAMS.get(page, ()):
        shutil.copy(ROOT / "examples" / program, site.folder)
    said = ""
    for block in blocks:
        done = subprocess.run(
            ["sh", "-e", "-c", block],
            cwd=site.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done
        said += done.stdout
    assert [words for words in SAYS[page] if words not in said] == [], said
