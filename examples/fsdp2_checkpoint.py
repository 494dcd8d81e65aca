"""Trains a model whose parameters are sharded (FSDP2), and saves model, optimiser and loader by one call (DCP).

    torchrun --nproc-per-node 2 examples/fsdp2_checkpoint.py [FOLDER] [--epochs 2] [--checkpoint FOLDER]

Killed and started again, also with another number of processes, it goes on with the very next batch. As in torchtitan,
everything that has state_dict() and load_state_dict() goes into one dict that torch.distributed.checkpoint saves. The
one line that differs from stock torch is marked.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import shared
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from train import network

import headrace


class Training:
    """The model and its optimiser, as DCP saves and loads them: each process its own shards."""

    def __init__(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        self._model, self._optimiser = model, optimiser

    def state_dict(self) -> dict[str, Any]:
        model, optimiser = get_state_dict(self._model, self._optimiser)
        return {"model": model, "optimiser": optimiser}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Puts what DCP has loaded into the model and the optimiser."""
        set_state_dict(
            self._model,
            self._optimiser,
            model_state_dict=state["model"],
            optim_state_dict=state["optimiser"],
        )


def newest(folder: Path) -> Path | None:
    """The last checkpoint that is whole: DCP writes .metadata at its end."""
    whole = [path.parent for path in folder.glob("step-*/.metadata")]
    return max(whole, key=lambda path: int(path.name.removeprefix("step-")), default=None)


def main() -> None:
    options = shared.resumable(__doc__).parse_args()
    dist.init_process_group("gloo")
    data = shared.photographs(options)
    common = {"batch_size": options.batch_size, "num_workers": options.workers}
    # It was: loader = torch.utils.data.DataLoader(data, sampler=torch.utils.data.DistributedSampler(data), **common)
    loader = headrace.DataLoader(data, shuffle=True, **common, seed=0, distributed=True)
    torch.manual_seed(0)
    model = network(len(data.classes))
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    log = shared.Log()
    saved: dict[str, Any] = {"training": Training(model, optimiser), "loader": loader, "log": log}
    found = newest(options.checkpoint) if options.checkpoint else None
    first = 0
    if found is not None:
        dcp.load(saved, checkpoint_id=found)
        first = loader.state_dict()["epoch"]
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
            if options.checkpoint:
                before = newest(options.checkpoint) if main_process else None
                dcp.save(saved, checkpoint_id=options.checkpoint / f"step-{log.taken}")
                if before is not None:
                    shutil.rmtree(before)
            if log.taken == options.kill_after:
                dist.barrier()
                shared.end_suddenly()
    if main_process:
        log.end()
    del model, optimiser, saved
    shared.leave_group()


if __name__ == "__main__":
    main()
