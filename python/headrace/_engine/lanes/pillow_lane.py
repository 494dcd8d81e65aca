"""Python threads in which Pillow decodes the files that the native decoder does not support."""

from __future__ import annotations

import re
import time
from io import BytesIO

from PIL import Image

from headrace._base.native import core
from headrace._base.safe_exceptions import message_of, without_frames
from headrace._engine.lanes.decoding_lane import DecodingLane
from headrace._recipe.arithmetic.functional_pil import open_image

# The name of the stream that Pillow read from: the path is printed before the reason anyway.
_STREAM = re.compile(r" ?<_io\.(BytesIO object at 0x[0-9a-f]+|BufferedReader name=.*)>")


class PillowLane(DecodingLane):
    """Takes encoded samples from the pipeline, decodes them with Pillow and returns the pixels.

    Pillow's warnings are issued in the decoding thread under the filters of the process. If a filter turns a warning
    into an error (``-W error``), the sample fails with that error.

    Args:
        pipeline, threads: as in `DecodingLane`.
        mode, upright: how files are opened; see `open_image`.
    """

    name = "pillow"

    def __init__(self, pipeline: core.Pipeline, threads: int, mode: str, upright: bool) -> None:
        # First: the base class starts a thread. A function that a program puts in the place of PIL.Image.open later is
        # not called, as in torch's workers, which began before.
        self._mode, self._upright, self._open = mode, upright, Image.open
        super().__init__(pipeline, threads)

    def _run_job(self, job: core.PythonJob) -> None:
        begin = time.perf_counter_ns()
        try:
            with open(job.path, "rb") if job.path else BytesIO(job.data) as file:  # noqa: PTH123 - pathlib knows no bytes
                image = open_image(file, self._mode, upright=self._upright, by=self._open)
            pixels = image.tobytes("raw", "RGBX") if image.mode == "RGB" else image.tobytes()
        except Exception as error:  # Pillow refuses the file
            self._fail(job, without_frames(error), _STREAM.sub("", message_of(error)))
        else:
            self._pipeline.finish(job, pixels, image.width, image.height, time.perf_counter_ns() - begin)
