"""Lightning rebuilds a loader with every argument; states follow the conventions of torchdata and of torch."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from accelerate_programs import BEGIN
from headrace import DataLoader
from headrace._loading.integrations.loader_handoff import remake_loader
from trainers import finish, fork, needs

pytestmark = pytest.mark.trainers

ANEW = """
from torchvision_shim import import_torchvision
import importlib.util
if importlib.util.find_spec("torchvision"):
    import_torchvision()
from lightning.pytorch.utilities.data import _update_dataloader
out = lambda batch: batch
more = dict(num_workers=2, drop_last=True, timeout=30, prefetch_factor=3, persistent_workers=True, in_order=False,
            device="emulated", decoder="cpu", deterministic=True, dtype=torch.bfloat16,
            memory_format=torch.channels_last, on_error="skip", max_errors=7, out_transform=out, batch_size=4, seed=3)
loader = DataLoader(dataset, **more)
again = _update_dataloader(loader, loader.sampler)
assert type(again) is DataLoader and again is not loader and again.sampler is loader.sampler
for name, value in more.items():
    assert getattr(again, name) == value == getattr(loader, name), name
loader.in_order = again.in_order = True  # batches are compared one by one
for epoch in range(2):
    same(loader, again)
from headrace.sampler import DistributedSampler
dealt = _update_dataloader(loader, DistributedSampler(dataset, 2, 1, seed=3))
assert dealt.in_order
for epoch in range(2):
    dealt.sampler.set_epoch(epoch)  # as Lightning does before an epoch
    ours = [label for _, labels in dealt for label in labels.tolist()]
    theirs = DataLoader(dataset, 4, shuffle=True, seed=3, rank=1, world_size=2, drop_last=True)
    theirs.set_epoch(epoch)
    assert ours == [label for _, labels in theirs for label in labels.tolist()]
"""


def test_lightning_keeps_every_argument(folder: Path, tmp_path: Path) -> None:
    needs("lightning")
    program = tmp_path / "program.py"
    program.write_text(BEGIN.replace("from accelerate", "# from accelerate") + ANEW)
    finish(fork("lightning", program, folder))


def test_every_argument_is_an_attribute(folder: Path) -> None:
    from headrace import ImageFolder, transforms

    steps = transforms.Compose([transforms.RandomResizedCrop(16), transforms.ToTensor()])
    more: dict[str, Any] = {"seed": 1, "device": "emulated", "decoder": "cpu", "deterministic": True}
    loader = DataLoader(ImageFolder(folder, steps), 4, shuffle=True, **more)
    names = set(inspect.signature(DataLoader.__init__).parameters) - {"self", "shuffle", "rank", "world_size"}
    assert [name for name in names if not hasattr(loader, name)] == []
    again = remake_loader(loader, batch_sampler=loader.batch_sampler)
    assert {name: getattr(again, name) for name in more} == more


def test_distributed_checkpoint_saves_and_loads_the_loader(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        BEGIN.replace("from accelerate", "# from accelerate")
        + f"""
import warnings
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.stateful import Stateful
warnings.simplefilter("ignore")
whole = labels_of(loader_of())
one = loader_of()
assert isinstance(one, Stateful)
batches = iter(one)
taken = [next(batches)[1].tolist() for _ in range(4)]
dcp.save({{"loader": one}}, checkpoint_id={str(tmp_path / "saved")!r})
other = loader_of(num_workers=0)
dcp.load({{"loader": other}}, checkpoint_id={str(tmp_path / "saved")!r})
assert taken + labels_of(other) == whole
"""
    )
    finish(fork("torch", program, folder))


def test_torchdatas_way_of_saving_is_ours(folder: Path, tmp_path: Path) -> None:
    needs("torchdata")
    program = tmp_path / "program.py"
    program.write_text(
        BEGIN.replace("from accelerate", "# from accelerate")
        + """
from torchdata.stateful_dataloader import StatefulDataLoader
def resumed(make, taken):
    one = make()
    batches = iter(one)
    seen = [next(batches)[1].tolist() for _ in range(taken)]
    state = one.state_dict()
    other = make()
    other.load_state_dict(state)
    return seen + labels_of(other), labels_of(other)
theirs = lambda: StatefulDataLoader(dataset, batch_size=4)
for taken in (1, 5, 10, 11):
    assert resumed(theirs, taken) == resumed(lambda: loader_of(shuffle=False), taken)
"""
    )
    finish(fork("torch", program, folder))
