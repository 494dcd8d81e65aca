"""The index of a video as bytes, for other processes and later runs: arrays in numpy's .npz, whose comment is a hash.

False numbers in an index would be other frames. So the hash of all bytes is compared before anything is parsed, and
what is parsed must be of the same bytes and libraries, and be what learning could have found. Anything else counts as
not known.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import json
import zipfile
from fractions import Fraction
from typing import Any

import av
import numpy as np

from headrace._base.types import Array
from headrace._media.video.known_videos import KnownVideo
from headrace._media.video.packet_index import PacketIndex, Stream
from headrace._media.video.video_files import checked_index
from headrace._storage.parts.sample_bytes import SampleBytes

_VERSION = 1
_DIGEST = 32  # bytes of a SHA-256
_MOST_BYTES = 256 << 20  # of the arrays
_ARRAYS: dict[str, tuple[type[np.generic], tuple[int | None, ...]]] = {  # dtype and shape of each; None: any
    "about": (np.uint8, (None,)),  # a text in JSON
    "extradata": (np.uint8, (None,)),
    "times": (np.int64, (2, None)),  # pts and duration of each packet
    "places": (np.int64, (2, None)),  # position and size
    "flags": (np.uint8, (None,)),
}
_KEY, _REFERENCE, _READ = 1, 2, 4


@functools.cache
def torchcodecs_name() -> str:
    """Returns what decides what torchcodec says of a file: its version and that of its FFmpeg."""
    import torchcodec

    versions: dict[str, object] = getattr(getattr(torchcodec, "_core", None), "get_ffmpeg_library_versions", dict)()
    return f"torchcodec {torchcodec.__version__}, {sorted(versions.items())}"


def name_index(file: SampleBytes, stream_index: int | None, library: str) -> str | None:
    """Returns what names the index of a stream for other processes, hexadecimal; None: nothing does.

    Args:
        library: the name and version of the one that describes the stream.
    """
    key = file.lasting_key
    if key is None:
        return None
    versions = av.__version__, sorted(av.library_versions.items())
    return hashlib.sha256(repr((_VERSION, key, stream_index, library, versions)).encode()).hexdigest()


def encode_video(name: str, video: KnownVideo) -> bytes | None:
    """Returns what is known of a stream as bytes; None: it has no index, or a description that cannot be written.

    Args:
        name: of the index.
    """
    index = video.index
    if not isinstance(index, PacketIndex):
        return None
    stream = dataclasses.asdict(index.stream)
    extradata = stream.pop("extradata")
    about = {
        "version": _VERSION,
        "name": name,
        "stream": stream,
        "has_extradata": extradata is not None,
        "stream_index": index.stream_index,
        "time_base": [index.time_base.numerator, index.time_base.denominator],
        "is_read": index.is_read is None,
    }
    try:
        described = _to_plain(video.described)
        text = json.dumps({**about, "described": described})
        if _from_plain(json.loads(text)["described"]) != video.described:
            return None
    except TypeError:
        return None
    flags = _KEY * index.is_key.astype(np.uint8) | _REFERENCE * index.is_reference.astype(np.uint8)
    if index.is_read is not None:
        flags |= _READ * index.is_read.astype(np.uint8)
    arrays: dict[str, Array] = {
        "about": np.frombuffer(text.encode(), np.uint8),
        "extradata": np.frombuffer(extradata or b"", np.uint8),
        "times": np.stack([index.pts, index.duration]),
        "places": np.stack([index.position, index.size]),
        "flags": flags,
    }
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, **arrays)
    with zipfile.ZipFile(out, "a") as archive:
        archive.comment = bytes(_DIGEST)
    data = out.getvalue()[:-_DIGEST]
    return data + hashlib.sha256(data).digest()


def decode_video(data: bytes, name: str, size: int) -> KnownVideo:
    """Returns what `encode_video` has written.

    Args:
        name: of the index that is wanted.
        size: of the file, in bytes.

    Raises:
        ValueError: it is anything else.
    """
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise ValueError("it is damaged")
    try:
        arrays = _load_arrays(data)
        about = json.loads(arrays["about"].tobytes())
        if (about["version"], about["name"]) != (_VERSION, name):
            raise ValueError("it is of another file, stream or library")
        index = _make_index(about, arrays)
        video = KnownVideo(index, _from_plain(about["described"]))
        _check(video, size)
    except ValueError:
        raise
    except Exception as error:  # numpy, zipfile and Python raise many classes for what others have written
        raise ValueError(f"it is no index: {error}") from error
    return video


def _load_arrays(data: bytes) -> dict[str, Array]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(one.file_size for one in archive.infolist()) > _MOST_BYTES:
            raise ValueError("it is too long")
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        arrays = {name: held[name] for name in _ARRAYS}
    for name, (kind, shape) in _ARRAYS.items():
        found = arrays[name]
        fits = len(found.shape) == len(shape) and all(b in (None, a) for a, b in zip(found.shape, shape, strict=True))
        if found.dtype != kind or not fits:
            raise ValueError(f"{name} has another type or shape")
    return arrays


def _make_index(about: dict[str, Any], arrays: dict[str, Array]) -> PacketIndex:
    colours: Any = tuple(about["stream"].pop("colours"))
    extradata = arrays["extradata"].tobytes() if about["has_extradata"] else None
    stream = Stream(**about["stream"], colours=colours, extradata=extradata)
    pts, duration = map(np.ascontiguousarray, arrays["times"])
    position, length = map(np.ascontiguousarray, arrays["places"])
    is_key, is_reference, is_read = ((arrays["flags"] & one) > 0 for one in (_KEY, _REFERENCE, _READ))
    return PacketIndex(
        stream,
        about["stream_index"],
        Fraction(*about["time_base"]),
        pts,
        duration,
        position,
        length,
        is_key,
        is_reference,
        np.argsort(pts, kind="stable").astype(np.int64),
        None if about["is_read"] else is_read,
    )


def _check(video: KnownVideo, size: int) -> None:
    """Raises ValueError unless learning a file of this size could have found this."""
    index, described = video.index, video.described
    assert isinstance(index, PacketIndex)
    count = len(index)
    each = (index.duration, index.position, index.size, index.is_key)
    if not count or any(len(one) != count for one in each):
        raise ValueError("its arrays differ in length")
    length = index.size
    is_inside = (length > 0) & (length <= size) & (index.position >= 0) & (index.position <= size - length)
    if not is_inside.all() or not index.is_key[0] or len(np.unique(index.pts)) != count:
        raise ValueError("no file has such packets")
    if isinstance(described, tuple):
        agrees = described[0] == count
    else:
        agrees = checked_index(index, described) is index
    if not agrees:
        raise ValueError("its description is of other frames")


def _to_plain(value: Any) -> Any:
    """Returns a value for JSON. Raises TypeError for one that is not known."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is Fraction:
        return {"fraction": [value.numerator, value.denominator]}
    if type(value) is tuple:
        return {"tuple": [_to_plain(one) for one in value]}
    if type(value) is _class_of_metadata():
        return {"fields": {one.name: _to_plain(getattr(value, one.name)) for one in dataclasses.fields(value)}}
    raise TypeError(f"a value of {type(value)}")


def _from_plain(value: Any) -> Any:
    """Returns the value of which `_to_plain` has made this."""
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == "fraction":
        return Fraction(*held)
    if kind == "tuple":
        return tuple(_from_plain(one) for one in held)
    return _class_of_metadata()(**{name: _from_plain(one) for name, one in held.items()})


@functools.cache
def _class_of_metadata() -> Any:
    """The class of torchcodec's descriptions of video streams; None without torchcodec."""
    try:
        from torchcodec.decoders import VideoStreamMetadata
    except (ImportError, RuntimeError, OSError):
        return None
    return VideoStreamMetadata
