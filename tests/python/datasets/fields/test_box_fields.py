"""Fields with boxes: batches equal torchvision's on the same draws, and the oracle's; what is refused."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from io import BytesIO
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
import torch
from PIL import Image
from stacks import COUNT, GEOMETRY, MASK, assert_equal, assert_two_epochs, encoded
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import StackDataset, Subset, default_collate

from headrace import Boxes, DataLoader, EncodedImages, Fields, LoweringError, SampleError
from headrace import transforms as T
from headrace._recipe.draws.draws import Draws
from headrace._recipe.object_boxes.object_values import ObjectTensor
from support import TENSOR, same, truncated
from torchvision_feed import Feeder

JITTER = T.Compose([T.RandomVerticalFlip(), T.ColorJitter(0.3, 0.3), *TENSOR])


def given(dtype: torch.dtype = torch.float32) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Boxes XYXY within the images or across their border, from none to four, and their labels."""
    rng = np.random.default_rng(5)
    boxes, labels = [], []
    for data in encoded().images:
        with Image.open(BytesIO(data)) as image:
            edges = np.array([*image.size] * 2)
        corner = rng.uniform(-0.2, 0.9, (int(rng.integers(0, 5)), 2))
        around = np.concatenate([corner, corner + rng.uniform(0, 0.6, corner.shape)], 1)
        boxes.append(torch.from_numpy(around * edges).to(dtype))
        labels.append(torch.from_numpy(rng.integers(0, 90, len(corner))))
    return boxes, labels


def detection(geometry: Any = GEOMETRY, transform: Any = JITTER, **options: Any) -> Fields:
    """Images with boxes, labels, areas and masks."""
    files = encoded()
    boxes, labels = given()
    options = {"labels": ["labels", "areas"], "sanitize": True, **options}
    fields = {
        "image": EncodedImages(files.images, [*range(COUNT)], transform),
        "mask": EncodedImages(files.palette, transform=MASK, mode="P"),
        "boxes": Boxes(boxes, **options),
        "labels": labels,
        "areas": [[float(n) for n in range(len(one))] for one in labels],
        "number": [*range(COUNT)],
    }
    return Fields(fields, geometry, ["mask"])


def without(batches: list[Any], *names: str) -> list[Any]:
    return [{name: value for name, value in one.items() if name not in names} for one in batches]


@pytest.mark.parametrize("batch_size", [5, None])
@pytest.mark.parametrize("workers", [0, 2, 4])
def test_batches_equal_the_oracles_in_two_epochs(workers: int, batch_size: int | None) -> None:
    loader = DataLoader(detection(), batch_size, shuffle=True, seed=3, num_workers=workers)
    assert loader.native
    first, _ = assert_two_epochs(loader)
    if batch_size:
        assert all(type(one[name]) is list for one in first for name in ("boxes", "labels", "areas"))
        assert all(type(boxes) is torch.Tensor for one in loader for boxes in one["boxes"])
    assert loader.verify().samples > 0


