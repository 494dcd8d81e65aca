"""Opens JPEG files as Pillow's JpegImageFile does, whose markers are read natively.

Pillow reads them byte by byte in Python: a third of what opening a file takes. What it keeps of the usual ones is
known, and is the same in all its versions but for the names of some attributes; these are in its function's code.
Before the first file is opened so, small ones are opened in both ways and compared. All other markers are Pillow's.
"""

from __future__ import annotations

import functools
import io
import operator
from typing import IO, Any

from PIL import Image, ImageFile, JpegImagePlugin
from PIL.JpegImagePlugin import JpegImageFile

from headrace._base.native import core
from headrace._base.types import Function
from headrace.pillow.recording.patches import Replacements, Untouched, method

_MODES = {1: "L", 3: "RGB"}
_MOST = 4096  # bytes that are looked at: what a buffered file holds
#: Attributes that Pillow leaves empty, of one version or another.
_DICTS = ("_huffman_dc", "_huffman_ac", "huffman_dc", "huffman_ac")
#: Markers that are read natively -> the name of Pillow's function that reads them.
_HANDLERS = {
    **dict.fromkeys((0xFFC0, 0xFFC1, 0xFFC2), "SOF"),
    **dict.fromkeys((0xFFC4, 0xFFDA, 0xFFDD), "Skip"),
    0xFFDB: "DQT",
    **dict.fromkeys(range(0xFFE0, 0xFFF0), "APP"),
    0xFFFE: "COM",
}
_entries_of = operator.itemgetter(*_HANDLERS)

_READERS = Untouched(
    *((JpegImagePlugin, name) for name in ("SOF", "DQT", "APP", "COM", "Skip", "_accept")),
    (ImageFile, "_safe_read"),
    (ImageFile, "_Tile"),
    (JpegImageFile, "_open"),
    (JpegImageFile, "_read_dpi_from_exif"),
)


def _plain_tile(*of: object) -> tuple[object, ...]:
    """A tile as before Pillow 11.1."""
    return of


class _Opener:
    """Sets what Pillow's ``_open`` sets.

    Args:
        plain: Pillow's.
    """

    def __init__(self, plain: Function) -> None:
        self._plain = plain
        names = plain.__code__.co_names
        self._dicts = tuple(name for name in _DICTS if name in names)
        self._has_exif_offset = "_exif_offset" in names
        self._tile = getattr(ImageFile, "_Tile", _plain_tile) if "_Tile" in names else _plain_tile
        self._is_pillows: bool | None = None  # None: not compared yet
        self._entries: tuple[Any, ...] = ()  # of Pillow's table of markers, when they were found to be its own

    def open(self, image: JpegImageFile) -> bool:
        """Opens an image whose file is set. Returns False, and has changed nothing, where Pillow has to."""
        is_new = "bits" not in image.__dict__ and not image.info  # what Pillow sets depends on what is there
        if not is_new or not _READERS or not self._has_pillows_handlers():
            return False
        if self._is_pillows is None:
            self._is_pillows = all(map(self._does_as_pillow, _make_samples()))
        return self._is_pillows and self._set(image)

    def _has_pillows_handlers(self) -> bool:
        """Whether Pillow's own functions are in its table of markers, where a program may put others."""
        table = JpegImagePlugin.MARKER
        if type(table) is not dict:
            return False
        try:
            entries = _entries_of(table)
        except KeyError:  # removed
            return False
        if entries == self._entries:
            return True
        for entry, name in zip(entries, _HANDLERS.values(), strict=True):
            if type(entry) is not tuple or len(entry) != 3 or entry[2] is not getattr(JpegImagePlugin, name):
                return False
        self._entries = entries
        return True

    def _set(self, image: Any) -> bool:
        file = image.fp
        found = core.opening_markers(_look_ahead(file))
        if found is None:
            return False
        end, size, layer, quantization, applist, info = found
        file.read(end)
        image.bits, image.layers = 8, len(layer)
        if self._has_exif_offset:
            image._exif_offset = 0
        image.layer = layer
        for name in self._dicts:
            setattr(image, name, {})
        image.quantization, image.app, image.applist, image.icclist = quantization, dict(applist), applist, []
        image.info.update(info)
        mode = _MODES[len(layer)]
        image._size, image._mode = size, mode
        image.tile = [self._tile("jpeg", (0, 0, *size), 0, (mode, ""))]
        return True

    def _does_as_pillow(self, data: bytes) -> bool:
        ours, theirs = _unopened(data), _unopened(data)
        try:
            self._plain(theirs)
            return self._set(ours) and _described(ours) == _described(theirs)
        except Exception:  # of another Pillow, or of what a program has put in the place of its functions
            return False


