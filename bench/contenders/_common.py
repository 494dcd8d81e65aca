"""Shared by all contenders: the job, the measurement and the command line of one subprocess.

A contender's file imports its library only inside functions: `run` first pins the process and limits the thread
pools, and most libraries read both at import.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.machine import pick_cpus

if TYPE_CHECKING:
    import torch

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
SIZE = 224
SHORTER_SIDE = 256
# A multiple of the usual worker counts, since torch's workers finish their batches at about the same time.
WARM_UP_BATCHES = 4
LEAST_BATCHES = 4
RECIPES = ("train", "eval")
#: Recipes with torchvision's transforms, which only some contenders support.
POLICIES = ("randaugment", "trivialaugment")
TORCHVISION_RECIPES = (*RECIPES, "jitter", "reference", *POLICIES, "rotation", "perspective", "python", "timm")


class Unsupported(Exception):
    """This contender does not support this recipe."""


@dataclass(frozen=True)
class Job:
    """One measurement: the files, the recipe, the number of cores.

    Recipe `train`: RandomResizedCrop(224) + flip + normalise, shuffled.
    Recipe `eval`: Resize(256) + CenterCrop(224) + normalise, in order.
    Recipe `jitter`: train with ColorJitter(0.4, 0.4, 0.4, 0.1) after the flip. Recipes `randaugment`, `trivialaugment`,
    `rotation`, `perspective`: train with RandAugment, TrivialAugmentWide, RandomRotation(30), RandomPerspective there.
    Recipe `python`: train with RandAugment in a Lambda there, which headrace calls in Python.
    Recipe `reference`: train with RandomErasing(0.1) at the end, as in torchvision's reference.
    Recipe `timm`: timm's rand-m9-mstd0.5-inc1 with RandomErasing of random pixels at 0.25 (`timm_transform`).
    Recipe `pixels`: the whole image to 224x224 + normalise, in order, one pass over all files.
    """

    root: Path
    recipe: str
    cores: int
    batch_size: int = 64
    variant: str = ""

    @property
    def shuffle(self) -> bool:
        return self.recipe not in ("eval", "pixels")

    def epochs(self) -> Iterable[int]:
        """0, 1, 2, ... without end; only 0 for a comparison of pixels."""
        return range(1) if self.recipe == "pixels" else count()

    def files(self) -> list[Path]:
        """In ImageFolder's order."""
        return sorted(path for path in self.root.rglob("*") if not path.is_dir())

    def unique_files(self) -> list[Path]:
        """The files that the links of the tree point to, each once, in the order of their first link."""
        return list(dict.fromkeys(path.resolve() for path in self.files()))

    def derived(self, suffix: str, write: Callable[[Path], object]) -> Path:
        """A file made once from the tree and stored next to it. `suffix` must name everything that it depends on."""
        path = self.root.parent / (self.root.name + suffix)
        if not path.exists():
            unfinished = path.with_name(path.name + ".part")
            write(unfinished)
            unfinished.rename(path)
        return path


def raw_images(job: Job) -> Path:
    """An array of the job's files as `headrace pack --raw 256` makes it: uint8 (n, 256, 256, 3)."""
    import numpy as np
    from PIL import Image

    side = 256

    def write(path: Path) -> None:
        from headrace._cli.pack.conversion import square_pixels

        made: dict[Path, Any] = {}
        for file in job.unique_files():
            with Image.open(file) as image:
                made[file] = np.frombuffer(square_pixels(image.convert("RGB"), side), np.uint8).reshape(side, side, 3)
        with path.open("wb") as out:
            np.save(out, np.stack([made[one.resolve()] for one in job.files()]))

    return job.derived("-raw256.npy", write)


def import_torchvision() -> None:
    """Imports torchvision even if its C++ operators do not match the installed torch.

    PyPI has no build of torchvision for a CPU-only torch. Its datasets and its transforms of PIL images need none of
    those operators; only the import looks up the schemas of two.
    """
    import sys

    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")
        # The schemas live as long as the library object.
        sys.modules["torchvision"].__dict__["_declared_by_bench"] = library


def torchvision_transform(recipe: str) -> Any:
    """The recipe as torchvision's transforms. On PIL images v1 gives the pixels of v2, and is slightly faster."""
    if recipe == "timm":
        return timm_transform()
    from torchvision import transforms as T

    train, tensor = [T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip()], [T.ToTensor(), T.Normalize(MEAN, STD)]
    steps = {
        "train": [*train, *tensor],
        "jitter": [*train, T.ColorJitter(0.4, 0.4, 0.4, 0.1), *tensor],
        "randaugment": [*train, T.RandAugment(), *tensor],
        "trivialaugment": [*train, T.TrivialAugmentWide(), *tensor],
        "rotation": [*train, T.RandomRotation(30), *tensor],
        "perspective": [*train, T.RandomPerspective(), *tensor],
        "python": [*train, T.Lambda(T.RandAugment()), *tensor],
        "reference": [*train, *tensor, T.RandomErasing(0.1)],
        "eval": [T.Resize(SHORTER_SIDE), T.CenterCrop(SIZE), *tensor],
        "pixels": [T.Resize((SIZE, SIZE)), *tensor],
    }[recipe]
    return T.Compose(steps)


