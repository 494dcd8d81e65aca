"""Types of arguments, and the texts that several commands share."""

from __future__ import annotations

import argparse
import re

DATASET = "a folder of images, tar shards, a parquet, arrow or zip file, MDS or litdata shards, or module:object"
RECIPE = (
    "transforms: train, eval, own (the dataset's), module:object, or an expression of names of headrace.transforms; "
    "default: own, or train where the dataset has none"
)

Commands = argparse._SubParsersAction  # what each command is added to


def count(text: str) -> int:
    """A whole number from 1 up."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 up")
    return int(text)


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
