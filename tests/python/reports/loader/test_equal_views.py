"""``explain()`` of several views: those of one transform are described once, without the numbers of draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headrace import DataLoader, EncodedImages, Fields
from headrace import transforms as T
from headrace._reports.loader.equal_views import equal_views, without_draws
from support import pictures


def view(size: int = 32, degrees: float = 10, blur: float = 0.5) -> T.Compose:
    return T.Compose(
        [
            T.RandomResizedCrop(size, scale=(0.2, 1.0)),
            T.RandomHorizontalFlip(0.5),
            T.RandomRotation(degrees),
            T.RandomApply([T.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8),
            T.RandomApply([T.GaussianBlur(5)], blur),
            T.ToTensor(),
        ]
    )


def loader_of(transform: Any) -> DataLoader:
    return DataLoader(EncodedImages(pictures(4), transform=transform), 2, num_workers=1)


def parts(transform: Any, **options: Any) -> list[str]:
    loader = loader_of(transform)
    assert loader.native
    return [line.part for line in loader.explain(**options).lines]


def outputs(transform: Any, **options: Any) -> list[str]:
    return [part.removeprefix("output, ") for part in parts(transform, **options) if part.startswith("output")]


def test_equal_views_are_described_once() -> None:
    several = T.Views([view(48), view(48, blur=0.1), *(view(24) for _ in range(8))])
    found = parts(several)
    assert outputs(several) == ["view 1", "view 2", "views 3 to 10 (one transform)"]
    assert "views 3 to 10: ToTensor()" in found
    assert not any(part.startswith(f"view {number}:") for part in found for number in range(3, 11))
    assert len([part for part in found if part.startswith("view")]) == 3 * 6 + 1


def test_verbose_describes_each_with_its_draws() -> None:
    several = T.Views([view(), view(), view()])
    assert outputs(several) == ["views 1 to 3 (one transform)"]
    assert outputs(several, verbose=True) == ["view 1", "view 2", "view 3"]
    loader = loader_of(several)
    assert "draw=" not in str(loader.explain())
    text = str(loader.explain(verbose=True))
    assert "draw=22" in text and text.count("RandomHorizontalFlip(p=0.5)") == 3


@pytest.mark.parametrize(
    "others",
    [{"degrees": 30}, {"blur": 0.1}, {"size": 31}],
    ids=["the range of a draw", "a probability", "a size"],
)
def test_views_that_differ_in_anything_have_lines_of_their_own(others: dict[str, Any]) -> None:
    assert outputs(T.Views([view(), view(**others)])) == ["view 1", "view 2"]


def test_transforms_that_do_not_say_all_differ_by_their_draws() -> None:
    several = T.Views([view(degrees=5), view(degrees=5), view(degrees=60)])
    recipe: Any = loader_of(several).recipe()
    silent = replace(recipe, views=tuple(replace(one, names=()) for one in recipe.views))
    assert [group.views for group in equal_views(silent)] == [[0, 1], [2]]


@pytest.mark.parametrize(
    "how, shown",
    [
        ("native HorizontalFlip(p=0.5, draw=22)", "native HorizontalFlip(p=0.5)"),
        ("native with p=0.8 [Brightness(draw=3) | Hue(draw=4)]", "native with p=0.8 [Brightness | Hue]"),
        ("native Sharpness(draw=Constant(value=2.0))", "native Sharpness(2.0)"),
        ("native Blur(draw=7, radius=Drawn(column=8))", "native Blur(radius=drawn)"),
        ("native nothing drawn", "native nothing drawn"),
    ],
)
def test_numbers_of_draws_are_left_out(how: str, shown: str) -> None:
    assert without_draws(how) == shown


@pytest.mark.parametrize(
    "one, other",
    [
        (T.RandomAffine(10, (0.1, 0.1)), T.RandomAffine(10, (0.1, 0.2))),
        (T.RandomPerspective(0.5), T.RandomPerspective(0.4)),
        (T.RandAugment(), T.RandAugment(magnitude=5)),
        (T.TrivialAugmentWide(), T.AutoAugment()),
        (T.GaussianBlur(5, (0.1, 2.0)), T.GaussianBlur(5, (0.1, 1.0))),
        (T.RandomAdjustSharpness(2), T.RandomAdjustSharpness(3)),
        (T.RandomCrop(16, 2), T.RandomCrop(16, 3)),
    ],
)
def test_columns_of_every_kind_are_compared(one: Any, other: Any) -> None:
    views = [T.Compose([T.RandomResizedCrop(32), step, T.ToTensor()]) for step in (one, one, other)]
    assert outputs(T.Views(views)) == ["views 1 and 2 (one transform)", "view 3"]
    assert "draw=" not in str(loader_of(T.Views(views)).explain())


def test_labels() -> None:
    a, b = view(24), view(32)
    assert outputs(T.Views([a, b, a, b, a])) == ["views 1, 3 and 5 (one transform)", "views 2 and 4 (one transform)"]
    assert outputs(T.Views([a, a, a, b, a])) == ["views 1 to 3 and 5 (one transform)", "view 4"]
    named = {"g": a, "h": a, "small": b}
    assert outputs(T.Views(named)) == ["views 'g' and 'h' (one transform)", "view 'small'"]
    assert outputs(T.Views([a])) == ["view 1"]


def test_steps_before_the_views() -> None:
    plain = T.Compose([T.ToTensor()])
    found = parts(T.Compose([T.RandomHorizontalFlip(0.5), T.Resize((8, 8)), T.Views([plain, plain])]))
    assert found.count("RandomHorizontalFlip(p=0.5)") == 1 and "views 1 and 2: ToTensor()" in found


def test_crops_at_different_places_are_not_one_transform() -> None:
    assert outputs(T.Compose([T.Resize((32, 32)), T.FiveCrop(16), T.ToTensor()])) == [f"view {n}" for n in range(1, 6)]


def test_fields_take_verbose() -> None:
    image = EncodedImages(pictures(4), transform=T.Views([view(), view()]))
    loader = DataLoader(Fields({"image": image}), 2, num_workers=1)
    assert loader.native
    assert "views 1 and 2 (one transform)" in str(loader.explain())
    assert "draw=" in str(loader.explain(verbose=True))


def test_a_loader_of_torch_takes_verbose() -> None:
    numbers: Any = list(range(4))
    loader: DataLoader = DataLoader(numbers, 2)
    assert str(loader.explain(verbose=True)) == str(loader.explain())