@pytest.mark.parametrize("format", ["XYXY", "XYWH", "CXCYWH"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_batches_are_those_of_torchvisions_transforms(
    format: str, dtype: torch.dtype, torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    v2, tv_tensors = torchvision.transforms.v2, torchvision.tv_tensors
    geometry = [v2.RandomZoomOut(side_range=(1.0, 2.0)), v2.RandomResizedCrop((48, 64)), v2.RandomHorizontalFlip()]
    end = [v2.ColorJitter(0.3, 0.2), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    boxes, labels = given(dtype)
    boxes = [v2.functional.convert_bounding_box_format(one, old_format="XYXY", new_format=format) for one in boxes]
    fields = {
        "image": EncodedImages(encoded().images, transform=v2.Compose(end)),
        "boxes": Boxes(boxes, format, labels=["labels"], clamp=True, sanitize=True, min_size=2, min_area=8),
        "labels": labels,
        "index": [*range(COUNT)],
    }
    loader = DataLoader(Fields(fields, v2.Compose(geometry)), 6, True, seed=7, num_workers=2)
    assert loader.native
    batches = list(loader)
    route: Any = loader._route
    recipe, draws = route.recipes["image"], Draws(route.draws, 7)
    feeder = Feeder(monkeypatch)
    sanitize = v2.SanitizeBoundingBoxes(2, 8, labels_getter=lambda sample: sample[2])
    removed = 0
    for batch in batches:
        for place, index in enumerate(batch["index"].tolist()):
            image = Image.open(BytesIO(encoded().images[index])).convert("RGB")
            canvas = (image.height, image.width)
            sample = [image, tv_tensors.BoundingBoxes(boxes[index], format=format, canvas_size=canvas), labels[index]]
            drawn = draws.batch(0, [index], [0])[0][route.columns["image"]].tolist()
            for leaf, step in zip([*geometry, *end], [*recipe.steps, None, None], strict=True):
                feeder.torch.feed(step, drawn, leaf)
                sample = leaf(sample)
            theirs = sanitize(v2.ClampBoundingBoxes()(sample))
            removed += len(boxes[index]) - len(theirs[1])
            assert torch.equal(batch["image"][place], theirs[0].as_subclass(torch.Tensor))
            assert same(batch["boxes"][place], theirs[1].as_subclass(torch.Tensor))
            assert same(batch["labels"][place], theirs[2])
    assert removed > 5 and sum(map(len, boxes)) > removed


def test_boxes_change_nothing_of_the_other_fields() -> None:
    data = detection()
    fields = {name: one for name, one in data.fields.items() if name not in ("boxes", "labels", "areas")}
    options: dict[str, Any] = {"batch_size": 5, "shuffle": True, "seed": 2, "num_workers": 2}
    alone = list(DataLoader(Fields(fields, GEOMETRY, ["mask"]), **options))
    beside = list(DataLoader(data, **options))
    assert same(without(beside, "boxes", "labels", "areas"), alone)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_on_a_device(layout: torch.memory_format) -> None:
    pytest.importorskip("headrace._gpu")
    loader = DataLoader(detection(), 5, True, seed=3, num_workers=2, device="emulated", memory_format=layout)
    assert_equal(loader, list(loader.reference()))


def test_files_resume_in_the_middle() -> None:
    options: dict[str, Any] = {"batch_size": 5, "shuffle": True, "seed": 4}
    whole = list(DataLoader(detection(), **options, num_workers=2))
    loader = DataLoader(detection(), **options, num_workers=1)
    iterator = iter(loader)
    assert_equal([next(iterator), next(iterator)], whole[:2])
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    again = DataLoader(detection(), **options)
    again.load_state_dict(state)
    assert_equal(again, whole[2:])
    for other in ({"sanitize": False}, {"format": "XYWH"}, {"labels": ["labels"]}):
        with pytest.raises(ValueError, match="dataset"):
            DataLoader(detection(**other), **options).load_state_dict(state)


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
@pytest.mark.parametrize("workers", [0, 2])
def test_broken_images(workers: int, on_error: Any) -> None:
    images = [truncated(data) if i in (2, 3, 11) else data for i, data in enumerate(encoded().images)]
    boxes, labels = given()
    fields = {
        "image": EncodedImages(images, transform=JITTER),
        "boxes": Boxes(boxes, labels=["labels"], sanitize=True),
        "labels": labels,
        "number": [*range(COUNT)],
    }
    loader = DataLoader(Fields(fields, GEOMETRY), 4, num_workers=workers, on_error=on_error, seed=1)
    if on_error == "raise":
        with pytest.raises(SampleError, match="sample 2 "):
            list(loader)
        return
    expected = list(loader.reference())
    with pytest.warns(UserWarning, match="3 samples could not be made"):
        assert_equal(loader, expected)
    assert [len(one["boxes"]) for one in expected][:3] == ([2, 4, 3] if on_error == "skip" else [4, 4, 4])


def test_subsets_and_a_collate_fn_of_ones_own() -> None:
    data = detection()
    part = Subset(Subset(data, range(5, 20)), [3, 0, -1, 3])
    loader = DataLoader(part, 2, seed=1, num_workers=2)
    assert loader.native
    assert_equal(loader, list(loader.reference()))

    def pairs(samples: list[Any]) -> Any:
        assert all(type(one["boxes"]) is type(one["labels"]) is ObjectTensor for one in samples)
        return default_collate([one["image"][0] for one in samples]), [one["boxes"] * 2 for one in samples]

    loader = DataLoader(data, 5, True, seed=1, num_workers=2, collate_fn=pairs)
    assert loader.native
    assert_equal(loader, list(loader.reference()))
    loader = DataLoader(data, 5, True, seed=1, num_workers=2, collate_fn=lambda samples: default_collate(samples))
    assert_equal(loader, DataLoader(data, 5, True, seed=1))


def test_samples_by_plain_python_and_torchs_loader() -> None:
    data = detection(T.Compose([T.Resize((40, 50)), T.RandomHorizontalFlip(1.0)]), T.Compose([*TENSOR]))
    ours = list(DataLoader(data, 5, num_workers=1))
    assert_equal(ours, TorchDataLoader(data, 5))
    torch.manual_seed(0)
    twin = pickle.loads(pickle.dumps(copy.deepcopy(detection())))
    drawn = [twin[7], twin[7]]
    torch.manual_seed(0)
    assert same([detection()[7], detection()[7]], drawn) and not same(*drawn)
    assert type(drawn[0]["boxes"]) is ObjectTensor and type(drawn[0]["boxes"] + 1) is torch.Tensor
    with pytest.raises(IndexError):
        twin[COUNT]


def test_steps_of_the_image_alone_and_drawn_sizes_with_a_mask() -> None:
    transform = T.Compose([T.RandomPhotometricDistort(), T.ScaleJitter((40, 60)), T.RandomCrop(48, pad_if_needed=True)])
    boxes, _ = given()
    images = EncodedImages(encoded().images, transform=T.Compose([transform, *TENSOR]))
    loader = DataLoader(Fields({"image": images, "boxes": Boxes(boxes, out_format="CXCYWH")}), 5, True, seed=1)
    assert_equal(loader, list(loader.reference()))
    zoom = T.Compose([T.RandomZoomOut(side_range=(1, 2)), T.RandomShortestSize([50, 60]), T.CenterCrop(40)])
    loader = DataLoader(detection(zoom), 5, True, seed=1, num_workers=2)
    assert loader.native
    assert_equal(loader, list(loader.reference()))


def test_reports_name_the_boxes() -> None:
    loader = DataLoader(detection(), 6, True, seed=1, num_workers=2)
    text = str(loader.explain())
    for words in (
        r"24 samples, XYXY, sanitized (min_size=1, min_area=1)); they follow image in the consumer's thread",
        "labels: labels",
        "one entry for each of the boxes, removed with them",
    ):
        assert words in text
    assert repr(detection().fields["boxes"]).startswith("Boxes(")


def test_a_batch_and_the_dataset_share_no_memory() -> None:
    boxes, labels = given()
    data = detection()
    batch = next(iter(DataLoader(data, 8)))
    for values in (*batch["boxes"], *batch["labels"]):
        values.fill_(-1)
    assert same(list(data.fields["boxes"]), [one.as_subclass(ObjectTensor) for one in boxes])
    assert same(data.fields["labels"], labels)


def image(transform: Any = JITTER) -> EncodedImages:
    return EncodedImages(encoded().images, transform=transform)


BOXES, LABELS = given()


def boxed(values: Any = BOXES, images: Any = None, **options: Any) -> Fields:
    return Fields({"image": images or image(), "boxes": Boxes(values, **options), "labels": LABELS})


ROTATED = T.Compose([T.RandomRotation(20), T.CenterCrop(20), *TENSOR])
REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "a format": (lambda: Boxes(BOXES, "XYXYXYXY"), ValueError, "format must be one of XYXY, XYWH, CXCYWH, not 'XYXYX"),
    "a mode": (lambda: Boxes(BOXES, clamping_mode="auto"), ValueError, "clamping_mode must be 'soft', 'hard' or None"),
    "a size": (lambda: Boxes(BOXES, sanitize=True, min_size=0), ValueError, "min_size must be >= 1, got 0"),
    "a size alone": (lambda: Boxes(BOXES, min_area=4), ValueError, "which boxes sanitize=True removes; give that, too"),
    "lists": (
        lambda: Boxes(cast(Any, [[1, 2, 3, 4]])),
        TypeError,
        r"boxes of sample 0 are a list; give .*reshape\(-1, 4\)",
    ),
    "a shape": (lambda: Boxes([torch.zeros(0)]), ValueError, r"sample 0 have shape \(0,\) instead of \(k, 4\)"),
    "dtypes": (
        lambda: Boxes([torch.zeros(1, 4), np.zeros((0, 4))]),
        ValueError,
        r"boxes of sample 1 are torch.float64 \(k, 4\), but those of sample 0 torch.float32 \(k, 4\); make them alike",
    ),
    "half": (lambda: Boxes([torch.zeros(1, 4).half()]), TypeError, "boxes must be of float32, .* not torch.float16"),
    "one name": (lambda: Boxes(BOXES, labels="labels"), TypeError, "a list of names, not one name: 'labels'"),
    "no image": (
        lambda: Fields({"boxes": Boxes(BOXES)}),
        ValueError,
        "follows one image, but those of the fields are none; name it as image=",
    ),
    "two images": (
        lambda: Fields({"a": image(), "b": image(), "boxes": Boxes(BOXES)}),
        ValueError,
        "field 'boxes' follows one image, but those of the fields are a, b; name it as image=",
    ),
    "another image": (lambda: boxed(image="labels"), ValueError, "follows 'labels', which is no image field; .* image"),
    "other labels": (lambda: boxed(labels=["kinds"]), ValueError, "labels of 'boxes' names 'kinds', which is no field"),
    "an image as label": (lambda: boxed(labels=["image"]), ValueError, "names 'image'; give a list with one array"),
    "labels that are short": (
        lambda: boxed([torch.zeros(3, 4)] * COUNT, labels=["labels"]),
        ValueError,
        r"field 'labels' has \d entries in sample \d+, but 'boxes' has 3 boxes",
    ),
    "samples": (lambda: boxed(BOXES[1:]), ValueError, "field 'boxes' has 23 samples"),
    "a rotation": (
        lambda: boxed(images=image(ROTATED)),
        TypeError,
        "field 'boxes' follows 'image': boxes cannot follow RandomRotate",
    ),
    "no tensor": (lambda: boxed(images=image(None)), TypeError, "field 'image': the dataset has no transform"),
    "views": (
        lambda: boxed(images=image(T.Views([JITTER, JITTER]))),
        TypeError,
        "boxes cannot follow several views of an image|sizes vary",
    ),
    "an unknown field": (
        lambda: Fields({"image": image(), "boxes": Boxes(BOXES), "x": torch.utils.data.TensorDataset(torch.ones(24))}),
        TypeError,
        "field 'x': headrace does not know .* Boxes need fields that headrace knows",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    make, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        make()


def test_torchvisions_boxes_bring_their_format(torchvision: ModuleType) -> None:
    tv_tensors = torchvision.tv_tensors
    one = tv_tensors.BoundingBoxes([[1, 2, 3, 4]], format="XYWH", canvas_size=(9, 9))
    made = Boxes([one], tv_tensors.BoundingBoxFormat.XYWH)
    assert type(made.objects.values) is torch.Tensor and made[0].tolist() == [[1, 2, 3, 4]]
    with pytest.raises(ValueError, match="are tv_tensors of format XYWH, but format='XYXY'"):
        Boxes([one])


def test_a_changed_transform_and_a_stack_are_torchs() -> None:
    data = boxed(images=(images := image(T.Compose([T.Resize((20, 20)), *TENSOR]))), labels=["labels"])
    loader = DataLoader(data, 4)
    assert loader.native
    images.transform = ROTATED
    with pytest.raises((TypeError, LoweringError), match="boxes cannot follow RandomRotate"):
        list(loader)
    assert not loader.native
    stack = StackDataset(image=image(T.Compose([T.Resize((20, 20)), *TENSOR])), boxes=Boxes(BOXES))
    loader = DataLoader(stack, 4)
    assert not loader.native and "Boxes follow an image in headrace.Fields alone" in str(loader.explain())
    assert [tuple(one.shape) for one in next(iter(loader))["boxes"]] == [tuple(one.shape) for one in BOXES[:4]]
