"""Compares Pillow's decoding of PNG and WebP with that of the libraries below it, called directly.

    python -m bench.formats.png_webp [--images DIR] [--count N] [--libraries DIR] [--rounds N] [--out FILE]

JPEGs of a folder are scaled to at most 512 pixels and saved as PNG (RGB, palette, gray of 16 bits, RGB at level 9) and
as WebP (lossy, lossless). Each file is decoded to RGB by Pillow and by the other contenders in turn, and what takes the
fewest CPU seconds of the process in any round is added up. The pixels must be Pillow's.

- libwebp: `WebPDecodeRGBInto` of the library that Pillow brings.
- libspng: `spng_decode_image` to RGB8, of `--libraries` (Debian: libspng0).
- ceiling: `png_ceiling.cpp`, which this script compiles: libdeflate (`--libraries`; Debian: libdeflate0) for all data
  of a file at once, then SSE2 for the filters. It checks nothing that it need not.

The second part decodes in two threads, and shows how many CPU seconds a second of wall time they got: 2 where the
library leaves Python's lock alone and the machine has two idle cores.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL
from PIL import Image, features

from bench import datasets

Decode = Callable[[bytes], "np.ndarray | None"]
EDGE = 512
SPNG_FMT_RGB8 = 4


def by_pillow(data: bytes) -> np.ndarray | None:
    """The image object alone: an array of it would be a copy that a batch does not need."""
    Image.open(io.BytesIO(data)).convert("RGB")
    return None


def pillow_pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def libwebp() -> Decode:
    found = sorted((Path(PIL.__file__).parent.parent / "pillow.libs").glob("libwebp-*"))
    library = ctypes.CDLL(str(found[0]))
    decode = library.WebPDecodeRGBInto
    decode.restype = ctypes.c_void_p
    decode.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    sizes = library.WebPGetInfo
    sizes.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)]

    def run(data: bytes) -> np.ndarray:
        width, height = ctypes.c_int(), ctypes.c_int()
        sizes(data, len(data), ctypes.byref(width), ctypes.byref(height))
        out = np.empty((height.value, width.value, 3), np.uint8)
        assert decode(data, len(data), out.ctypes.data, out.nbytes, 3 * width.value)
        return out

    return run


def libspng(path: Path) -> Decode:
    library = ctypes.CDLL(str(path))
    library.spng_ctx_new.restype = ctypes.c_void_p
    library.spng_ctx_new.argtypes = [ctypes.c_int]
    library.spng_ctx_free.argtypes = [ctypes.c_void_p]
    library.spng_set_png_buffer.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    library.spng_decoded_image_size.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_size_t)]
    library.spng_decode_image.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int]

    def run(data: bytes) -> np.ndarray:
        context = library.spng_ctx_new(0)
        size = ctypes.c_size_t()
        library.spng_set_png_buffer(context, data, len(data))
        assert library.spng_decoded_image_size(context, SPNG_FMT_RGB8, ctypes.byref(size)) == 0
        out = np.empty(size.value, np.uint8)
        assert library.spng_decode_image(context, out.ctypes.data, out.nbytes, SPNG_FMT_RGB8, 0) == 0
        library.spng_ctx_free(context)
        return out.reshape(int.from_bytes(data[20:24], "big"), int.from_bytes(data[16:20], "big"), 3)

    return run


def ceiling(path: Path, folder: Path) -> Decode:
    built = folder / "png_ceiling.so"
    source = Path(__file__).with_name("png_ceiling.cpp")
    subprocess.run(["c++", "-O2", "-std=c++20", "-shared", "-fPIC", "-o", built, source, path], check=True)
    ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    decode = ctypes.CDLL(str(built)).png_ceiling
    decode.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]

    def run(data: bytes) -> np.ndarray:
        width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
        out = np.empty((height, width, 3), np.uint8)
        assert decode(data, len(data), out.ctypes.data) == 0
        return out

    return run


def encoded(folder: Path, count: int) -> dict[str, list[bytes]]:
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))[:count]
    kinds: dict[str, list[bytes]] = {}
    for path in files:
        image = Image.open(path).convert("RGB")
        image.thumbnail((EDGE, EDGE))
        wide = np.asarray(image.convert("L")).astype(np.uint16) * 257
        wide = wide + np.random.default_rng(1).integers(0, 255, wide.shape, np.uint16)
        versions: dict[str, tuple[Image.Image, str, dict[str, Any]]] = {
            "PNG, RGB": (image, "PNG", {}),
            "PNG, RGB, level 9": (image, "PNG", {"compress_level": 9}),
            "PNG, palette": (image.quantize(256), "PNG", {}),
            "PNG, gray of 16 bits": (Image.fromarray(wide.astype(np.uint16)), "PNG", {}),
            "WebP, lossy": (image, "WEBP", {"quality": 80}),
            "WebP, lossless": (image, "WEBP", {"lossless": True}),
        }
        for kind, (version, form, options) in versions.items():
            out = io.BytesIO()
            version.save(out, form, **options)
            kinds.setdefault(kind, []).append(out.getvalue())
    return kinds


def cpu(decode: Decode, data: bytes) -> float:
    begin = time.process_time()
    decode(data)
    return time.process_time() - begin


def in_threads(decode: Decode, images: list[bytes]) -> float:
    """CPU seconds a second of wall time, in two threads."""

    def work() -> None:
        for _ in range(3):
            for data in images:
                decode(data)

    threads = [threading.Thread(target=work) for _ in range(2)]
    wall, spent = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.process_time() - spent) / (time.perf_counter() - wall)


def measure(kinds: dict[str, list[bytes]], libraries: Path, folder: Path, rounds: int) -> dict[str, Any]:
    png: dict[str, Decode] = {"Pillow": by_pillow}
    if found := sorted(libraries.glob("libspng.so.*")):
        png["libspng"] = libspng(found[0])
    if found := sorted(libraries.glob("libdeflate.so.*")):
        png["ceiling"] = ceiling(found[0], folder)
    contenders = {"PNG": png, "WebP": {"Pillow": by_pillow, "libwebp": libwebp()}}
    figures: dict[str, Any] = {}
    for kind, images in kinds.items():
        decoders = contenders[kind.split(",")[0]]
        best = {name: [float("inf")] * len(images) for name in decoders}
        equal = dict.fromkeys(decoders, 0)
        for number in range(rounds):
            for i, data in enumerate(images):
                for name, decode in decoders.items():
                    best[name][i] = min(best[name][i], cpu(decode, data))
                    pixels = decode(data) if number == 0 else None
                    equal[name] += pixels is not None and np.array_equal(pixels, pillow_pixels(data))
        figures[kind] = {
            name: {
                "ms": 1e3 * sum(best[name]) / len(images),
                "equal": equal[name],
                "of": len(images),
                "cpu_in_two_threads": in_threads(decode, images),
            }
            for name, decode in decoders.items()
        }
    return figures


def shown(figures: dict[str, Any]) -> str:
    lines = []
    for kind, contenders in figures.items():
        pillow = contenders["Pillow"]["ms"]
        for name, one in contenders.items():
            same = "" if name == "Pillow" else f", {one['equal']} of {one['of']} have Pillow's pixels"
            lines.append(
                f"{kind}: {name} {one['ms']:.3f} ms of CPU ({pillow / one['ms']:.2f}){same}; "
                f"two threads got {one['cpu_in_two_threads']:.2f} cores"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.formats.png_webp", description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, default=datasets.data_folder() / "imagenet_dev")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--libraries", type=Path, default=Path("/usr/lib") / f"{os.uname().machine}-linux-gnu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print(f"Pillow {PIL.__version__}, zlib-ng {features.version('zlib_ng')}, libwebp {features.version('webp')}")
    with tempfile.TemporaryDirectory() as folder:
        kinds = encoded(options.images, options.count)
        figures = measure(kinds, options.libraries, Path(folder), options.rounds)
    print(shown(figures))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
