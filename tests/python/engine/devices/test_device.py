"""The GPU path on the emulated device, beyond tests/contract: its decoders, messages, processes and lifetimes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from headrace import DataLoader, EncodedImages, VerificationError
from headrace import transforms as T
from headrace._lowering import lower
from headrace._reports.loader import verification
from support import (
    assert_same,
    blobs,
    eventually,
    output_of,
    pictures,
    recipe_of,
    silent_pillow,
    threads,
    threads_without_ours,
    train,
)


def emulated(dataset: Any, **arguments: Any) -> DataLoader:
    return DataLoader(dataset, device="emulated", **{"batch_size": 32, "num_workers": 2, "seed": 3} | arguments)


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_decoder_of_the_device(deterministic: bool) -> None:
    data = blobs(transform=train(32))
    ours = emulated(data, batch_size=5, decoder="hardware", deterministic=deterministic)
    assert_same(ours, DataLoader(data, 5, seed=3))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_damaged_file_costs_only_itself_on_the_devices_decoder(num_workers: int) -> None:
    data = list(pictures(24))
    damaged = bytearray(data[8])
    damaged[len(damaged) // 2 : len(damaged) // 2 + 60] = bytes(60)
    data[8] = bytes(damaged)
    broken = EncodedImages(data, list(range(24)), train(32))
    with silent_pillow():
        ours = list(emulated(broken, decoder="hardware", num_workers=num_workers, batch_size=6))
        assert_same(ours, list(DataLoader(broken, 6, seed=3)))  # Pillow conceals the damage, and so does headrace


def test_explain_names_the_device() -> None:
    text = str(emulated(blobs(transform=train(32))).explain())
    assert "emulated by threads of this machine" in text
    assert "the device's kernel" in text
    assert "device " not in str(DataLoader(blobs(transform=train(32))).explain())


def test_grey_levels_are_those_behind_the_elements() -> None:
    bytes_ = torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8)
    other = bytes_.clone()
    other[1, 2, 3, 4] = (int(other[1, 2, 3, 4]) + 100) % 256
    moved = abs(int(other[1, 2, 3, 4]) - int(bytes_[1, 2, 3, 4]))
    for recipe in (train(8), T.Compose([T.RandomResizedCrop(8), T.ToImage()])):
        lut = lower(recipe, dtype=None).lut
        a, b = (torch.stack([lut[c][one[:, c].long()] for c in range(3)], 1) for one in (bytes_, other))
        greatest, mean = verification.grey_levels_off(a, b, lut)
        assert greatest == moved and mean == pytest.approx(moved / bytes_.numel())


def spoil(monkeypatch: pytest.MonkeyPatch, lut: torch.Tensor, levels: int) -> None:
    """Makes one element of every batch that verify() sees wrong by `levels` grey levels."""

    def spoilt(batch: Any, device: torch.device) -> Any:
        images = batch[0].clone()
        byte = int((lut[1] == images[0, 1, 2, 3]).nonzero()[0])
        images[0, 1, 2, 3] = lut[1][byte + levels if byte < 128 else byte - levels]
        return [images, batch[1]]

    monkeypatch.setattr(verification, "move_tensors", spoilt)


def test_verify_bounds_what_nvjpeg_may_be_off_by(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = emulated(blobs(transform=train(32)), batch_size=6, decoder="hardware")
    assert loader.verify(2).greatest == 0
    spoil(monkeypatch, recipe_of(loader).lut, 4)
    report = loader.verify(2)
    assert report.greatest == 4 and report.mean == pytest.approx(4 / (6 * 3 * 32 * 32))
    assert "off by 4 grey levels at most, 0.000 on average" in str(report)
    with pytest.raises(VerificationError):
        emulated(blobs(transform=train(32)), batch_size=6, decoder="cpu").verify(1)
    spoil(monkeypatch, recipe_of(loader).lut, 5)
    with pytest.raises(VerificationError):
        loader.verify(2)


PRELUDE = """
import os
from headrace import DataLoader
from support import blobs, train
iterator = iter(DataLoader(blobs(transform=train(32)), 2, num_workers=2, device="emulated", decoder={decoder!r}))
next(iterator)
"""
FORK = """
child = os.fork()
if child == 0:
    del iterator
    for _ in DataLoader(blobs(transform=train(32)), 2, num_workers=1, device="emulated"):
        pass
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for _ in iterator:
    pass
"""


@pytest.mark.processes
@pytest.mark.parametrize("decoder", ["cpu", "hardware"])
@pytest.mark.parametrize("rest", ["", FORK], ids=["exit with a live iterator", "fork with a live iterator"])
def test_ends_of_processes(decoder: str, rest: str) -> None:
    # Python 3.12 warns of a fork with live threads, which is intended here.
    assert output_of(PRELUDE.format(decoder=decoder) + rest, "-W", "ignore::DeprecationWarning") == ""


@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["cpu", "hardware"])
def test_loaders_leave_nothing_behind(decoder: str) -> None:
    data = blobs(transform=train(32))
    before = threads_without_ours()
    for i in range(30):
        iterator = iter(emulated(data, batch_size=4, decoder=decoder))
        for _ in range(i % 4):
            next(iterator)
        del iterator
    assert eventually(lambda: threads() <= before)
