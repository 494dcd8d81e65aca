"""Tensors and arrays of deferred images: one native pass, equal to the transforms' own in values, strides and class."""

from __future__ import annotations

import io
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import headrace
from headrace import transforms
from headrace._base.native import core
from headrace._recipe.images.part_kinds import kind_of
from headrace.pillow import value_tables
from headrace.pillow.deferred_image import is_deferred
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
T = torchvision.transforms
from torchvision.transforms import v2  # noqa: E402 - after the shim

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
TAILS = {
    "ToTensor": lambda: [T.ToTensor()],
    "PILToTensor": lambda: [T.PILToTensor()],
    "Normalize": lambda: [T.ToTensor(), T.Normalize(MEAN, STD)],
    "half": lambda: [T.PILToTensor(), T.ConvertImageDtype(torch.float16)],
    "double": lambda: [T.ToTensor(), T.ConvertImageDtype(torch.float64), T.Normalize(MEAN, STD, inplace=True)],
    "v2": lambda: [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)],
    "v2 pure": lambda: [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()],
    "v2 bytes": lambda: [v2.PILToTensor()],
    "headrace": lambda: [transforms.ToTensor(), transforms.Normalize(MEAN, STD)],
    "headrace bytes": lambda: [transforms.PILToTensor()],
    "headrace image": lambda: [transforms.ToImage(), transforms.ToDtype(torch.float32, scale=True)],
    "headrace pure": lambda: [transforms.ToImage(), transforms.ToDtype(torch.float16), transforms.ToPureTensor()],
    "bfloat16": lambda: [T.PILToTensor(), T.ConvertImageDtype(torch.bfloat16)],  # numpy has no such dtype
    "erasing": lambda: [T.ToTensor(), T.Normalize(MEAN, STD), T.RandomErasing(1.0)],
    "means of a tensor": lambda: [T.ToTensor(), T.Normalize(torch.tensor(MEAN), STD)],
    "in the middle": lambda: [T.ToTensor(), torch.nn.Identity(), T.Normalize(MEAN, STD)],
}


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The dtypes of the values that the native passes have made."""
    made: list[str] = []

    def recording(run: Any) -> Any:
        def recorded(pixels: Any, plan: Any, table: Any, out: Any, layout: str, *others: Any) -> None:
            made.append(f"{out.dtype} {layout}")
            run(pixels, plan, table, out, layout, *others)

        return recorded

    for name in ("decode_fuse", "fuse"):  # the crops of the file before decide which of them
        monkeypatch.setattr(core, name, recording(getattr(core, name)))
    return made


def compose(name: str, begin: list[Any]) -> Any:
    family = v2 if name.startswith("v2") else transforms if name.startswith("headrace") else T
    return family.Compose([*begin, *TAILS[name]()])


def same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    assert kind_of(ours) is kind_of(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    assert ours.stride() == theirs.stride()
    assert torch.equal(ours, theirs)


@pytest.mark.pixels
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("name", TAILS)
def test_tails_are_torchvisions(name: str, mode: str, photographs: list[Path]) -> None:
    if mode == "L" and "Normalize(" in str(compose(name, [])):
        pytest.skip("three means for one channel")
    for begin in ([], [T.RandomResizedCrop(40), T.RandomHorizontalFlip()], [T.Resize(50), T.CenterCrop(32)]):
        transform = compose(name, begin)
        made = []
        for opener in (Image.open, headrace.pillow.open):
            torch.manual_seed(5)
            with headrace.pillow.deferred() if opener is headrace.pillow.open else Image.open(photographs[0]):
                made.append([transform(opener(path).convert(mode)) for path in photographs[:4]])
        for theirs, ours in zip(*made, strict=True):
            same(ours, theirs)


@pytest.mark.pixels
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Normalize", "float32 planar"),
        ("PILToTensor", "uint8 channels_last"),
        ("half", "float16 channels_last"),
        ("double", "float32 planar"),  # the kernels write elements of at most four bytes
        ("v2", "float32 channels_last"),
        ("headrace", "float32 planar"),
        ("headrace bytes", "uint8 channels_last"),
        ("headrace image", "float32 channels_last"),
        ("headrace pure", "float16 channels_last"),
        ("erasing", "float32 planar"),
        ("means of a tensor", "float32 planar"),
        ("bfloat16", "uint8 channels_last"),
    ],
)
def test_a_tail_is_one_pass(name: str, values: str, photographs: list[Path], passes: list[str]) -> None:
    with headrace.pillow.deferred():
        compose(name, [T.CenterCrop(20)])(Image.open(photographs[0]))
    assert passes == [values]


@pytest.mark.pixels
def test_arrays_are_pillows_and_need_no_pillow_pixels(photographs: list[Path], passes: list[str]) -> None:
    for mode in ("RGB", "L"):
        ours = headrace.pillow.open(photographs[1]).convert(mode).crop((3, 4, 60, 50))
        theirs = Image.open(photographs[1]).convert(mode).crop((3, 4, 60, 50))
        for make in (np.asarray, np.array, np.asarray):
            a, b = make(ours), make(theirs)
            assert (a.shape, a.dtype, a.flags.writeable) == (b.shape, b.dtype, b.flags.writeable)
            assert np.array_equal(a, b)
        assert len(passes) == 2  # the second access makes Pillow's pixels, which the third one reads
        assert not is_deferred(ours)
        passes.clear()


@pytest.mark.pixels
def test_changed_attributes_count(photographs: list[Path]) -> None:
    normalize = T.Normalize(MEAN, STD)
    transform = T.Compose([T.ToTensor(), normalize])
    for mean in (MEAN, [0.5, 0.5, 0.5]):
        normalize.mean = mean
        with headrace.pillow.deferred():
            ours = transform(Image.open(photographs[0]))
        same(ours, transform(Image.open(photographs[0])))
    torch.set_default_dtype(torch.float64)
    try:
        with headrace.pillow.deferred():
            ours = transform(Image.open(photographs[0]))
        same(ours, transform(Image.open(photographs[0])))
        assert ours.dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_hooks_and_errors_are_torchvisions(photographs: list[Path]) -> None:
    normalize = T.Normalize(MEAN, STD)
    seen: list[Any] = []
    normalize.register_forward_hook(lambda module, given, result: seen.append(given[0].shape))
    with headrace.pillow.deferred():
        T.Compose([T.CenterCrop(9), T.ToTensor(), normalize])(Image.open(photographs[0]))
        assert seen == [(3, 9, 9)]
        for wrong, error, text in (
            (T.Normalize(MEAN, [0.0, 1.0, 1.0]), ValueError, "std evaluated to zero"),
            (T.Normalize(MEAN[:2], STD[:2]), RuntimeError, "must match the size"),
        ):
            with pytest.raises(error, match=text):
                T.Compose([T.ToTensor(), wrong])(Image.open(photographs[0]))


class _Own(T.ToTensor):  # type: ignore[name-defined]
    def __call__(self, image: Any) -> Any:
        return super().__call__(image) * 2


def test_subclasses_run_their_own_code(photographs: list[Path]) -> None:
    with headrace.pillow.deferred():
        ours = T.Compose([_Own()])(Image.open(photographs[0]))
    same(ours, T.Compose([_Own()])(Image.open(photographs[0])))


def test_the_transforms_methods_are_put_back(photographs: list[Path]) -> None:
    places = [(T.Compose, "__call__"), (T.ToTensor, "__call__")]
    places += [(v2.Compose, "forward"), (transforms.Compose, "forward")]
    before = [getattr(*place) for place in places]
    with headrace.pillow.deferred():
        assert [getattr(*place) for place in places] != before
        with headrace.pillow.deferred():
            pass
        assert [getattr(*place) for place in places] != before
    assert [getattr(*place) for place in places] == before
    image, transform = headrace.pillow.open(photographs[0]), T.ToTensor()
    same(transform(image), transform(Image.open(photographs[0])))  # without the replaced methods as well


@pytest.mark.parametrize(
    ("module", "kind", "method"),
    [
        ("torchvision.transforms.transforms", T.Compose, "__call__"),
        ("torchvision.transforms.v2._container", v2.Compose, "forward"),
        ("headrace.transforms._containers", transforms.Compose, "forward"),
    ],
)
def test_transforms_imported_later_are_noticed(
    module: str, kind: Any, method: str, photographs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, imported = getattr(kind, method), sys.modules[module]
    monkeypatch.delitem(sys.modules, module)
    with headrace.pillow.deferred():
        assert getattr(kind, method) is plain
        sys.modules[module] = imported
        Image.open(photographs[0]).close()
        assert getattr(kind, method) is not plain
    assert getattr(kind, method) is plain


@pytest.mark.pixels
def test_many_tails_of_random_images(photographs: list[Path]) -> None:
    """More tables than are kept, and views of one file beyond the crops that are decoded alone."""
    rng = random.Random(1)
    data = photographs[2].read_bytes()
    with headrace.pillow.deferred():
        deferred, file = Image.open(io.BytesIO(data)).convert("RGB"), Image.open(photographs[2])
    plain = Image.frombytes("RGB", file.size, file.convert("RGB").tobytes())
    for _ in range(80):
        normalize = T.Normalize([rng.random() for _ in range(3)], [rng.random() + 0.1 for _ in range(3)])
        transform = T.Compose([T.CenterCrop(rng.randint(5, 60)), T.Resize(rng.randint(5, 60)), T.ToTensor(), normalize])
        with headrace.pillow.deferred():
            ours = transform(deferred)
        same(ours, transform(plain))


@pytest.mark.pixels
def test_a_tail_is_one_pass_again_once_a_programs_function_has_gone(
    photographs: list[Path], passes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    value_tables._make_untouched.cache_clear()
    tail = T.Compose([T.CenterCrop(20), T.ToTensor()])
    with monkeypatch.context() as patched, headrace.pillow.deferred():
        patched.setattr(Image.Image, "getbands", lambda image: ("R", "G", "B"))
        tail(Image.open(photographs[0]))
    assert passes == ["uint8 channels_last"]
    with headrace.pillow.deferred():
        tail(Image.open(photographs[0]))
    assert passes[1:] == ["float32 planar"]
