"""torchvision.io's and torchcodec's decoders, deferred: values, strides, errors and warnings are the functions'.

Their compiled parts need another build of torch than CI has: `make test-doors` makes an environment for them.
"""

from __future__ import annotations

import faulthandler
import functools
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from door_files import FOLDERS, files

from headrace._loading.doors import opened_doors
from headrace._loading.doors.tensors.deferred_tensor import recording_of
from headrace._loading.doors.type_checks import checks
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from support import PHOTOS
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
image_io = pytest.importorskip("torchvision.io.image")
if not hasattr(torch.ops.image, "decode_image"):
    pytest.skip("torchvision.io is not compiled for this torch: `make test-doors`", allow_module_level=True)
try:
    import torchcodec.decoders as torchcodec  # type: ignore[import-not-found, unused-ignore]
except ImportError:  # none for this torch
    torchcodec = None
pytestmark = pytest.mark.filterwarnings("ignore")

Mode = image_io.ImageReadMode
Call = Callable[[str], Any]


@functools.cache
def crashes(path: Path) -> bool:
    """Whether one of the decoders itself ends the process: torchvision 0.29.1's does for some odd samplings."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        faulthandler.disable()
        for call in CALLS.values():
            see(call, path)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


CALLS: dict[str, Call] = {
    "decode_image": lambda path: image_io.decode_image(path),
    "read_image": lambda path: image_io.read_image(path, Mode.RGB),
    "turned": lambda path: image_io.decode_image(path, Mode.RGB, apply_exif_orientation=True),
    "gray": lambda path: image_io.decode_image(path, "GRAY"),
    "rgba": lambda path: image_io.decode_image(path, "RGBA"),
    "decode_jpeg": lambda path: image_io.decode_jpeg(image_io.read_file(path)),
    "decode_jpeg list": lambda path: image_io.decode_jpeg([image_io.read_file(path)], mode="RGB")[0],
    "decode_jpeg turned": lambda path: image_io.decode_jpeg(image_io.read_file(path), apply_exif_orientation=True),
    "torchcodec": lambda path: torchcodec.decode_image(path),
    "torchcodec bytes": lambda path: torchcodec.decode_jpeg(Path(path).read_bytes()),
    "torchcodec gray": lambda path: torchcodec.decode_jpeg(path, mode="GRAY"),
    "torchcodec unchanged": lambda path: torchcodec.decode_image(path, mode="UNCHANGED"),
    "torchcodec uint16": lambda path: torchcodec.decode_jpeg(path, output_dtype=torch.uint16),
    "torchcodec alpha": lambda path: torchcodec.decode_jpeg(path, mode="RGB_ALPHA"),
}


if torchcodec is None:
    CALLS = {name: call for name, call in CALLS.items() if "torchcodec" not in name}


def see(call: Call, path: Path) -> tuple[Any, ...]:
    """What a program sees of a call: the error, or all of the tensor; and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = call(str(path))
        except Exception as error:
            return type(error), str(error), [str(one.message) for one in caught]
    strides, kind = made.stride(), made.dtype
    return strides, kind, made.clone(), type(made), [str(one.message) for one in caught]


def are_equal(some: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return len(some) == len(others) and all(
        torch.equal(one, other) if isinstance(one, torch.Tensor) else bool(one == other)
        for one, other in zip(some, others, strict=True)
    )


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("name", CALLS)
def test_files_are_equal(name: str, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "look", lambda: None)
    opened_doors.add_doors()
    counts, differing = ImageCounts(), []
    for path in files(folder):
        if folder == "hard_dev" and crashes(path):
            continue
        expected = see(CALLS[name], path)
        with deferred_here(counts):
            found = see(CALLS[name], path)
        # torchvision 0.29.1 leaves bytes of some palette PNGs as they were in memory.
        if not are_equal(found, expected) and are_equal(see(CALLS[name], path), expected):
            differing.append(path.name)
    assert not differing
    assert counts.native or name in ("gray", "rgba", "torchcodec gray")


def test_nothing_is_decoded_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "look", lambda: None)
    opened_doors.add_doors()
    path = str(next(PHOTOS.glob("*.jpg")))
    with deferred_here(ImageCounts()):
        for name in {"decode_image", "read_image", "decode_jpeg", "torchcodec"} & CALLS.keys():
            assert recording_of(CALLS[name](path)) is not None
