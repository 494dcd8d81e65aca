"""Readers of other libraries that open files with Pillow: imageio, scikit-image, matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from png_samples import png
from support import PHOTOS

READERS = {"imageio.v3": "imread", "skimage.io": "imread", "matplotlib.image": "imread"}


@pytest.mark.parametrize("module", READERS)
def test_arrays_are_equal_and_decoded_natively(module: str, tmp_path: Path) -> None:
    read: Any = getattr(pytest.importorskip(module, reason=f"{module} is not installed"), READERS[module])
    files = [*sorted(PHOTOS.glob("*.jpg"))[:3], tmp_path / "one.png"]
    files[-1].write_bytes(png(40, 30))
    counts = ImageCounts()
    for path in files:
        wanted = read(path)
        with deferred_here(counts):
            made = read(path)
        assert type(made) is type(wanted)
        assert (made.dtype, made.shape, made.strides) == (wanted.dtype, wanted.shape, wanted.strides)
        assert np.array_equal(made, wanted)
    # matplotlib calls Pillow's class for PNGs.
    assert counts.natively.total() == len(files) - (module == "matplotlib.image")
