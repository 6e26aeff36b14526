"""Frameworks that tests run, each in a virtual environment of its own under .cache/frameworks, made once.

LAVA_FRAMEWORKS names those that may be installed for this run; torch, which `make test` needs, always is one of them.
Run as a program it makes the environments that are named, and says which cannot be had and why.
"""

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests import virtual_environments as environments
from tests.frameworks import horovod_build
from tests.virtual_environments import CACHE, NotInstallable

HOME = CACHE / "frameworks"
ALWAYS = "torch"
TORCH = ("torch==2.13.0", "numpy")
# Packages of each environment; those that stand on torch see it in its own environment.
PACKAGES: dict[str, tuple[str, ...]] = {
    "torch": TORCH,
    "lightning": ("lightning==2.6.6", "accelerate==1.15.0"),
    "deepspeed": ("deepspeed==0.19.8",),
    "horovod": ("cffi", "cloudpickle", "psutil", "pyyaml", "packaging", "setuptools<81"),
    "jax": ("jax==0.10.2", "jaxlib==0.10.2"),
    "ray": ("ray[default]==2.60.0",),
    "tensorflow": ("tensorflow-cpu==2.21.0",),
    "mindspore": ("mindspore==2.10.0",),
}
ON_TORCH = ("lightning", "deepspeed", "horovod")


class Missing(Exception):
    """Framework that a test cannot have; the text is the reason."""


@functools.cache
def programs(name: str) -> Path:
    """Return the directory of the programs of a framework's environment, made if need be.

    Raises:
        Missing: it is not asked for, or cannot be had here.
    """
    if name != ALWAYS and name not in os.environ.get("LAVA_FRAMEWORKS", "").split():
        raise Missing(f"{name} is for make test-frameworks FRAMEWORKS={name}")
    return _programs(name)


@functools.cache
def _programs(name: str) -> Path:
    home = HOME / name
    below = (_programs("torch"),) if name in ON_TORCH else ()
    with environments.alone(home):
        try:
            if name == "torch":
                _refuse_cuda(home)
            is_new = not environments.is_ready(home)
            found = environments.made(home, PACKAGES[name], below)
            if name == "torch" and is_new:
                _compile(home)
            if name == "ray" and is_new:
                _compile_all(home)
            if name == "horovod":
                horovod_build.install(home)
            if name == "ray":
                _be_patient(home)
        except NotInstallable as error:
            raise Missing(f"{name}: {error}") from error
    return found


def _be_patient(home: Path) -> None:
    """Let Ray wait for its own node as long as a busy machine takes; no setting of Ray's does.

    Not for longer: a node whose raylet has died is noticed, and restarted by lava, only when this wait is over.
    """
    node = next((home / "lib").glob("python3*/site-packages/ray/_private/node.py"))
    node.write_text(re.sub(r"(raylet_start_wait_time_s =) \d+\n", r"\1 60\n", node.read_text()))


def _compile(home: Path) -> None:
    """Keep the bytecode of what torchrun and training import; that of the whole package takes a minute to make."""
    words = [home / "bin" / "python", "-c", "import torch.distributed.run, torch.optim, torch.nn, numpy"]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(words, env=variables, check=True)


def _compile_all(home: Path) -> None:
    """Keep the bytecode of everything: a node of Ray dies if its agent, which is Python, is not there within 15 s."""
    words = [home / "bin" / "python", "-m", "compileall", "-q", "-j", "0", home / "lib"]
    subprocess.run(words, stdout=subprocess.DEVNULL, check=False)  # some packages have samples that are no Python


def _refuse_cuda(home: Path) -> None:
    """Leave torch out where pip would take its CUDA build of several GB."""
    if environments.is_ready(home) or os.environ.get("LAVA_ANY_TORCH"):
        return
    words = ("install", "--dry-run", "--ignore-installed", "-q", "--report", "-", *TORCH)
    trial = environments.pip(Path(sys.prefix), *words)
    if trial.returncode:
        raise NotInstallable(f"pip finds no {TORCH[0]}: {trial.stderr.strip()[-300:]}")
    names = [entry["metadata"]["name"] for entry in json.loads(trial.stdout)["install"]]
    if any(one.startswith(("nvidia", "cuda")) for one in names):
        raise NotInstallable(f"pip would take the CUDA build of {TORCH[0]}; LAVA_ANY_TORCH=1 takes it")


def main() -> None:
    """Make the environments that are named; say which cannot be had."""
    for name in sys.argv[1:]:
        if name not in PACKAGES:
            raise SystemExit(f"expected some of {' '.join(PACKAGES)}, found {name}")
        try:
            print(f"{name}: {programs(name)}", flush=True)
        except Missing as missing:
            print(f"{name}: left out: {missing}", flush=True)


if __name__ == "__main__":
    main()
