"""v2's transforms of one deferred tensor, or of one image: what a program sees is what the library does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from door_files import opened_jpeg
from PIL import Image

from headrace._loading.doors.tensors import single_inputs
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import v2  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors")


class Doubled(v2.Transform):
    """Draws numbers and looks at what it gets, as transforms of a program do."""

    def __init__(self, refuses: bool = False) -> None:
        super().__init__()
        self.refuses = refuses
        self.seen: list[list[bool]] = []

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        self.seen.append([type(one) == torch.Tensor for one in flat_inputs])  # noqa: E721
        if self.refuses:
            raise ValueError(f"{len(flat_inputs)} inputs")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"by": len(flat_inputs) + float(torch.rand(()))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return v2.functional.adjust_brightness(inpt, params["by"])


class NoTensors(Doubled):
    _transformed_types = (Image.Image, tv_tensors.Image)


class NothingNeeded(Doubled):
    def _needs_transform_list(self, flat_inputs: list[Any]) -> list[bool]:
        return [False for _ in flat_inputs]


class Twice(v2.RandomHorizontalFlip):
    """Calls the `forward` that it overrides."""

    def forward(self, *inputs: Any) -> Any:
        return super().forward(super().forward(*inputs))


CHAINS: dict[str, Callable[[], Any]] = {
    "train": lambda: v2.Compose([v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), v2.RandomVerticalFlip()]),
    "own": lambda: v2.Compose([Doubled(), v2.RandomGrayscale(0.5), Doubled()]),
    "own, without tensors": lambda: v2.Compose([NoTensors(), v2.RandomHorizontalFlip(1.0)]),
    "own, unneeded": lambda: v2.Compose([NothingNeeded(), v2.RandomCrop(20)]),
    "a flip, twice": lambda: v2.Compose([Twice(0.7), v2.Resize(30)]),
    "several results": lambda: v2.Compose([v2.Resize(40), v2.FiveCrop(16)]),
    "whole values": lambda: v2.Compose(
        [v2.RandomZoomOut(p=0.5), v2.RandomErasing(p=0.0), v2.RandomPhotometricDistort()]
    ),
    "a class that is left alone": lambda: v2.Compose([v2.SanitizeBoundingBoxes(labels_getter=None), v2.CenterCrop(9)]),
    "refuses": lambda: Doubled(refuses=True),
    "refused by torchvision": lambda: v2.Compose([v2.RandomIoUCrop()]),
}
STARTS: dict[str, Callable[[], Any]] = {
    "tensor": lambda: v2.functional.pil_to_tensor(opened_jpeg()),
    "tv_tensor": lambda: v2.functional.to_image(opened_jpeg()),
    "image": opened_jpeg,
}


def run(transform: Any, image: Any) -> list[Any]:
    """What a program can see of some calls: classes and values, errors, what checks have seen, the random state."""
    seen: list[Any] = []
    torch.manual_seed(5)
    for _ in range(4):
        try:
            made = transform(image)
        except Exception as error:
            seen.append((repr(error), None))
            continue
        for one in made if isinstance(made, tuple) else (made,):
            values = one.tobytes() if isinstance(one, Image.Image) else one.as_subclass(torch.Tensor).tolist()
            seen.append((repr(type(one)), values))
    checked = [one.seen for one in transform.modules() if isinstance(one, Doubled)]
    steps = [one.seen for one in getattr(transform, "transforms", ()) if isinstance(one, Doubled)]
    return [*seen, checked, steps, torch.get_rng_state().tolist()]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("chain", CHAINS)
def test_calls_are_the_librarys(chain: str, start: str) -> None:
    expected = run(CHAINS[chain](), STARTS[start]())
    with deferred_here(ImageCounts()):
        assert run(CHAINS[chain](), STARTS[start]()) == expected


def test_a_changed_library_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another `forward` is not replaced, and nothing is left out where a part of it is the program's."""
    assert single_inputs.names_in(v2.Transform.forward.__code__) == single_inputs.FORWARD
    assert single_inputs._for_one({"other"}, randomly=False)(run) is run
    module = __import__("torchvision.transforms.v2._transform", fromlist=["check_type"])
    monkeypatch.setattr(module, "check_type", lambda one, types: False)
    with deferred_here(ImageCounts()):
        image = v2.functional.pil_to_tensor(opened_jpeg())
        assert v2.CenterCrop(9)(image) is image
