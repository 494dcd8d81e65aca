"""A dataset of a folder with one sub-folder per class, in torchvision's order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from headrace._base.checks import explained
from headrace._base.safe_exceptions import add_note
from headrace._storage.remote.cache import Cache
from headrace.datasets.sources.image_files import ImageFiles
from headrace.datasets.sources.packed_paths import PackedPaths

#: torchvision's list; compared with the end of the lower-cased file name.
EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class ImageFolder(ImageFiles):
    """Images arranged as ``root/class_x/anything.jpg``.

    The classes, the files and their order are those of ``torchvision.datasets.ImageFolder``; the list of paths takes a
    third of the memory.

    Args:
        root: the folder that holds one folder per class. Symbolic links to folders are followed.
        transform, target_transform: as in torchvision.
        is_valid_file: takes a path and returns whether the file belongs to the dataset. None: the extension decides.
        allow_empty: whether to accept a class without files.
        mode, cache: as in ``ImageFiles``.

    Attributes:
        classes: names of the class folders, sorted.
        class_to_idx: dict of class name to label.
        targets: label of each file, int64 array (n,).
        samples, imgs: sequence of (path, label).

    Raises:
        FileNotFoundError: `root` has no class folder, or a class has no valid file and `allow_empty` is False.
    """

    @explained(lambda error, given: _advise_on_root(error, given["root"]))
    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
        mode: str = "RGB",
        cache: Cache | str | os.PathLike[str] | None = None,
    ) -> None:
        self.root: str | os.PathLike[str] = os.path.expanduser(root) if isinstance(root, str) else root  # noqa: PTH111 - as torchvision
        top = os.fspath(self.root)
        self.classes: list[str] = _class_names(top)
        self.class_to_idx: dict[str, int] = {name: label for label, name in enumerate(self.classes)}
        counts = [0] * len(self.classes)

        def paths() -> Iterator[str]:
            for label, name in enumerate(self.classes):
                for path in _files_below(os.path.join(top, name)):  # noqa: PTH118 - a million times
                    if is_valid_file(path) if is_valid_file is not None else path.lower().endswith(EXTENSIONS):
                        counts[label] += 1
                        yield path

        packed = PackedPaths(paths())
        empty = [name for name, count in zip(self.classes, counts, strict=True) if count == 0]
        if empty and not allow_empty:
            message = f"Found no valid file for the classes {', '.join(empty)}. "
            if is_valid_file is None:
                message += f"Supported extensions are: {', '.join(EXTENSIONS)}"
            raise FileNotFoundError(message)
        super().__init__(
            packed, np.repeat(np.arange(len(counts)), counts), transform, target_transform, mode=mode, cache=cache
        )

    @property
    def targets(self) -> npt.NDArray[np.int64]:
        labels: npt.NDArray[np.int64] = self._labels
        return labels

    @property
    def samples(self) -> Sequence[tuple[str, int]]:
        return _Samples(self.paths, self.targets)

    imgs = samples

    def __repr__(self) -> str:
        return f"ImageFolder({str(self.root)!r}, {len(self)} files in {len(self.classes)} classes)"


def _advice_for_flat_folder(root: str) -> str:
    """Returns what to do with a folder whose images have no class folders; "" if it has no images."""
    with os.scandir(root) as entries:
        count = sum(entry.name.lower().endswith(EXTENSIONS) for entry in entries)
    if not count:
        return ""
    return (
        f" It holds {count} images itself; an ImageFolder is a folder of such folders, one a class. Without classes: "
        "headrace.ImageFiles(sorted(paths), transform=...)"
    )


def _advise_on_root(error: Exception, root: Any) -> None:
    """Adds to an error about `root` what to pass."""
    note = ""
    if isinstance(error, NotADirectoryError):
        note = "root is a file: pass the folder of the class folders; TarShards and Zip read archives"
    elif isinstance(error, FileNotFoundError) and error.errno:
        there = next((one for one in Path(root).absolute().parents if one.is_dir()), None)
        if there is not None:
            note = f"{there} exists, and what follows it in root does not: look for a misspelt name"
    elif isinstance(error, FileNotFoundError) and "any class folder" in str(error) and not os.listdir(root):  # noqa: PTH208
        note = "the folder is empty: it needs a folder a class, with images, as in root/cat/1.jpg"
    elif isinstance(error, TypeError) and not isinstance(root, (str, os.PathLike)):
        note = f"root={root!r:.60} is no folder: pass one path; headrace.ImageFiles takes a list of images"
    if note:
        add_note(error, note)


def _class_names(root: str) -> list[str]:
    with os.scandir(root) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir())
    if not names:
        raise FileNotFoundError(f"Couldn't find any class folder in {root}.{_advice_for_flat_folder(root)}")
    return names


def _files_below(folder: str) -> Iterator[str]:
    for where, _, names in sorted(os.walk(folder, followlinks=True)):
        for name in sorted(names):
            yield os.path.join(where, name)  # noqa: PTH118 - a million times


class _Samples(Sequence[tuple[str, int]]):
    """A sequence of (path, label) pairs, made on access."""

    def __init__(self, paths: Sequence[str], labels: npt.NDArray[np.int64]) -> None:
        self._paths, self._labels = paths, labels

    def __len__(self) -> int:
        return len(self._paths)

    @overload
    def __getitem__(self, index: int) -> tuple[str, int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[str, int]]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, int] | list[tuple[str, int]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._paths[index], int(self._labels[index])
