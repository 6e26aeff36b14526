"""Worker of torchrun: all workers add up their ranks over gloo, step by step, until a file appears.

`torch_sums.py STOP`. The first rank decides on each further step, so that all take the same last step.
"""

import os
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, step = dist.get_rank(), 0
while step >= 0:
    step = -1 if os.path.exists(sys.argv[1]) else step + 1
    total, last = torch.tensor(rank), torch.tensor(step)
    dist.all_reduce(total)
    dist.broadcast(last, 0)
    step = int(last)
    if not rank:
        print("step", step, "sum", int(total), flush=True)
    time.sleep(0.2)
dist.destroy_process_group()
