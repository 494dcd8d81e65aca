"""The engine that makes the samples of a loader on another machine; and a few samples by which both are compared."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from headrace._base import loggers
from headrace._base.native import core
from headrace._engine.engine import Flight
from headrace._engine.image_engine import GivenPlan, ImageEngine, SampleOptions
from headrace._engine.lanes.decoding_lane import Decoding, DecodingLane
from headrace._helpers import messages
from headrace._helpers.messages import Array, MessageError, Order
from headrace._helpers.plan_text import read_plans, write_plans
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.draw_columns import AnyColumn, Column
from headrace._recipe.steps.recipe_text import read_recipe
from headrace.datasets.sources import BlobDataset

_PATIENCE_S = 60.0  # for the samples of one request
_MOST_COMPARED = 64  # files of one request
_PROBED = (1, 2, "tensor_bilinear")  # filters of the three plans that are compared


class _LeavingLane(DecodingLane):
    """Leaves the files that the core does not decode to the loader, whose Pillow may warn of them or refuse them."""

    name = "leaving"

    def _run_job(self, job: core.PythonJob) -> None:
        self._pipeline.fail(job, "left to the loader")


class OrderEngine(ImageEngine):
    """Makes the samples of one order.

    Args:
        order: how.
        threads: number of native threads; 0: everything runs in the caller's thread.
        points: where the rows of JPEGs begin, in which what is decoded here is noted; None: nowhere.

    Raises:
        ValueError: the order is none.
    """

    def __init__(self, order: Order, threads: int, points: core.EntryPoints | None = None) -> None:
        self._order, self._points = order, points
        layout = Layout(order.layout) if order.finished else Layout.CHANNELS_LAST
        recipe, decoding = read_recipe(order.recipe), Decoding("pillow", _LeavingLane)
        limits = np.array([(one.low, one.high) for one in recipe.columns if isinstance(one, Column)]).reshape(-1, 2)
        room = 1e-9 * np.abs(limits)  # an exponential may be rounded otherwise
        self._least, self._most = limits[:, 0] - room[:, 0], limits[:, 1] + room[:, 1]
        self._free = np.isinf(limits[:, 0])  # computed from others: any number, NaN included
        try:
            super().__init__(recipe, layout, threads=threads, slots_kept=0, decoding=decoding)
        except (TypeError, RuntimeError, IndexError) as error:
            raise ValueError(f"this is no recipe: {error}") from None

    def _make_pipeline(self, samples: SampleOptions, *, threads: int, slots_kept: int, isa: str) -> core.Pipeline:
        samples = {**samples, "max_pixels": self._order.max_pixels, "pass_order": self._order.pass_order}
        return super()._make_pipeline(samples, threads=threads, slots_kept=slots_kept, isa=isa)

    def make(self, draws: npt.NDArray[np.float64], sizes: npt.NDArray[np.int64], files: Array) -> list[Array]:
        """Makes samples of files.

        Args:
            draws: float64 (n, k), random numbers of each sample.
            sizes: int64 (n,), number of bytes of each file.
            files: uint8, the bytes of all files.

        Returns:
            The elements of all samples, as bytes; uint8 (n,), whether a sample is made; int32 (n, 2), height and width
            of each image.

        Raises:
            MessageError: the arrays do not fit each other or the recipe.
        """
        self._check_draws(draws, sizes)
        return self._make(self._table_of(sizes, files), np.arange(len(sizes)), draws, keep_table=False)

    def make_planned(self, text: Array, sizes: npt.NDArray[np.int64], files: Array) -> list[Array]:
        """Makes samples of files by plans, where the recipe has no steps.

        Args:
            text: uint8, see `plan_text`; a plan for each sample.
            sizes, files: see `make`.

        Returns:
            See `make`.

        Raises:
            MessageError: the arrays do not fit each other or the recipe.
        """
        given = read_plans(text.tobytes())
        self._check_count(sizes)
        if len(given) != len(sizes) or self.recipe.steps:
            raise MessageError("the plans do not fit the files or the recipe")
        nothing: GivenPlan = ((0, 0), {"stages": [], "last": {"box": (0, 0, self.recipe.width, self.recipe.height)}})
        plans = [nothing if one is None else one for one in given]  # no image has this size
        table, draws = self._table_of(sizes, files), np.empty((len(sizes), 0))
        try:
            return self._make(table, np.arange(len(sizes)), draws, keep_table=False, plans=plans)
        except (RuntimeError, TypeError) as error:  # a parameter that the core does not take
            raise MessageError(f"a plan is none: {error}") from None

    def make_rows(
        self, table: core.BlobTable, draws: npt.NDArray[np.float64], rows: npt.NDArray[np.int64]
    ) -> list[Array]:
        """Makes samples of rows of a table, which lives as long as the engine; otherwise as `make`."""
        self._check_draws(draws, rows)
        if rows.min() < 0 or rows.max() >= len(table):
            raise MessageError("there is no such row in the dataset")
        return self._make(table, rows, draws, keep_table=True)

    def _table_of(self, sizes: npt.NDArray[np.int64], files: Array) -> core.BlobTable:
        """Raises MessageError if the files have other sizes."""
        if files.ndim != 1 or sizes.min() < 0 or sizes.max() > len(files) or int(sizes.sum()) != len(files):
            raise MessageError("the sizes do not fit the files")
        begins = np.cumsum(sizes) - sizes
        table = core.BlobTable.of_spans([files.data], np.zeros(len(sizes), np.int64), begins, sizes)
        return table if self._points is None else table.entered_by(self._points)

    def _check_draws(self, draws: npt.NDArray[np.float64], samples: npt.NDArray[np.int64]) -> None:
        if samples.ndim != 1 or not len(samples) or draws.shape != (len(samples), len(self.recipe.columns)):
            raise MessageError("draws and samples do not fit the recipe")
        with np.errstate(invalid="ignore"):
            if not ((draws >= self._least) & (draws <= self._most) | self._free).all():
                raise MessageError("a random number is outside the limits of its step")
        self._check_count(samples)

    def _check_count(self, samples: npt.NDArray[np.int64]) -> None:
        if samples.ndim != 1 or not len(samples):
            raise MessageError("no samples are asked for")
        if len(samples) * self._pipeline.sample_bytes > messages.MOST_BYTES:
            raise MessageError(f"{len(samples)} samples are too many for one answer")

    def _make(
        self,
        table: core.BlobTable,
        rows: npt.NDArray[np.int64],
        draws: npt.NDArray[np.float64],
        *,
        keep_table: bool,
        plans: Sequence[GivenPlan] = (),
    ) -> list[Array]:
        memory = self._allocate_batch(len(rows))
        flight = Flight(self._pipeline.submit(table, rows, draws, memory, 0, list(plans), keep_table=keep_table))
        try:
            if not self.wait(flight, _PATIENCE_S):
                raise MessageError("the samples are not made in time")
            made = np.ones(len(rows), np.uint8)
            made[[one.sample for one in self.failures(flight)]] = 0
            opened = flight.batch.sizes
            flight.batch.release()
        except BaseException:
            self.cancel(flight)
            raise
        stored = torch.empty(0, dtype=torch.uint8, device="cpu").set_(memory.untyped_storage()).numpy()
        stored.reshape(len(rows), -1)[made == 0] = 0  # what was in this memory may be another loader's
        return [stored, made, opened]


@functools.lru_cache(maxsize=8)
def probe_of(order: bytes, columns: tuple[AnyColumn, ...]) -> tuple[list[Array], list[Array]]:
    """Returns a request of a few samples, and what this machine makes of it: what a helper must answer.

    Args:
        columns: the recipe's.
    """
    engine = OrderEngine(Order.from_json(order), 0)
    try:
        for edge in (120, 2 * max(engine.recipe.height, engine.recipe.width)):  # a crop may need a large image
            request = _request_of(edge, columns)
            truth = engine.make(*request)
            if truth[1].all():
                break
        return request, truth
    finally:
        engine.close()


@functools.lru_cache(maxsize=8)
def planned_probe_of(order: bytes) -> tuple[list[Array], list[Array]]:
    """Returns the same as `probe_of`, of an order whose samples have plans."""
    engine = OrderEngine(Order.from_json(order), 0)
    try:
        size = engine.recipe.width, engine.recipe.height
        plans: list[GivenPlan] = []
        files = _files_of(120)
        for number, data in enumerate(files):
            width, height = Image.open(BytesIO(data)).size
            stage = {"box": (1, 2, width - 3, height - 4), "resize": size, "filter": _PROBED[number]}
            plans.append(((width, height), {"stages": [stage], "last": {"box": (0, 0, *size), "flip_vertical": True}}))
        request = [np.frombuffer(write_plans(plans), np.uint8), *_arrays_of(files)]
        return request, engine.make_planned(*request)
    finally:
        engine.close()


def _request_of(edge: int, columns: tuple[AnyColumn, ...]) -> list[Array]:
    files = _files_of(edge)
    return [Draws(columns, 0).batch(0, range(len(files)), [0] * len(files)), *_arrays_of(files)]


def _arrays_of(files: list[bytes]) -> list[Array]:
    return [np.array([len(one) for one in files]), np.frombuffer(b"".join(files), np.uint8)]


def _files_of(edge: int) -> list[bytes]:
    """Returns three images of noise whose shorter edges have this number of pixels, or some more."""
    noise = np.random.Generator(np.random.PCG64(0))
    files: list[bytes] = []
    for size, options in (((5, 7, 3), {"subsampling": 2}), ((8, 5, 3), {"subsampling": 0}), ((6, 6), {})):
        rough = Image.fromarray(noise.integers(0, 256, [4 * one for one in size[:2]] + [*size[2:]], dtype=np.uint8))
        buffer = BytesIO()
        scale = edge / 5 + 0.4
        rough.resize((int(scale * size[1]), int(scale * size[0]))).save(buffer, "JPEG", quality=90, **options)
        files.append(buffer.getvalue())
    return files


def fingerprint_of(dataset: BlobDataset) -> str:
    """Returns what a loader and a helper know a dataset by; "" where that cannot be found out: files are sent then."""
    try:
        return dataset.fingerprint()
    except Exception as error:  # a dataset of a program's own may raise any
        loggers.loading.info("helpers do not read the files of a dataset without a fingerprint: %s", str(error))
        return ""


def checksums_of(dataset: BlobDataset, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the CRC-32 of the encoded bytes of samples, int64 (n,); -1 where they cannot be read, for any reason that
    the dataset has.

    Raises:
        MessageError: there is no such sample.
    """
    if indices.ndim != 1 or len(indices) > _MOST_COMPARED or not ((indices >= 0) & (indices < len(dataset))).all():
        raise MessageError("there is no such row in the dataset")
    sums = np.full(len(indices), -1, np.int64)
    for number, index in enumerate(indices.tolist()):
        with suppress(Exception):
            sums[number] = core.crc32(dataset.read(index))
    return sums


def are_equal(first: Any, second: Any) -> bool:
    """Returns whether two answers are equal."""
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