def _look_ahead(file: IO[bytes]) -> bytes:
    """Returns the next bytes of a file, which stays where it is; none if it may not be looked at."""
    kind = type(file)
    try:
        if kind is io.BufferedReader:
            return file.peek() if type(file.raw) is io.FileIO else b""  # type: ignore[attr-defined]
        if kind is not io.BytesIO:
            return b""
        at = file.tell()
        data = file.read(_MOST)
        file.seek(at)
    except (OSError, ValueError):  # closed, detached: raised again, with the words of what Pillow calls
        return b""
    return data


def _unopened(data: bytes) -> Any:
    image: Any = JpegImageFile.__new__(JpegImageFile)
    Image.Image.__init__(image)
    image.fp, image.tile, image._exclusive_fp = io.BytesIO(data), [], False
    return image


def _described(image: Any) -> object:
    """Returns all that an image has, in order, with its types."""
    own = dict(image.__dict__)
    at = own.pop("fp").tell()
    return at, repr(list(own.items())), repr(list(image.info.items())), type(image.tile[0])


def _make_samples() -> list[bytes]:
    """Makes beginnings of files, with each of the segments that are read natively."""

    def segment(marker: int, body: bytes) -> bytes:
        return bytes((0xFF, marker)) + (len(body) + 2).to_bytes(2, "big") + body

    def frame(marker: int, components: int) -> bytes:
        layers = b"".join(bytes((number + 1, 0x11 if number else 0x21, number > 0)) for number in range(components))
        return segment(marker, b"\x08\x00\x07\x01\x05" + bytes((components,)) + layers)

    table = bytes(range(1, 65))
    jfif = [segment(0xE0, b"JFIF\0\1\2" + bytes((unit, 0, 72, 1, 44, 0, 0))) for unit in (0, 1)]
    profile = segment(0xE2, b"ICC_PROFILE\0\1\1" + b"profile")
    others = segment(0xE5, b"") + segment(0xEE, b"Adobe\0\x64\0\0\0\0\1") + segment(0xFE, b"said") + segment(0xE5, b"5")
    others += segment(0xFE, b"") + b"".join(segment(marker, b"unknown") for marker in range(0xE0, 0xF0))
    tables = segment(0xDB, b"\0" + table + b"\1" + table[::-1])
    scan = segment(0xC4, b"\0" * 17) + segment(0xDD, b"\0\4") + segment(0xDA, b"\1\1\0\0\x3f\0") + b"data"
    return [
        b"\xff\xd8" + jfif[0] + tables + frame(0xC0, 3) + scan,
        b"\xff\xd8" + jfif[1] + others + profile + tables + frame(0xC2, 1) + scan,
        b"\xff\xd8" + others + frame(0xC1, 3) + tables + jfif[1] + scan,
    ]


def _patch_open(plain: Function) -> Function:
    opener = _Opener(plain)

    @functools.wraps(plain)
    def call(self: JpegImageFile) -> None:
        if type(self) is not JpegImageFile or not opener.open(self):
            plain(self)

    return call


OPENINGS = Replacements([method("PIL.JpegImagePlugin", "JpegImageFile", "_open", _patch_open)])
