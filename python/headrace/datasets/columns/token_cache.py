"""A cache of tokens: a tokenizer runs once over a list of texts, and later runs map the file that it filled.

The file is a standard .npy. A .json file beside it holds a fingerprint of the texts and the tokenizer. It is removed
before the arrays change and written after them, so an interrupted run leaves a cache that is filled again, never one
that belongs to other texts.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._base.private_files import create_file, mapped_array, read_own
from headrace._base.types import Array

Tokenizer = Callable[[list[str]], Any]

_VERSION = 1
_AT_ONCE = 1000  # texts in a call of the tokenizer
_TRIED = 32  # texts whose tokens are part of the fingerprint


def token_columns(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    path: str | os.PathLike[str],
    *,
    length: int | None = None,
    padding: int = 0,
    dtype: npt.DTypeLike = np.int64,
    mask: bool = False,
    lengths: bool = False,
    settings: object = None,
) -> dict[str, Array]:
    """Returns the tokens of `texts` as columns for ``headrace.Columns``, from a cache that `tokenizer` fills once.

    The first call tokenizes all texts and writes `path` (an .npy file), one with the lengths, and a .json file beside
    them. Later calls map the file without tokenizing, as long as texts, arguments and tokenizer are the same; otherwise
    they fill it again. Several processes may call this at a time; each fills the cache, with the same contents.

    Args:
        texts: the texts, in the order of the dataset.
        tokenizer: called with a list of up to 1,000 texts; returns a list of token numbers for each, or a dict with
            such lists as ``"input_ids"``, as the tokenizers of Hugging Face do without `padding`.
        path: the file, such as ``"queries.npy"``. Its folder must exist.
        length: number of tokens in a row; longer texts are cut. None: that of the longest text.
        padding: number that fills the rest of a row.
        dtype: integer dtype of the tokens.
        mask: whether to add the column ``"mask"``: bool (n, length), True at tokens and False at padding.
        lengths: whether to add the column ``"lengths"``: int64 (n,), number of tokens in each row.
        settings: anything with a ``repr`` that identifies the tokenizer, such as its name and version. The tokenizer's
            class and name and the tokens of 32 of the texts are always compared; name here what may change none of
            these.

    Returns:
        ``{"tokens": array}``, (n, length), mapped read-only; and the columns that were requested.

    Raises:
        TypeError: a text is not a string.
        ValueError: the tokenizer returned another number of rows or numbers that do not fit `dtype`, or the cache is
            damaged; the message names the file.
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError("texts must be a list of strings")
    cache = _Cache(Path(path))
    dtype = np.dtype(dtype)
    if dtype.kind not in "iu":
        raise ValueError(f"dtype must be an integer dtype, not {dtype}")
    fingerprint = _fingerprint_texts(texts, tokenizer, (length, padding, dtype.str, repr(settings)))
    if cache.fingerprint() != fingerprint:
        cache.fill(_tokenise_texts(texts, tokenizer, length), length, padding, dtype, fingerprint)
    tokens, counts = cache.open(len(texts))
    columns = {"tokens": tokens}
    if mask:
        columns["mask"] = np.arange(tokens.shape[1]) < counts[:, None]
    if lengths:
        columns["lengths"] = counts
    return columns


