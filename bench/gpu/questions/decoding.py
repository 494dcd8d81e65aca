"""Questions 2 and 3: the speed of nvJPEG alone in several ways of calling it, and its differences from libjpeg."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from bench.gpu.questions.nvjpeg import LUMA, YUV, Nvjpeg
from bench.gpu.questions.place import POISON, Place, Planes
from bench.gpu.turns import spread
from headrace._base.native import core


@contextlib.contextmanager
def opened(backend: str, candidates: Sequence[str]) -> Iterator[Nvjpeg]:
    """A handle that is destroyed at the end."""
    library = Nvjpeg(backend, candidates)
    try:
        yield library
    finally:
        library.close()


def ask_each(
    backends: Sequence[str], candidates: Sequence[str], ask: Callable[[Nvjpeg], Iterable[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """The rows that `ask` yields for each backend. A backend that fails adds a row with the reason."""
    rows: list[dict[str, Any]] = []
    for backend in backends:
        try:
            with opened(backend, candidates) as library:
                rows += ({"backend": backend} | row for row in ask(library))
        except RuntimeError as error:
            rows.append({"backend": backend, "failed": str(error)})
    return rows


def _caller(place: Place, library: Nvjpeg, groups: Sequence[Sequence[bytes]], memory: str) -> Any:
    """A function that decodes one group per call and waits for it, and a function that frees the decoder."""
    state, stream = library.state(), place.stream()
    if "hardware" in library.backend:  # as in headrace
        library.preallocate(state, len(groups[0]), 1024, 1024)
    library.initialize(state, len(groups[0]))
    ready = [(*place.encoded(group, memory), Planes.of(place, group)) for group in groups]

    def call(number: int) -> None:
        files, _, planes = ready[number % len(ready)]
        library.decode(state, files, planes.destinations, place.handle(stream))
        place.finish(stream)

    return call, lambda: library.free(state)


def rate(
    place: Place,
    library: Nvjpeg,
    files: Sequence[bytes],
    *,
    states: int,
    batch: int,
    memory: str,
    seconds: float,
    rounds: int = 3,
) -> dict[str, float]:
    """Images per second of nvjpegDecodeBatched with `states` states, each in its own thread: median and range."""
    groups = [list(files[at : at + batch]) for at in range(0, len(files) - batch + 1, batch)]
    callers = [_caller(place, library, groups[k::states] or groups, memory) for k in range(states)]
    rates: list[float] = []
    try:
        for measured in range(rounds + 1):
            made = [0] * states
            failed: list[Exception] = []
            begin = time.perf_counter()

            def loop(k: int, made: list[int] = made, begin: float = begin, failed: list[Exception] = failed) -> None:
                try:
                    while time.perf_counter() - begin < seconds:
                        callers[k][0](made[k])
                        made[k] += 1
                except Exception as error:  # raised in the caller's thread
                    failed.append(error)

            threads = [threading.Thread(target=loop, args=(k,)) for k in range(states)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            if failed:
                raise failed[0]
            if measured:  # the first round allocates
                rates.append(sum(made) * batch / (time.perf_counter() - begin))
    finally:
        for _, free in callers:
            free()
    return spread(rates)


def throughput(
    place: Place, candidates: Sequence[str], files: Sequence[bytes], *, seconds: float, batches: Sequence[int]
) -> list[dict[str, Any]]:
    """Question 2: by batch size with 2 states, by states with the largest batch, and by kind of memory."""
    middle = batches[-1]
    ways = [(2, batch, "pinned") for batch in batches] + [(1, middle, "pinned"), (4, middle, "pinned")]

    def ask(library: Nvjpeg) -> Iterator[dict[str, Any]]:
        kinds = [*ways, (2, middle, "pageable")]
        if library.backend.endswith("_device"):
            kinds = [(states, batch, "device") for states, batch, _ in ways]
        for states, batch, memory in kinds:
            row: dict[str, Any] = {"states": states, "batch": batch, "memory": memory}
            try:
                yield row | {"images_per_s": rate(place, library, files, seconds=seconds, **row)}
            except RuntimeError as error:
                yield row | {"failed": str(error)}

    return ask_each(("hardware", "hardware_device", "cuda", "cuda_device"), candidates, ask)


def _off(planes: Sequence[np.ndarray[Any, Any]], exact: Sequence[np.ndarray[Any, Any]]) -> list[tuple[int, float]]:
    """The greatest and the mean difference of each plane: luma, then chroma."""
    off = [np.abs(a.astype(int) - b.astype(int)) for a, b in zip(planes, exact, strict=True)]
    return [(int(one.max()), float(one.mean())) for one in off]


def planes(place: Place, candidates: Sequence[str], files: Sequence[bytes]) -> list[dict[str, Any]]:
    """Question 3: the differences of nvJPEG's samples from libjpeg's, and whether it writes beyond the planes."""
    exact = [(data, core.jpeg_planes(data)) for data in files]

    def ask(library: Nvjpeg) -> Iterator[dict[str, Any]]:
        found = [
            _compare(place, library, [one for one in exact if len(one[1]) == components], output)
            for components, output in ((1, LUMA), (3, YUV))
        ]
        off = [one for differences, _ in found for one in differences]
        beyond = [one for _, margins in found for one in margins]
        row: dict[str, Any] = {"files": len(off)}
        for name, pairs in (("luma", [one[0] for one in off]), ("chroma", [pair for one in off for pair in one[1:]])):
            if pairs:
                row[name] = {"greatest": max(m for m, _ in pairs), "mean": statistics.fmean(m for _, m in pairs)}
        row["columns_beyond"], row["rows_beyond"] = max(c for c, _ in beyond), max(r for _, r in beyond)
        yield row

    return ask_each(("hardware", "cuda"), candidates, ask)


def _compare(
    place: Place, library: Nvjpeg, images: Sequence[tuple[bytes, Sequence[np.ndarray[Any, Any]]]], output: int
) -> tuple[list[list[tuple[int, float]]], list[tuple[int, int]]]:
    """Decodes all images in one call. Returns each image's differences, and what is written beyond each plane."""
    if not images:
        return [], []
    files = [data for data, _ in images]
    to = Planes.of(place, files, POISON)
    place.finish(place.current())  # the fill runs on another stream
    state, stream = library.state(), place.stream()
    encoded, kept = place.encoded(files, "pinned")
    library.initialize(state, len(files), output)
    library.decode(state, encoded, to.destinations, place.handle(stream))
    place.finish(stream)
    del kept
    library.free(state)
    off = [_off(made, want) for made, (_, want) in zip(to.samples(), images, strict=True)]
    return off, to.written_beyond(POISON)
