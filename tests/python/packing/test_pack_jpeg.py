"""A JPEG rewritten without loss has the pixels and the metadata of its source for Pillow, and is read natively."""

from __future__ import annotations

import io
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headrace._base.native import core
from support import PHOTOS, data_folder, pictures


def by_pillow(data: bytes) -> np.ndarray | None:
    """Height x width x 3 bytes, or None where Pillow refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(data)) as image:
                return np.asarray(image.convert("RGB"))
        except Exception:  # Pillow raises OSError, SyntaxError, ValueError, struct.error and more
            return None


def check(data: bytes, keep_metadata: bool = True) -> bytes | str:
    """The rewritten file, which must be equal; or why it cannot be rewritten."""
    try:
        packed = core.pack_jpeg(data, keep_metadata=keep_metadata)
    except core.NeedsPillow as refused:
        return str(refused)
    before, after = by_pillow(data), by_pillow(packed)
    assert before is not None
    assert after is not None
    assert np.array_equal(before, after)
    header = core.jpeg_header(packed)
    assert header["not_plain"] is None
    assert not header["progressive"]
    across = max(h for _, h, _ in header["components"])
    columns = 8 * (1 if len(header["components"]) == 1 else across)
    assert header["restart_interval"] == -(-header["width"] // columns)
    return packed


def check_folder(files: list[Path], at_least: float) -> None:
    """Checks all files; at least this share of those that the native decoder serves must be rewritten."""
    refused: Counter[str] = Counter()
    plain = rewritten = 0
    for file in files:
        data = file.read_bytes()
        made = check(data)
        plain += core.jpeg_header(data)["not_plain"] is None
        rewritten += isinstance(made, bytes)
        refused[made if isinstance(made, str) else ""] += 1
    assert rewritten >= at_least * plain, refused


def test_photos_keep_their_pixels_and_what_pillow_reads_beside_them() -> None:
    for file in sorted(PHOTOS.glob("*.jpg")):
        data = file.read_bytes()
        packed = check(data)
        assert isinstance(packed, bytes), packed
        assert len(packed) < 1.1 * len(data)  # a progressive file grows
        with Image.open(io.BytesIO(data)) as before, Image.open(io.BytesIO(packed)) as after:
            kept = {"progressive", "progression"}
            assert {k: v for k, v in after.info.items() if k not in kept} == {
                k: v for k, v in before.info.items() if k not in kept
            }


def test_only_what_concerns_the_pixels_stays_without_metadata() -> None:
    exif = Image.Exif()
    exif[0x112] = 6
    out = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(out, "JPEG", exif=exif, comment=b"c" * 500, icc_profile=b"p" * 200)
    packed = check(out.getvalue(), keep_metadata=False)
    assert isinstance(packed, bytes)
    with Image.open(io.BytesIO(packed)) as image:
        assert image.getexif()[0x112] == 6
        assert image.info["icc_profile"] == b"p" * 200
        assert "comment" not in image.info


def test_files_that_pillow_decodes_are_refused_with_the_reason() -> None:
    reasons = {made for data in pictures() if isinstance(made := check(data), str)}
    assert reasons == {"not a JPEG", "CMYK or YCCK"}
    with pytest.raises(core.NeedsPillow, match="no EOI"):
        core.pack_jpeg(pictures()[0][:-9])


@pytest.mark.slow
def test_every_jpeg_of_hard_dev_is_equal_or_refused() -> None:
    check_folder(sorted(data_folder("hard_dev").iterdir()), 0.8)  # the others are damaged


def test_imagenet_files_are_rewritten() -> None:
    check_folder(sorted(data_folder("imagenet_dev").rglob("*.JPEG")), 1)


def test_a_profile_behind_the_frame_header_is_not_moved_before_it() -> None:
    data = pictures(1)[0]
    with Image.open(io.BytesIO(data)) as image:
        assert image.format == "JPEG"
    at = data.index(b"\xff\xda")
    body = b"ICC_PROFILE\0\1\1" + b"profile"
    odd = data[:at] + b"\xff\xe2" + (len(body) + 2).to_bytes(2, "big") + body + data[at:]
    assert check(odd) == "an ICC profile behind the frame header"
