"""Trains a denoising diffusion model as diffusers' train_unconditional.py does, and goes on where it was killed.

    python examples/diffusers_unconditional.py [FOLDER] [--size 32] [--checkpoint FOLDER_OF_STATES]
    accelerate launch --num_processes 2 examples/diffusers_unconditional.py

Without a folder it uses the photographs inside headrace. The one line that differs from stock torch is marked.
Accelerate saves model, optimiser, random numbers and the loader's state.
"""

from __future__ import annotations

import shared
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from diffusers import DDPMScheduler, UNet2DModel
from torch import nn

import headrace


def main() -> None:
    options = shared.resumable(__doc__).parse_args()
    accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(use_stateful_dataloader=True))
    set_seed(0)
    dataset = shared.photographs(options)
    common = {"batch_size": options.batch_size, "shuffle": True, "num_workers": options.workers}
    # It was: loader = torch.utils.data.DataLoader(dataset, **common)
    loader = headrace.DataLoader(dataset, **common, seed=0)
    model = UNet2DModel(
        sample_size=options.size,
        block_out_channels=(16, 32),
        layers_per_block=1,
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    scheduler = DDPMScheduler(num_train_timesteps=1000)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader, model, optimiser = accelerator.prepare(loader, model, optimiser)
    log = shared.Log()
    accelerator.register_for_checkpointing(log)
    if options.checkpoint and any(options.checkpoint.glob("step-*/finished")):
        newest = max(options.checkpoint.glob("step-*/finished"), key=lambda file: int(file.parent.name[5:]))
        accelerator.load_state(str(newest.parent))
    for epoch in range(log.taken // len(loader), options.epochs):
        loader.set_epoch(epoch)
        for images, _labels in loader:
            noise = torch.randn(images.shape, device=images.device)
            steps = torch.randint(0, len(scheduler.betas), (len(images),), device=images.device)
            predicted = model(scheduler.add_noise(images, noise, steps), steps).sample
            loss = nn.functional.mse_loss(predicted, noise)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            mean = accelerator.reduce(loss.detach(), "mean").item()
            log.step(mean, len(images) * accelerator.num_processes)
            if options.checkpoint:
                states = options.checkpoint / f"step-{log.taken}"
                accelerator.save_state(str(states))
                (states / "finished").touch()
            if log.taken == options.kill_after:
                shared.end_suddenly()
    log.end()
    accelerator.end_training()


if __name__ == "__main__":
    main()
