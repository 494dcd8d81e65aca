"""Trains on several processes with DistributedDataParallel, and goes on where it was killed, also with other ones.

    torchrun --nproc-per-node 2 examples/ddp.py [FOLDER] [--epochs 2] [--batch-size 8] [--checkpoint run.pt]

Without a folder it uses the photographs inside headrace. The one line that differs from stock torch is marked. The
loader deals its order out to the processes, so no sampler is needed.
"""

from __future__ import annotations

import shared
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from train import network

import headrace


def main() -> None:
    parser = shared.resumable(__doc__)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    data = shared.photographs(options)
    common = {"batch_size": options.batch_size, "num_workers": options.workers}
    # It was: loader = torch.utils.data.DataLoader(data, sampler=torch.utils.data.DistributedSampler(data), **common)
    loader = headrace.DataLoader(data, shuffle=True, **common, seed=0, distributed=True)
    torch.manual_seed(0)
    model = DistributedDataParallel(network(len(data.classes)))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    log, first = shared.Log(), 0
    if options.checkpoint and options.checkpoint.exists():
        saved = torch.load(options.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        loader.load_state_dict(saved["loader"])
        log, first = shared.Log(saved["taken"]), saved["loader"]["epoch"]
    main_process = dist.get_rank() == 0
    for _epoch in range(first, options.epochs):
        # Stock torch also needs here: loader.sampler.set_epoch(_epoch)
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            mean = loss.detach() / dist.get_world_size()
            dist.all_reduce(mean)
            log.step(mean, len(images) * dist.get_world_size(), quiet=not main_process)
            if options.checkpoint and main_process:  # any process's state of the loader is everybody's
                state = {"model": model.state_dict(), "optimiser": optimiser.state_dict()}
                shared.save({**state, "loader": loader.state_dict(), "taken": log.taken}, options.checkpoint)
            if log.taken == options.kill_after:
                dist.barrier()
                shared.end_suddenly()
    if main_process:
        log.end()
    # First: as the group's last owner, its reducer would wait for gloo's threads with the GIL held, while one of them
    # waits for the GIL to drop `mean` (torch 2.13; pytorch issue 190489).
    del model, optimiser
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
