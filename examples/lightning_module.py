"""Trains with Lightning: a LightningModule, a LightningDataModule, and checkpoints in the middle of an epoch.

    python examples/lightning_module.py [FOLDER] [--accumulate 2] [--checkpoint FOLDER_OF_CHECKPOINTS]

Without a folder it uses the photographs inside headrace. The one line that differs from stock torch is marked.
Lightning saves and loads the loader's state by itself.
"""

from __future__ import annotations

import argparse

import lightning as L
import shared
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from train import network

import headrace


class Photographs(L.LightningDataModule):
    """Makes the loader, and makes it again where training goes on."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.options, self.dataset = options, shared.photographs(options)

    def train_dataloader(self):
        common = {"batch_size": self.options.batch_size, "shuffle": True, "num_workers": self.options.workers}
        # It was: loader = torch.utils.data.DataLoader(self.dataset, **common)
        loader = headrace.DataLoader(self.dataset, **common, seed=0, distributed=True)
        return loader


class Classifier(L.LightningModule):
    """A small residual network and its loss."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.model, self.log_of_steps = network(classes), shared.Log()

    def training_step(self, batch, _number):
        images, labels = batch
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.log_of_steps.step(loss, len(images), quiet=not self.trainer.is_global_zero)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)

    def on_save_checkpoint(self, checkpoint) -> None:
        checkpoint["taken"] = self.log_of_steps.taken

    def on_load_checkpoint(self, checkpoint) -> None:
        self.log_of_steps.taken = checkpoint["taken"]


class Killed(L.Callback):
    """Ends the process after the checkpoint of some batch."""

    def __init__(self, after: int | None) -> None:
        self.after = after

    def on_train_batch_start(self, trainer, module, *_) -> None:
        if module.log_of_steps.taken == self.after:
            shared.end_suddenly()


def main() -> None:
    parser = shared.resumable(__doc__)
    parser.add_argument("--accumulate", type=int, default=2, help="batches to a step of the optimiser")
    parser.add_argument("--every-epoch", action="store_true", help="save at the end of each epoch, not of each step")
    parser.add_argument("--devices", type=int, default=1, help="processes, which torchrun or Lightning starts")
    options = parser.parse_args()
    L.seed_everything(0, verbose=False)
    data = Photographs(options)
    model = Classifier(len(data.dataset.classes))
    callbacks, last = [Killed(options.kill_after)], None
    if options.checkpoint:
        when = {"every_n_epochs": 1} if options.every_epoch else {"every_n_train_steps": 1}
        callbacks.append(ModelCheckpoint(options.checkpoint, "{step}", save_top_k=-1, **when))
        saved = options.checkpoint.glob("step=*.ckpt")
        last = max(saved, key=lambda file: int(file.stem[5:]), default=None)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=options.devices,
        max_epochs=options.epochs,
        accumulate_grad_batches=options.accumulate,
        callbacks=callbacks,
        enable_checkpointing=bool(options.checkpoint),
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, datamodule=data, ckpt_path=last)
    if trainer.is_global_zero:
        model.log_of_steps.end()
    shared.leave_group()


if __name__ == "__main__":
    main()
