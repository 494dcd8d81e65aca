"""Where JPEG files are read natively, a program's functions are called, its files are used as by Pillow, and a Pillow
that does otherwise opens its images itself."""

from __future__ import annotations

import inspect
import io
import multiprocessing
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opening_samples import made_files, segment, unopened
from PIL import Image, ImageFile, JpegImagePlugin, UnidentifiedImageError
from PIL.JpegImagePlugin import JpegImageFile

import headrace.pillow
from headrace.pillow.files import jpeg_openings
from headrace.pillow.files.jpeg_openings import OPENINGS
from support import pictures

PLAIN = JpegImageFile._open
MARKERS = {"SOF": 0xFFC0, "Skip": 0xFFC4, "DQT": 0xFFDB, "APP": 0xFFE0, "COM": 0xFFFE}


@pytest.fixture(scope="module")
def data() -> bytes:
    (plain,) = pictures(1)
    return plain[:2] + segment(0xFE, b"said") + plain[2:]


def noted(calls: list[str], name: str, function: Any) -> Any:
    def call(*arguments: Any) -> Any:
        calls.append(name)
        return function(*arguments)

    return call


def is_native(data: bytes, native: list[Any]) -> bool:
    native.clear()
    image = Image.open(io.BytesIO(data))
    theirs = unopened(data)
    PLAIN(theirs)
    assert (image.info, image.layer, image.size) == (theirs.info, theirs.layer, theirs.size)  # type: ignore[attr-defined]
    return bool(native)