class _Cache:
    """The files of one cache."""

    def __init__(self, path: Path) -> None:
        if path.suffix != ".npy":
            raise ValueError(f"the path of a token cache ends in .npy, unlike {str(path)!r}")
        self._tokens, self._lengths = path, path.with_suffix(".lengths.npy")
        self._about = path.with_suffix(".json")

    def fingerprint(self) -> str | None:
        """Returns the fingerprint of what the cache holds; None: it is not there, or was not completed."""
        try:
            about = json.loads(read_own(self._about, follow=True))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise self._explain_damage(self._about, str(error)) from None
        if not isinstance(about, dict) or not isinstance(about.get("fingerprint"), str):
            raise self._explain_damage(self._about, "it has no fingerprint")
        return str(about["fingerprint"]) if about.get("version") == _VERSION else None

    def open(self, count: int) -> tuple[Array, Array]:
        """Maps tokens and reads lengths. Raises ValueError if they are not as they were written."""
        arrays = []
        for path, axes in ((self._tokens, 2), (self._lengths, 1)):
            try:
                array = mapped_array(path)
            except (OSError, ValueError, EOFError) as error:
                raise self._explain_damage(path, str(error)) from None
            if array.ndim != axes or len(array) != count:
                raise self._explain_damage(path, f"its shape is {array.shape}")
            arrays.append(array)
        return arrays[0], np.array(arrays[1])

    def fill(
        self, rows: Iterable[Array], length: int | None, padding: int, dtype: np.dtype[Any], fingerprint: str
    ) -> None:
        """Writes the files; each appears whole or not at all."""
        made = list(rows)
        counts = np.array([len(row) for row in made], dtype=np.int64)
        width = length if length is not None else int(counts.max(initial=0))
        limits = np.iinfo(dtype)
        self._about.unlink(missing_ok=True)
        with _Replacing(self._tokens) as unfinished:
            if len(made) and width:
                array = np.lib.format.open_memmap(unfinished, mode="w+", dtype=dtype, shape=(len(made), width))
                for row, tokens in zip(array, made, strict=True):
                    if len(tokens) and (tokens.min() < limits.min or tokens.max() > limits.max):
                        raise ValueError(f"token {int(tokens.max())} does not fit {dtype}; give a larger dtype")
                    row[: len(tokens)], row[len(tokens) :] = tokens, padding
                array.flush()
            else:
                np.save(unfinished, np.empty((len(made), width), dtype))
        with _Replacing(self._lengths) as unfinished:
            np.save(unfinished, counts)
        with _Replacing(self._about) as unfinished:
            unfinished.write_text(json.dumps({"version": _VERSION, "fingerprint": fingerprint}) + "\n")

    def _explain_damage(self, path: Path, why: str) -> ValueError:
        return ValueError(
            f"the token cache {path} is damaged ({' '.join(why.split())}); delete {self._about}, and it is filled again"
        )


class _Replacing:
    """Gives a path to write to, which replaces `path` if nothing is raised."""

    def __init__(self, path: Path) -> None:
        self._path = path
        number = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._unfinished = path.with_name(f"{path.stem}.unfinished-{number}{path.suffix}")

    def __enter__(self) -> Path:
        create_file(self._unfinished, 0o666).close()  # not what a link of this name leads to
        return self._unfinished

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._unfinished.replace(self._path)
        else:
            self._unfinished.unlink(missing_ok=True)


def _tokenise_texts(texts: Sequence[str], tokenizer: Tokenizer, length: int | None) -> Iterable[Array]:
    """Yields the tokens of each text."""
    for begin in range(0, len(texts), _AT_ONCE):
        some = list(texts[begin : begin + _AT_ONCE])
        made = tokenizer(some)
        rows = made["input_ids"] if isinstance(made, Mapping) or hasattr(made, "input_ids") else made
        if len(rows) != len(some):
            raise ValueError(f"the tokenizer returned {len(rows)} rows for {len(some)} texts")
        for row in rows:
            array = np.asarray(row)
            if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
                raise ValueError(f"the tokenizer returned {row!r:.80} for a text, not a list of whole numbers")
            yield array[:length].astype(np.int64)


def _fingerprint_texts(texts: Sequence[str], tokenizer: Tokenizer, settings: tuple[object, ...]) -> str:
    digest = hashlib.sha256(repr((len(texts), settings, _describe_tokenizer(tokenizer))).encode())
    for text in texts:
        data = text.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    step = max(1, len(texts) // _TRIED)
    for row in _tokenise_texts(list(texts[::step][:_TRIED]), tokenizer, None):
        digest.update(row.tobytes() + b"\xff")
    return digest.hexdigest()


def _describe_tokenizer(tokenizer: object) -> object:
    """Returns what a tokenizer says about itself; the same in every process."""
    if isinstance(tokenizer, functools.partial):
        return _describe_tokenizer(tokenizer.func), repr(tokenizer.args), repr(sorted(tokenizer.keywords.items()))
    kind = tokenizer if hasattr(tokenizer, "__qualname__") else type(tokenizer)
    own = [repr(getattr(tokenizer, name, None)) for name in ("name_or_path", "vocab_size", "model_max_length")]
    return kind.__module__, kind.__qualname__, own
