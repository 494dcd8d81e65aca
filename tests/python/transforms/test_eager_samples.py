"""headrace.transforms on whole samples change the parts that torchvision v2 changes, with the same draws."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from eager import both, image_of, made
from PIL import Image

import headrace.transforms as H

Pair = namedtuple("Pair", "image label")


def pil(seed: int = 0) -> Image.Image:
    return image_of("RGB", seed=seed)


def floats(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(1))


PICTURES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "arguments": lambda: (pil(), 3),
    "a tuple": lambda: ((pil(), 3),),
    "a list": lambda: ([pil(), "name"],),
    "a dict": lambda: ({"label": torch.tensor(3), "image": pil(), "name": "n"},),
    "nested": lambda: ({"a": [pil(), (1, 2)], "b": OrderedDict(x=pil(2), y=None)}, 4.5),
    "a named tuple": lambda: (Pair(pil(), torch.tensor(1)),),
    "two images": lambda: (pil(), pil(1)),
    "an image before a tensor": lambda: (pil(), floats(3, 17, 23)),
    "an image behind a tensor": lambda: (torch.tensor([1, 2, 3]), pil()),
    "an image and an array": lambda: (pil(), np.arange(6).reshape(2, 3)),
    "images of two sizes": lambda: (pil(), image_of("RGB", 19, 18)),
    "images of two modes": lambda: (pil(), image_of("L")),
    "an array": lambda: (np.arange(60, dtype=np.uint8).reshape(4, 5, 3), 1),
    "a flat array": lambda: (np.arange(20, dtype=np.uint8).reshape(4, 5), 1),
    "an array of four dimensions": lambda: (np.zeros((1, 2, 3, 4), np.uint8), 1),
    "a number": lambda: (3,),
    "a name": lambda: ("x", None),
    "an empty list": lambda: ([],),
    "nothing": lambda: (),
}
TENSORS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "a tensor": lambda: (floats(3, 17, 23),),
    "two tensors": lambda: (floats(3, 17, 23), floats(3, 17, 23)),
    "a batch": lambda: (floats(2, 3, 17, 23), 5),
    "a tensor of two dimensions": lambda: (floats(17, 23), 5),
    "a tensor of one dimension": lambda: (floats(17), 5),
    "bytes": lambda: ((floats(3, 17, 23) * 255).to(torch.uint8), 5),
    "a label before the image": lambda: ({"label": torch.tensor([1, 2]), "image": floats(3, 17, 23)},),
}
ON_PICTURES = [
    "Resize((9, 8))",
    "CenterCrop(9)",
    "Pad(2, {PIL.Image: 5, 'others': 7})",
    "RandomCrop(9)",
    "RandomCrop(9, 2, fill=7)",
    "RandomResizedCrop(9)",
    "Grayscale()",
    "RandomGrayscale(0.5)",
    "ColorJitter(0.4, 0.4, 0.4, 0.1)",
    "RandomInvert()",
    "RandomPosterize(3)",
    "RandomSolarize(9)",
    "RandomAutocontrast()",
    "RandomEqualize()",
    "RandomAdjustSharpness(2)",
    "RandomChannelPermutation()",
    "RandomPhotometricDistort()",
    "RandAugment()",
    "AutoAugment()",
    "GaussianBlur(3)",
    "RandomRotation(30, expand=True, fill=5)",
    "RandomAffine(9, (0.1, 0.2))",
    "RandomPerspective()",
    "Compose([Resize((9, 9)), ToImage(), ToDtype(torch.float32, True), Normalize([0.5], [0.5]), RandomErasing(1.0)])",
    "Compose([Resize((9, 9)), ToTensor(), Normalize([0.5], [0.5]), RandomErasing(1.0)])",
    "RandomApply([RandomHorizontalFlip(), Pad(2)])",
    "RandomChoice([RandomHorizontalFlip(1.0), Pad(2)])",
    "RandomOrder([RandomHorizontalFlip(1.0), Pad(2), RandomCrop(5)])",
]
ON_BOTH = [
    "RandomHorizontalFlip(1.0)",
    "RandomVerticalFlip()",
    "ToTensor()",
    "PILToTensor()",
    "ToImage()",
    "ToPureTensor()",
    "ToDtype(torch.float32, True)",
    "ToDtype(torch.uint8, True)",
    "ToDtype({torch.Tensor: torch.float16, 'others': None}, True)",
    "ToDtype({torch.Tensor: torch.float16})",
    "Normalize([0.5], [0.5])",
    "RandomErasing(1.0)",
    "RandomErasing(0.5, value='random')",
    "Compose([ToImage(), ToDtype({tv.Image: torch.float64, 'others': torch.float16})])",
    "Compose([ToImage(), ToDtype({torch.Tensor: torch.float64, 'others': None})])",
    "Compose([ToImage(), ToDtype({tv.Mask: torch.int64})])",
    "Compose([ToImage(), ToImage(), RandomVerticalFlip(1.0)])",
    "Compose([ToImage(), RandomHorizontalFlip(1.0), ToPureTensor(), RandomHorizontalFlip(1.0)])",
    "Compose([ToImage(), keep, RandomHorizontalFlip(1.0)])",
    "Compose([ToImage(), doubled, RandomHorizontalFlip(1.0)])",
]


def keep(*sample: Any) -> Any:
    """A user's step that returns the sample unchanged."""
    return sample if len(sample) > 1 else sample[0]


