"""Python steps that misbehave: none makes the loader hang, or deliver other pixels than plain Python."""

from __future__ import annotations

import functools
import gc
import random
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from io import BytesIO
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import ExifTags, Image, ImageOps

import headrace
from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._lowering import LoweringError, lower
from support import MEAN, STD, TENSOR, WATCHDOG_S, assert_same, output_of, pictures

pytestmark = pytest.mark.processes


def loader_of(*steps: Callable[[Any], Any], **options: Any) -> DataLoader:
    if options.get("num_workers"):
        options = {"timeout": WATCHDOG_S} | options
    return DataLoader(EncodedImages(pictures(8), None, T.Compose(steps)), 4, seed=0, **options)


SIZE = (104, 72)  # of the third picture, and of no synthetic image


def third(image: Image.Image) -> bool:
    return image.size == SIZE


def quits(image: Image.Image) -> Image.Image:
    if third(image):
        sys.exit("no more")
    return image


def test_a_step_that_exits_is_an_error_of_its_sample() -> None:
    with pytest.raises(headrace.SampleError, match=r"sample 2 .*quits: SystemExit\('no more'\)") as raised:
        list(loader_of(quits, T.Resize((20, 20)), T.ToTensor(), num_workers=2))
    assert not isinstance(raised.value, SystemExit)  # which would end the program silently


def test_a_step_that_exits_in_the_callers_thread_exits() -> None:
    with pytest.raises(SystemExit, match="no more"):
        list(loader_of(quits, T.Resize((20, 20)), T.ToTensor()))


@pytest.mark.parametrize("size", [(1, 1), (1, 30), (30, 1), (30, 20)])
@pytest.mark.parametrize("channels", [1, 3])
def test_axes_of_length_one(size: tuple[Any, ...], channels: int) -> None:
    steps: list[Any] = [T.Resize(size), T.ToTensor(), lambda image: 2 * image[:channels]]
    loader = loader_of(*steps, num_workers=2, memory_format=torch.channels_last)
    assert assert_same(loader, list(loader.reference())) == 2


class Stuck:
    """A step that blocks at one image until `told` is set."""

    told = threading.Event()

    def __call__(self, image: Image.Image) -> Image.Image:
        if third(image):
            assert Stuck.told.wait(WATCHDOG_S)
        return image

    def __deepcopy__(self, memo: Any) -> Stuck:
        return self


@pytest.mark.parametrize("persistent", [False, True])
def test_a_timeout_does_not_wait_for_a_step_that_is_stuck(persistent: bool) -> None:
    Stuck.told.clear()
    loader = loader_of(
        Stuck(), T.Resize((20, 20)), T.ToTensor(), num_workers=2, timeout=0.3, persistent_workers=persistent
    )
    with pytest.raises(RuntimeError, match="timed out after"):
        list(loader)
    assert not Stuck.told.is_set()
    Stuck.told.set()
    assert len(list(loader)) == 2


def test_a_program_ends_though_a_step_is_stuck() -> None:
    code = f"""
import threading
import traceback
import weakref
from headrace import EncodedImages, DataLoader, transforms as T
from headrace._engine.lanes import python_lane
from support import WATCHDOG_S, pictures
inside = threading.Event()
python_lane._PARTING_S = 0.5

def stuck(image):
    if image.size == {SIZE}:
        inside.set()
        threading.Event().wait(2 * WATCHDOG_S)
    return image

data = EncodedImages(pictures(8), None, T.Compose([stuck, T.Resize((9, 9)), T.ToTensor()]))
loader = DataLoader(data, 4, num_workers=2)
iterator = iter(loader)
assert inside.wait(WATCHDOG_S)
print("end")
"""
    assert output_of(code) == "end\n"


def _turned_file(orientation: int) -> bytes:
    out, exif = BytesIO(), Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    with Image.open(BytesIO(pictures(1)[0])) as image:
        image.resize((60, 40)).save(out, "JPEG", exif=exif.tobytes())
    return out.getvalue()


def transposed(image: Image.Image) -> torch.Tensor:
    """A step that transposes the image and makes the tensor."""
    return T.ToTensor()(ImageOps.exif_transpose(image).resize((20, 20)))


@pytest.mark.parametrize("steps", [[ImageOps.exif_transpose, T.Resize((20, 20)), T.ToTensor()], [transposed]])
def test_a_step_that_looks_at_the_orientation_is_shown_it(steps: list[Any]) -> None:
    dataset = EncodedImages([_turned_file(6), _turned_file(1)], None, T.Compose(steps))
    loader = DataLoader(dataset, 1)
    assert loader.native
    assert_same(loader, list(torch.utils.data.DataLoader(dataset, 1)))


def resaved(image: Image.Image) -> Image.Image:
    """Saves the image, for which Pillow reads its metadata."""
    out = BytesIO()
    image.save(out, "JPEG", quality=int(torch.randint(30, 90, ())))
    return Image.open(out)


def test_what_only_passes_metadata_on_is_native() -> None:
    assert loader_of(resaved, T.Resize((20, 20)), T.ToTensor()).native


def marked(image: Image.Image, mark: Image.Image) -> Image.Image:
    image.paste(mark)
    return image


