"""Lightning: which cluster it finds by itself, and a training of two steps over all tasks."""

import sys

import lightning
import torch
from lightning.pytorch.demos.boring_classes import BoringModel


class Model(BoringModel):
    """A model that tells where it trains."""

    def on_train_end(self) -> None:
        """Print what the trainer found."""
        trainer = self.trainer
        cluster = trainer.strategy.cluster_environment
        total = torch.tensor(trainer.global_rank + 1)
        torch.distributed.all_reduce(total)
        print(
            f"Lightning {lightning.__version__}: {type(cluster).__name__}: rank {trainer.global_rank} of "
            f"{trainer.world_size}, node {trainer.node_rank}, {cluster.main_address}:{cluster.main_port}, sum {total}",
            flush=True,
        )


quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = lightning.Trainer(accelerator="cpu", devices=1, num_nodes=int(sys.argv[1]), max_steps=2, **quiet)
trainer.fit(Model())
torch.distributed.destroy_process_group()  # torch's threads of it may abort a process that ends beside them