def doubled(*sample: Any) -> Any:
    """A user's step: a torch operation on an image returns a plain tensor."""
    return keep(*[2 * part if isinstance(part, torch.Tensor) else part for part in sample])


def assert_alike(torchvision: ModuleType, call: str, samples: dict[str, Callable[[], tuple[Any, ...]]]) -> None:
    ours, theirs = both(torchvision, call, keep=keep, doubled=doubled)
    for name, sample in samples.items():
        for seed in range(3):
            assert made(ours, *sample(), seed=seed) == made(theirs, *sample(), seed=seed), (name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("call", [*ON_PICTURES, *ON_BOTH])
def test_pictures(torchvision: ModuleType, call: str) -> None:
    assert_alike(torchvision, call, PICTURES)


@pytest.mark.parametrize("call", ON_BOTH)
def test_tensors(torchvision: ModuleType, call: str) -> None:
    assert_alike(torchvision, call, TENSORS)


@pytest.mark.parametrize("call", ON_BOTH)
def test_tv_tensors(torchvision: ModuleType, call: str) -> None:
    tv = torchvision.tv_tensors
    mask = floats(17, 23) > 0.5
    samples = {
        "an image": lambda: (tv.Image(floats(3, 17, 23)), floats(3, 17, 23)),
        "images behind a tensor": lambda: (floats(3), tv.Image(floats(3, 17, 23)), tv.Image(floats(3, 17, 23))),
        "a video": lambda: (tv.Video(floats(2, 3, 17, 23)), floats(3)),
        "a mask": lambda: ({"mask": tv.Mask(mask), "image": tv.Image(floats(3, 17, 23))},),
    }
    assert_alike(torchvision, call, samples)


@pytest.mark.parametrize("call", [call for call in ON_BOTH if "Flip" not in call])
def test_boxes_and_points_stay_where_no_pixel_moves(torchvision: ModuleType, call: str) -> None:
    tv = torchvision.tv_tensors
    samples = {
        "boxes": lambda: (pil(), tv.BoundingBoxes([[1, 2, 3, 4]], format="XYXY", canvas_size=(17, 23))),
        "points": lambda: (tv.Image(floats(3, 17, 23)), tv.KeyPoints([[1, 2]], canvas_size=(17, 23))),
    }
    assert_alike(torchvision, call, samples)


@pytest.mark.parametrize("call", [call for call in ON_PICTURES if call.startswith(("Gray", "Color", "Gauss"))])
def test_colours_pass_masks_and_boxes(torchvision: ModuleType, call: str) -> None:
    tv = torchvision.tv_tensors
    boxes = tv.BoundingBoxes([[1, 2, 3, 4]], format="XYXY", canvas_size=(17, 23))
    assert_alike(torchvision, call, {"all": lambda: (pil(), tv.Mask(floats(17, 23) > 0.5), boxes)})


MOVES = [
    *("Resize(9)", "CenterCrop(9)", "Pad(1)", "RandomCrop(9)", "RandomResizedCrop(9)"),
    *("RandomRotation(9)", "RandomAffine(9)", "RandomPerspective()"),
]


@pytest.mark.parametrize(
    ("call", "part"),
    [(call, part) for call in MOVES for part in ("Mask", "BoundingBoxes", "KeyPoints", "Video")]
    + [
        (call, part)
        for call in ("RandomHorizontalFlip()", "RandomVerticalFlip(0.0)")
        for part in ("BoundingBoxes", "KeyPoints")
    ]
    + [(call, "Video") for call in ("ColorJitter(0.1)", "GaussianBlur(3)", "RandomInvert(0.0)")],
)
def test_what_would_be_left_behind_is_refused_in_one_sentence(torchvision: ModuleType, call: str, part: str) -> None:
    tv = torchvision.tv_tensors
    parts = {
        "Mask": tv.Mask(floats(17, 23) > 0.5),
        "BoundingBoxes": tv.BoundingBoxes([[1, 2, 3, 4]], format="XYXY", canvas_size=(17, 23)),
        "KeyPoints": tv.KeyPoints([[1, 2]], canvas_size=(17, 23)),
        "Video": tv.Video(floats(2, 3, 17, 23)),
    }
    name = call.split("(")[0]
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with pytest.raises(
        TypeError, match=rf"^headrace.transforms.{name} cannot change a {part}, .*use torchvision.transforms.v2.{name},"
    ) as raised:
        eval(call, vars(H))({"image": pil(), "part": parts[part]})
    assert len(str(raised.value).splitlines()) == 1
    assert torch.equal(torch.get_rng_state(), before)  # refused before any draw


@pytest.mark.parametrize("call", [*MOVES, "ColorJitter(0.1)", "GaussianBlur(3)", "RandomInvert(0.0)", "Grayscale()"])
def test_tv_images_are_refused_where_tensors_are(torchvision: ModuleType, call: str) -> None:
    name = call.split("(")[0]
    with pytest.raises(TypeError, match=rf"Got .*tv_tensors.*put {name} before .*, or use torchvision.transforms.v2"):
        eval(call, vars(H))(torchvision.tv_tensors.Image(floats(3, 17, 23)), 3)


def test_by_aspect_ratio_takes_samples() -> None:
    by_ratio = H.ByAspectRatio({(8, 16): H.ResizedCenterCrop((8, 16)), (16, 8): H.ResizedCenterCrop((16, 8))})
    image, label = by_ratio(pil(), 3)
    assert image.size == (16, 8) and label == 3
    assert by_ratio({"image": image_of("RGB", 10, 30)})["image"].size == (8, 16)
    with pytest.raises(TypeError, match="No image"):
        by_ratio(3)
    with pytest.raises(TypeError, match=r"put ResizedCenterCrop before the step that makes a tensor$"):
        H.ResizedCenterCrop(8)(floats(3, 9, 9))


def test_an_image_of_to_image_is_a_plain_tensor_of_the_same_memory() -> None:
    tensor = floats(3, 4, 5)
    image = H.ToImage()(tensor)
    assert type(image) is torch.Tensor and image is not tensor and image.data_ptr() == tensor.data_ptr()
    first, second = H.Compose([H.ToImage(), H.RandomHorizontalFlip(1.0)])(pil(), pil())
    assert torch.equal(first, second)
    assert torch.equal(H.RandomHorizontalFlip(1.0)(tensor, tensor)[1], tensor)  # only the first pure tensor is flipped


def test_a_transform_of_ones_own_is_written_as_for_torchvision(torchvision: ModuleType) -> None:
    def brighter(base: type) -> Any:
        class Brighter(base):
            def make_params(self, flat_inputs: Any) -> Any:
                return {"by": int(torch.randint(0, 50, ()))}

            def transform(self, inpt: Any, params: Any) -> Any:
                return inpt.point(lambda value: value + params["by"])

        return Brighter()

    ours, theirs = brighter(H.Transform), brighter(torchvision.transforms.v2.Transform)
    sample = [pil(), 3, pil(1)]
    assert made(ours, sample, seed=5) == made(theirs, sample, seed=5)
