"""PIL.Image.open stays Pillow's function; plugins, methods and functions that a program has put in place are called."""

from __future__ import annotations

import functools
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFile, ImageOps, JpegImagePlugin
from PIL.JpegImagePlugin import JpegImageFile
from torch.utils.data import Dataset

import headrace
from headrace.pillow.deferred_image import is_deferred
from torchvision_shim import import_torchvision

pytestmark = [  # Pillow's images leave their files open, too
    pytest.mark.filterwarnings("ignore:unclosed file"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
OPEN, OPENS = Image.open, Image.OPEN["JPEG"]


@pytest.fixture
def file(photographs: list[Path]) -> Path:
    return photographs[0]


def test_open_is_pillows_own_function(file: Path) -> None:
    code, signature = Image.open.__code__, inspect.signature(Image.open)
    with headrace.pillow.deferred():
        assert Image.open is OPEN and Image.open.__code__ is code and inspect.signature(Image.open) == signature
        assert pickle.loads(pickle.dumps(functools.partial(Image.open, file)))().size == OPEN(file).size
        assert is_deferred(OPEN(file))  # one that was kept from before, too
        assert pickle.loads(pickle.dumps(Image.OPEN))["JPEG"] == Image.OPEN["JPEG"]
    assert Image.OPEN["JPEG"] == OPENS


class Holding(Dataset[Any]):
    def __init__(self, file: Path) -> None:
        self.file, self.open = file, Image.open

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return pickle.dumps((self, Image.open, Image.OPEN["JPEG"]))


def test_what_was_pickled_while_batches_are_made_loads_elsewhere(file: Path) -> None:
    (sent,) = list(headrace.DataLoader(torch.utils.data.Subset(Holding(file), [0]), batch_size=None))
    program = "import pickle, sys; held, here, _ = pickle.load(sys.stdin.buffer); "
    program += "print(held.open(held.file).convert('L').size, here is held.open)"
    paths = ":".join([str(Path(__file__).parent), str(Path(headrace.__file__).parents[1]), *sys.path])
    done = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True, env={"PYTHONPATH": paths})
    assert done.stdout.decode().strip() == f"{Image.open(file).size} True", done.stderr.decode()


def test_classes_are_pillows_before_and_after_the_pixels_are_made(file: Path) -> None:
    with headrace.pillow.deferred():
        image = Image.open(file)
        made = image.convert("RGB").resize((9, 9))
        enhancer = ImageEnhance.Contrast(made)
    for _ in range(2):
        assert type(image) is JpegImageFile and type(made) is Image.Image and type(enhancer) is ImageEnhance.Contrast
        assert made.__class__ is Image.Image and {Image.Image: 1}[type(made)] == 1
        assert pickle.loads(pickle.dumps(enhancer)).degenerate == enhancer.degenerate
        made.tobytes()


def test_a_method_that_a_program_had_put_there_leaves_the_next_images_deferred(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program's, where Pillow's class has none, that is removed: ours has to come back."""
    with headrace.pillow.deferred(), monkeypatch.context() as patch:
        patch.setattr(JpegImageFile, "load", JpegImageFile.load)
        del JpegImageFile.load
        image = Image.open(file)
        image.load()
        assert is_deferred(image) and "_unread" not in vars(image) and "load" in vars(JpegImageFile)


class OtherJpeg(JpegImageFile):
    def load(self) -> Any:
        made = super().load()
        if made is not None:
            self.im.paste((1, 2, 3), (0, 0, 5, 5))
        return made


@pytest.mark.parametrize("when", ["before", "inside"])
@pytest.mark.parametrize("opens", [OtherJpeg, lambda fp, name: OtherJpeg(fp, name), JpegImageFile])
def test_a_plugin_of_the_program_opens_its_files(
    file: Path, monkeypatch: pytest.MonkeyPatch, opens: Callable[..., Any], when: str
) -> None:
    accept = OPENS[1]
    expected = opens(file, None).convert("RGB").tobytes()
    monkeypatch.setitem(Image.OPEN, "JPEG", OPENS)
    if when == "before":
        Image.register_open("JPEG", opens, accept)
    with headrace.pillow.deferred():
        if when == "inside":
            Image.register_open("JPEG", opens, accept)
        image = Image.open(file)
        assert not is_deferred(image)
        assert image.convert("RGB").tobytes() == expected
    assert Image.OPEN["JPEG"] == (opens, accept)


class Red:
    """A decoder of the program."""

    pulls_fd = False

    def __init__(self, mode: str, *_: Any) -> None: ...

    def setimage(self, im: Any, extents: Any = None) -> None:
        im.paste((200, 0, 0), (0, 0, *im.size))

    def decode(self, data: bytes) -> tuple[int, int]:
        return -1, 0

    def cleanup(self) -> None: ...


def _sentinel(self: Any, *args: Any, **options: Any) -> Any:
    assert self.im.mode  # a true image
    return Image.new("RGB", (8, 8), (9, 8, 7))


def _reading(plain: Any) -> Any:
    @functools.wraps(plain)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        made = plain(self, *args, **options)
        if made is not None:
            self.im.paste(4 if self.mode == "L" else (4, 5, 6), (0, 0, 3, 3))
        return made

    return method


#: What a program replaces: holder, name, the function in its place given the one before.
PATCHES: dict[str, tuple[Any, str, Any]] = {
    "Image.convert": (Image.Image, "convert", lambda plain: _sentinel),
    "Image.resize": (Image.Image, "resize", lambda plain: _sentinel),
    "Image.crop, calling Pillow's": (
        Image.Image,
        "crop",
        lambda plain: lambda self, *box: ImageOps.invert(plain(self, *box)),
    ),
    "Image.transform": (Image.Image, "transform", lambda plain: _sentinel),
    "Image.tobytes": (Image.Image, "tobytes", lambda plain: lambda self, *a: bytes(3 * self.width * self.height)),
    "Image.load": (Image.Image, "load", _reading),
    "Image.copy": (Image.Image, "copy", lambda plain: _sentinel),
    "ImageFile.load": (ImageFile.ImageFile, "load", _reading),
    "JpegImageFile.load": (JpegImageFile, "load", _reading),
    "JpegImageFile.load_end": (JpegImageFile, "load_end", lambda plain: lambda self: self.im.paste(5, (0, 0, 9, 9))),
    "JpegImageFile.load_read": (JpegImageFile, "load_read", lambda plain: lambda self, n: plain(self, min(n, 100))),
    "JpegImageFile.draft": (JpegImageFile, "draft", lambda plain: lambda self, mode, size: plain(self, "L", (40, 40))),
    "JpegImageFile._open": (JpegImageFile, "_open", lambda plain: lambda self: (plain(self), self.info.update(a=1))),
    "Image._getdecoder": (Image, "_getdecoder", lambda plain: lambda *args: Red("RGB")),
    "Image.DECODERS": (Image.DECODERS, "jpeg", lambda plain: Red),
    "Image.MAX_IMAGE_PIXELS": (Image, "MAX_IMAGE_PIXELS", lambda plain: 100),
    "Image.blend": (Image, "blend", lambda plain: lambda a, b, by: plain(a, b, 0.9)),
    "Image.new": (Image, "new", lambda plain: lambda mode, size, *_: plain(mode, size, 77)),
    "Image.filter": (Image.Image, "filter", lambda plain: _sentinel),
    "Enhance.enhance": (ImageEnhance._Enhance, "enhance", lambda plain: lambda self, by: self.image),
    "Contrast": (ImageEnhance, "Contrast", lambda plain: ImageEnhance.Color),
    "Contrast.__init__": (ImageEnhance.Contrast, "__init__", lambda plain: ImageEnhance.Brightness.__init__),
    "ImageOps.posterize": (ImageOps, "posterize", lambda plain: lambda image, bits: _sentinel(image)),
    "ImageOps.equalize": (ImageOps, "equalize", lambda plain: functools.wraps(plain)(lambda image: _sentinel(image))),
}


def _chain(file: Path) -> list[Any]:
    """Operations whose native passes stand for other functions."""
    T = import_torchvision().transforms
    functional = T.functional
    calls = [
        lambda i: i.convert("RGB"),
        lambda i: i.crop((2, 3, 60, 50)).resize((20, 20), 2),
        lambda i: np.asarray(i.copy()),
        lambda i: i.rotate(10, resample=2),
        lambda i: functional.adjust_contrast(i, 0.4),
        lambda i: ImageEnhance.Contrast(i).enhance(0.3),
        lambda i: functional.adjust_brightness(i.convert("RGB"), 0.4),
        lambda i: functional.adjust_sharpness(i, 2.0),
        lambda i: functional.adjust_saturation(i, 0.2),
        lambda i: functional.posterize(i.convert("RGB"), 3),
        lambda i: functional.equalize(i.convert("RGB")),
        lambda i: T.Compose([T.ToTensor(), T.Normalize([0.5] * 3, [0.5] * 3)])(i.resize((9, 9))),
    ]
    return [_seen(call, file) for call in calls]


def _seen(call: Any, file: Path) -> Any:
    try:
        made = call(Image.open(file))
        return np.asarray(made).tobytes(), sorted(map(str, getattr(made, "info", ())))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("when", ["before", "inside"])
@pytest.mark.parametrize("name", PATCHES)
@pytest.mark.filterwarnings("ignore")
def test_a_replaced_function_is_called(file: Path, monkeypatch: pytest.MonkeyPatch, name: str, when: str) -> None:
    holder, attribute, version = PATCHES[name]

    def patch(context: pytest.MonkeyPatch) -> None:
        if isinstance(holder, dict):
            context.setitem(holder, attribute, version(None))
        else:
            context.setattr(holder, attribute, version(getattr(holder, attribute)))

    with monkeypatch.context() as context:
        patch(context)
        expected = _chain(file)
    plain = _chain(file)
    with monkeypatch.context() as context:
        if when == "before":
            patch(context)
        with headrace.pillow.deferred():
            if when == "inside":
                _chain(file)
                patch(context)
            assert _chain(file) == expected
    with headrace.pillow.deferred():
        assert _chain(file) == plain  # it has been taken away again


@pytest.mark.parametrize("step", ["ToTensor", "Normalize", "functional.to_tensor", "functional.normalize"])
def test_a_replaced_transform_is_called(file: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    T = import_torchvision().transforms
    made = T.Compose([T.Resize((9, 9)), T.ToTensor(), T.Normalize([0.5] * 3, [0.5] * 3)])
    holder, name = {
        "ToTensor": (T.ToTensor, "__call__"),
        "Normalize": (T.Normalize, "forward"),
        "functional.to_tensor": (T.functional, "to_tensor"),
        "functional.normalize": (T.functional, "normalize"),
    }[step]
    plain, calls = getattr(holder, name), []

    def counted(*args: Any, **options: Any) -> Any:
        calls.append(args)
        return plain(*args, **options)

    with headrace.pillow.deferred():
        expected = made(Image.open(file))
        monkeypatch.setattr(holder, name, counted)
        assert torch.equal(made(Image.open(file)), expected)
    assert len(calls) == 1


def test_no_table_is_kept_of_replaced_functions(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    T = import_torchvision().transforms
    made = T.Compose([T.ToTensor(), T.Normalize([0.125] * 3, [0.25] * 3)])  # no other test has this table
    expected, plain = made(Image.open(file)), Image.Image.tobytes
    with headrace.pillow.deferred():
        with monkeypatch.context() as context:
            context.setattr(Image.Image, "tobytes", lambda self, *options: bytes(len(plain(self, *options))))
            made(Image.open(file))
        assert torch.equal(made(Image.open(file)), expected)


def test_truncated_files_are_read_as_the_program_wants(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = tmp_path / "cut.jpg"
    cut.write_bytes(file.read_bytes()[:-900])
    for allowed in (False, True, False):
        monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", allowed)
        expected = _seen(lambda image: image.convert("RGB"), cut)
        with headrace.pillow.deferred():
            assert _seen(lambda image: image.convert("RGB"), cut) == expected


def test_the_factory_of_the_plugin_is_looked_up_in_the_registry_alone(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JpegImagePlugin, "jpeg_factory", None)  # Pillow does not look here
    with headrace.pillow.deferred():
        assert is_deferred(Image.open(file))
