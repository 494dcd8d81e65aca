"""The files of videos as a source that packs: folders of them, and datasets of clips."""

from __future__ import annotations

from pathlib import Path

from headrace._cli.pack.videos.video_conversion import is_video
from headrace.datasets.opening.dataset_opening import open_dataset
from headrace.datasets.sources import BlobDataset, ImageFiles, ImageFolder, as_counted
from headrace.datasets.videos.videos_dataset import Videos


def video_files(text: str) -> BlobDataset:
    """Returns video files, encoded, with their labels.

    Args:
        text: a folder of class folders, whose numbers are the labels; a folder of videos, or one video, without labels;
            ``module:object``: a `Videos`, or a dataset whose samples are stored as videos.

    Raises:
        ValueError: there are no videos.
        NotNative, OSError, ImportError: see `open_dataset` and `as_source`.
    """
    path = Path(text).expanduser()
    if path.is_file() and is_video(path.name):
        return ImageFiles([path.absolute()])
    if path.is_dir():
        return _files_below(path.absolute())
    dataset = open_dataset(text)
    return as_counted(dataset.source if isinstance(dataset, Videos) else dataset)


def _files_below(folder: Path) -> BlobDataset:
    if not any(one.is_file() and is_video(one.name) for one in folder.iterdir()):
        try:
            found: ImageFiles = ImageFolder(folder, is_valid_file=is_video, allow_empty=True)
        except FileNotFoundError:  # there are no folders either
            found = ImageFiles([])
    else:
        paths = sorted(str(one) for one in folder.rglob("*") if one.is_file() and is_video(one.name))
        found = ImageFiles(paths)
    if not len(found):
        raise ValueError(f"there are no videos in {folder}")
    return found
