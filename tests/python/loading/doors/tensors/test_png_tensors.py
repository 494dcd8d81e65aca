"""PNGs through torchvision.io and torchcodec: values, types, strides, errors, and libpng's messages are the libraries'.

Their compiled parts need another build of torch than CI has: `make test-doors` makes an environment for them.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from headrace._loading.doors import torchvision_pngs
from headrace._loading.doors.tensors.deferred_tensor import recording_of
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import Door, ImageCounts
from png_samples import EXIF, KINDS, TEXTS, chunk, png, sound_pngs
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
image_io = pytest.importorskip("torchvision.io.image")
if not hasattr(torch.ops.image, "decode_png"):
    pytest.skip("torchvision.io is not compiled for this torch: `make test-doors`", allow_module_level=True)
try:
    import torchcodec.decoders as torchcodec  # type: ignore[import-not-found, unused-ignore]
except ImportError:  # none for this torch
    torchcodec = None
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("open_doors")]

MODES = ("UNCHANGED", "GRAY", "GRAY_ALPHA", "RGB", "RGB_ALPHA")
#: (colour type, mode) that the libraries convert by formulas of libpng, or whose palettes they give as indices.
CONVERTED = {(2, "GRAY"), (2, "GRAY_ALPHA"), (6, "GRAY"), (6, "GRAY_ALPHA")}
CHUNKS = [
    TEXTS,
    EXIF,
    chunk(b"gAMA", b"\0\0\xb1\x8f"),
    chunk(b"gAMA", b"\0\1\xb1\x8f"),
    chunk(b"sRGB", b"\0") + chunk(b"gAMA", b"\0\0\xb1\x8f") + chunk(b"pHYs", bytes(9)),
    chunk(b"tIME", bytes([7, 210, 1, 1, 1, 1, 1])),
    chunk(b"bKGD", b"\0\1\0\1\0\1"),
]


def calls(data: bytes, mode: str) -> dict[str, Callable[[], Any]]:
    given = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    found: dict[str, Callable[[], Any]] = {
        "decode_png": lambda: image_io.decode_png(given, mode),
        "decode_image": lambda: image_io.decode_image(given, mode, apply_exif_orientation=True),
    }
    if torchcodec is not None:
        for dtype in (torch.uint8, torch.uint16, "auto"):
            found[f"torchcodec {dtype}"] = lambda dtype=dtype: torchcodec.decode_image(  # type: ignore[misc]
                data, mode=mode, output_dtype=dtype
            )
    return found


def see(call: Callable[[], Any]) -> Any:
    """What a program and its user see of a call."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        os.dup2(file.fileno(), 2)
        try:
            made = call()
            seen: Any = made.dtype, made.shape, made.stride(), made.clone().tolist()
        except Exception as error:
            seen = type(error), str(error)
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return seen, file.read(), [str(one.message) for one in caught]


def check(data: bytes, mode: str) -> dict[str, bool]:
    """Compares all calls on a file whose pixels are made natively; returns which ones are."""
    native = {}
    for name, call in calls(data, mode).items():
        counts = ImageCounts()
        with deferred_here(counts):
            found = see(call)
        native[name] = bool(counts.native)
        # What the library makes itself is not compared: torchvision 0.29.1 leaves bytes of some as they were in memory.
        if counts.native:
            assert found == see(call), (name, mode)
    return native


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("colour", "depth"), KINDS)
def test_kinds_are_equal(colour: int, depth: int, mode: str) -> None:
    native = check(png(31, 14, colour, depth, seed=3), mode)
    if colour != 3 and (colour, mode) not in CONVERTED and (depth >= 8 or mode in ("UNCHANGED", "GRAY", "RGB")):
        assert native["decode_png"] and native["decode_image"]
    for before in CHUNKS:
        check(png(9, 8, colour, depth, seed=5, before=before), mode)


@pytest.mark.parametrize("mode", MODES)
def test_other_files_are_equal(mode: str) -> None:
    for data in sound_pngs():
        if b"tRNS" not in data:  # torchcodec 0.16.0 itself ends the process for some
            check(data, mode)


def test_files_with_transparency_are_not_even_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchvision_pngs, "_find_channels", None)
    data = png(31, 14, 3, 8, before=chunk(b"tRNS", b"\0\1"))
    counts = ImageCounts()
    assert torchvision_pngs.decode(torch.zeros, data, (3,), counts, Door("any", "one")) is None
    assert counts.by_others == {("one", "PNG with transparency"): 1}


def test_a_tensor_of_bytes_is_deferred_and_one_of_16_bits_is_not() -> None:
    counts = ImageCounts()
    with deferred_here(counts):
        made = image_io.decode_png(torch.frombuffer(bytearray(png(31, 14)), dtype=torch.uint8), "RGB")
        assert recording_of(made) is not None
        wide = image_io.decode_png(torch.frombuffer(bytearray(png(31, 14, 0, 16)), dtype=torch.uint8))
        assert type(wide) is torch.Tensor and wide.dtype == torch.uint16
    assert counts.natively == {"torchvision.io.decode_png": 2}
