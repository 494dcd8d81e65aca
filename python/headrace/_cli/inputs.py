"""What commands are given: arguments, a dataset with its transforms, files to write; each fault is one sentence.

The parsers are made of this module, so that functions import torch and what needs it when they are called.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headrace._base.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.datasets.sources import BlobDataset
    from headrace.datasets.videos.videos_dataset import Videos

#: What each command adds its arguments to.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

DATASET = "a folder of images, tar shards, a parquet, arrow or zip file, MDS or litdata shards, or module:object"
DASH = "- is the standard output, and the text goes to the other"
RECIPE = (
    "transforms: train, eval, own (the dataset's), module:object, or an expression of names of headrace.transforms; "
    "default: own, or train where the dataset has none"
)


def add_command(
    commands: Commands, name: str, what: str, examples: Sequence[str], *, description: str = ""
) -> argparse.ArgumentParser:
    """Adds a command and returns its parser.

    Args:
        what: one line for the list of commands.
        examples: what may follow ``headrace``; the help ends with them.
        description: sentences about the command; default: `what`.
    """
    lines = "".join(f"\n  headrace {one}" for one in examples)
    parser = commands.add_parser(
        name,
        help=what,
        description=textwrap.fill(description or f"{what[0].upper()}{what[1:]}.", 78),
        epilog=f"{'example' if len(examples) == 1 else 'examples'}:{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command_parser=parser)
    return parser


def count(text: str) -> int:
    """A whole number from 1 up."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 up")
    return int(text)


def workers_of(args: argparse.Namespace) -> int:
    """Returns the number after ``--workers``; without it, one for each core that this process may use."""
    from headrace._base.cores import usable_cores

    return args.workers or usable_cores()


def _above_zero(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of {what} above 0")
    return number


def seconds(text: str) -> float:
    """A duration above 0."""
    return _above_zero(text, "seconds")


def cores(text: str) -> float:
    """A number of CPU cores above 0."""
    return _above_zero(text, "cores")


def size(text: str) -> int:
    """A number of bytes: 500MB, 2GiB, 1000."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMG]?)(i?)B?", text, re.IGNORECASE)
    number = 0.0
    if match is not None:
        unit = "KMG".find(match[2].upper()) + 1 if match[2] else 0
        number = float(match[1]) * (1024 if match[3] else 1000) ** unit
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of bytes such as 500MB or 2GiB")
    return int(number)


def share(text: str) -> tuple[int, int]:
    """One of several equal parts: 2/4."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text} is not a share such as 2/4, the second of four")
    return int(match[1]), int(match[2])


def quality(text: str) -> int:
    """A quality of JPEG."""
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not a quality from 1 to 100")
    return int(text)


def rate_factor(text: str) -> int:
    """A constant rate factor of x264."""
    if not text.isdecimal() or int(text) > 51:
        raise argparse.ArgumentTypeError(f"{text} is not a constant rate factor from 0 to 51")
    return int(text)


class GivenError(HeadraceError, ValueError):
    """An argument of a command is unusable; the message is one sentence."""


def dataset_of(text: str) -> Any:
    """Returns the dataset that a text names; see `datasets.opening`. Raises GivenError."""
    from headrace.datasets.opening.dataset_opening import open_dataset

    try:
        return open_dataset(text)
    except OSError as error:
        raise GivenError(f"{error.filename or text}: {error.strerror or error}") from error
    except (ValueError, ImportError) as error:
        raise GivenError(" ".join(str(error).split())) from error


