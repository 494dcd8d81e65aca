"""Loaders of samples of several fields deliver the oracle's batches, and torch's where nothing is random."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from stacks import COUNT, GEOMETRY, MASK, assert_equal, assert_two_epochs, encoded, everything, plain
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import StackDataset, Subset, random_split

from headrace import Columns, DataLoader, EncodedImages, Fields, ImageArray, ImageFiles
from headrace import transforms as T
from support import TENSOR, same, write_folder

RNG = np.random.default_rng(3)
STILL = T.Compose(
    [
        T.Resize(40),
        T.CenterCrop((30, 36)),
        T.RandomHorizontalFlip(1.0),
        T.Pad(3, padding_mode="reflect"),
        T.Pad(2, fill=5),
    ]
)


@pytest.mark.parametrize("batch_size", [5, None])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_equal_the_oracles_in_two_epochs(workers: int, batch_size: int | None) -> None:
    loader = DataLoader(everything(), batch_size, shuffle=True, seed=3, num_workers=workers)
    assert loader.native and loader.route == "native"
    _, second = assert_two_epochs(loader)
    if batch_size:
        assert all(torch.equal(one["mask"], one["indices"]) for one in second)


def test_batches_do_not_depend_on_the_number_of_threads() -> None:
    batches = [list(DataLoader(everything(), 5, True, seed=3, num_workers=n, persistent_workers=n > 0)) for n in (0, 2)]
    assert same(*batches)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_on_a_device(layout: torch.memory_format) -> None:
    loader = DataLoader(everything(), 5, True, seed=3, num_workers=2, device="emulated", memory_format=layout)
    for batch in loader:
        assert batch["image"][0].is_contiguous(memory_format=layout)
    loader.set_epoch(0)
    assert_equal(loader, list(loader.reference()))
    assert loader.verify().samples == 20


def fields_of_all_kinds() -> dict[str, Any]:
    files = encoded()
    return {
        "image": EncodedImages(files.images, [f"label {i}" for i in range(COUNT)], plain()),
        "gray": EncodedImages(files.images, transform=plain(16), mode="L"),
        "mask": EncodedImages(files.palette, transform=T.Compose([T.Resize((8, 8)), T.PILToTensor()]), mode="P"),
        "pixels": ImageArray(RNG.integers(0, 256, (COUNT, 9, 8, 3), np.uint8), range(COUNT), T.ToTensor()),
        "tokens": Columns({"a": RNG.integers(0, 99, (COUNT, 5)), "b": torch.rand(COUNT)}),
        "row": RNG.random((COUNT, 2, 3)).astype(np.float32),
        "scalar": RNG.random(COUNT),
        "tensor": torch.rand(COUNT, 3).to(torch.bfloat16),
        "not contiguous": RNG.integers(0, 99, (COUNT, 4, 6))[:, ::2, 1:],
        "flag": [i % 3 == 0 for i in range(COUNT)],
        "number": [i * 0.5 for i in range(COUNT)],
        "text": [f"text {i}" for i in range(COUNT)],
        "bytes": tuple(str(i).encode() for i in range(COUNT)),
        "pair": [(i, f"second {i}") for i in range(COUNT)],
        "nested": [{"a": i, "b": [i, "x"]} for i in range(COUNT)],
        "range": range(COUNT),
        "names": np.array([f"name {i}" for i in range(COUNT)], dtype=object),
    }


def positional(fields: dict[str, Any]) -> StackDataset[Any]:
    return StackDataset(*fields.values())


KINDS: dict[str, Callable[..., Any]] = {
    "samples": Fields,
    "stack of names": lambda fields: StackDataset(**fields),
    "stack": positional,
}


@pytest.mark.parametrize("batch_size", [5, None])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_without_random_numbers_batches_are_torchs(kind: str, workers: int, batch_size: int | None) -> None:
    data = KINDS[kind](fields_of_all_kinds())
    loader = DataLoader(data, batch_size, num_workers=workers)
    assert loader.native
    assert_equal(loader, TorchDataLoader(data, batch_size))
    loader.verify()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_still_geometry_makes_torchs_batches(workers: int) -> None:
    files = encoded()
    data = Fields(
        {
            "image": EncodedImages(files.images, [*range(COUNT)], T.Compose([*TENSOR])),
            "mask": EncodedImages(files.gray, transform=MASK, mode="L"),
            "indices": EncodedImages(
                files.palette, transform=T.Compose([T.PILToTensor(), T.ToDtype(torch.float32)]), mode="P"
            ),
            "gray": EncodedImages(files.images, transform=T.ToTensor(), mode="L"),
        },
        STILL,
        ["mask", "indices"],
    )
    loader = DataLoader(data, 5, num_workers=workers)
    assert loader.native
    assert_equal(loader, TorchDataLoader(data, 5))
    assert {5} <= {*next(iter(loader))["gray"].mul(255).round().int().unique().tolist()}


def test_torchvisions_geometry_is_native(T: ModuleType) -> None:
    data = everything()
    same_steps = T.Compose([T.RandomResizedCrop(32, antialias=True), T.RandomHorizontalFlip()])
    theirs = Fields(data.fields, same_steps, ["mask", "indices"])
    options: dict[str, Any] = {"batch_size": 6, "shuffle": True, "seed": 9, "num_workers": 2}
    loader = DataLoader(theirs, **options)
    assert loader.native
    assert_equal(loader, DataLoader(data, **options))


def test_random_choices_are_shared() -> None:
    files = encoded()
    flips = T.RandomChoice([T.RandomHorizontalFlip(1.0), T.RandomVerticalFlip(1.0)])
    geometry = T.Compose([T.RandomApply([T.RandomCrop(40, pad_if_needed=True)], 0.5), T.Resize((24, 24)), flips])
    fields = {
        name: EncodedImages(files.gray, transform=T.Compose([T.RandomErasing(0.0), T.PILToTensor()][1:]), mode=mode)
        for name, mode in (("a", "L"), ("b", "P"))
    }
    loader = DataLoader(Fields(fields, geometry, ["a", "b"]), 6, True, seed=2, num_workers=1)
    assert loader.native
    batches = list(loader)
    assert all(torch.equal(one["a"], one["b"]) for one in batches)
    loader.set_epoch(0)
    assert_equal(batches, loader.reference())


def test_files_resume_in_the_middle(tmp_path: Path) -> None:
    paths = sorted(write_folder(tmp_path).rglob("*.jpg"))
    masks = []
    for path in paths:
        with Image.open(path) as image:
            masks.append(path.with_suffix(".png"))
            Image.fromarray(RNG.integers(0, 9, image.size[::-1], np.uint8)).save(masks[-1])
    fields = {
        "image": ImageFiles(paths, transform=T.ToTensor()),
        "mask": ImageFiles(masks, transform=MASK, mode="L"),
        "label": [*range(len(paths))],
    }
    data = Fields(fields, GEOMETRY, ["mask"])
    options: dict[str, Any] = {"batch_size": 5, "shuffle": True, "seed": 4}
    whole = list(DataLoader(data, **options, num_workers=2))
    loader = DataLoader(data, **options, num_workers=1)
    iterator = iter(loader)
    assert_equal([next(iterator), next(iterator)], whole[:2])
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    again = DataLoader(data, **options)
    again.load_state_dict(state)
    assert_equal(again, whole[2:])
    fields["mask"] = ImageFiles(masks[::-1], transform=MASK, mode="L")
    with pytest.raises(ValueError, match="dataset"):
        DataLoader(Fields(fields, GEOMETRY, ["mask"]), **options).load_state_dict(state)
    fields["mask"] = ImageFiles(masks, transform=T.Compose([T.PILToTensor(), T.ToDtype(torch.float32)]), mode="L")
    with pytest.raises(ValueError, match="transforms"):
        DataLoader(Fields(fields, GEOMETRY, ["mask"]), **options).load_state_dict(state)


def test_plain_values_are_part_of_the_state() -> None:
    data: Any = [*range(COUNT)]
    state = DataLoader(Fields({"x": data}), 4).state_dict()
    DataLoader(Fields({"x": data}), 4).load_state_dict(state)
    for other in (Fields({"x": data[::-1]}), Fields({"y": data}), StackDataset(data)):
        with pytest.raises(ValueError, match="dataset"):
            DataLoader(other, 4).load_state_dict(state)


def test_subsets_are_native() -> None:
    data = everything()
    first, second = random_split(data, [15, COUNT - 15], torch.Generator().manual_seed(0))
    for part in (first, second, Subset(Subset(data, range(5, 20)), [3, 0, -1, 3]), Subset(data, [])):
        loader = DataLoader(part, 4, seed=1, num_workers=2)
        assert loader.native and len(loader._source) == len(part)
        assert_equal(loader, list(loader.reference()))
        loader.load_state_dict(loader.state_dict())
    still = Subset(Fields(fields_of_all_kinds()), [7, 3, 3])
    assert_equal(DataLoader(still, 2, num_workers=1), TorchDataLoader(still, 2))


def test_ranks_share_the_samples() -> None:
    ranks = [list(DataLoader(everything(), 4, True, seed=5, rank=r, world_size=2, num_workers=1)) for r in (0, 1)]
    whole = torch.cat([one["image"][1] for rank in ranks for one in rank])
    assert sorted(whole.tolist()) == [*range(COUNT)]


def test_values_alone_need_no_threads() -> None:
    data = Fields({"x": [*range(COUNT)], "y": ["a"] * COUNT})
    loader = DataLoader(data, 7, num_workers=2)
    assert loader.native and "nothing yet" in str(loader.stats())
    assert_equal(loader, TorchDataLoader(data, 7))


def square(image: Image.Image) -> Image.Image:
    return image.rotate(90 * int(torch.randint(4, (1,))))


@pytest.mark.parametrize("workers", [0, 2])
def test_steps_in_python(workers: int) -> None:
    files = encoded()
    fields = {
        "image": EncodedImages(files.images, transform=T.Compose([square, *TENSOR])),
        "mask": EncodedImages(files.gray, transform=T.Compose([square, T.PILToTensor()]), mode="L"),
    }
    loader = DataLoader(Fields(fields, GEOMETRY, ["mask"]), 5, True, seed=1, num_workers=workers)
    assert loader.native and "square" in str(loader.explain())
    assert_equal(loader, list(loader.reference()))


def test_masks_of_jpegs_in_gray() -> None:
    files = [data for data in encoded().images if Image.open(BytesIO(data)).mode == "L"]
    data = Fields(
        {"a": EncodedImages(files, transform=plain(), mode="L"), "b": EncodedImages(files, transform=plain(), mode="P")}
    )
    loader = DataLoader(data, 2, num_workers=1)
    assert loader.native and len(data) == 2
    assert_equal(loader, TorchDataLoader(data, 2))
    list(loader)
    assert {one.name: one.items for one in loader.stats().stages}["pillow"] == 2  # of mode P alone
