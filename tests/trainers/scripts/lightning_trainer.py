"""Trains a tiny network by Lightning's Trainer, with Lightning's own PyTorchProfiler."""
# As a user writes it, without types.
# mypy: ignore-errors

import sys

import lightning
import torch
from lightning.pytorch.profilers import PyTorchProfiler


class Network(lightning.LightningModule):
    """Two layers."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 1))

    def training_step(self, batch, _index):
        return self.layers(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main(folder):
    profiler = PyTorchProfiler(
        dirpath=folder,
        filename="profile",
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        record_shapes=True,
        profile_memory=True,
    )
    trainer = lightning.Trainer(
        max_steps=6,
        profiler=profiler,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Network(), torch.utils.data.DataLoader(torch.randn(12, 8), batch_size=2))
    print("profiler:", type(profiler.function_events).__module__.partition(".")[0])


main(sys.argv[1])