@pytest.mark.parametrize("name", MARKERS)
def test_entries_of_the_table_of_markers(
    name: str, data: bytes, native: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    assert is_native(data, native)
    table = JpegImagePlugin.MARKER
    assert table[MARKERS[name]][2] is getattr(JpegImagePlugin, name)
    with monkeypatch.context() as patch:
        entry = (*table[MARKERS[name]][:2], noted(calls, name, getattr(JpegImagePlugin, name)))
        patch.setitem(table, MARKERS[name], entry)
        assert not is_native(data, native) and calls
        # A comparison with Pillow has not been made yet: the program's function sees its own images alone.
        calls.clear()
        assert not jpeg_openings._Opener(PLAIN).open(unopened(data)) and not calls
    assert is_native(data, native)
    with monkeypatch.context() as patch:
        patch.setitem(table, MARKERS[name], list(table[MARKERS[name]]))  # may be changed later, and still equal
        assert not is_native(data, native)
    with monkeypatch.context() as patch:
        patch.delitem(table, MARKERS[name])
        with pytest.raises(UnidentifiedImageError):
            is_native(data, native)
    assert is_native(data, native)


def test_a_table_of_markers_of_the_programs(data: bytes, native: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Table(dict[int, Any]):
        def __getitem__(self, marker: int) -> Any:
            asked.append(marker)
            return super().__getitem__(marker)

    with monkeypatch.context() as patch:
        patch.setattr(JpegImagePlugin, "MARKER", Table(JpegImagePlugin.MARKER))
        assert not is_native(data, native) and asked
        patch.setattr(JpegImagePlugin, "MARKER", dict(JpegImagePlugin.MARKER))
        assert is_native(data, native)
    assert is_native(data, native)


@pytest.mark.parametrize(
    ("holder", "name"),
    [
        *((JpegImagePlugin, name) for name in (*MARKERS, "_accept")),
        (ImageFile, "_safe_read"),
        (JpegImageFile, "_read_dpi_from_exif"),
        (JpegImageFile, "_open"),
    ],
)
def test_functions_of_the_programs(
    holder: Any, name: str, data: bytes, native: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    assert is_native(data, native)
    with monkeypatch.context() as patch:
        patch.setattr(holder, name, noted(calls, name, getattr(holder, name)))
        assert not is_native(data, native)
        assert bool(calls) == (name not in MARKERS)  # these are in the table, from which Pillow takes them
    assert is_native(data, native)


def test_a_function_whose_code_is_changed(data: bytes, native: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def comment(self: Any, marker: int) -> None:
        Skip(self, marker)  # type: ignore[name-defined]  # noqa: F821 - a name of Pillow's module
        self.info["comment"] = "mine"

    monkeypatch.setattr(JpegImagePlugin.COM, "__code__", comment.__code__)
    image = Image.open(io.BytesIO(data))
    assert image.info["comment"] == "mine" and not native


def test_an_opening_function_that_a_program_has_put_there_before(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    own = noted(calls, "_open", PLAIN)
    monkeypatch.setattr(JpegImageFile, "_open", own)
    try:
        assert not OPENINGS.replace() and JpegImageFile._open is own
        Image.open(io.BytesIO(data))
        assert calls == ["_open"]
    finally:
        OPENINGS.put_back()
    assert JpegImageFile._open is own


def test_files_are_opened_natively_while_images_are_deferred(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    plain = jpeg_openings._look_ahead

    def look(file: Any) -> bytes:
        read.append(plain(file))
        return read[-1]

    monkeypatch.setattr(jpeg_openings, "_look_ahead", look)
    with headrace.pillow.deferred():
        ours: Any = JpegImageFile._open
        assert ours.__wrapped__ is PLAIN and pickle.loads(pickle.dumps(ours)) is ours
        assert inspect.signature(ours) == inspect.signature(PLAIN) and ours.__qualname__ == PLAIN.__qualname__
        Image.open(io.BytesIO(data))
        assert read and data.startswith(read[-1])
    assert JpegImageFile._open is PLAIN
    headrace.pillow.open(io.BytesIO(data))
    assert JpegImageFile._open is PLAIN


def test_subclasses_open_by_pillow(data: bytes, native: list[Any]) -> None:
    class Own(JpegImageFile):
        pass

    image: Any = Own(io.BytesIO(data))
    assert image.info == Image.open(io.BytesIO(data)).info and type(image) is Own
    assert [type(one) for one in native] == [JpegImageFile]


def other_pillow(change: Callable[[Any], None]) -> Any:
    def _open(self: Any) -> None:
        PLAIN(self)
        change(self)

    _open.__code__ = _open.__code__.replace(co_names=_open.__code__.co_names + PLAIN.__code__.co_names)
    return _open


def fail(image: Any) -> None:
    raise AttributeError("info")


OTHERS: dict[str, Callable[[Any], None]] = {
    "another attribute": lambda image: setattr(image, "new", 1),
    "an attribute less": lambda image: delattr(image, "icclist"),
    "another order": lambda image: setattr(image, "layer", image.__dict__.pop("layer")),
    "another type": lambda image: setattr(image, "layer", tuple(image.layer)),
    "another tile": lambda image: setattr(image, "tile", [(*image.tile[0][:3], image.mode)]),
    "more info": lambda image: image.info.setdefault("dpi", (72, 72)),
    "info in another order": lambda image: image.info.update(jfif=image.info.pop("jfif")),
    "another place in the file": lambda image: image.fp.read(1),
    "an error": fail,
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_pillow_that_does_otherwise_opens_its_images(name: str, data: bytes) -> None:
    same, other = (jpeg_openings._Opener(other_pillow(change)) for change in (lambda image: None, OTHERS[name]))
    assert same.open(unopened(data))
    for _ in range(2):
        image = unopened(data)
        assert not other.open(image) and image.fp.tell() == 0 and "bits" not in vars(image)


def outcome(make: Callable[[], Any]) -> Any:
    try:
        file = make()
        image: Any = JpegImageFile(file)
        own = [(name, repr(value)) for name, value in vars(image).items() if name not in ("fp", "filename")]
        return own, image.fp.tell()
    except Exception as error:
        return type(error), str(error).split(" object at ")[0]


class OwnStream(io.BytesIO):
    """A file object of the program's."""


@pytest.fixture
def files(data: bytes, tmp_path: Path) -> dict[str, tuple[Callable[[], Any], bool]]:
    """Name -> what makes a file, and whether it is read natively."""
    path, after, empty = (tmp_path / name for name in ("one.jpg", "after.jpg", "empty.jpg"))
    path.write_bytes(data)
    after.write_bytes(bytes(8150) + data)
    empty.write_bytes(b"")

    def at(file: Any, position: int) -> Any:
        file.seek(position)
        return file

    def passed(file: Any, count: int) -> Any:
        file.read(count)
        return file

    def closed(file: Any) -> Any:
        file.close()
        return file

    def detached(file: Any) -> Any:
        file.detach()
        return file

    def piped() -> Any:
        read, write = os.pipe()
        with os.fdopen(write, "wb") as end:
            end.write(data[:5000])
        return os.fdopen(read, "rb")

    return {
        "a path": (lambda: str(path), True),
        "a file": (lambda: path.open("rb"), True),
        "bytes": (lambda: io.BytesIO(data), True),
        "a file after others": (lambda: at(after.open("rb"), 8150), True),
        "a header in two buffers": (lambda: passed(after.open("rb", buffering=8192), 8150), False),
        "bytes after others": (lambda: at(io.BytesIO(bytes(99) + data), 99), True),
        "bytes before others": (lambda: io.BytesIO(data + data), True),
        "the end": (lambda: at(io.BytesIO(data), len(data)), False),
        "beyond the end": (lambda: at(io.BytesIO(data), len(data) + 9), False),
        "an empty file": (lambda: str(empty), False),
        "a small buffer": (lambda: path.open("rb", buffering=64), False),
        "no buffer": (lambda: path.open("rb", buffering=0), False),
        "a buffer around another class": (lambda: io.BufferedReader(io.BytesIO(data)), False),
        "a class of the program's": (lambda: OwnStream(data), False),
        "a file for reading and writing": (lambda: path.open("r+b"), False),
        "closed bytes": (lambda: closed(io.BytesIO(data)), False),
        "a closed file": (lambda: closed(path.open("rb")), False),
        "a detached file": (lambda: detached(path.open("rb")), False),
        "a pipe": (piped, True),
        "for writing": (lambda: (path.parent / "new").open("wb"), False),
        "none": (lambda: None, False),
    }


@pytest.mark.filterwarnings("ignore:unclosed file")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_files_of_all_types(files: dict[str, tuple[Callable[[], Any], bool]], native: list[Any]) -> None:
    for name, (make, is_read) in files.items():
        OPENINGS.put_back()
        expected = outcome(make)
        OPENINGS.replace()
        native.clear()
        assert outcome(make) == expected, name
        assert bool(native) == is_read, name


def test_the_first_images_of_many_threads() -> None:
    found = [data for data in made_files() if jpeg_openings._Opener(PLAIN).open(unopened(data))][:50]
    expected = []
    for data in found:
        theirs = unopened(data)
        PLAIN(theirs)
        expected.append(jpeg_openings._described(theirs))
    for _ in range(20):
        opener = jpeg_openings._Opener(PLAIN)

        def described(data: bytes, opener: Any = opener) -> Any:
            image = unopened(data)
            return opener.open(image) and jpeg_openings._described(image)

        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(described, found)) == expected


def _tell(data: bytes, end: Any) -> None:
    image: Any = Image.open(io.BytesIO(data))
    end.send((image.info, image.layer, image.fp.tell(), JpegImageFile._open is PLAIN))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process(data: bytes, native: list[Any]) -> None:
    _ = native
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_tell, args=(data, there))
    child.start()
    try:
        assert here.poll(60)
        image = unopened(data)
        PLAIN(image)
        assert here.recv() == (image.info, image.layer, image.fp.tell(), False)
    finally:
        child.join()