def timm_transform() -> Any:
    """The transforms of timm's published recipes for ResNets. Raises Unsupported where timm is not installed."""
    import warnings

    import_torchvision()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from timm.data import create_transform
        except ImportError as error:
            raise Unsupported("timm is not installed") from error
    transform = create_transform(
        SIZE, is_training=True, auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, re_mode="pixel"
    )
    for step in transform.transforms:
        for one in getattr(step, "ops", ()):
            one.magnitude_max = 9.99  # at 10, Pillow 13 refuses to posterize to the 0 bits that timm asks for
    return transform


def _check_batch(images: torch.Tensor, job: Job) -> None:
    """Raises AssertionError if the batch is not what the job requires."""
    import torch

    problem, most = None, 7 if job.recipe == "timm" else 3  # the erased pixels of one batch in seven pass 5
    if not isinstance(images, torch.Tensor) or images.dtype != torch.float32 or images.device.type != "cpu":
        problem = f"not a float32 CPU tensor: {type(images)} {getattr(images, 'dtype', '')}"
    elif tuple(images.shape) != (job.batch_size, 3, SIZE, SIZE):
        problem = f"shape {tuple(images.shape)}"
    elif not (-most < images.min() < 0 < images.max() < most and 0.5 < images.std() < 2):
        problem = f"not normalised: min {images.min()}, max {images.max()}, std {images.std()}"
    if problem:
        raise AssertionError(f"the first batch is wrong: {problem}")


def measure(batches: Iterator[torch.Tensor], job: Job, seconds: float) -> dict[str, Any]:
    """Takes batches as a training loop does, without reading them, and measures the time after the warm-up."""
    _check_batch(next(batches), job)
    for _ in range(WARM_UP_BATCHES - 1):
        next(batches)
    images = taken = 0
    elapsed = 0.0
    start = time.perf_counter()
    while elapsed < seconds or taken < LEAST_BATCHES:
        images += len(next(batches))
        taken += 1
        elapsed = time.perf_counter() - start
    return {"images": images, "seconds": elapsed}


def _save_pixels(batches: Iterator[torch.Tensor], path: Path) -> dict[str, Any]:
    import numpy as np

    # Copied at once: some contenders reuse the memory of their batches.
    images = np.concatenate([batch.numpy().copy() for batch in batches])
    np.save(path, images)
    return {"images": len(images)}


def _limit_threads(cores: int) -> None:
    """Pins this process and its children, and limits the thread pools of libraries to the cores of the job."""
    os.sched_setaffinity(0, pick_cpus(cores))
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"  # parallel over images, never within one
    os.environ["NUMBA_NUM_THREADS"] = str(cores)


def _versions(modules: Sequence[str], packages: Sequence[str]) -> dict[str, str]:
    for module in modules:
        import_torchvision() if module == "torchvision" else importlib.import_module(module)
    return {package: importlib.metadata.version(package) for package in packages}


def run(
    name: str,
    *,
    modules: Sequence[str],
    packages: Sequence[str],
    batches: Callable[[Job], Iterator[torch.Tensor]],
    prepare: Callable[[Job], object] | None = None,
    verify: Callable[[Job], str] | None = None,
    recipes: Sequence[str] = RECIPES,
    measure: Callable[[Iterator[torch.Tensor], Job, float], dict[str, Any]] = measure,
) -> None:
    """The command line of a contender: does one task and prints one line of JSON.

    The line holds `missing` if a module cannot be imported, and `unsupported` if the recipe is not supported; both
    are results, not failures. Any other exception is a failure with a traceback.
    """
    parser = argparse.ArgumentParser(prog=f"python -m bench.contenders.{name}")
    parser.add_argument("--root", type=Path, help="an ImageFolder of JPEG files")
    parser.add_argument("--recipe", choices=TORCHVISION_RECIPES, default="train")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--variant", default="")
    parser.add_argument("--pixels", type=Path, metavar="OUT.npy", help="save the pixels of one pass instead")
    parser.add_argument("--probe", action="store_true", help="only say which versions are installed")
    parser.add_argument("--prepare", action="store_true", help="only make the files that the contender reads")
    parser.add_argument("--verify", action="store_true", help="only let the contender check itself")
    args = parser.parse_args()

    line: dict[str, Any] = {"name": name}
    _limit_threads(args.cores)
    try:
        line["versions"] = _versions(modules, packages)
    except Exception as error:  # a library may fail to import in any way: a missing .so, a driver, an ABI
        print(json.dumps({**line, "missing": f"{type(error).__name__}: {error}"}))
        return
    if args.probe:
        print(json.dumps(line))
        return
    if args.root is None:
        parser.error("--root is required")
    recipe = "pixels" if args.pixels else args.recipe
    job = Job(args.root, recipe, args.cores, args.batch_size, args.variant)
    try:
        if args.recipe not in recipes:
            raise Unsupported("it has none of torchvision's colour transforms")
        if args.prepare:
            line["prepared"] = bool(prepare and prepare(job))
        elif args.verify:
            line["verified"] = verify(job) if verify else None
        else:
            stream = batches(job)
            line |= _save_pixels(stream, args.pixels) if args.pixels else measure(stream, job, args.seconds)
            stream.close()  # type: ignore[attr-defined] # a generator: closing it ends its loader's workers
    except Unsupported as error:
        line["unsupported"] = str(error)
    print(json.dumps(line), flush=True)
    os._exit(0)  # libraries with their own threads may hang at exit
