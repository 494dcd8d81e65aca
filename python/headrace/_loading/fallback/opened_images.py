"""Says once, after the first batches that torch delivers, how many of their images got native pixels.

Where few did, it names the function that opened them, which it finds in the bytecode of the dataset.
"""

from __future__ import annotations

import dis
import inspect
import sys
import weakref
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple

from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset, get_worker_info

from headrace._base import loggers, messages
from headrace._loading.epoch.torch_loader import TorchLoader
from headrace.pillow.recording.image_counts import ImageCounts

_NATIVE = "native decoding is for JPEG, PNG and WebP images, and for clips of videos"
_BATCHES = 8  # that are judged
_MOST = 200  # functions that are read
_LIBRARIES = ("torch", "torchvision", "numpy", "PIL", "headrace", "cv2")
_OPEN = 'PIL.Image.open(path).convert("RGB")'
_OWN = (
    "with a method headrace_source headrace's threads would make the whole batch: "
    "https://headrace.github.io/headrace/from-your-code.html"
)
_KNOWN = "PIL.Image.open, cv2.imread, torchvision.io, torchcodec"
_STREAMS = "loader.explain() says which datasets headrace's threads would read instead"  # they have no such method
_ARRAYS = "headrace.ImageArray or headrace.Columns makes batches of arrays natively"


class ImageOpener(NamedTuple):
    """A function that opens images.

    Attributes:
        name: for example ``"cv2.imread"``.
        remedy: what to write instead, as a sentence without its full stop.
    """

    name: str
    remedy: str


# By package: names of functions, and the remedy.
_OPENERS: dict[str, tuple[frozenset[str], str]] = {
    "cv2": (
        frozenset({"imread", "imdecode"}),
        "write cv2.imread and cv2.imdecode in full, not names imported from cv2, which keep OpenCV's functions",
    ),
    "imageio": (frozenset({"imread"}), f"np.asarray({_OPEN}) gives the same array"),
    "skimage.io": (frozenset({"imread"}), f"np.asarray({_OPEN}) gives the same array"),
    "matplotlib.image": (frozenset({"imread"}), f"np.asarray({_OPEN}) gives the same array"),
    "h5py": (frozenset({"File"}), _ARRAYS),
    "numpy": (frozenset({"load", "memmap", "fromfile"}), _ARRAYS),
}


_warned = False  # in this process


def warn_of_torch(reason: str) -> None:
    """Warns once per process that torch's DataLoader delivers without deferred images, and why."""
    _warn_of_few_native(f"torch's DataLoader delivers these batches, at its own speed: {reason}")


def _warn_of_few_native(text: str) -> None:
    global _warned
    if _warned or get_worker_info() is not None:
        return
    _warned = True
    end = "This warning comes once; loader.explain() gives the reason for every loader"
    messages.warn(f"{text}. {end}", messages.PerformanceWarning)


class FirstImages:
    """Judges a loader's images once, after its first batches.

    Args:
        loader: whose dataset is searched; no reference is kept.
    """

    def __init__(self, loader: TorchLoader) -> None:
        self._loader = weakref.ref(loader)
        self._batches = 0
        self._judged = False

    def note_batch(self, images: ImageCounts) -> None:
        """Called with the counts of the epoch so far after each batch."""
        if self._judged:
            return
        self._batches += 1
        if self._batches == _BATCHES:
            self.judge(images)

    def judge(self, images: ImageCounts) -> None:
        """Warns if few of the images are native, or logs what is faster; does nothing before the first batch."""
        if self._judged or not self._batches:
            return
        self._judged = True
        total = images.total
        loader = self._loader()
        if 2 * images.native >= total > 0:
            stream = loader is not None and isinstance(loader.dataset, IterableDataset)
            loggers.loading.info("native pixels in torch's workers: %s; %s", images, _STREAMS if stream else _OWN)
            return
        first = "the first batch" if self._batches == 1 else f"the first {self._batches} batches"
        if total:
            _warn_of_few_native(f"few images of {first} got native pixels: {images}; {_NATIVE}")
            return
        if images.small_tensors and not images.has_large_tensors:
            loggers.loading.info("no images in torch's workers; small tensors by memory that stays mapped")
            return
        opener = None if loader is None else find_opener(loader.dataset)
        how = "" if opener is None else f": the dataset's code names {opener.name}; {opener.remedy}"
        _warn_of_few_native(
            f"{first} opened no image with a function that headrace knows ({_KNOWN}), so headrace makes nothing "
            f"of this loader faster{how}"
        )


def find_opener(dataset: object) -> ImageOpener | None:
    """Returns the first such function that a dataset's code names; None if it names none."""
    openers = list(_loaded_openers())
    seen: set[FunctionType] = set()
    waiting = list(_functions_of(dataset))
    while waiting and len(seen) < _MOST:
        function = waiting.pop(0)
        if function in seen:
            continue
        seen.add(function)
        for named in _objects_named_in(function):
            for opened, opener in openers:
                if named is opened:
                    return opener
            if isinstance(named, FunctionType) and (named.__module__ or "").split(".")[0] not in _LIBRARIES:
                waiting.append(named)
    return None


def _loaded_openers() -> Iterator[tuple[object, ImageOpener]]:
    for package, (functions, remedy) in _OPENERS.items():
        module = sys.modules.get(package)
        for name in functions:
            if (opened := getattr(module, name, None)) is not None:
                yield opened, ImageOpener(f"{package}.{name}", remedy)


def _functions_of(dataset: object) -> Iterator[FunctionType]:
    """Yields the Python functions of a dataset's class and attributes, and of the datasets that it is made of."""
    if isinstance(dataset, Subset):
        yield from _functions_of(dataset.dataset)
        return
    if isinstance(dataset, ConcatDataset):
        for one in dataset.datasets:
            yield from _functions_of(one)
        return
    for cls in type(dataset).__mro__:
        if cls not in (Dataset, IterableDataset, object):
            for member in vars(cls).values():
                plain = inspect.unwrap(getattr(member, "__func__", member)) if callable(member) else None
                if isinstance(plain, FunctionType):
                    yield plain
    for held in vars(dataset).values() if hasattr(dataset, "__dict__") else ():
        held = getattr(held, "__func__", held)
        if isinstance(held, FunctionType):
            yield held


def _objects_named_in(function: FunctionType) -> Iterator[object]:
    """Yields what the names in a function stand for, with attributes of modules: `cv2.imread` is one name."""
    free = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for root, *attributes in _attribute_paths_in(function.__code__):
        try:
            found = free[root].cell_contents if root in free else function.__globals__.get(root, sys.modules.get(root))
        except ValueError:  # a cell that is not bound yet
            continue
        for name in attributes:
            if not isinstance(found, ModuleType):
                break
            found = getattr(found, name, None)
        yield found


def _attribute_paths_in(code: CodeType) -> Iterator[list[str]]:
    """Yields each variable that is read, with the attributes that are read of it at once."""
    path: list[str] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and path:
            path.append(instruction.argval)
        elif instruction.opname.startswith("LOAD_") and isinstance(instruction.argval, str):
            if path:
                yield path
            path = [instruction.argval] if not instruction.opname.startswith("LOAD_CONST") else []
        elif path:
            yield path
            path = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _attribute_paths_in(constant)
