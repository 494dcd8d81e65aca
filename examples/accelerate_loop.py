"""Trains with Hugging Face Accelerate, and goes on where it was killed: `save_state`, `load_state`.

    python examples/accelerate_loop.py [FOLDER] [--accumulate 2] [--checkpoint FOLDER_OF_STATES] [--resume skip]
    accelerate launch --num_processes 2 examples/accelerate_loop.py

Without a folder it uses the photographs inside headrace. The one line that differs from stock torch is marked. With
``--resume stateful`` Accelerate saves the loader's state; with ``skip`` it passes over the first batches of an epoch.
"""

from __future__ import annotations

import shared
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch import nn
from train import network

import headrace


def main() -> None:
    parser = shared.resumable(__doc__)
    parser.add_argument("--accumulate", type=int, default=2, help="batches to a step of the optimiser")
    parser.add_argument("--resume", choices=("stateful", "skip"), default="stateful")
    options = parser.parse_args()
    accelerator = Accelerator(
        gradient_accumulation_steps=options.accumulate,
        dataloader_config=DataLoaderConfiguration(use_stateful_dataloader=options.resume == "stateful"),
    )
    set_seed(0)
    dataset = shared.photographs(options)
    common = {"batch_size": options.batch_size, "shuffle": True, "num_workers": options.workers}
    # It was: loader = torch.utils.data.DataLoader(dataset, **common)
    loader = headrace.DataLoader(dataset, **common, seed=0)
    model = network(len(dataset.classes))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader, model, optimiser = accelerator.prepare(loader, model, optimiser)
    log = shared.Log()
    accelerator.register_for_checkpointing(log)
    batches = len(loader)
    if options.checkpoint and any(options.checkpoint.glob("step-*/finished")):
        newest = max(options.checkpoint.glob("step-*/finished"), key=lambda file: int(file.parent.name[5:]))
        accelerator.load_state(str(newest.parent))
    for epoch in range(log.taken // batches, options.epochs):
        rest = loader
        if options.resume == "skip" and log.taken > epoch * batches:
            rest = accelerator.skip_first_batches(loader, log.taken - epoch * batches)
        rest.set_epoch(epoch)
        for images, labels in rest:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(images), labels)
                accelerator.backward(loss)
                optimiser.step()
                optimiser.zero_grad()
            mean = accelerator.reduce(loss.detach(), "mean").item()
            log.step(mean, len(images) * accelerator.num_processes)
            if options.checkpoint and accelerator.sync_gradients:
                states = options.checkpoint / f"step-{log.taken}"
                accelerator.save_state(str(states))
                (states / "finished").touch()
            if log.taken == options.kill_after:
                shared.end_suddenly()
    log.end()
    accelerator.end_training()


if __name__ == "__main__":
    main()
