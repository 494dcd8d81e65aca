"""The files that a list of shards names: braces, patterns, lists, paths."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterable, Iterator

from headrace._storage.remote.remote_files import Access
from headrace._storage.remote.urls import all_urls, is_url, redact_url
from headrace.datasets.tar_shards.wids import FarLists, listed_shards

Urls = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_RANGE = re.compile(r"(\d+)\.\.(\d+)$")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")


def shard_paths(urls: Urls, far: FarLists | None = None) -> list[str]:
    """Returns the absolute paths of the shards, or their URLs, in order.

    Args:
        urls: a path, or several. A string may hold ``{000..012}`` and ``{a,b}``, a pattern of `glob`, whose files are
            sorted, and several of these joined by ``::``. A ``Path`` is taken as it is. A ``.json`` file or URL is a
            list of shards of wids.
        far: reads lists that are URLs, and takes the sizes that lists give; None: without credentials.

    Raises:
        ValueError: there is no shard, a brace is not closed, a pattern is a URL, a shard is a folder, or shards are
            both here and elsewhere.
        FileNotFoundError: no file fits a pattern.
    """
    given = [urls] if isinstance(urls, (str, os.PathLike)) else list(urls)
    named = [path for one in given for path in (_expand_urls(one) if isinstance(one, str) else [os.fspath(one)])]
    far = far or FarLists(Access())
    lists = (listed_shards(one, far) if one.partition("?")[0].endswith(".json") else [one] for one in named)
    paths = list(itertools.chain.from_iterable(lists))
    if not paths:
        raise ValueError("no shards are given")
    if all_urls(paths):
        return paths
    for path in paths:
        if os.path.isdir(path):  # noqa: PTH112 - a string
            raise ValueError(f"{path} is a folder: name its shards, as in {os.path.join(path, '*.tar')!r}")  # noqa: PTH118
    return [os.path.abspath(path) for path in paths]  # noqa: PTH100 - no resolve()


def _expand_urls(text: str) -> Iterator[str]:
    for part in text.split("::"):
        for url in _expand_braces(part):
            path = url.removeprefix("file://").removeprefix("file:")
            if is_url(path):
                if "*" in path:
                    raise ValueError(
                        f"a pattern is not looked up in other machines: write {{000..012}} in {redact_url(path)}"
                    )
                yield path
                continue
            if match := re.match(r"(https?|s3|gs|hf):/*", path):
                raise ValueError(f"{url!r} is no URL: write {match[1]}://{redact_url(path[match.end() :])}")
            if match := _SCHEME.match(path):
                raise ValueError(
                    f"{url!r} is no file, and its shards are no ranges of one: TarShards reads files and URLs, not "
                    f"{match[1]}:; copy the shards to a disk first"
                )
            if not glob.has_magic(path) or os.path.exists(path):  # noqa: PTH110 - a string
                yield path
                continue
            found = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - strings
            if not found:
                raise FileNotFoundError(f"no file fits the pattern {path!r}")
            yield from found


def _expand_braces(text: str) -> Iterator[str]:
    """Yields the strings that the first brace stands for, and those that the braces after it stand for."""
    begin = text.find("{")
    if begin < 0:
        yield text
        return
    depth, commas, end = 0, [begin], -1
    for place in range(begin, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if text[place] == "," and depth == 1:
            commas.append(place)
        if depth == 0:
            end = place
            break
    if end < 0:
        raise ValueError(f"a brace is not closed in {text!r}")
    commas.append(end)
    inner = text[begin + 1 : end]
    if match := _RANGE.match(inner):
        choices = _expand_range(match[1], match[2])
    elif len(commas) > 2:
        choices = [text[a + 1 : b] for a, b in itertools.pairwise(commas)]
    else:
        raise ValueError(f"the braces in {text!r} hold neither a range, as {{000..012}}, nor a list, as {{a,b}}")
    for choice in choices:
        for middle in _expand_braces(choice):
            for rest in _expand_braces(text[end + 1 :]):
                yield text[:begin] + middle + rest


def _expand_range(first: str, last: str) -> list[str]:
    """Returns the numbers from `first` to `last`, up or down, padded with zeros as bash does."""
    a, b = int(first), int(last)
    padded = (len(first) > 1 and first[0] == "0") or (len(last) > 1 and last[0] == "0")
    width = max(len(first), len(last)) if padded else 0
    return [f"{number:0{width}}" for number in range(a, b + 1 if b >= a else b - 1, 1 if b >= a else -1)]
