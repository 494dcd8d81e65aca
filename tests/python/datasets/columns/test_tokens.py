"""The token cache: filled once, used again for the same texts and tokenizer, refused in a sentence if damaged."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headrace import Columns, DataLoader, token_columns

TEXTS = ["a bee on a flower", "", "a cat", "three dogs, one ball", "a cat"]


class Words:
    """Numbers each word by its letters, and counts the texts that it has seen."""

    def __init__(self, offset: int = 1) -> None:
        self.offset, self.seen = offset, 0

    def __call__(self, texts: list[str], scale: int = 1) -> Any:
        self.seen += len(texts)
        return {"input_ids": [[scale * (sum(map(ord, word)) + self.offset) for word in text.split()] for text in texts]}


def rows(tokenizer: Any, texts: list[str] = TEXTS) -> list[list[int]]:
    return tokenizer(texts)["input_ids"]


def test_tokens_are_made_once_and_mapped(tmp_path: Path) -> None:
    path = tmp_path / "queries.npy"
    first = Words()
    columns = token_columns(TEXTS, first, path, mask=True, lengths=True, padding=-1)
    again = Words()
    same = token_columns(TEXTS, again, path, mask=True, lengths=True, padding=-1)
    assert first.seen == len(TEXTS) + again.seen  # only the texts that the fingerprint looks at
    for one in (columns, same):
        assert (
            isinstance(one["tokens"], np.memmap) and one["tokens"].dtype == np.int64 and one["tokens"].shape == (5, 5)
        )
        assert one["lengths"].tolist() == [5, 0, 2, 4, 2] and one["mask"].sum(1).tolist() == [5, 0, 2, 4, 2]
        assert [row[mask].tolist() for row, mask in zip(one["tokens"], one["mask"], strict=True)] == rows(Words())
        assert (one["tokens"][~one["mask"]] == -1).all()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["queries.json", "queries.lengths.npy", "queries.npy"]
    assert np.array_equal(np.load(path), columns["tokens"])


def test_many_texts_are_tokenized_in_parts(tmp_path: Path) -> None:
    texts = [f"text {i} " * (i % 3) for i in range(2500)]
    columns = token_columns(texts, Words(), tmp_path / "t.npy", dtype=np.int32, lengths=True)
    assert columns["tokens"].dtype == np.int32
    made = [row[:n].tolist() for row, n in zip(columns["tokens"], columns["lengths"], strict=True)]
    assert made == rows(Words(), texts)


CHANGES: dict[str, Any] = {
    "a text": ([*TEXTS[:-1], "a cow"], Words(), {}),
    "their order": (TEXTS[::-1], Words(), {}),
    "their division": (["a bee on a", " flower", "a cat", "three dogs, one ball", "a cat"], Words(), {}),
    "the tokens": (TEXTS, Words(2), {}),
    "the function": (TEXTS, lambda texts: rows(Words(), texts), {}),
    "its arguments": (TEXTS, functools.partial(Words(), scale=1), {}),
    "length": (TEXTS, Words(), {"length": 3}),
    "padding": (TEXTS, Words(), {"padding": 7}),
    "dtype": (TEXTS, Words(), {"dtype": np.int32}),
    "settings": (TEXTS, Words(), {"settings": "v2"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_fills_the_cache_again(tmp_path: Path, change: str) -> None:
    texts, tokenizer, options = CHANGES[change]
    path = tmp_path / "t.npy"
    token_columns(TEXTS, Words(), path)
    before = (tmp_path / "t.json").read_text()
    columns = token_columns(texts, tokenizer, path, lengths=True, **options)
    assert (tmp_path / "t.json").read_text() != before
    expected = tokenizer(texts)
    expected = expected["input_ids"] if isinstance(expected, dict) else expected
    length = options.get("length", 5)
    assert [row[:n].tolist() for row, n in zip(columns["tokens"], columns["lengths"], strict=True)] == [
        row[:length] for row in expected
    ]


def test_batches_of_tokens(tmp_path: Path) -> None:
    columns = token_columns(TEXTS, Words(), tmp_path / "t.npy", mask=True)
    loader = DataLoader(Columns({**columns, "label": np.arange(5)}), 5, num_workers=1)
    batch = next(iter(loader))
    assert batch["tokens"].dtype == torch.int64 and batch["mask"].dtype == torch.bool
    assert torch.equal(batch["tokens"], torch.from_numpy(np.array(columns["tokens"]))) and loader.native


def test_no_texts(tmp_path: Path) -> None:
    assert token_columns([], Words(), tmp_path / "t.npy")["tokens"].shape == (0, 0)
    assert token_columns(["", ""], Words(), tmp_path / "t.npy")["tokens"].shape == (2, 0)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


DAMAGE: dict[str, Any] = {
    "cut": lambda folder: _cut(folder / "t.npy"),
    "empty": lambda folder: (folder / "t.npy").write_bytes(b""),
    "gone": lambda folder: (folder / "t.npy").unlink(),
    "lengths": lambda folder: (folder / "t.lengths.npy").write_bytes(b"nothing"),
    "of other texts": lambda folder: np.save(folder / "t.npy", np.zeros((4, 5), np.int64)),
    "json": lambda folder: (folder / "t.json").write_text("{"),
    "no fingerprint": lambda folder: (folder / "t.json").write_text("[]"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_one_sentence(tmp_path: Path, damage: str) -> None:
    token_columns(TEXTS, Words(), tmp_path / "t.npy")
    DAMAGE[damage](tmp_path)
    with pytest.raises(ValueError, match=r"^the token cache .*t\..* is damaged \(.*\); delete .*t.json, and") as raised:
        token_columns(TEXTS, Words(), tmp_path / "t.npy")
    assert "\n" not in str(raised.value)
    (tmp_path / "t.json").unlink(missing_ok=True)
    assert len(token_columns(TEXTS, Words(), tmp_path / "t.npy")["tokens"]) == 5


def test_an_interrupted_run_leaves_nothing_that_is_taken_for_whole(tmp_path: Path) -> None:
    token_columns(TEXTS, Words(), tmp_path / "t.npy")
    calls = iter([rows(Words(), TEXTS)])

    def fails(texts: list[str]) -> Any:
        return next(calls, [])

    with pytest.raises(ValueError, match="returned 0 rows"):
        token_columns(TEXTS, fails, tmp_path / "t.npy")
    with pytest.raises(ValueError, match="does not fit int8"):
        token_columns(TEXTS, Words(), tmp_path / "t.npy", dtype=np.int8)
    assert not list(tmp_path.glob("*unfinished*")) and not (tmp_path / "t.json").exists()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        (("a text", Words(), "t.npy"), {}, TypeError, "^texts must be a list of strings$"),
        ((["a", 3], Words(), "t.npy"), {}, TypeError, "^texts must be a list of strings$"),
        ((TEXTS, Words(), "t.bin"), {}, ValueError, r"^the path of a token cache ends in \.npy, unlike 't.bin'$"),
        ((TEXTS, Words(), "t.npy"), {"dtype": np.float32}, ValueError, "^dtype must be an integer dtype"),
        ((TEXTS, lambda texts: [[1]], "t.npy"), {}, ValueError, "^the tokenizer returned 1 rows for 5 texts$"),
        ((TEXTS, lambda texts: texts, "t.npy"), {}, ValueError, "^the tokenizer returned 'a bee on a flower' for"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    error: type,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        token_columns(*arguments, **options)
