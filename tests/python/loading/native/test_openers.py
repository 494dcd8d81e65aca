"""What a program has registered with Pillow for a format that native threads decode opens its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image, ImageFile, JpegImagePlugin, PngImagePlugin
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from support import PHOTOS
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision.datasets import ImageFolder  # noqa: E402 - after the shim
from torchvision.transforms import v2  # noqa: E402

PLUGINS: dict[str, Any] = {"JPEG": JpegImagePlugin, "PNG": PngImagePlugin}
CLASSES: dict[str, Any] = {"JPEG": JpegImagePlugin.JpegImageFile, "PNG": PngImagePlugin.PngImageFile}


@pytest.fixture(params=PLUGINS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A format; the registry is put back at the end."""
    Image.preinit()
    monkeypatch.setattr(Image, "ID", list(Image.ID))
    monkeypatch.setattr(Image, "OPEN", dict(Image.OPEN))
    return str(request.param)


def black(kind: str) -> type[ImageFile.ImageFile]:
    """A class whose images are black."""

    base: Any = CLASSES[kind]

    class Black(base):
        def load(self) -> Any:
            made = super().load()
            self.im = Image.new(self.mode, self.size).im
            return made

    return Black


def register_in_place(kind: str) -> None:
    Image.register_open(kind, black(kind), Image.OPEN[kind][1])


def register_before(kind: str) -> None:
    Image.register_open("BLACK", black(kind), PLUGINS[kind]._accept)
    Image.ID.remove("BLACK")
    Image.ID.insert(0, "BLACK")


@pytest.mark.parametrize("register", [register_in_place, register_before])
@pytest.mark.filterwarnings("ignore::headrace.PerformanceWarning")
def test_images_are_those_of_the_programs_class(kind: str, register: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with Image.open(next(PHOTOS.glob("*.jpg"))) as image:
        image.resize((40, 30)).save(tmp_path / "a" / f"one.{kind.lower()}")
    steps = [v2.Resize((8, 8)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    dataset = ImageFolder(str(tmp_path), v2.Compose(steps))
    loader = headrace.DataLoader(dataset, 1)
    (before,) = loader
    assert loader.native and before[0].max() > 0
    register(kind)
    (after,), (theirs,) = loader, TorchDataLoader(dataset, 1)
    assert not loader.native and torch.equal(after[0], theirs[0]) and after[0].max() == 0
    assert f"Pillow's plugin for {kind}s" in str(loader.explain()) or "was replaced" in str(loader.explain())
