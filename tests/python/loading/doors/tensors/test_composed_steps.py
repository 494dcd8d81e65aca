"""Transforms of v2's `Compose` that are recorded together: what a program sees is what the library does."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import numpy as np
import pytest
import torch
from door_files import opened_jpeg
from torch.nn.modules import module as nn_module

from headrace._loading.doors.tensors import composed_steps, memory_layout, pixel_snapshots, recording
from headrace._loading.doors.tensors.deferred_tensor import DeferredTensor
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from headrace.pillow.to_tensor_patches import Later
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import transforms, tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import v2  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors")

MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.3, 0.25]
FLOATS = v2.ToDtype(torch.float32, scale=True)


def train(**more: Any) -> list[Any]:
    crop = v2.RandomResizedCrop((24, 31), **more)
    return [crop, v2.RandomHorizontalFlip(), v2.RandomVerticalFlip(0.4), FLOATS, v2.Normalize(MEAN, STD)]


def hooked(add: str) -> list[Any]:
    steps = train()
    steps[1] = v2.RandomHorizontalFlip(1.0)
    given = [lambda module, inputs: (inputs[0] // 2,), lambda module, inputs, output: output.flip(-2)]
    getattr(steps[1], add)(given[add == "register_forward_hook"])
    return steps


def with_method(name: str, at: int) -> list[Any]:
    """Steps of which one has a method of its own, which calls its class's and counts."""
    steps = train()
    plain = getattr(type(steps[at]), name)

    def counted(self: Any, *arguments: Any) -> Any:
        self.calls = getattr(self, "calls", 0) + 1
        return plain(self, *arguments)

    setattr(steps[at], name, MethodType(counted, steps[at]))
    return steps


