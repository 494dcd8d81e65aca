"""Trains on several workers of Ray Train, with checkpoints that Ray keeps and hands to the workers that go on.

    python examples/ray_train.py [FOLDER] [--ray-workers 2] [--batch-size 8]

Without a folder it uses the photographs inside headrace. The one line that differs from stock torch is marked. Ray
makes the process group before the loop begins, so that the loader can deal its order out to the workers.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import ray
import ray.train
import ray.train.torch
import shared
import torch
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from torch import nn
from train import network

from headrace import DataLoader


def network_for(dataset):
    """Apart from the loop: Ray pickles that, and takes a mention of ``classes`` beside torch for the torch.classes."""
    return network(len(dataset.classes))


def report(model, optimiser, loader, log) -> None:
    """Tells Ray how far it is, with a checkpoint of the first worker's: its state of the loader is everybody's."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = None
        if ray.train.get_context().get_world_rank() == 0:
            state = {"model": model.state_dict(), "optimiser": optimiser.state_dict()}
            torch.save({**state, "loader": loader.state_dict(), "taken": log.taken}, Path(folder, "run.pt"))
            checkpoint = Checkpoint.from_directory(folder)
        ray.train.report({"images/s": log.rate() or 0.0}, checkpoint=checkpoint)


def train_loop(options: argparse.Namespace) -> None:
    """What each worker does."""
    data = shared.photographs(options)
    common = {"batch_size": options.batch_size, "num_workers": options.workers}
    # It was: loader = torch.utils.data.DataLoader(data, sampler=torch.utils.data.DistributedSampler(data), **common)
    loader = DataLoader(data, shuffle=True, **common, seed=0, distributed=True)
    torch.manual_seed(0)
    model = ray.train.torch.prepare_model(network_for(data))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    log, first, began = shared.Log(), 0, ray.train.get_checkpoint()
    if began:
        with began.as_directory() as kept:
            saved = torch.load(Path(kept, "run.pt"), weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        loader.load_state_dict(saved["loader"])
        log, first = shared.Log(saved["taken"]), saved["loader"]["epoch"]
    context = ray.train.get_context()
    for _epoch in range(first, options.epochs):
        # Stock torch also needs here: loader.sampler.set_epoch(_epoch)
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            mean = loss.detach() / context.get_world_size()
            torch.distributed.all_reduce(mean)
            log.step(mean, len(images) * context.get_world_size(), quiet=True)
            if context.get_world_rank() == 0:
                with options.losses.open("a") as file:
                    print(f"step {log.taken - 1}: loss {mean.item():.6f} {mean.item().hex()}", file=file)
            if log.taken % options.every == 0:
                report(model, optimiser, loader, log)
            if log.taken == options.kill_after and not began:
                shared.end_suddenly()  # and Ray starts the workers again, from the last checkpoint
    report(model, optimiser, loader, log)


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("--ray-workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=5, help="batches between two checkpoints")
    parser.add_argument("--kill-after", type=int, help="end the workers by SIGKILL, once, after so many batches")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as storage:
        options.losses = Path(storage, "losses.txt")
        ray.init(num_cpus=options.ray_workers, include_dashboard=False, log_to_driver=False)
        trainer = ray.train.torch.TorchTrainer(
            train_loop,
            train_loop_config=options,
            scaling_config=ScalingConfig(num_workers=options.ray_workers, use_gpu=False),
            run_config=RunConfig(storage_path=storage, failure_config=FailureConfig(max_failures=1)),
        )
        result = trainer.fit()
        print(options.losses.read_text(), end="")
        print(f"{result.metrics['images/s']:.1f} images/s")
        ray.shutdown()


if __name__ == "__main__":
    os.environ.setdefault("RAY_TRAIN_V2_ENABLED", "1")
    main()
