"""A scan as text: what the files are, which ones are broken, and recommendations with numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import numpy as np

from headrace._cli.console.results import describe_broken_files
from headrace._cli.doctor.crop_speed import CropSpeed
from headrace._cli.doctor.disk import DiskSpeed
from headrace._cli.doctor.scan import Scan

QUANTILES = (0, 5, 50, 95, 100)
_LARGE = 512 * 512 * 4  # pixels: twice as wide as what a resize to 512 keeps
_KEPT_EDGE = 512
_SAME = 0.95  # of two rates, the share from which on they are given as one

_SOURCES = {
    True: "from the disk",
    False: "partly from memory: the kernel keeps them, the disk is slower",
    None: "perhaps from memory: this file system does not tell",
}


def lines(found: Scan, disk: DiskSpeed | None) -> Iterator[str]:
    """Yields the report's lines.

    Args:
        disk: how fast the files are read; None: unknown.
    """
    part = "all" if found.scanned == found.samples else f"{found.scanned:,} of"
    early = " (interrupted)" if found.interrupted else ""
    rate = found.scanned / max(found.seconds, 1e-9)
    yield f"scanned       {part} {found.samples:,} files{early}, {rate:,.0f} a second in {found.threads} threads"
    if not found.scanned:
        return
    shares = ", ".join(f"{name} {_share(count, found)}" for name, count in found.formats.most_common())
    yield textwrap.fill(shares, 80, initial_indent=f"{'formats':<14}", subsequent_indent=14 * " ")
    yield f"              {_share(found.native, found)} are decoded natively, the others by Pillow"
    yield f"              {_share(found.progressive, found)} are progressive JPEGs"
    if len(found.edges):
        width, height = found.edges.T
        yield f"{'quantiles':<14}" + "".join(f"{f'{q}%':>10}" for q in QUANTILES)
        yield _row("width", width, "px", 1)
        yield _row("height", height, "px", 1)
        yield _row("pixels", width * height, "MP", 1e6)
    yield _row("file", found.sizes, "kB", 1e3)
    yield f"total         {_gigabytes(_total(found))}" + ("" if part == "all" else ", estimated from the sample")
    if disk is not None:
        what = _SOURCES[disk.cold]
        yield f"reading       {disk.mb_per_s:,.0f} MB/s, one read after another, {what}"
    if found.turned:
        what = "turned by this dataset" if found.upright else "ignored by this dataset, as by torchvision's"
        yield f"EXIF turned   {_share(found.turned, found)}, {what}"
    yield f"broken        {len(found.broken):,}" + (":" if found.broken else "")
    yield from describe_broken_files(found.broken)


def recommendations(found: Scan, disk: DiskSpeed | None, memory_bytes: float) -> Iterator[str]:
    """Yields sentences that say what to do, with the numbers that they follow from.

    Args:
        memory_bytes: memory that this process may use.
    """
    if not found.scanned or len(found.broken) == found.scanned:
        return
    if found.crops is not None:
        yield from _advise_on_speed(found.crops, found.busy)
    yield from _advise_on_reading(found, disk, memory_bytes)
    if found.broken:
        yield (
            f"{len(found.broken):,} files are broken: delete or repair them, or pass on_error='skip', which counts and "
            "reports them."
        )
    if found.turned and not found.upright:
        yield (
            f"{found.turned:,} images ({100 * found.turned / found.scanned:.1f}%) are trained on their side or upside "
            "down: turn the files once without loss (exiftran -ai, or jpegtran -rotate)."
        )
    jpegs = found.formats["JPEG"]
    if found.progressive > 0.05 * found.scanned:
        yield (
            f"{100 * found.progressive / found.scanned:.0f}% are progressive JPEGs, which take longer to decode: "
            "jpegtran -optimize -copy all makes them baseline, with the same pixels."
        )
    if jpegs and found.scanned - jpegs > 0.05 * found.scanned:
        yield (
            f"{100 * (1 - jpegs / found.scanned):.0f}% are no JPEGs and are decoded by Pillow in Python threads, one "
            "at a time where it holds the interpreter's lock; headrace decodes JPEGs in parallel."
        )
    yield from _advise_on_large(found)


def _advise_on_speed(crops: CropSpeed, busy: str | None) -> Iterator[str]:
    cores = "a core of its own" if crops.cores == 1 else f"{crops.cores:.3g} cores of its own"
    yield (
        f"A training crop (RandomResizedCrop(224), flip, normalised) takes {1e3 * crops.core_s:.2f} ms of a core: "
        f"num_workers={crops.threads} delivers about {_describe_rate(crops)} images/s on {cores}, so "
        "training that takes more images than that waits for data."
    )
    if busy is not None:
        yield (
            f"{busy} A loader delivers less meanwhile, and more than stated once it has the cores, with their caches, "
            "for itself."
        )


def _describe_rate(crops: CropSpeed) -> str:
    """Returns one rate, or two where the passes over the same crops differ."""
    least, most = crops.least_images_per_s, crops.images_per_s
    return f"{most:,.0f}" if least > _SAME * most else f"{least:,.0f} to {most:,.0f}"


def _advise_on_reading(found: Scan, disk: DiskSpeed | None, memory_bytes: float) -> Iterator[str]:
    total = _total(found)
    if total < 0.7 * memory_bytes:
        yield (
            f"The files ({_gigabytes(total)}) fit in the memory of this machine ({_gigabytes(memory_bytes)}): after "
            "the first epoch they are read from there, if other programs leave it free."
        )
    elif disk is not None and disk.cold and found.crops is not None:
        most = disk.mb_per_s * 1e6 / max(1.0, float(found.sizes.mean()))
        which = (
            "less than decoding needs: more threads read at the same time"
            if most < found.crops.images_per_s
            else "enough for decoding"
        )
        yield (
            f"The files ({_gigabytes(total)}) do not fit in memory ({_gigabytes(memory_bytes)}): every epoch reads "
            f"them at {disk.mb_per_s:,.0f} MB/s, {most:,.0f} images/s in one thread, {which}."
        )


def _advise_on_large(found: Scan) -> Iterator[str]:
    edges = found.edges
    if not len(edges):
        return
    pixels = edges.prod(axis=1)
    large = pixels > _LARGE
    if large.mean() < 0.25:
        return
    kept = np.minimum(1.0, (_KEPT_EDGE / edges.min(axis=1)) ** 2)
    yield (
        f"The median image has {np.median(pixels) / 1e6:.1f} MP. For crops of 224 pixels, copies with a shorter edge "
        f"of {_KEPT_EDGE} would have {100 * (pixels * kept).sum() / pixels.sum():.0f}% of the pixels, and decode in "
        "about that share of the time; they are other pixels, so measure the accuracy."
    )


def wrap_text(text: str) -> str:
    """Returns a recommendation as lines of at most 80 columns."""
    return textwrap.fill(text, 80, initial_indent="-> ", subsequent_indent="   ", break_on_hyphens=False)


def _total(found: Scan) -> float:
    return float(found.sizes.mean()) * found.samples


def _share(count: int, found: Scan) -> str:
    return f"{count:,} ({100 * count / found.scanned:.1f}%)"


def _row(name: str, values: np.ndarray[tuple[int, ...], np.dtype[np.int64]], unit: str, scale: float) -> str:
    cells = np.quantile(values, [q / 100 for q in QUANTILES]) / scale
    return f"{f'{name}, {unit}':<14}" + "".join(
        f"{f'{cell:,.2f}' if scale == 1e6 else f'{cell:,.0f}':>10}" for cell in cells
    )


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