class Half(v2.Normalize):
    """A class of a program."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt * 0.5


class Changing(v2.Transform):
    """Looks at the pixels, and changes the step after it."""

    def __init__(self, later: v2.Normalize) -> None:
        super().__init__()
        self.later = later

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        self.later.mean[0] += 0.25
        return inpt


class Growing(v2.Transform):
    """Adds a step to the Compose that calls it."""

    def __init__(self, steps: list[Any]) -> None:
        super().__init__()
        self.steps = steps

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        self.steps.append(v2.RandomVerticalFlip(1.0))
        return inpt


class Unhashable(type(v2.Transform)):  # type: ignore[misc]
    def __eq__(cls, other: object) -> bool:
        return cls is other

    __hash__ = None  # type: ignore[assignment]


class Odd(v2.RandomVerticalFlip, metaclass=Unhashable):
    pass


def growing() -> list[Any]:
    steps: list[Any] = [v2.RandomHorizontalFlip(1.0)]
    steps.append(Growing(steps))
    return steps


CHAINS: dict[str, Callable[[], list[Any]]] = {
    "train": train,
    "without antialias": lambda: train(antialias=False),  # whose resize is torch's
    "nearest": lambda: train(interpolation=v2.InterpolationMode.NEAREST),
    "bicubic": lambda: train(interpolation=v2.InterpolationMode.BICUBIC),
    "whole image": lambda: train(scale=(1.0, 1.0), ratio=(9.0, 9.0)),
    "floats first": lambda: [FLOATS, v2.Normalize(MEAN, STD), v2.RandomResizedCrop(20), v2.RandomHorizontalFlip(1.0)],
    "values alone": lambda: [FLOATS, v2.Normalize([0.5], [0.5]), v2.ToDtype(torch.float16)],
    "no floats": lambda: [v2.Normalize(MEAN, STD)],
    "same type": lambda: [v2.ToDtype(torch.uint8), v2.RandomHorizontalFlip(0.0), v2.ToDtype(torch.uint8, scale=True)],
    "nothing changes": lambda: [v2.RandomHorizontalFlip(0.0), v2.RandomVerticalFlip(0.0)],
    "types by class": lambda: [v2.ToDtype({tv_tensors.Image: torch.float32, "others": torch.float64})],
    "in place": lambda: [FLOATS, v2.Normalize(MEAN, STD, inplace=True), v2.RandomHorizontalFlip(1.0)],
    "tensors for numbers": lambda: [FLOATS, v2.Normalize(torch.tensor(MEAN), torch.tensor(STD))],
    "division by zero": lambda: [FLOATS, v2.Normalize(MEAN, [0.0, 0.3, 0.2])],
    "four numbers": lambda: [FLOATS, v2.Normalize([*MEAN, 0.5], [*STD, 0.5])],
    "a class of the program": lambda: [*train()[:-1], Half(MEAN, STD)],
    "other steps between": lambda: [v2.RandomHorizontalFlip(), v2.ColorJitter(0.4), *train(), v2.RandomErasing(1.0)],
    "a step for a step": lambda: [*train()[:3], v2.RandomApply([v2.RandomVerticalFlip(1.0)], 0.5), *train()[3:]],
    "Compose in Compose": lambda: [v2.Compose(train()[:2]), v2.Compose(train()[2:])],
    "a step that changes another": lambda: [FLOATS, Changing(later := v2.Normalize(MEAN, STD)), later],
    "a step that adds steps": growing,
    "an unhashable class": lambda: [v2.RandomHorizontalFlip(1.0), Odd(1.0), FLOATS],
    "hook before": lambda: hooked("register_forward_pre_hook"),
    "hook after": lambda: hooked("register_forward_hook"),
}
for _name in ("forward", "transform", "make_params", "check_inputs", "_call_impl"):
    for _at in (0, 1, 4):
        CHAINS[f"own {_name} of {_at}"] = functools.partial(with_method, _name, _at)
#: The first transform makes a tensor of Pillow's image, in one pass with those after it.
TO_TENSOR = ("train", "own transform of 4", "own make_params of 4", "own _call_impl of 4", "hook before")
STARTS: dict[str, Callable[[], Any]] = {
    "tensor": lambda: v2.functional.pil_to_tensor(opened_jpeg()),
    "tv_tensor": lambda: v2.functional.to_image(opened_jpeg()),
}


def run(steps: list[Any], image: Any) -> list[Any]:
    """What a program can see of some calls: objects, classes, strides and values, errors, counts, the random state."""
    transform, seen = v2.Compose(steps), list[Any]()
    torch.manual_seed(5)
    for _ in range(4):
        try:
            made = transform(image)
        except Exception as error:
            seen.append(repr(error))
            continue
        what = made is image, repr(type(made)), tuple(made.shape), made.stride(), made.dtype, made.requires_grad
        seen += [what, made.as_subclass(torch.Tensor).tolist()]
    return [*seen, [getattr(step, "calls", None) for step in steps], torch.get_rng_state().tolist()]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("chain", CHAINS)
def test_calls_are_the_librarys(chain: str, start: str) -> None:
    expected = run(CHAINS[chain](), STARTS[start]())
    with deferred_here(ImageCounts()):
        assert str(run(CHAINS[chain](), STARTS[start]())) == str(expected)  # nan is itself


BYTES, HALVES = v2.ToDtype(torch.uint8, scale=True), v2.ToDtype(torch.float16)


@pytest.mark.parametrize("chain", TO_TENSOR)
def test_methods_of_a_step_are_called_after_an_image(chain: str) -> None:
    expected = run([v2.ToImage(), *CHAINS[chain]()[3:]], opened_jpeg())
    with deferred_here(ImageCounts()):
        assert run([v2.ToImage(), *CHAINS[chain]()[3:]], opened_jpeg()) == expected


def test_steps_are_known_by_what_was_done_before() -> None:
    """The same steps in another order of calls, and equal numbers in a list that a program has changed since."""

    def parts(*of: list[Any]) -> list[Any]:
        made: Any = STARTS["tensor"]()
        for steps in of:
            made = v2.Compose(steps)(made)
        return made.tolist()

    def changed() -> list[Any]:
        normalize = v2.Normalize(list(MEAN), STD)
        v2.Compose([FLOATS, normalize])(STARTS["tensor"]())
        normalize.mean[0] = 0.9
        return parts([v2.ToDtype(torch.float32)], [v2.Normalize(list(MEAN), STD)])

    def see() -> list[Any]:
        return [
            parts([FLOATS, BYTES], [HALVES]),
            parts([FLOATS, BYTES, HALVES]),
            parts([FLOATS], [BYTES, HALVES]),
            changed(),
        ]

    expected = see()
    with deferred_here(ImageCounts()):
        assert see() == expected


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_the_default_dtype_may_change_between_steps(dtype: torch.dtype) -> None:
    def see() -> list[Any]:
        seen = []
        try:
            for then in (lambda one: one.mul(2.0), v2.Compose([v2.Normalize(MEAN, STD)]), v2.Normalize(MEAN, STD)):
                made = STARTS["tensor"]().div(255)
                torch.set_default_dtype(dtype)
                made = then(made)
                torch.set_default_dtype(torch.float32)
                seen.append((made.dtype, made.tolist()))
        finally:
            torch.set_default_dtype(torch.float32)
        return seen

    expected = see()
    with deferred_here(ImageCounts()):
        assert see() == expected


def test_v1_alone_needs_no_v2(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [transforms.RandomHorizontalFlip(1.0), transforms.ConvertImageDtype(torch.float32)]
    expected = transforms.Compose(steps)(STARTS["tensor"]())
    with deferred_here(ImageCounts()):
        image = STARTS["tensor"]()
        monkeypatch.delitem(sys.modules, "torchvision.transforms.v2._transform")
        assert torch.equal(transforms.Compose(steps)(image), expected)


def test_an_empty_compose_is_the_librarys() -> None:
    def see() -> list[str]:
        transform, image = v2.Compose([FLOATS]), STARTS["tensor"]()
        transform.transforms = []
        with pytest.raises(UnboundLocalError) as raised:
            transform(image)
        return [repr(raised.value)]

    expected = see()
    with deferred_here(ImageCounts()):
        assert see() == expected


class Forgetful(dict[Any, Any]):
    """A table that another thread clears at once."""

    def __setitem__(self, key: object, value: object) -> None:
        pass


def test_tables_may_be_cleared_by_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(train(), STARTS["tensor"]())
    for table in (composed_steps._tails, recording._tables, memory_layout._probed):
        monkeypatch.setattr(table, "_found", Forgetful())
    with deferred_here(ImageCounts()):
        assert run(train(), STARTS["tensor"]()) == expected


def test_an_array_becomes_a_tensor_whose_steps_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [v2.ToImage(), *train()]
    expected = run(steps, np.array(opened_jpeg()))
    calls: list[int] = []

    def record(made: object, steps: Sequence[Any], first: int) -> tuple[torch.Tensor, int] | None:
        calls.append(first)
        return composed_steps.record_steps(made, steps, first)

    monkeypatch.setattr(Later, "record_steps", staticmethod(record))
    monkeypatch.setattr(pixel_snapshots, "LEAST", 1)
    with deferred_here(ImageCounts()):
        assert run(steps, np.array(opened_jpeg())) == expected
    assert calls == [1] * 4


def count(steps: list[Any]) -> int:
    """How many steps are recorded together."""
    with deferred_here(ImageCounts()):
        found = composed_steps.record_steps(STARTS["tensor"](), steps, 0)
    return 0 if found is None else found[1]


def test_steps_are_recorded_together() -> None:
    torch.manual_seed(1)
    assert count(train()) == 5
    with deferred_here(ImageCounts()):
        made = v2.Compose(train())(STARTS["tensor"]())
        assert type(made) is DeferredTensor
    assert [count(CHAINS[chain]()) for chain in ("hook before", "own transform of 1", "own forward of 4")] == [1, 1, 4]
    assert count(CHAINS["without antialias"]()) == 1  # its result is a plain tensor


def double(image: Any, *_: Any, **__: Any) -> Any:
    return image * 2


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("what", ["kernel", "method", "functional", "namespace", "types", "global hook"])
def test_a_changed_library_is_called(what: str, is_known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it was changed before the first look at it."""
    steps = [v2.RandomHorizontalFlip(1.0), FLOATS]
    composed_steps._find_known.cache_clear()
    assert not is_known or count(steps) == 2
    if what == "kernel":
        utils = __import__("torchvision.transforms.v2.functional._utils", fromlist=["_KERNEL_REGISTRY"])
        monkeypatch.setitem(utils._KERNEL_REGISTRY[v2.functional.horizontal_flip], torch.Tensor, double)
    elif what == "method":
        monkeypatch.setattr(v2.RandomHorizontalFlip, "transform", lambda self, inpt, params: inpt * 2)
    elif what == "functional":
        monkeypatch.setattr(v2.functional, "horizontal_flip", v2.functional.vertical_flip)
    elif what == "types":
        monkeypatch.setattr(v2.RandomHorizontalFlip, "_transformed_types", (tv_tensors.Image,))
    elif what == "namespace":
        other = types.SimpleNamespace(**vars(v2.functional))
        other.horizontal_flip = v2.functional.vertical_flip
        monkeypatch.setattr(sys.modules[v2.RandomHorizontalFlip.__module__], "F", other)
    else:
        doubles = lambda module, inputs: (inputs[0] * 2,) if module is steps[0] else None  # noqa: E731
        monkeypatch.setitem(nn_module._global_forward_pre_hooks, 0, doubles)
    expected = run(steps, STARTS["tensor"]())
    with deferred_here(ImageCounts()):
        assert run(steps, STARTS["tensor"]()) == expected
        assert composed_steps.record_steps(STARTS["tensor"](), steps, 0) is None
    composed_steps._find_known.cache_clear()  # of the changed library


