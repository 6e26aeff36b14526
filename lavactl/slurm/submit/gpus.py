"""GPUs of a job in Slurm's words: what each option asks for, and what two of them say together. Pure but for refusals.

Invariant: every option that was given counts; those that contradict each other are refused.
"""

from typing import NamedTuple

from lavactl.slurm.words import values
from lavactl.slurm.words.values import Gpus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.slurm.submit.choices import Choices

GPU_COUNT = "[model:]count, such as 2 or a100:2"
GRES = "gpu[:model][:count], or NAME:count of a site's resource, each once"
NONE = Gpus(0, "")


class Asked(NamedTuple):
    """GPUs asked for; 0 where nothing is said.

    Attributes:
        of_job: of the whole job, --gpus.
        per_node: --gpus-per-node, or gpu of --gres.
        per_task: --gpus-per-task.
        others: the site's own resources of --gres, with their counts on each host.
    """

    of_job: int
    per_node: int
    per_task: int
    model: str
    others: tuple[tuple[str, int], ...]

    def text(self, number: int, per: str = "") -> str:
        """Value of -gpu for a number of GPUs on each host, or for each task; empty for none."""
        if not number:
            return ""
        return f"num={number}{per}:j_exclusive=yes" + (f":gmodel={self.model}" if self.model else "")


def read_asked(choices: "Choices") -> Asked:
    """GPUs and other resources that the four options ask for.

    Raises:
        CommandError: a malformed value, or two that contradict each other.
    """
    by_gres, others = choices.read("gres", values.read_gres, GRES) or (None, [])
    found = {name: choices.read(name, values.read_gpus, GPU_COUNT) or NONE for name in
             ("gpus", "gpus-per-node", "gpus-per-task")}  # fmt: skip
    on_node = found["gpus-per-node"]
    if by_gres is not None and on_node.number and by_gres.number != on_node.number:
        raise choices.wrong(f"--gres asks for {by_gres.number} GPUs on each host, --gpus-per-node for {on_node.number}")
    everywhere = [*found.values(), by_gres or NONE]
    models = sorted({gpus.model for gpus in everywhere if gpus.number and gpus.model})
    if len(models) > 1:
        raise choices.wrong(f"the GPUs of a job are of one model; {' and '.join(models)} are asked for")
    per_node = on_node.number or (by_gres or NONE).number
    job, per_task = found["gpus"].number, found["gpus-per-task"].number
    return Asked(job, per_node, per_task, "".join(models), tuple(others))


def whole(choices: "Choices", number: int, by: int, options: str) -> int:
    """Quotient of the numbers of two options.

    Raises:
        CommandError: there is a rest.
    """
    if number % by:
        raise choices.wrong(f"{options}: {number} is no multiple of {by}")
    return number // by


def agreed(choices: "Choices", given: int | None, derived: int, noun: str, options: str) -> int:
    """Number that two options imply, which is the one that was given by itself, if any was.

    Raises:
        CommandError: they differ.
    """
    if given is not None and given != derived:
        raise choices.wrong(f"{options} make {derived} {noun}, and {given} are asked for")
    return derived
