"""Hugging Face Accelerate: what its state finds in the environment, and a sum over all processes."""

import accelerate
import torch

state = accelerate.PartialState(cpu=True)
total = accelerate.utils.reduce(torch.tensor(state.process_index + 1), "sum")
print(
    f"Accelerate {accelerate.__version__}: process {state.process_index} of {state.num_processes}: sum {int(total)}",
    flush=True,
)
state.destroy_process_group()
