"""The contenders: name -> module, variant, and label for tables and plots."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Contender:
    """One row of the table. `module` is a file of this package, which runs in its own subprocess."""

    module: str
    label: str
    variant: str = ""
    by_default: bool = True


CONTENDERS: dict[str, Contender] = {
    "torch": Contender("torch", "torch DataLoader + torchvision + Pillow"),
    "headrace": Contender("headrace", "headrace"),
    "headrace-first": Contender("headrace", "headrace, first epoch: nothing learned yet", "first", by_default=False),
    "headrace-kept": Contender("headrace", "headrace, first epoch of a later run", "kept", by_default=False),
    "headrace-raw": Contender("headrace", "headrace, raw pack of 256 x 256", "raw", by_default=False),
    "opencv": Contender("opencv", "OpenCV INTER_AREA + simplejpeg, threads"),
    "opencv-scaled": Contender("opencv", "the same, scaled decoding", "scaled", by_default=False),
    "dali": Contender("dali", "DALI, CPU pipeline"),
    "turboloader": Contender("turboloader", "TurboLoader, antialias"),
    "turboloader-noaa": Contender("turboloader", "TurboLoader, no antialias", "noaa"),
    "ffcv": Contender("ffcv", "FFCV, re-encoded .beton"),
    "ffcv-same": Contender("ffcv", "FFCV, same JPEG bytes in .beton", "same"),
    "ffcv-raw": Contender("ffcv", "FFCV, raw .beton of 256 x 256", "raw", by_default=False),
    "turboloader-raw": Contender("turboloader", "TurboLoader, raw .tbl of 256 x 256", "raw", by_default=False),
    "ceiling": Contender("ceiling", "ceiling: libjpeg-turbo decoding just the crops"),
}
BASELINE = "torch"
CEILING = "ceiling"
