"""`torch.stack`, `torch.cat` and `default_collate` of deferred and plain tensors give what torch's give."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from door_files import opened_jpeg
from PIL import Image
from torch.utils.data import IterableDataset, default_collate

import headrace
from headrace._loading.doors.tensors import joined_tensors
from headrace._loading.doors.tensors.deferred_tensor import recorded_in
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms.v2 import functional as F  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors")


def opened() -> torch.Tensor:
    made: torch.Tensor = F.pil_to_tensor(opened_jpeg())
    return made


def small() -> torch.Tensor:
    return F.to_dtype(F.resize(opened(), [8, 6]), torch.float32, scale=True)


PLAIN = torch.rand(3, 8, 6, generator=torch.Generator().manual_seed(0))
PARTS: dict[str, Callable[[], Any]] = {
    "deferred": small,
    "image": lambda: tv_tensors.Image(small()),
    "video": lambda: tv_tensors.Video(small()),
    "made": lambda: small().add_(1),
    "view": lambda: F.resize(opened(), [20, 20]).float()[:, 3:11, 2:8],
    "plain": lambda: PLAIN,
    "plain image": lambda: tv_tensors.Image(PLAIN),
    "channels last": lambda: PLAIN.permute(1, 2, 0).contiguous().permute(2, 0, 1),
    "with gradient": lambda: PLAIN.clone().requires_grad_(),
    "doubles": lambda: PLAIN.double(),
    "wider": lambda: torch.zeros(3, 8, 7),
    "no tensor": lambda: [1],
}
FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {"stack": torch.stack, "cat": torch.cat, "collate": default_collate}


def describe(function: Callable[[list[Any]], Any], names: tuple[str, ...]) -> Any:
    try:
        made = function([PARTS[name]() for name in names])
    except Exception as error:
        return type(error), str(error)
    if not isinstance(made, torch.Tensor):
        return repr(made)
    described = type(made) == tv_tensors.Image, made.dtype, made.stride(), made.requires_grad  # noqa: E721
    return *described, made.detach().as_subclass(torch.Tensor).tolist()


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("return_type", ["Tensor", "TVTensor"])
def test_joined_tensors_are_torchs(function: str, return_type: str) -> None:
    with tv_tensors.set_return_type(return_type):
        for names in [*itertools.product(PARTS, repeat=2), ("plain", "deferred", "image", "channels last")]:
            expected = describe(FUNCTIONS[function], names)
            with deferred_here(ImageCounts()):
                assert describe(FUNCTIONS[function], names) == expected, names


def test_plain_tensors_leave_the_others_deferred() -> None:
    """Each is made at its place: none has values of its own, and later changes of a plain one are not the batch's."""
    with deferred_here(ImageCounts()):
        parts = [small(), PLAIN.clone(), tv_tensors.Image(small())]
        made = torch.stack(parts)
        assert [recorded_in(one) is not None for one in parts] == [True, False, True]
    parts[1].zero_()
    assert torch.equal(made[1], PLAIN) and torch.equal(made[0], parts[0])


def test_the_batch_of_one_that_a_worker_makes_has_values() -> None:
    with deferred_here(ImageCounts()):
        made = joined_tensors.stack([small()])
    assert type(made) is torch.Tensor and torch.equal(made, torch.stack([small()]))


@dataclass
class OwnBatch:
    """What a `collate_fn` of a program returns."""

    images: torch.Tensor


def collate_to_own(samples: list[Any]) -> OwnBatch:
    return OwnBatch(torch.stack(samples))


class Stream(IterableDataset[torch.Tensor]):
    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[torch.Tensor]:
        yield F.resize(F.pil_to_tensor(Image.open(self.path)), [8, 6])


class StreamWithState(Stream):
    """Its batches travel with its state."""

    def state_dict(self) -> dict[str, int]:
        return {}

    def load_state_dict(self, state: dict[str, int]) -> None:
        pass


@pytest.mark.processes
@pytest.mark.parametrize("collate_fn", [None, collate_to_own], ids=["default", "own class"])
@pytest.mark.parametrize("stream", [Stream, StreamWithState])
def test_a_damaged_file_alone_raises_its_error(tmp_path: Path, stream: type[Stream], collate_fn: Any) -> None:
    """The error is the worker's, not that of the thread which sends the batch, where it would be lost."""
    path = tmp_path / "cut.jpg"
    opened_jpeg(size=(610, 470)).save(path, quality=90)
    path.write_bytes(path.read_bytes()[:3000])
    loader = headrace.DataLoader(stream(path), 1, num_workers=1, collate_fn=collate_fn, timeout=30)
    with pytest.raises(OSError, match="truncated"):
        list(loader)
    loader.close()