def test_the_classes_are_those_that_are_known() -> None:
    kinds = [v2.RandomResizedCrop, v2.RandomHorizontalFlip, v2.RandomVerticalFlip, v2.ToDtype, v2.Normalize]
    known, untouched = composed_steps._find_known(tuple(kinds))
    assert len(known) == len(composed_steps._KNOWN) == len(kinds)
    assert untouched


def other_logarithms() -> list[Any]:
    steps = train()
    crop = next(one for one in steps if isinstance(one, v2.RandomResizedCrop))
    crop._log_ratio = torch.tensor([0.5, 0.6])
    return steps


@pytest.mark.parametrize("scale", [(0.08, 1.0), [1, 1], (3.0, 5.0), (0.5, 0.1)])
@pytest.mark.parametrize("ratio", [(3 / 4, 4 / 3), [4, 5], (0.1, 0.2)])
@pytest.mark.filterwarnings("ignore:Scale and ratio should be")
def test_boxes_are_drawn_as_torchvision_does(scale: Any, ratio: Any) -> None:
    steps = lambda: [v2.RandomResizedCrop(20, scale, ratio), FLOATS]  # noqa: E731 - made again for each run
    expected = run(steps(), STARTS["tensor"]())
    with deferred_here(ImageCounts()):
        assert run(steps(), STARTS["tensor"]()) == expected


@pytest.mark.parametrize("holder, name", [(torch, "empty"), (torch, "randint"), (torch.Tensor, "uniform_")])
def test_what_draws_call_may_be_the_programs(holder: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(train(), STARTS["tensor"]())
    with deferred_here(ImageCounts()):
        assert run(train(), STARTS["tensor"]()) == expected
    plain, calls = getattr(holder, name), []

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(name)
        return plain(*arguments, **options)

    monkeypatch.setattr(holder, name, counted)
    assert run(train(), STARTS["tensor"]()) == expected
    there = len(calls)
    with deferred_here(ImageCounts()):
        assert run(train(), STARTS["tensor"]()) == expected
    assert len(calls) >= 2 * there > 0
    assert run(other_logarithms(), STARTS["tensor"]()) != expected
    with deferred_here(ImageCounts()):
        again = run(other_logarithms(), STARTS["tensor"]())
    assert again == run(other_logarithms(), STARTS["tensor"]())
