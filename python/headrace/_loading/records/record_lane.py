"""Python threads that decode damaged files of records, as the function would have that the program called."""

from __future__ import annotations

import importlib
import io
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from PIL import JpegImagePlugin
from torch._utils import ExceptionWrapper

from headrace._base.native import core
from headrace._base.safe_exceptions import format_error, message_of, traceback_of, without_frames
from headrace._engine.lanes.decoding_lane import DecodingLane
from headrace._loading.doors import torchvision_io
from headrace._loading.records.record_batch import ImageRecord
from headrace.pillow.recording.image_counts import PILLOW


class RecordsUnderWay:
    """The records of the batches in flight, by the number of the native batch, and the errors of their files. The
    lane's threads may ask for one before it is added."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._images: dict[int, list[ImageRecord]] = {}
        self._wrapped: dict[int, dict[int, ExceptionWrapper]] = {}  # by batch and sample

    def add(self, batch: int, images: list[ImageRecord]) -> None:
        with self._changed:
            self._images[batch] = images
            self._changed.notify_all()

    def remove(self, batch: int) -> None:
        with self._changed:
            self._images.pop(batch, None)
            self._wrapped.pop(batch, None)

    def note_error(self, batch: int, sample: int, wrapped: ExceptionWrapper) -> None:
        """Keeps what an error says, with its traceback, as torch's workers do."""
        with self._changed:
            if batch in self._images:
                self._wrapped.setdefault(batch, {})[sample] = wrapped

    def find_error(self, batch: int, sample: int) -> ExceptionWrapper | None:
        """Returns what was kept of a sample's error."""
        with self._changed:
            return self._wrapped.get(batch, {}).get(sample)

    def find(self, batch: int) -> list[ImageRecord]:
        """Returns the records of a batch. Raises RuntimeError if the batch was given up."""
        with self._changed:
            self._changed.wait_for(lambda: batch in self._images, _PATIENCE_S)
            if batch not in self._images:
                raise RuntimeError("the batch of this file was given up")
            return self._images[batch]


_PATIENCE_S = 5.0  # for a batch that is submitted and not added yet


class RecordLane(DecodingLane):
    """Decodes by the library whose function the program called.

    Args:
        pipeline, threads: as in `DecodingLane`.
        under_way: the records of the pipeline's batches.
    """

    name = "pillow"

    def __init__(self, pipeline: core.Pipeline, threads: int, under_way: RecordsUnderWay) -> None:
        self._under_way = under_way
        super().__init__(pipeline, threads)

    def _run_job(self, job: core.PythonJob) -> None:
        begin = time.perf_counter_ns()
        try:
            record = self._under_way.find(job.batch_id)[job.sample]
            pixels, width, height = _DECODERS.get(record.door, _decode_by_pillow)(job.data, record.arguments)
        except Exception as error:  # the library refuses the file
            self._under_way.note_error(job.batch_id, job.sample, wrap_error(error))
            self._fail(job, without_frames(error), message_of(error))
        else:
            self._pipeline.finish(job, pixels, width, height, time.perf_counter_ns() - begin)


def wrap_error(error: BaseException) -> ExceptionWrapper:
    """Returns an error as torch's worker processes send it: its class, and its words with the traceback."""
    wrapped: Any = ExceptionWrapper
    try:
        found: ExceptionWrapper = wrapped((type(error), error, traceback_of(error)))
    except Exception:  # of the class's own code
        found = wrapped((RuntimeError, RuntimeError(format_error(error)), traceback_of(error)))
    return found


def raise_as_workers(wrapped: ExceptionWrapper, worker: int) -> NoReturn:
    """Raises what torch's DataLoader raises for an error in a worker process."""
    wrapped.where = f"in DataLoader worker process {worker}"
    reraise: Callable[[], NoReturn] = wrapped.reraise
    reraise()


def _decode_by_pillow(data: bytes, _: tuple[Any, ...]) -> tuple[bytes, int, int]:
    # Pillow warns of EXIF data, and files with such data are not recorded. No filter is set here: filters are the whole
    # process's, and would be in force in other threads, or stay so.
    image = JpegImagePlugin.JpegImageFile(io.BytesIO(data)).convert("RGB")
    return image.tobytes("raw", "RGBX"), image.width, image.height


def _decode_by_function(module: str, path: str) -> Callable[[bytes, tuple[Any, ...]], tuple[bytes, int, int]]:
    def decode(data: bytes, arguments: tuple[Any, ...]) -> tuple[bytes, int, int]:
        function: Any = importlib.import_module(module)
        for name in path.split("."):
            function = getattr(function, name)
        made: torch.Tensor = function(torch.frombuffer(bytearray(data), dtype=torch.uint8), *arguments)
        _, height, width = made.shape
        return made.permute(1, 2, 0).contiguous().numpy().tobytes(), width, height

    return decode


_DECODERS: dict[str, Callable[[bytes, tuple[Any, ...]], tuple[bytes, int, int]]] = {
    PILLOW.name: _decode_by_pillow,
    torchvision_io.DECODE_IMAGE.name: _decode_by_function("torchvision.io.image", "torch.ops.image.decode_image"),
    torchvision_io.DECODE_JPEG.name: _decode_by_function("torchvision.io.image", "torch.ops.image.decode_jpeg"),
    torchvision_io.TORCHCODEC.name: _decode_by_function("torchcodec.decoders._image_decoders", "_decode_jpeg"),
}
