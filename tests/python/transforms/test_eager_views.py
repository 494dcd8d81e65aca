"""Views called directly: each transform on the same input, in order."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from PIL import Image

from headrace import transforms as T
from support import same


def image(size: tuple[int, int] = (40, 30)) -> Image.Image:
    return Image.radial_gradient("L").resize(size).convert("RGB")


def test_each_transform_gets_the_input_and_draws_in_order() -> None:
    crops = [T.Compose([T.RandomResizedCrop(size), T.RandomHorizontalFlip(), T.ToTensor()]) for size in (16, 24)]
    torch.manual_seed(4)
    made = T.Views(crops)(image())
    torch.manual_seed(4)
    assert type(made) is list
    assert same(made, [crop(image()) for crop in crops])
    assert [one.shape[-1] for one in made] == [16, 24]


def test_a_dict_makes_a_dict() -> None:
    views = T.Views({"small": T.Resize((8, 8)), "same": T.RandomHorizontalFlip(0.0)})
    made = views(image())
    assert list(made) == ["small", "same"]
    assert made["small"].size == (8, 8) and made["same"].size == (40, 30)


def test_several_arguments_go_to_each_transform() -> None:
    made = T.Views([T.Resize((8, 8)), T.RandomHorizontalFlip(0.0)])(image(), 3)
    assert [(one.size, label) for one, label in made] == [((8, 8), 3), ((40, 30), 3)]


def test_tensors_are_taken_as_by_the_transforms() -> None:
    pixels = torch.arange(27, dtype=torch.uint8).view(3, 3, 3)
    flipped, same_again = T.Views([T.RandomHorizontalFlip(1.0), T.RandomHorizontalFlip(0.0)])(pixels)
    assert torch.equal(flipped, pixels.flip(-1)) and torch.equal(same_again, pixels)


@pytest.mark.parametrize(
    ("transforms", "error", "words"),
    [
        ([], ValueError, "Pass at least one transform"),
        ({}, ValueError, "Pass at least one transform"),
        (T.ToTensor(), TypeError, "should be a sequence or a dict of callables"),
    ],
)
def test_what_is_refused(transforms: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        T.Views(transforms)


def test_repr_and_pickle() -> None:
    views = T.Views({"a": T.CenterCrop(3), "b": T.ToTensor()})
    shown = repr(views)
    assert "'a': CenterCrop" in shown and "'b': ToTensor" in shown
    assert repr(pickle.loads(pickle.dumps(views))) == shown
    assert "CenterCrop" in repr(T.Views([T.CenterCrop(3)]))