def clips_of(text: str) -> Videos | None:
    """Returns a clip of each video of a folder, with the number of its file's folder as label.

    None: the text names no folder, or one with images or without videos. Raises GivenError where PyAV or torchcodec are
    not installed.
    """
    from headrace._media.library_decoders import NoTorchcodec, check_decoder, install_for_video
    from headrace.datasets.videos.videos_dataset import Videos, find_videos

    folder = Path(text).expanduser()
    if not folder.is_dir() or not (paths := find_videos(folder)):
        return None
    try:
        import av  # noqa: F401

        check_decoder("VideoDecoder")
    except NoTorchcodec as error:
        raise GivenError(str(error)) from error
    except ImportError as error:
        raise GivenError(f"{text} holds videos, which need PyAV and torchcodec ({install_for_video()})") from error
    from headrace._cli import recipes

    folders = [str(Path(path).parent) for path in paths]
    numbers = {one: number for number, one in enumerate(sorted(set(folders)))}
    return Videos(paths, [numbers[one] for one in folders], clips=recipes.clip())


def source_of(text: str) -> BlobDataset:
    """Returns the encoded images of the dataset that a text names. Raises GivenError."""
    from headrace.datasets.sources import NotNative, as_counted

    dataset = dataset_of(text)
    try:
        source = as_counted(dataset)
    except (NotNative, ValueError) as error:
        raise GivenError(f"{text}: {error}") from error
    if not source.encoded:
        raise GivenError(f"{text} holds pixels, not encoded files: there is nothing to scan")
    if not len(source):
        raise GivenError(f"{text} is empty")
    return source


def set_recipe(dataset: object, text: str | None) -> str:
    """Sets the transforms of a dataset, and returns their name.

    Args:
        text: ``train``, ``eval``, ``own``, ``module:object``, or an expression of names of ``headrace.transforms``.
            None: the dataset's own if it has any, otherwise ``train``.

    Raises:
        GivenError: there are no such transforms, or the dataset does not take any.
    """
    from headrace.datasets.sources import BlobDataset

    ours = dataset if isinstance(dataset, BlobDataset) else None
    has_own = ours is None or ours.transform is not None
    if text == "own" or (text is None and has_own):
        if not has_own:
            raise GivenError("the dataset has no transforms of its own; leave out --recipe, or name one")
        return "the dataset's own"
    if ours is None:
        raise GivenError(
            f"{type(dataset).__name__} keeps its own transforms, which --recipe cannot replace; leave out --recipe"
        )
    ours.transform = _recipe_of(text or "train", of_clips=any(one.clips is not None for one in ours.variants))
    return text or "train"


def _recipe_of(text: str, *, of_clips: bool) -> Callable[..., object]:
    from headrace import transforms
    from headrace._base.safe_exceptions import named_message_of
    from headrace._cli import recipes
    from headrace.datasets.opening.named_objects import is_object, named_object

    if of_clips and not is_object(text):
        return _recipe_of_clips(text)
    if text in ("train", "eval"):
        return recipes.train() if text == "train" else recipes.evaluation()
    if is_object(text):
        try:
            made: object = named_object(text)
        except ValueError as error:
            raise GivenError(f"--recipe: {error}") from error
    else:
        import torch

        names = {name: getattr(transforms, name) for name in transforms.__all__}
        try:
            made = eval(text, {**names, "T": transforms, "transforms": transforms, "torch": torch})
        except Exception as error:
            takes = "train, eval, own, module:object, or an expression of names of headrace.transforms"
            raise GivenError(f"--recipe {text} raises {named_message_of(error)}; it takes {takes}") from error
    if not callable(made):
        raise GivenError(f"--recipe {text} is no transform but {type(made).__name__}")
    return made


def _recipe_of_clips(text: str) -> Callable[..., object]:
    from headrace._cli import recipes

    if text not in ("train", "eval"):
        raise GivenError(f"--recipe {text}: clips of videos take train, eval, or module:object")
    try:
        return recipes.for_clips(text)
    except ImportError as error:
        raise GivenError("the transforms of clips are torchvision's, which is not installed") from error


def check_writable(path: Path | None) -> None:
    """Raises GivenError if a file cannot be written, before anything is measured."""
    if path is None:
        return
    there = path.exists()
    try:
        with path.open("ab"):
            pass
        if not there:
            path.unlink()
    except OSError as error:
        raise GivenError(f"{path} cannot be written: {error.strerror or error}") from error
