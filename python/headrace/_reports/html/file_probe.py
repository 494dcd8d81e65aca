"""Examines some files of a source: format, size, and how long one thread takes to read and decode each."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np

from headrace._base.native import core
from headrace._base.safe_exceptions import message_of
from headrace._recipe.images.file_header import FileHeader, file_header
from headrace._reports.html.report_data import Facts, SlowFile
from headrace.datasets.sources import BlobDataset

_MOST = 500  # files
_LONGEST_S = 3.0
_SHOWN = 10


def examine_files(source: BlobDataset, facts: Facts) -> None:
    """Adds to `facts` the distributions over some random files, the slowest of them, and those that fail."""
    files: list[tuple[int, SlowFile]] = []
    headers: list[FileHeader] = []
    known = {place for place, _ in facts.failed}
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's about single files
        for index in np.random.default_rng(0).permutation(len(source))[:_MOST].tolist():
            location = source.location(index)
            try:
                file, header = _time_read(source, index, location)
            except Exception as error:  # of any type: Pillow's, or the source's own
                if location not in known:
                    facts.failed.append((location, message_of(error)))
                continue
            files.append((index, file))
            headers.append(header)
            if time.perf_counter() - begin > _LONGEST_S:
                break
    facts.examined = len(headers)
    facts.formats = dict(Counter(_name_format(one) for one in headers).most_common())
    facts.widths, facts.heights = [one.width for one in headers], [one.height for one in headers]
    facts.bytes = [one.bytes for one in headers]
    slowest = sorted(files, key=lambda one: -_duration_of_file(one[1]))[: 2 * _SHOWN]
    again = (_time_again(source, index, file) for index, file in slowest)
    facts.slowest = sorted(again, key=lambda one: -_duration_of_file(one))[:_SHOWN]


def _duration_of_file(file: SlowFile) -> float:
    return file.read_ms + file.decode_ms


def _time_again(source: BlobDataset, index: int, file: SlowFile) -> SlowFile:
    """Times a file again, because another program may have interrupted the first time; returns the shorter one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            second, _ = _time_read(source, index, file.location)
        except Exception:  # the file has changed
            return file
    return replace(file, decode_ms=min(file.decode_ms, second.decode_ms))


def _name_format(header: FileHeader) -> str:
    return f"progressive {header.format}" if header.progressive else header.format


def _time_read(source: BlobDataset, index: int, location: str) -> tuple[SlowFile, FileHeader]:
    begin = time.perf_counter()
    data = source.read(index)
    read = time.perf_counter()
    header = file_header(data)
    if header.native:
        _decode_natively(data, header)
    else:
        source.image(index).load()
    end = time.perf_counter()
    pixels = header.width * header.height / 1e6
    times = (1e3 * (read - begin), 1e3 * (end - read))
    return SlowFile(location, _name_format(header), pixels, header.bytes / 1e3, *times), header


def _decode_natively(data: bytes, header: FileHeader) -> None:
    """Decodes a whole image as headrace's threads do. Raises NeedsPillow if it is damaged."""
    if header.format == "JPEG":
        core.decode_crop(data, 0, 0, header.width, header.height)
    else:
        file = core.PngFile(data)
        core.decode_png(file, np.empty((file.height, file.width, file.pixel_bytes), np.uint8))
