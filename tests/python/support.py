"""Helpers of the behaviour tests: recipes, small datasets, comparisons, and measurements of the process."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, PngImagePlugin
from torch.utils._pytree import tree_flatten

import headrace
from headrace import transforms as T
from headrace._recipe.arithmetic.functional_pil import open_rgb
from headrace._recipe.steps.recipe import Recipe

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
TENSOR = (T.ToTensor(), T.Normalize(MEAN, STD))
REPOSITORY = Path(__file__).parents[2]
PHOTOS = REPOSITORY / "python/headrace/_cli/demo/photos"
#: Whether tests that name the emulated device run on a GPU (conftest.py).
EMULATED_BY_A_GPU = os.environ.get("HEADRACE_EMULATED") == "cuda"

# The oracle runs in this process: torch's own threads would compete with headrace's threads for the cores.
torch.set_num_threads(1)


def train(size: int = 224, filter: str = "bilinear") -> T.Compose:
    """The usual training recipe."""
    crop = T.RandomResizedCrop(size, interpolation=T.InterpolationMode(filter))
    return T.Compose([crop, T.RandomHorizontalFlip(), *TENSOR])


def evaluation(resize: int = 256, crop: int = 224) -> T.Compose:
    """The usual evaluation recipe."""
    return T.Compose([T.Resize(resize), T.CenterCrop(crop), *TENSOR])


@cache
def pictures(count: int = 24, edge: int = 90) -> tuple[bytes, ...]:
    """Encoded photographs of many shapes, about `edge` pixels wide.

    Mostly JPEG, with all chroma subsamplings; each dozen has a gray JPEG, and two files that Pillow
    decodes: a PNG with a chunk of its own and a CMYK JPEG.
    """
    made = []
    sources = sorted(PHOTOS.glob("*.jpg"))
    for i in range(count):
        with Image.open(sources[i % len(sources)]) as photograph:
            size = (edge + 7 * (i % 5), edge - 9 * (i % 4))
            small = photograph.convert("RGB").resize(size, Image.Resampling.BOX)
        out = BytesIO()
        if i % 12 == 3:
            notes = PngImagePlugin.PngInfo()
            notes.add(b"teSt", b"a private chunk")
            small.save(out, "PNG", pnginfo=notes)
        elif i % 12 == 5:
            small.convert("CMYK").save(out, "JPEG", quality=90)
        elif i % 12 == 7:
            small.convert("L").save(out, "JPEG", quality=90)
        else:
            small.save(out, "JPEG", quality=80 + i % 15, subsampling=i % 3, progressive=i % 12 == 9)
        made.append(out.getvalue())
    return tuple(made)


def blobs(count: int = 24, transform: Any = None, **options: Any) -> headrace.EncodedImages:
    """`pictures` as a dataset, with their numbers as labels."""
    return headrace.EncodedImages(pictures(count), list(range(count)), transform or train(32), **options)


def write_folder(root: Path, count: int = 24, classes: int = 3) -> Path:
    """`pictures` as the files of an ImageFolder; all are named .jpg, whatever their format."""
    for i, data in enumerate(pictures(count)):
        folder = root / f"class_{i % classes}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i:04}.jpg").write_bytes(data)
    return root


def truncated(data: bytes) -> bytes:
    """A JPEG file without its second half, which Pillow refuses."""
    return data[: len(data) // 2]


def in_host_memory(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, so that one on another device is noticed; a copy in host memory where EMULATED_BY_A_GPU."""
    return tensor.cpu() if EMULATED_BY_A_GPU else tensor


def assert_same(batches: Iterable[Any], expected: Iterable[Any]) -> int:
    """Asserts that the batches are equal to the bit, and returns their number."""
    count = 0
    for ours, theirs in zip(batches, expected, strict=True):
        assert type(ours) is type(theirs)
        (parts, tree), (their_parts, their_tree) = tree_flatten(ours), tree_flatten(theirs)
        assert tree == their_tree
        for a, b in zip(parts, their_parts, strict=True):
            assert type(a) is type(b)
            if isinstance(a, torch.Tensor):
                assert a.dtype == b.dtype and a.shape == b.shape
                assert torch.equal(in_host_memory(a), in_host_memory(b)), f"batch {count} differs"
            else:
                assert a == b
        count += 1
    return count


