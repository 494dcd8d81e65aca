"""Programs that use Accelerate, each run in its own process: Accelerate keeps its state in classes."""

from __future__ import annotations

import textwrap
from pathlib import Path

from trainers import finish, fork, needs

# 42 samples: the last batch is not full.
BEGIN = """
import sys, torch
import headrace
from headrace import DataLoader, ImageFolder, transforms
from torch.utils.data import Subset
recipe = transforms.Compose([transforms.RandomResizedCrop(16), transforms.ToTensor()])
images = ImageFolder(sys.argv[1], recipe)
dataset = headrace.ImageFiles([path for path, _ in images.samples[:42]], list(range(42)), recipe)
def loader_of(data=dataset, **more):
    return DataLoader(data, **{"batch_size": 4, "shuffle": True, "num_workers": 1, "seed": 3, **more})
def labels_of(batches):
    return [batch[1].tolist() for batch in batches]
def same(ours, theirs):
    ours, theirs = list(ours), list(theirs)
    assert len(ours) == len(theirs) and ours
    for a, b in zip(ours, theirs):
        assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
"""
# Without it, gloo's threads abort a process at its end at times (see `leave_group` of examples/shared.py).
END = """
import torch.distributed as dist
if dist.is_initialized():
    dist.barrier()
    dist.destroy_process_group()
"""


def run(folder: Path, tmp_path: Path, program: str, ranks: int = 1) -> list[str]:
    """Runs BEGIN, `program` and END, and returns the lines that it prints."""
    needs("accelerate")
    path = tmp_path / "program.py"
    path.write_text(BEGIN + textwrap.dedent(program) + END)
    return finish(fork("accelerate", path, folder, ranks=ranks))
