"""A scan as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace._cli.console.results import broken_files_as_json
from headrace._cli.doctor.disk import DiskSpeed
from headrace._cli.doctor.scan import Scan
from headrace._cli.doctor.scan_summary import QUANTILES


def document(
    dataset: str, found: Scan, disk: DiskSpeed | None, advice: Sequence[str], libtiff_lines: int
) -> dict[str, object]:
    """Returns what the report says, by the keys that docs/command-line.md lists.

    Args:
        dataset: its name on the command line.
        disk: how fast the files are read; None: unknown.
        advice: the recommendations.
        libtiff_lines: number of libtiff's messages.
    """
    width, height = found.edges.T
    measures = {"width": width, "height": height, "pixels": width * height, "bytes": found.sizes}
    return {
        "dataset": dataset,
        "samples": found.samples,
        "scanned": found.scanned,
        "interrupted": found.interrupted,
        "seconds": found.seconds,
        "threads": found.threads,
        "crops": None
        if found.crops is None
        else {
            "ms_of_a_core": 1e3 * found.crops.core_s,
            "images_per_s": found.crops.images_per_s,
            "least_images_per_s": found.crops.least_images_per_s,
            "cores": found.crops.cores,
        },
        "busy": found.busy is not None,
        "formats": dict(found.formats),
        "native": found.native,
        "progressive": found.progressive,
        "exif_turned": found.turned,
        "upright": found.upright,
        "quantiles": {name: _quantiles(values) for name, values in measures.items() if len(values)},
        "bytes_scanned": int(found.sizes.sum()),
        "disk": None if disk is None else {"mb_per_s": disk.mb_per_s, "cold": disk.cold},
        "broken": broken_files_as_json(found.broken),
        "libtiff_lines": libtiff_lines,
        "recommendations": list(advice),
    }


def _quantiles(values: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> dict[str, float]:
    return {f"{q}%": float(np.quantile(values, q / 100)) for q in QUANTILES}
