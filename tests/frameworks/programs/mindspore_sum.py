"""MindSpore's dynamic cluster: scheduler and workers run the same program, the workers add up their ranks plus one."""

import os
import sys

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init

role = os.environ["MS_ROLE"]
mindspore.set_context(mode=mindspore.GRAPH_MODE)
mindspore.set_device("CPU")
init()
if role == "MS_SCHED":
    sys.exit(0)


class Sum(nn.Cell):
    """Sum over all workers."""

    def __init__(self) -> None:
        super().__init__()
        self.all_reduce = ops.AllReduce()

    def construct(self, value: Tensor) -> Tensor:
        """Return the sum."""
        return self.all_reduce(value)


rank, size = get_rank(), get_group_size()
total = float(Sum()(Tensor(np.array([rank + 1.0], np.float32))).asnumpy()[0])
print(f"MindSpore {mindspore.__version__}: worker {rank} of {size}: sum {total:.0f}", flush=True)
sys.exit(total != size * (size + 1) / 2)
