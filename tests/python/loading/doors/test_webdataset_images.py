"""webdataset's image handlers: the tensors of RGB images are deferred; all handlers make what webdataset makes."""

from __future__ import annotations

import io
import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace._loading.doors.tensors.deferred_tensor import Deferred, recording_of
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts

pytestmark = pytest.mark.usefixtures("open_doors")

autodecode = pytest.importorskip("webdataset.autodecode")
KINDS = [
    ("RGB", "JPEG"),
    ("L", "JPEG"),
    ("CMYK", "JPEG"),
    ("RGB", "PNG"),
    ("P", "PNG"),
    ("RGBA", "PNG"),
    ("RGB", "BMP"),
]


def encoded(mode: str, format: str) -> bytes:
    values = np.random.default_rng(3).integers(0, 256, (21, 34, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(values).convert(mode).save(file, format)
    return file.getvalue()


def see(handler: Any, key: str, data: Any) -> Any:
    """What a program sees of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = handler(key, data)
        except Exception as error:
            return type(error), re.sub("0x[0-9a-f]+", "", str(error))
    messages = [str(one.message) for one in caught]
    if isinstance(made, torch.Tensor):
        return made.stride(), made.dtype, made.shape, made.requires_grad, made.tolist(), type(made), messages
    return type(made), None if made is None else np.asarray(made).tolist(), messages


@pytest.mark.parametrize("spec", sorted(autodecode.imagespecs))
def test_handlers_make_what_webdataset_makes(spec: str) -> None:
    handler = autodecode.imagehandler(spec)
    files: list[Any] = [encoded(*kind) for kind in KINDS]
    files += [files[0][:300], files[3][:60], b"none", bytearray(files[0])]
    for data in files:
        for key in ("jpg", "a/b.PNG", "txt"):
            expected = see(handler, key, data)
            with deferred_here(ImageCounts()):
                assert see(handler, key, data) == expected, (key, data[:20])


@pytest.mark.parametrize("spec", ["torchrgb8", "torchrgb", "torch"])
def test_rgb_tensors_are_deferred_and_opened_once(spec: str) -> None:
    handler, counts = autodecode.imagehandler(spec), ImageCounts()
    with deferred_here(counts):
        for mode, format in KINDS:
            made = handler("jpg", encoded(mode, format))
            native = mode != "CMYK" and format != "BMP"
            assert (isinstance(made, Deferred) and recording_of(made) is not None) == native
            assert made.float().mean() > 0
    assert counts.native == 5 and counts.total - counts.native <= 2


def test_a_handler_of_the_program_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autodecode.ImageHandler, "__call__", lambda self, key, data: "mine")
    with deferred_here(ImageCounts()):
        assert autodecode.imagehandler("torchrgb")("jpg", encoded("RGB", "JPEG")) == "mine"
