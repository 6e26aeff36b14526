"""Elastic training with Horovod: a small model whose workers run on when hosts come and go.

Unlike torchrun Horovod keeps the workers that stay: they go on from the last commit, with new ranks, and a new worker
gets the state from them. Each step is printed by the first rank.

    horovodrun -np 2 --min-np 1 --max-np 3 --host-discovery-script "$LAVA_DISCOVER_HOSTS" \
        python elastic_horovod.py [--steps N] [--pause SECONDS] [--stop FILE]

Needs horovod, built for torch with gloo.
"""

import argparse
import os
import time
from pathlib import Path

import horovod.torch as hvd
import torch
from torch import nn

INPUTS, BATCH = 8, 64


def main() -> None:
    """Train to the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200, help="steps of the whole training (%(default)s)")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between two steps (%(default)s)")
    parser.add_argument("--stop", type=Path, help="file that ends the training early when it appears")
    asked = parser.parse_args()
    hvd.init()
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(INPUTS, 32), nn.Tanh(), nn.Linear(32, 1))
    plain = torch.optim.SGD(model.parameters(), lr=0.05)
    optimiser = hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters())

    @hvd.elastic.run
    def train(state: hvd.elastic.TorchState) -> None:
        print(f"begin after step {state.step}: rank {hvd.rank()} of {hvd.size()}, process {os.getpid()}", flush=True)
        over = False
        while not over:
            state.step += 1
            drawn = torch.Generator().manual_seed(state.step * 100 + hvd.rank())
            inputs = torch.rand(BATCH, INPUTS, generator=drawn)
            optimiser.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
            loss.backward()
            optimiser.step()
            ends = state.step >= asked.steps or (asked.stop is not None and asked.stop.exists())
            over = bool(hvd.broadcast(torch.tensor(int(ends)), 0, name="over"))
            if not hvd.rank():
                print(f"step {state.step}: {hvd.size()} workers, loss {float(loss):.4f}", flush=True)
            time.sleep(asked.pause)
            state.commit()

    train(hvd.elastic.TorchState(model=model, optimizer=optimiser, step=0))


if __name__ == "__main__":
    main()
