"""The GPU path on the emulated device: the oracle's batches, the CPU's behaviour; and what is said where no GPU is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from headrace import Blobs, DataLoader, ImageFiles, SampleError, VerificationError
from headrace import transforms as T
from headrace.engine import target as targets
from headrace.insight import verification
from headrace.lowering import lower
from headrace.ops import device_ops
from headrace.ops import functions as ops
from headrace.recipe.recipe import DTYPES
from headrace.recipe.steps import FILTERS
from support import (
    MEAN,
    STD,
    TENSOR,
    assert_same,
    blobs,
    evaluation,
    eventually,
    output_of,
    pictures,
    silent_pillow,
    threads,
    threads_without_ours,
    train,
    truncated,
)

SMALL = 200_000  # bytes: the emulation takes seconds for images of many megapixels


def emulated(dataset: Any, **arguments: Any) -> DataLoader:
    return DataLoader(dataset, device="emulated", **{"batch_size": 32, "num_workers": 2, "seed": 3} | arguments)


def dataset(files: list[Path], transform: Any) -> ImageFiles:
    return ImageFiles(files, range(len(files)), transform)


def test_every_file_in_training(files):
    ours = emulated(dataset(files, train(64)), shuffle=True)
    with silent_pillow():
        assert assert_same(ours, list(ours.reference())) == -(-len(files) // 32)


def test_every_file_in_evaluation(files):
    small = T.Compose([T.Resize(72), T.CenterCrop(64), *TENSOR])
    with silent_pillow():
        ours = emulated(dataset(files, small))
        assert_same(ours, list(ours.reference()))


def test_a_recipe_of_usual_size(photographs):
    for recipe in (train(), evaluation()):
        ours = emulated(dataset(photographs, recipe))
        assert_same(ours, list(ours.reference()))


@pytest.fixture(scope="module")
def mixture(files) -> list[Path]:
    small = [path for path in files if path.stat().st_size < SMALL and "jpegdec" not in path.name]
    return small[:: -(-len(small) // 40)]


@pytest.mark.parametrize("filter", FILTERS)
def test_every_filter_and_both_orders_of_passes(mixture, filter):
    mode = T.InterpolationMode(filter)
    with silent_pillow():
        for recipe in (train(40, filter), T.Compose([T.Resize((37, 50), mode), T.RandomCrop(33, padding=4), *TENSOR])):
            ours = emulated(dataset(mixture, recipe))
            assert_same(ours, list(ours.reference()))


PADDED = [T.RandomCrop(80, padding=(5, 17, 9, 2), padding_mode=mode, fill=(1, 2, 250)) for mode in ("constant", "edge")]
PADDED += [T.RandomCrop((70, 90), padding=12, padding_mode=mode) for mode in ("reflect", "symmetric")]
PADDED += [T.RandomCrop(64, padding=200)]


@pytest.mark.parametrize(
    "steps",
    [
        *([T.Resize(75), step] for step in PADDED),
        [T.Grayscale(3), T.RandomResizedCrop((33, 65)), T.RandomVerticalFlip()],
        [T.RandomVerticalFlip(1.0), T.RandomHorizontalFlip(0.3), T.Resize((61, 32))],
        [T.CenterCrop(100)],
        [T.Resize((90, 20)), T.CenterCrop((90, 90)), T.Resize(31)],  # two resizes: the CPU does them
    ],
    ids=repr,
)
def test_every_other_step(mixture, steps):
    with silent_pillow():
        ours = emulated(dataset(mixture, T.Compose([*steps, *TENSOR])))
        assert_same(ours, list(ours.reference()))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
def test_every_dtype_and_layout(dtype, memory_format):
    steps = [T.ToTensor(), T.ToDtype(dtype)] if dtype.is_floating_point else [T.ToImage()]
    for channels in (1, 3):
        gray = [T.Grayscale()] if channels == 1 else []
        recipe = T.Compose([T.RandomResizedCrop(50), *gray, T.RandomHorizontalFlip(), *steps])
        ours = emulated(blobs(transform=recipe), memory_format=memory_format, batch_size=7)
        assert_same(ours, ours.reference())
        assert next(iter(ours))[0].is_contiguous(memory_format=memory_format)


@pytest.mark.parametrize("threads", [0, 1, 7])
def test_every_number_of_threads(threads):
    data = blobs(transform=train(32))
    expected = list(DataLoader(data, 5, shuffle=True, seed=9))
    assert_same(emulated(data, batch_size=5, shuffle=True, seed=9, num_workers=threads), expected)


def test_verify_compares_with_the_oracle():
    report = emulated(blobs(transform=train(32)), batch_size=6).verify(2)
    assert report.batches == 2


def test_batches_that_are_kept_do_not_change():
    data = blobs(transform=train(32))
    loader = emulated(data, batch_size=3)
    kept = [batch for _ in range(4) for batch in loader]
    fresh = DataLoader(data, 3, seed=3)
    again = [batch for _ in range(4) for batch in fresh]
    assert_same(kept, again)


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_decoder_of_the_device(deterministic):
    data = blobs(transform=train(32))
    ours = emulated(data, batch_size=5, decoder="hardware", deterministic=deterministic)
    assert_same(ours, DataLoader(data, 5, seed=3))


def test_break_and_begin_again():
    data = blobs(transform=train(32))
    loader = emulated(data, batch_size=3)
    first = [batch for batch, _ in zip(loader, range(2), strict=False)]
    second = list(loader)
    cpu = DataLoader(data, 3, seed=3)
    assert_same(first, list(cpu)[:2])
    assert_same(second, cpu)


def test_two_loaders_at_once():
    data = blobs(transform=train(32))
    for a, b in zip(emulated(data, batch_size=5), emulated(data, batch_size=5), strict=True):
        assert_same([a], [b])


@pytest.fixture
def some_broken(tmp_path, photographs) -> ImageFiles:
    paths = list(photographs[:6])
    for place in (1, 4):
        broken = tmp_path / f"{place}.jpg"
        broken.write_bytes(paths[place].read_bytes()[:3000])
        paths[place] = broken
    return ImageFiles(paths, range(6), train(32))


@pytest.mark.parametrize("on_error", ["skip", "replace"])
@pytest.mark.filterwarnings("ignore:epoch 0. 2 samples could not be made")
def test_bad_samples_are_skipped_or_replaced(some_broken, on_error):
    ours = emulated(some_broken, batch_size=3, on_error=on_error)
    expected = DataLoader(some_broken, 3, seed=3, on_error=on_error)
    assert_same(list(ours), list(expected))
    assert len(ours.errors) == 2


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_damaged_file_costs_only_itself_on_the_devices_decoder(num_workers):
    data = list(pictures(24))
    damaged = bytearray(data[8])
    damaged[len(damaged) // 2 : len(damaged) // 2 + 60] = bytes(60)
    data[8] = bytes(damaged)
    broken = Blobs(data, list(range(24)), train(32))
    with silent_pillow():
        ours = list(emulated(broken, decoder="hardware", num_workers=num_workers, batch_size=6))
        assert_same(ours, list(DataLoader(broken, 6, seed=3)))  # Pillow conceals the damage, and so do we


def test_a_batch_that_is_dropped_gives_its_memory_back_in_order():
    data = blobs(transform=train(32))
    data.blobs[5] = truncated(data.blobs[5])
    loader = emulated(data, batch_size=6)
    iterator = iter(loader)
    with pytest.raises(SampleError):
        next(iterator)
    assert_same([next(iterator)], list(emulated(blobs(transform=train(32)), batch_size=6))[1:2])


def test_a_bad_sample_raises(some_broken):
    loader = iter(emulated(some_broken, batch_size=1))
    next(loader)
    with pytest.raises(SampleError, match=r"1\.jpg"):
        next(loader)
    next(loader)


def test_explain_names_the_device():
    text = str(emulated(blobs(transform=train(32))).explain())
    assert "emulated by threads of this machine" in text
    assert "the device's kernel" in text
    assert "device " not in str(DataLoader(blobs(transform=train(32))).explain())


def test_stats_count_the_samples():
    loader = emulated(blobs(transform=train(32)), batch_size=4)
    for _ in loader:
        pass
    stages = {stage.name: stage.items for stage in loader.stats().stages}
    assert stages["read"] == len(loader.dataset)


def test_ops_on_a_device(photographs):
    encoded = [path.read_bytes() for path in photographs[:8]] + [pictures()[3]]  # a PNG
    images = ops.decode_jpeg(encoded, device="emulated")
    for ours, theirs in zip(images, ops.decode_jpeg(encoded), strict=True):
        assert torch.equal(ours, theirs)
    emulation = device_ops.of(targets.resolve("emulated", "cpu"))
    boxes = [(i, 2 * i, 20 + 4 * i, 90 - 4 * i) for i in range(len(images))]
    flips = [i % 2 == 0 for i in range(len(images))]
    for memory_format in (torch.contiguous_format, torch.channels_last):
        options = {"flips": flips, "interpolation": "bicubic", "memory_format": memory_format}
        expected = ops.resize_normalize(images, boxes, (64, 48), MEAN, STD, **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ops, "_on_gpu", lambda _: emulation)
            ours = ops.resize_normalize(images, boxes, (64, 48), MEAN, STD, **options)
        assert torch.equal(ours, expected) and ours.stride() == expected.stride()


def test_grey_levels_are_those_behind_the_elements():
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
    """Every batch that verify() sees has one element that is off by so many grey levels."""

    def spoilt(batch: Any, device: torch.device) -> Any:
        images = batch[0].clone()
        byte = int((lut[1] == images[0, 1, 2, 3]).nonzero()[0])
        images[0, 1, 2, 3] = lut[1][byte + levels if byte < 128 else byte - levels]
        return [images, batch[1]]

    monkeypatch.setattr(verification, "moved", spoilt)


def test_verify_bounds_what_nvjpeg_may_be_off_by(monkeypatch):
    loader = emulated(blobs(transform=train(32)), batch_size=6, decoder="hardware")
    assert loader.verify(2).greatest == 0
    spoil(monkeypatch, loader.recipe().lut, 4)
    report = loader.verify(2)
    assert report.greatest == 4 and report.mean == pytest.approx(4 / (6 * 3 * 32 * 32))
    assert "off by 4 grey levels at most, 0.000 on average" in str(report)
    with pytest.raises(VerificationError):
        emulated(blobs(transform=train(32)), batch_size=6, decoder="cpu").verify(1)
    spoil(monkeypatch, loader.recipe().lut, 5)
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


@pytest.mark.parametrize("decoder", ["cpu", "hardware"])
@pytest.mark.parametrize("rest", ["", FORK], ids=["exit with a live iterator", "fork with a live iterator"])
def test_ends_of_processes(decoder, rest):
    # Python 3.12 warns of forks beside threads, which is what is tried.
    assert output_of(PRELUDE.format(decoder=decoder) + rest, "-W", "ignore::DeprecationWarning") == ""


@pytest.mark.parametrize("decoder", ["cpu", "hardware"])
def test_loaders_leave_nothing_behind(decoder):
    data = blobs(transform=train(32))
    before = threads_without_ours()
    for i in range(30):
        iterator = iter(emulated(data, batch_size=4, decoder=decoder))
        for _ in range(i % 4):
            next(iterator)
        del iterator
    assert eventually(lambda: threads() <= before)