def same(a: Any, b: Any) -> bool:
    """Equal in type and value, to the bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(in_host_memory(a), in_host_memory(b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a is b or bool(a == b) or (hasattr(a, "__dict__") and not isinstance(a, type) and same(vars(a), vars(b)))


def let_go(error: BaseException) -> BaseException:
    """Clears the variables of the error's frames. With them an error from a worker is in a cycle with torch's iterator,
    which may close its queues before it ends its workers when the garbage collector frees it: that takes five seconds,
    and the thread of a queue fails."""
    traceback.clear_frames(error.__traceback__)
    return error


@contextmanager
def silent_pillow() -> Iterator[None]:
    """Hides the warnings of Pillow and the output of libtiff about odd files."""
    sys.stderr.flush()
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="PIL")
            yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def judge(files: Iterable[Path]) -> tuple[list[Path], dict[Path, Exception]]:
    """The files that the installed Pillow decodes, and what it raises for the others."""
    good, bad = [], {}
    with silent_pillow():
        for path in sorted(files):
            try:
                open_rgb(path.read_bytes())
                good.append(path)
            except Exception as error:
                bad[path] = error
    return good, bad


def hard_files(folder: Path) -> list[Path]:
    """The images of hard_dev."""
    return [path for path in folder.iterdir() if path.suffix != ".tsv"]


def numpy_words() -> np.ndarray:
    """The words of the generator that the functions of `np.random` share."""
    state: Any = np.random.get_state()  # noqa: NPY002
    words: np.ndarray = state[1]
    return words


def threads() -> int:
    """The number of threads of this process, native ones included."""
    return len(list(Path("/proc/self/task").iterdir()))


def threads_of_ours() -> list[str]:
    """The names of the threads of loaders that still exist, once the collector has run."""

    def found() -> list[str]:
        native: list[str] = []
        for path in Path("/proc/self/task").glob("*/comm"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                native.append(path.read_text().strip())
        named = [one.name for one in threading.enumerate()]
        # The thread of endings lives as long as an object that needs it, such as a recording.
        return sorted(one for one in (*native, *named) if one.startswith("headrace") and one != "headrace-endings")

    if not found():
        return []
    gc.collect()  # an exception of an earlier test may hold its loader in a cycle
    return found()


def threads_without_ours() -> int:
    """The number of threads of this process, after those of earlier tests' loaders have ended."""
    assert eventually(lambda: not threads_of_ours())
    return threads()


def descriptors() -> int:
    """Open file descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def open_files() -> list[str]:
    """The paths, or other names, of what this process has open, sorted. What is closed meanwhile is left out."""
    names = []
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            names.append(str(one.readlink()))
    return sorted(names)


def resident_mb() -> float:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


#: Ends a test that hangs. No verdict: a machine that is slow, or busy with other work, stays far below it.
WATCHDOG_S = 1200.0


def recipe_of(loader: headrace.DataLoader[Any]) -> Recipe:
    """The recipe of a loader of one image a sample."""
    recipe = loader.recipe()
    assert isinstance(recipe, Recipe)
    return recipe


def eventually(condition: Callable[[], bool], seconds: float = WATCHDOG_S) -> bool:
    """Whether the condition becomes true: threads end some time after the request to end."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def heed_ctrl_c() -> None:
    """Called in a process that SIGINT is to end: a background shell ignores it, and so do the processes it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def python(code: str, *options: str) -> subprocess.Popen[str]:
    """Starts Python on a program that can import headrace and this module."""
    path = os.pathsep.join([str(Path(headrace.__file__).parents[1]), str(Path(__file__).parent)])
    return subprocess.Popen(
        [sys.executable, *options, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        preexec_fn=heed_ctrl_c,
    )


def output_of(code: str, *options: str, seconds: float = WATCHDOG_S) -> str:
    """What a program prints; it must exit with status 0 and an empty stderr."""
    with python(code, *options) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, ""), f"status {process.returncode}\n{out}\n{err}"
    return out


def data_folder(name: str) -> Path:
    """A folder of test data that is not part of the repository: $HEADRACE_TEST_DATA/name, or ../shared/data/name.

    A test is skipped where it is missing, and fails where HEADRACE_REQUIRE_DATA is set.
    """
    import pytest  # imported here: programs that tests start use this module, too

    root = Path(os.environ.get("HEADRACE_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (root / name).is_dir():
        missing = f"no folder {name} in {root}; set HEADRACE_TEST_DATA"
        if os.environ.get("HEADRACE_REQUIRE_DATA"):
            pytest.fail(missing)
        pytest.skip(missing)
    return root / name
