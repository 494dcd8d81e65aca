"""What a Views is lowered to, and why one is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from headrace import DataLoader
from headrace import transforms as T
from headrace._lowering import LoweringError, lower
from headrace._recipe.steps.steps import RandomResizedCrop
from support import TENSOR, blobs, train


def draws_of(step: Any) -> set[int]:
    assert isinstance(step, RandomResizedCrop)
    return set(range(step.draw, step.draw + 22))


def test_each_view_has_columns_of_its_own() -> None:
    recipe = lower(T.Views([train(32), train(16)]))
    first, second = recipe.views
    assert (first.height, second.height) == (32, 16)
    assert first.columns == second.columns == recipe.columns
    assert len(recipe.columns) == 2 * len(lower(train(32)).columns)
    assert not draws_of(first.steps[0]) & draws_of(second.steps[0])
    assert first.steps == lower(train(32)).steps  # the first view draws what its transform alone draws


def test_common_steps_draw_once() -> None:
    common = T.RandomResizedCrop(64)
    recipe = lower(T.Compose([common, T.Views([T.Compose([T.RandomCrop(24), *TENSOR]), T.ToTensor()])]))
    first, second = recipe.views
    assert first.steps[0] == second.steps[0]
    assert len(recipe.columns) == 22 + 2
    assert [name.split("(")[0] for name, _ in recipe.names] == [
        "RandomResizedCrop",
        "view 1: RandomCrop",
        "view 1: ToTensor",
        "view 1: Normalize",
        "view 2: ToTensor",
    ]


def test_common_steps_may_make_the_tensor() -> None:
    common = [T.Resize((40, 40)), *TENSOR]
    recipe = lower(T.Compose([*common, T.Views([T.RandomErasing(), T.RandomHorizontalFlip()])]))
    assert [len(view.steps) for view in recipe.views] == [2, 2]
    assert recipe.views[0].erased is not None and recipe.views[1].erased is None
    assert all(torch.equal(view.lut, lower(T.Compose(common)).lut) for view in recipe.views)


def test_views_may_differ_in_all_that_a_recipe_has() -> None:
    recipe = lower(
        T.Views({"gray": T.Compose([T.Resize((9, 8)), T.Grayscale(), T.PILToTensor()]), "colour": train(16)})
    )
    assert recipe.view_names == ("gray", "colour")
    assert [(view.channels, view.dtype) for view in recipe.views] == [(1, torch.uint8), (3, torch.float32)]
    both = lower(T.Views([train(8), train(16)]), dtype=torch.bfloat16)
    assert [view.dtype for view in both.views] == [torch.bfloat16] * 2


def test_recipes_differ_with_any_view() -> None:
    def of(*sizes: int) -> Any:
        return lower(T.Views([train(size) for size in sizes]))

    assert of(8, 16) == of(8, 16) and of(8, 16).fingerprint() == of(8, 16).fingerprint()
    assert of(8, 16) != of(8, 15) and of(8, 16).fingerprint() != of(8, 15).fingerprint()
    named = [lower(T.Views({name: train(8)})).fingerprint() for name in "ab"]
    assert len({*named, of(8).fingerprint(), lower(train(8)).fingerprint()}) == 4
    other = T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.ToTensor()])
    mapped = lower(T.Views([train(8), other]))
    assert mapped == of(8, 16) and not mapped.maps_bytes_as(of(8, 16))


OWN = T.Compose([T.RandomResizedCrop(8), lambda image: image, T.ToTensor()])
REFUSED = {
    "a step in Python": (T.Views([train(8), OWN]), r"^Views: view 2: step 2, .*no native twin; views are native only"),
    "a common step in Python": (T.Compose([lambda image: image, T.Views([train(8)])]), "^Views: step 1, .*no native"),
    "no tensor": (T.Views([T.Resize((8, 8))]), "^Views: view 1: no step makes a tensor"),
    "no common size": (T.Views({"a": T.ToTensor()}), "^Views: view 'a': the images' sizes vary"),
    "not last": (T.Compose([T.Views([T.CenterCrop(8)]), T.ToTensor()]), "must be the last step"),
    "twice": (T.Compose([T.Views([train(8)]), T.Views([train(8)])]), "must be the last step"),
    "inside itself": (T.Views([T.Views([train(8)])]), "^Views: view 1: step 1, .*no native twin"),
    "after ByAspectRatio": (
        T.Compose([T.ByAspectRatio({(8, 8): T.CenterCrop(8)}), T.Views([T.ToTensor()])]),
        "not follow ByAspectRatio",
    ),
    "a policy": (T.Views([T.ByAspectRatio({(8, 8): train(8)})]), "^Views: view 1: step 1, .*no native twin"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_native_is_torchs_with_a_reason(name: str) -> None:
    transform, words = REFUSED[name]
    with pytest.raises(LoweringError, match=words):
        lower(transform)


def test_hooks_are_not_skipped() -> None:
    views = T.Views([train(8)])
    views.register_forward_hook(lambda module, inputs, output: output)
    with pytest.raises(LoweringError, match="forward hooks"):
        lower(views)


def test_a_subclass_is_not_taken_for_views() -> None:
    class Reversed(T.Views):
        def forward(self, *inputs: Any) -> Any:
            made: Any = super().forward(*inputs)
            return made[::-1]

    assert not DataLoader(blobs(4, Reversed([train(8), train(16)]))).native


def test_torch_delivers_what_is_refused() -> None:
    own = T.Compose([T.CenterCrop(8), nn.Identity(), lambda image: image, T.ToTensor()])
    dataset = blobs(6, T.Views([T.Compose([T.CenterCrop(16), T.ToTensor()]), own]))
    loader = DataLoader(dataset, 3)
    assert not loader.native and "Views: view 2: step 3" in str(loader.explain())
    for number, (views, labels) in enumerate(loader):
        assert [tuple(one.shape) for one in views] == [(3, 3, 16, 16), (3, 3, 8, 8)]
        assert torch.equal(views[1][0], dataset[3 * number][0][1]) and labels[0] == 3 * number


def test_explain_lists_each_view() -> None:
    text = str(DataLoader(blobs(6, T.Views([train(8), train(16)])), 3).explain())
    assert "2, one decode for all" in text
    assert "output, view 1" in text and "(3, 8, 8)" in text and "(3, 16, 16)" in text
    assert "view 2: RandomResizedCrop" in text
