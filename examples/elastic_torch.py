"""Elastic training with torchrun: a small model whose training goes on when hosts come and go.

A network of two layers learns a function of eight numbers by distributed data parallel training (gloo, no GPU needed).
torchrun starts all workers again whenever a host joins or leaves, and each goes on from the checkpoint that the first
rank keeps every few steps. The last line tells with how many workers each part was trained; the exit code is 0 only if
the loss fell to a tenth of the first one.

    torchrun elastic_torch.py CHECKPOINT [--steps N] [--every N] [--pause SECONDS] [--stop FILE]

Needs torch and nothing else.
"""

import argparse
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 64  # of all ranks together, so that the training is the same for each number of them
INPUTS = 8


def batch(step: int, rank: int, size: int) -> tuple[Tensor, Tensor]:
    """Return one rank's part of a step's examples: the same for a step whenever it is taken."""
    drawn = torch.Generator().manual_seed(step)
    inputs = torch.rand(BATCH, INPUTS, generator=drawn)[rank::size]
    return inputs, inputs.prod(1, keepdim=True) + inputs.sum(1, keepdim=True)


class Training:
    """Model, optimiser and the last step, as the checkpoint has them."""

    def __init__(self, checkpoint: Path) -> None:
        torch.manual_seed(1)
        self.checkpoint = checkpoint
        self.model = nn.Sequential(nn.Linear(INPUTS, 32), nn.Tanh(), nn.Linear(32, 1))
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.step, self.first_loss = 0, 0.0
        self.parts: list[tuple[int, int]] = []  # step after which a part began, and its number of workers
        if checkpoint.exists():
            kept = torch.load(checkpoint)
            self.model.load_state_dict(kept["model"])
            self.optimiser.load_state_dict(kept["optimiser"])
            self.step, self.first_loss, self.parts = kept["step"], kept["first loss"], kept["parts"]
        self.parts.append((self.step, dist.get_world_size()))
        self.parallel = DistributedDataParallel(self.model)

    def save(self) -> None:
        """Keep everything; a reader finds the old file or the new one."""
        kept = {"model": self.model.state_dict(), "optimiser": self.optimiser.state_dict(), "step": self.step}
        new = self.checkpoint.with_suffix(".new")
        torch.save({**kept, "first loss": self.first_loss, "parts": self.parts}, new)
        new.replace(self.checkpoint)

    def take_step(self, rank: int, size: int) -> float:
        """Train on one batch; return the loss over all ranks, before the step."""
        self.step += 1
        inputs, wanted = batch(self.step, rank, size)
        loss = nn.functional.mse_loss(self.parallel(inputs), wanted)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        total = loss.detach() / size
        dist.all_reduce(total)
        self.first_loss = self.first_loss or float(total)
        return float(total)


def is_over(asked: argparse.Namespace, step: int) -> bool:
    """Decide whether this was the last step: the first rank for all."""
    over = torch.tensor(int(step >= asked.steps or (asked.stop is not None and asked.stop.exists())))
    dist.broadcast(over, 0)
    return bool(over)


def train(training: Training, asked: argparse.Namespace) -> float:
    """Take the rest of the steps; return the last loss."""
    rank, size = dist.get_rank(), dist.get_world_size()
    loss, over = training.first_loss, is_over(asked, training.step)
    while not over:
        loss = training.take_step(rank, size)
        over = is_over(asked, training.step)
        if not rank:
            if over or training.step % asked.every == 0:
                training.save()
            print(f"step {training.step}: {size} workers, loss {loss:.4f}", flush=True)
        time.sleep(asked.pause)
    return loss


def main() -> int:
    """Train from the checkpoint to the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkpoint", type=Path, help="file on a file system of all hosts")
    parser.add_argument("--steps", type=int, default=200, help="steps of the whole training (%(default)s)")
    parser.add_argument("--every", type=int, default=5, help="steps from one checkpoint to the next (%(default)s)")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between two steps (%(default)s)")
    parser.add_argument("--stop", type=Path, help="file that ends the training early when it appears")
    asked = parser.parse_args()

    dist.init_process_group("gloo")
    training = Training(asked.checkpoint)
    is_first = not dist.get_rank()
    if is_first:
        print(f"begin after step {training.step}: {dist.get_world_size()} workers", flush=True)
    loss = train(training, asked)
    if is_first:
        parts = ", ".join(f"{size} workers from step {step + 1}" for step, size in training.parts)
        print(f"trained {training.step} steps: {parts}; loss {training.first_loss:.4f} to {loss:.4f}", flush=True)
    dist.destroy_process_group()
    return 0 if loss < training.first_loss / 10 else 1


if __name__ == "__main__":
    raise SystemExit(main())
