"""Trains a ResNet of Transformers with its Trainer, which goes on at any of its checkpoints.

    python examples/transformers_trainer.py [FOLDER] [--accumulate 2] [--checkpoint FOLDER_OF_CHECKPOINTS]

Without a folder it uses the photographs inside headrace. The one line that differs from stock torch is marked. A loader
of one's own must go through `accelerator.prepare`, as the Trainer's does: it goes on in the middle of an epoch by that.
"""

from __future__ import annotations

import argparse

import shared
import torch
from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

import headrace


def named(batch):
    """The keyword arguments of a model of Transformers."""
    images, labels = batch
    return {"pixel_values": images, "labels": labels}


def collated(samples):
    """A list of samples as the same."""
    return named(torch.utils.data.default_collate(samples))


class PhotographTrainer(Trainer):
    """A Trainer that makes its own loader and prints the loss of each batch."""

    def __init__(self, options: argparse.Namespace, **others) -> None:
        self.options, self.log_of_steps = options, shared.Log()
        super().__init__(**others)

    def get_train_dataloader(self):
        common = {"batch_size": self.options.batch_size, "shuffle": True, "num_workers": self.options.workers}
        # It was: loader = torch.utils.data.DataLoader(self.train_dataset, **common, collate_fn=collated)
        loader = headrace.DataLoader(self.train_dataset, **common, out_transform=named, seed=0)
        return self.accelerator.prepare(loader)

    def compute_loss(self, model, inputs, *others, **more):
        loss = super().compute_loss(model, inputs, *others, **more)
        self.log_of_steps.step(loss, len(inputs["labels"]))
        return loss


class Killed(TrainerCallback):
    """Ends the process after the checkpoint of some step of the optimiser."""

    def __init__(self, after: int | None) -> None:
        self.after = after

    def on_save(self, args, state, control, **_) -> None:
        if state.global_step == self.after:
            shared.end_suddenly()


def main() -> None:
    parser = shared.resumable(__doc__)
    parser.add_argument("--accumulate", type=int, default=2, help="batches to a step of the optimiser")
    options = parser.parse_args()
    dataset = shared.photographs(options)
    arguments = TrainingArguments(
        output_dir=str(options.checkpoint or "unused"),
        num_train_epochs=options.epochs,
        per_device_train_batch_size=options.batch_size,
        gradient_accumulation_steps=options.accumulate,
        learning_rate=1e-3,
        save_strategy="steps" if options.checkpoint else "no",
        save_steps=1,
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
        use_cpu=True,
        seed=0,
    )
    torch.manual_seed(0)
    widths = {"embedding_size": 16, "hidden_sizes": [16, 32, 64], "depths": [1, 1, 1], "layer_type": "basic"}
    model = ResNetForImageClassification(ResNetConfig(**widths, num_labels=len(dataset.classes)))
    trainer = PhotographTrainer(options, model=model, args=arguments, train_dataset=dataset)
    trainer.add_callback(Killed(options.kill_after))
    last = get_last_checkpoint(options.checkpoint) if options.checkpoint and options.checkpoint.exists() else None
    if last:
        steps = int(last.rsplit("-", 1)[1])
        batches = len(trainer.get_train_dataloader())
        updates = -(-batches // options.accumulate)  # of the optimiser, an epoch
        trainer.log_of_steps.taken = steps // updates * batches + steps % updates * options.accumulate
    trainer.train(resume_from_checkpoint=last)
    trainer.log_of_steps.end()
    shared.leave_group()


if __name__ == "__main__":
    main()