def rarely(image: Image.Image) -> Image.Image:
    if float(torch.rand(())) < 0.01:
        return image.rotate(random.uniform(0, 90))
    return image


def otherwise(image: Image.Image) -> Image.Image:
    return image.rotate(random.uniform(0, 90)) if torch.rand(1).item() > 0.999 else image


@pytest.mark.parametrize("step", [rarely, otherwise, T.RandomApply([rarely], p=0.02)])
def test_what_is_rarely_drawn_from_the_process_is_found(step: Any) -> None:
    assert [call.process_wide for call in lower(T.Compose([step, T.CenterCrop(9), *TENSOR])).calls] == [True]


def test_a_step_that_holds_an_image_has_the_same_fingerprint_everywhere() -> None:
    def of(mark: Image.Image) -> str:
        step = functools.partial(marked, mark=mark)
        return lower(T.Compose([step, T.CenterCrop(9), *TENSOR])).fingerprint()

    one, other = Image.new("RGB", (4, 4)), Image.new("RGB", (4, 4))
    assert " at 0x" in repr(one) and repr(one) != repr(other)
    assert of(one) == of(other)


def test_a_step_whose_tensors_are_elsewhere_is_left_to_torch() -> None:
    with pytest.raises(LoweringError, match="on meta, not in this machine's memory"):
        lower(T.Compose([T.CenterCrop(9), T.ToTensor(), lambda image: image.to("meta")]))


@pytest.mark.parametrize("home", ["ours", "v1", "v2"])
def test_a_transform_changed_in_place_is_lowered_anew(home: str, torchvision: ModuleType) -> None:
    M = {"ours": T, "v1": torchvision.transforms, "v2": torchvision.transforms.v2}[home]
    resize, flip, normalize = M.Resize((30, 20)), M.RandomHorizontalFlip(1.0), M.Normalize(MEAN, STD)
    dataset = EncodedImages(
        pictures(4), None, M.Compose([resize, M.RandomApply([flip], p=1.0), T.ToTensor(), normalize])
    )
    chain: Any = dataset.transform
    loader = DataLoader(dataset, 4, num_workers=2, seed=0)
    first = loader.recipe()
    assert list(loader) and loader.recipe() is first

    def check() -> None:
        assert_same(loader, list(torch.utils.data.DataLoader(dataset, 4)))

    check()
    resize.size = (12, 10)
    check()
    flip.p = 0.0
    check()
    normalize.mean = [0.0, 0.0, 0.0]
    check()
    chain.transforms[1].p = 0.0
    flip.p = 1.0
    check()
    chain.transforms.insert(0, M.CenterCrop(30))
    check()


def test_a_step_of_python_that_changes_is_tried_on_copies() -> None:
    class Counts:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, image: Image.Image) -> Image.Image:
            self.calls += 1
            return image

        def __repr__(self) -> str:
            return f"Counts({self.calls})"

    counts = Counts()
    loader = loader_of(counts, T.Resize((20, 20)), T.ToTensor())
    assert len(list(loader)) == len(list(loader)) == 2
    assert counts.calls == 16


class Held(ValueError):
    """Has a weak reference to the array that the step held."""

    def __init__(self, large: Any) -> None:
        super().__init__("then")
        self.large = weakref.ref(large)


class Fails:
    """Raises at one image."""

    def __call__(self, image: Image.Image) -> Image.Image:
        if third(image):
            large = np.zeros(9)
            try:
                raise KeyError("first")
            except KeyError:
                raise Held(large) from None
        return image


def test_skipped_samples_do_not_keep_what_the_step_held() -> None:
    loader = loader_of(Fails(), T.Resize((20, 20)), T.ToTensor(), num_workers=2, on_error="skip")
    with pytest.warns(UserWarning, match="1 samples could not be made"):
        list(loader)
    (error,) = loader.errors
    assert "raise Held(large)" in "".join(traceback.format_exception(error))
    gc.collect()
    assert error.large() is None


def test_loaders_of_several_threads_share_the_process_generators() -> None:
    dataset = EncodedImages(pictures(), None, T.Compose([T.Resize((20, 20)), rarely, waits, *TENSOR]))
    expected = list(DataLoader(dataset, 6, seed=1))
    before, same = random.getstate(), []

    def work() -> None:
        for _ in range(3):
            loader = DataLoader(dataset, 6, seed=1, num_workers=1)
            same.append(all(map(torch.equal, loader, expected)))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert same == [True] * 9 and random.getstate() == before


def waits(image: Image.Image) -> Image.Image:
    """Lets other threads run before it draws."""
    time.sleep(0.001)
    return image.rotate(random.uniform(0, 90))


@pytest.mark.parametrize(("step", "caller"), [(waits, True), (resaved, False)])
def test_explain_says_which_steps_hold_up_the_caller(step: Callable[..., Any], caller: bool) -> None:
    explained = loader_of(step, T.Resize((20, 20)), T.ToTensor(), num_workers=2).explain()
    (line,) = (line for line in explained.lines if line.runs == "Python" and "called" in line.how)
    assert ("in the caller's thread" in line.how) is caller
