"""What of the recorded operations runs natively, and on how many pixels."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps

import headrace
from headrace._base.native import core
from headrace._recipe.arithmetic import pillow_rule
from headrace.pillow.deferred_image import is_deferred
from headrace.pillow.files import jpeg_files
from headrace.pillow.recording.native_plan import NativePlan

FLIP, MIRROR, HALF, QUARTER = 0, 1, 3, 2


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """For each plan that was run natively, the box of the file that it takes, and the number of its resizes."""
    made: list[Any] = []
    run = core.decode_fuse

    def recorded(file: core.JpegFile, plan: dict[str, Any], *how: Any) -> None:
        first = [*plan["stages"], plan["last"]][0]
        made.append((first["box"], len(plan["stages"])))
        run(file, plan, *how)

    monkeypatch.setattr(core, "decode_fuse", recorded)
    return made


def test_operations_up_to_the_first_that_is_not_native() -> None:
    operations = [
        ("crop", (10, 20, 60, 90)),
        ("transpose", FLIP),
        ("crop", (5, 0, 45, 30)),
        ("convert", "L", 3),
        ("resize", (20, 10), 2, (0, 0, 40, 30)),
        ("convert", "RGB", 3),
        ("transpose", HALF),
        ("crop", (1, 2, 11, 9)),
        ("transpose", QUARTER),
        ("resize", (5, 5), 2, (0, 0, 7, 10)),
    ]
    plan = NativePlan((100, 100), "RGB", operations)
    assert plan.mode == "RGB" and list(plan.rest) == operations[8:]
    assert [(stage["box"], stage["resize"]) for stage in plan.stages] == [((15, 20, 40, 30), (20, 10))]
    first = plan.stages[0]
    assert first["flip_horizontal"] and first["gray"] and not first["flip_vertical"]
    assert plan.last["box"] == (9, 1, 10, 7) and plan.last["flip_horizontal"] and plan.last["flip_vertical"]
    assert "gray" not in plan.last


@pytest.mark.parametrize("operation", [("crop", (-1, 0, 5, 5)), ("crop", (0, 0, 0, 5)), ("resize", (5, 5), 0, None)])
def test_operations_left_to_pillow(operation: tuple[Any, ...]) -> None:
    plan = NativePlan((10, 10), "RGB", [operation])
    assert list(plan.rest) == [operation] and plan.stages == [] and plan.last == {"box": (0, 0, 10, 10)}


@pytest.mark.pixels
def test_crop_flip_gray_resize_and_crop_are_one_pass(photographs: list[Path], calls: list[Any]) -> None:
    image = headrace.pillow.open(photographs[0])
    made = ImageOps.mirror(image.crop((10, 20, 110, 100))).convert("L").resize((50, 30)).crop((5, 5, 45, 25))
    assert is_deferred(made)
    plain = ImageOps.mirror(Image.open(photographs[0]).crop((10, 20, 110, 100))).convert("L").resize((50, 30))
    assert made.tobytes() == plain.crop((5, 5, 45, 25)).tobytes()
    assert calls == [((10, 20, 100, 80), 1)]


@pytest.mark.pixels
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_gray_files(photographs: list[Path], calls: list[Any], mode: str) -> None:
    stream = io.BytesIO()
    Image.open(photographs[0]).convert("L").save(stream, "JPEG")
    image = headrace.pillow.open(stream)
    assert is_deferred(image)
    made = image.convert(mode).crop((3, 4, 90, 80)).resize((40, 30))
    assert is_deferred(made) and made.mode == mode
    assert made.tobytes() == Image.open(stream).convert(mode).crop((3, 4, 90, 80)).resize((40, 30)).tobytes()
    assert calls == [((3, 4, 87, 76), 1)]


@pytest.mark.pixels
def test_methods_of_pillow_that_call_recorded_ones(photographs: list[Path], calls: list[Any]) -> None:
    """They are Pillow's, so only pixels and decoding are compared."""
    path = photographs[0]
    exif = Image.Exif()
    exif[0x0112] = 5
    stream = io.BytesIO()
    Image.open(path).save(stream, "JPEG", exif=exif)
    for method in (
        lambda image: ImageOps.exif_transpose(image),
        lambda image: ImageOps.fit(image, (40, 50)),
        lambda image: ImageOps.contain(image, (40, 50)),
        lambda image: ImageOps.pad(image, (40, 50)),
        lambda image: ImageOps.flip(image),
        lambda image: image.rotate(90, expand=True),
        lambda image: image.resize((200, 100), reducing_gap=3.0),
        lambda image: image.thumbnail((image.width // 2, image.height)) or image,
        lambda image: image.reduce(2),
    ):
        calls.clear()
        made, plain = method(headrace.pillow.open(stream)), method(Image.open(stream))
        assert (made.tobytes(), made.info, dict(made.getexif())) == (plain.tobytes(), plain.info, dict(plain.getexif()))
        assert len(calls) == 1


def test_an_unknown_order_of_passes_leaves_resizes_to_pillow(
    photographs: list[Path], calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = pillow_rule.ProbeReport("99.0", "by_reduction", (), 8, 0.0)
    monkeypatch.setattr(pillow_rule, "probe_pass_order", lambda: report)
    pillow_rule.is_pass_order_known.cache_clear()
    pillow_rule.pass_order.cache_clear()
    try:
        made = headrace.pillow.open(photographs[0]).crop((3, 4, 90, 80)).resize((40, 30))
        assert made.tobytes() == Image.open(photographs[0]).crop((3, 4, 90, 80)).resize((40, 30)).tobytes()
    finally:
        pillow_rule.is_pass_order_known.cache_clear()
        pillow_rule.pass_order.cache_clear()
    assert calls == [((3, 4, 87, 76), 0)]


def test_what_pillow_decodes(photographs: list[Path], calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    path: Path = photographs[0]
    with Image.open(path) as plain:
        width, height = plain.size
    for draft in (("L", None), ("RGB", (width // 2, height // 2))):
        made = []
        for open_ in (headrace.pillow.open, Image.open):
            image = open_(path)
            image.draft(*draft)
            made.append((image.mode, image.resize((30, 20)).tobytes()))
        assert made[0] == made[1]
    monkeypatch.setattr(jpeg_files, "MOST_PIXELS", width * height - 1)
    assert headrace.pillow.open(path).copy().tobytes() == Image.open(path).tobytes()
    assert calls == []
