"""A dataset of Hugging Face's `datasets` as a source: its mapped Arrow files are decoded in place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.datasets.tables.image_column import ImageColumn
from headrace.datasets.tables.nested_column import column_below, feature_below, split_path
from headrace.datasets.tables.table_source import LabelColumns, TableSource, checked_names, whole_numbers

_REMEDY = "leave such rows out: dataset.filter(lambda image: image is not None, input_columns={name!r})"
_REMEDY_BELOW = "leave such rows out with dataset.filter"


def from_hf(
    dataset: object,
    image: str = "image",
    label: LabelColumns = "label",
    transform: Callable[[Any], object] | None = None,
    target_transform: Callable[[Any], object] | None = None,
    mode: str = "RGB",
) -> HuggingFaceSource:
    """Returns a Hugging Face dataset as a native one.

    Samples are (image, label). The images are those of ``dataset[i][image].convert(mode)``, turned by their EXIF
    orientation as `datasets` does. They are decoded in place, in mapped Arrow files or in memory. Rows that only
    name a file are read from there, and those that name a stored member of a zip archive of this machine
    (``zip://member::archive.zip``) from the archive. ``select``, ``shuffle``, ``train_test_split``, ``shard`` and
    ``concatenate_datasets`` before this call cost nothing later.

    Args:
        dataset: a ``datasets.Dataset`` without a format or a transform of its own.
        image: the column of images: `datasets.Image`, with or without decoding, or bytes. ``"photo.image"``: the field
            `image` of a column `photo` of structs. ``"images.0"``: the first image of each row's list; a `Fields` of
            several such sources has several.
        label: the column of labels: their Python values, as ``dataset[i][label]``. A list of names: dicts of the
            columns' values. ``"photo.label"``: as in ``dataset.flatten()``. None: samples are images without labels.
        transform, target_transform: as in torchvision's datasets.
        mode: as in `EncodedImages`.

    Raises:
        TypeError: `dataset` is not a ``datasets.Dataset``, or the column holds no images, or several a row.
        ValueError: there is no such column, field or mode, a row has no image or names one on another machine or one
            that is compressed, or the dataset has a format, a transform, or another mode for the column.
    """
    return HuggingFaceSource(dataset, image, label, transform, target_transform, mode)


class HuggingFaceSource(TableSource):
    """What `from_hf` returns."""

    def __init__(
        self,
        dataset: Any,
        image: str,
        label: LabelColumns,
        transform: Callable[[Any], object] | None,
        target_transform: Callable[[Any], object] | None,
        mode: str,
    ) -> None:
        _check_class(dataset)
        _check_format(dataset)
        column, path = split_path(image, dataset.column_names) if isinstance(image, str) else (image, ())
        labelled = dataset
        wanted = [label] if isinstance(label, str) else list(label or ())
        if any(isinstance(one, str) and "." in one and one not in dataset.column_names for one in wanted):
            labelled = dataset.flatten()
        checked_names(dataset.column_names, column, None)
        names = checked_names(list(dict.fromkeys([*labelled.column_names, column])), column, label)
        _check_feature(feature_below(dataset.features[column], image, path), image, mode)
        self.dataset: Any = dataset.with_format(None)  # a copy: a later set_transform of the original has no effect
        self._image, self._column, self._path = image, column, path
        labels = _labels_of_dataset(labelled.with_format(None), label, names)
        super().__init__(labels, transform, target_transform, mode)
        self._images = self._locate()  # finds unusable rows now

    @property
    def upright(self) -> bool:
        return True

    def _locate(self) -> ImageColumn:
        column, rows = self.dataset.data.column(self._column), _selected_rows(self.dataset)
        column, rows = column_below(self._image, column, rows, self._path)
        remedy = _REMEDY_BELOW if self._path else _REMEDY.format(name=self._image)
        return ImageColumn(self._image, column, rows, remedy)

    def __repr__(self) -> str:
        return f"from_hf({len(self)} rows, image={self._image!r})"


class _Rows:
    """The labels of a dataset, by its own decoding of their columns.

    Args:
        names: the columns; one of several makes dicts.
    """

    def __init__(self, dataset: Any, names: Sequence[str], *, several: bool) -> None:
        self._columns = dataset.select_columns(list(names))
        self._names, self._several = list(names), several

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: int) -> object:
        row = self._columns[int(index)]
        return row if self._several else row[self._names[0]]

    def take(self, indices: Sequence[int]) -> list[object]:
        rows = self._columns[list(indices)]
        if not self._several:
            return list(rows[self._names[0]])
        return [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]


def _labels_of_dataset(dataset: Any, label: LabelColumns, names: list[str]) -> npt.NDArray[np.int64] | _Rows | None:
    if not names:
        return None
    if isinstance(label, str) and (numbers := whole_numbers(dataset.data.column(label))) is not None:
        rows = _selected_rows(dataset)
        return numbers if rows is None else numbers[rows]
    return _Rows(dataset, names, several=not isinstance(label, str))


def _selected_rows(dataset: Any) -> npt.NDArray[np.int64] | None:
    """Returns the rows of the table that the dataset selects, int64 (n,); None: all, in order."""
    if dataset._indices is None:
        return None
    rows: npt.NDArray[np.int64] = dataset._indices.column(0).to_numpy().astype(np.int64)
    return rows


def _check_class(dataset: object) -> None:
    library = sys.modules.get("datasets")
    if library is not None and isinstance(dataset, library.Dataset):
        return
    name = f"{type(dataset).__module__}.{type(dataset).__qualname__}"
    if library is not None and isinstance(dataset, library.DatasetDict):
        raise TypeError(
            f"{name} holds several datasets ({', '.join(dataset)}); pass one: dataset[{next(iter(dataset), '')!r}]"
        )
    if library is not None and isinstance(dataset, library.IterableDataset):
        raise TypeError(f"{name} has no rows that can be located; load the dataset without streaming=True")
    raise TypeError(f"a datasets.Dataset is needed, not {name}")


def _check_format(dataset: Any) -> None:
    kind = dataset.format["type"]
    if kind == "custom":
        raise ValueError(
            "the dataset has a function from set_transform or with_transform, which would not be called; pass "
            "dataset.with_format(None), and transform= for each image"
        )
    if kind not in (None, "python"):
        raise ValueError(f"the dataset has the format {kind!r}, which would not apply; pass dataset.with_format(None)")


def _check_feature(feature: object, image: str, mode: str) -> None:
    """Raises ValueError if the column's feature makes images of another mode, or frames of another stream."""
    if getattr(feature, "stream_index", None) is not None:
        raise ValueError(
            f"column {image!r} chooses stream {feature.stream_index} of its videos; only the one that FFmpeg calls the "  # type: ignore[attr-defined]
            f"best is decoded: dataset.cast_column({image!r}, datasets.Video())"
        )
    made = getattr(feature, "mode", None)
    if made not in (None, mode):
        raise ValueError(
            f"column {image!r} is converted to mode {made!r} before mode={mode!r}; pass mode={made!r}, or "
            f"dataset.cast_column({image!r}, datasets.Image())"
        )
