"""Streams of tar shards: the samples of the shards, in the order that is defined, whatever reads them."""

from __future__ import annotations

import pickle
from collections.abc import Sized
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from stream_shards import (
    EACH,
    PATTERN,
    SHARDS,
    ObjectServer,
    expected,
    keys,
    keys_of,
    loader,
    plain,
    stream,
    write_shards,
)

import headrace
from headrace import TarShards, TarStream
from headrace import transforms as T
from support import assert_same

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("bucket"))


@pytest.mark.parametrize("label", [None, "cls", "txt", "__key__", ["txt", "cls", "__key__"]])
@pytest.mark.parametrize("workers", [0, 2])
def test_in_order_it_is_the_shards(folder: Path, label: Any, workers: int) -> None:
    local = TarShards(str(folder / PATTERN), label=label, transform=plain(), index=False)
    wanted = list(headrace.DataLoader(local, 8, num_workers=2))
    with ObjectServer(folder) as server:
        assert_same(list(loader(stream(server, label=label), workers)), wanted)
        assert not any("index" in name for name in server.counts)  # none is asked for


@pytest.mark.parametrize("buffer", [1, 10, 1000])
def test_a_shuffle_is_the_one_that_is_defined(folder: Path, buffer: int) -> None:
    shards = keys_of(folder)
    with ObjectServer(folder) as server:
        shuffled = stream(server, label="__key__", shuffle=True, buffer=buffer)
        for workers in (2, 0, 3):
            made = loader(shuffled, workers)
            for epoch in range(2):
                assert keys(made) == expected(shards, buffer, 0, epoch)
        assert keys(loader(shuffled, seed=7)) == expected(shards, buffer, 7, 0)
        made.set_epoch(5)
        assert keys(made) == expected(shards, buffer, 0, 5)


def test_the_oracle_makes_the_same(folder: Path) -> None:
    twice = T.Views([T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.ToTensor()]), plain()])
    with ObjectServer(folder) as server:
        made = loader(stream(server, transform=twice, shuffle=True))
        assert made.verify(3).samples == 24
        assert_same(list(made.reference()), list(made))
        assert "native" in str(made.explain()) and "remote:" in str(made.stats())


def test_random_numbers_follow_the_sample_and_not_its_place(folder: Path) -> None:
    random = T.Compose([T.RandomResizedCrop(16), T.PILToTensor()])

    def by_key(**options: Any) -> dict[str, bytes]:
        batches = loader(stream(server, label="__key__", transform=random, **options))
        return {key: one.numpy().tobytes() for images, names in batches for one, key in zip(images, names, strict=True)}

    with ObjectServer(folder) as server:
        assert by_key() == by_key(shuffle=True)


def test_without_a_seed_torch_draws_it(folder: Path) -> None:
    with ObjectServer(folder) as server:
        shuffled = stream(server, label="__key__", shuffle=True)
        orders = []
        for _ in range(2):
            torch.manual_seed(3)
            made = loader(shuffled, seed=None)
            orders.append((keys(made), keys(made)))
        assert orders[0] == orders[1]
        assert orders[0][0] != orders[0][1]
        state = torch.get_rng_state()
        keys(loader(stream(server, label="__key__"), seed=None))
        plain_loader: Any = torch.utils.data.DataLoader(range(4))  # type: ignore[arg-type]
        after = torch.get_rng_state()
        torch.set_rng_state(state)
        list(plain_loader)
        assert torch.equal(after, torch.get_rng_state())  # as torch's loader: one base seed


def test_length(folder: Path) -> None:
    with ObjectServer(folder) as server:
        endless = loader(stream(server, label="__key__"))
        for one in (endless, endless.dataset, iter(endless)):
            with pytest.raises(TypeError):
                len(one)  # type: ignore[arg-type]
        for length, batches in ((20, 3), ([EACH] * SHARDS, 6), (100, 13)):
            one = stream(server, label="__key__", shuffle=True, length=length)
            made = loader(one)
            found, iterator = list(made), cast(Sized, iter(made))
            assert len(made) == len(iterator) == len(found) == batches
            assert len(keys(found)) == (length if isinstance(length, int) else EACH * SHARDS) == len(one)
        assert set(keys(found)) == {key for shard in keys_of(folder) for key in shard}  # 100 of 48: each twice or more
        assert len(loader(stream(server, length=20), drop_last=True)) == 2
        assert len(loader(stream(server, length=20), batch_size=None)) == 20


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_ranks_share_the_samples(folder: Path, ranks: int) -> None:
    every = sorted(key for shard in keys_of(folder) for key in shard)
    with ObjectServer(folder) as server:
        cut = stream(server, label="__key__", shuffle=True, length=[EACH] * SHARDS)
        parts = [list(loader(cut, rank=rank, world_size=ranks)) for rank in range(ranks)]
        assert len({len(part) for part in parts}) == 1
        found = sorted(key for part in parts for key in keys(part))
        assert set(found) == set(every) and len(found) == -(-len(every) // ranks) * ranks
        if ranks <= SHARDS:
            whole = stream(server, label="__key__", length=2 * ranks * 8)
            assert [len(list(loader(whole, rank=rank, world_size=ranks))) for rank in range(ranks)] == [2] * ranks


def test_ranks_without_a_length_are_refused(folder: Path) -> None:
    with ObjectServer(folder) as server, pytest.raises(ValueError, match="give length="):
        loader(stream(server), rank=0, world_size=2)


@pytest.mark.parametrize("each", [[EACH, EACH - 1, EACH], [EACH, EACH, EACH + 1]])
def test_counts_that_are_wrong_are_an_error(folder: Path, each: list[int]) -> None:
    with ObjectServer(folder) as server, pytest.raises(ValueError, match=r"00\d\.tar has .* length= says"):
        list(loader(stream(server, length=each, label="__key__", shuffle=True, buffer=100)))


def test_torchs_loader_reads_every_sample_once(folder: Path) -> None:
    wanted = sorted(key for shard in keys_of(folder) for key in shard)
    with ObjectServer(folder) as server:
        for options in ({}, {"shuffle": True, "buffer": 7}, {"length": [EACH] * SHARDS}):
            one = stream(server, label="__key__", **options)
            for workers in (0, 2):
                theirs = torch.utils.data.DataLoader(pickle.loads(pickle.dumps(one)), 8, num_workers=workers)
                assert sorted(keys(theirs)) == wanted
        alone = TarStream(f"{server.url}/000.tar", label="__key__", transform=plain())  # fewer shards than workers
        assert keys(torch.utils.data.DataLoader(alone, 8, num_workers=2)) == keys_of(folder)[0]


def test_arguments(folder: Path) -> None:
    with pytest.raises(ValueError, match="storage_options are for URLs"):
        TarStream(str(folder / "000.tar"), storage_options={})
    url = "http://host/{0..2}.tar"
    for options, said in (
        ({"missing": "?"}, "missing must be"),
        ({"label": None, "target_transform": int}, "label is None"),
        ({"buffer": 0}, "buffer must be 1 or more"),
        ({"length": 0}, "length must be 1 or more"),
        ({"length": [1, 2]}, "2 shards, but there are 3"),
        ({"length": [0, 0, 0]}, "no shard has a sample"),
        ({"label": "pkl"}, "allow_pickle=True"),
        ({"mode": "X"}, "mode must be"),
    ):
        with pytest.raises(ValueError, match=said):
            TarStream(url, **options)
    one = TarStream(url, transform=plain())
    with pytest.raises(ValueError, match="a stream has not read yet"):
        headrace.DataLoader(one, 8, on_error="replace")
    with pytest.raises(ValueError, match="shuffle"):
        headrace.DataLoader(one, 8, shuffle=True)
    by_size = T.Compose(
        [T.ByAspectRatio({(16, 16): T.Resize((16, 16)), (16, 24): T.Resize((16, 24))}), T.PILToTensor()]
    )
    assert "does not know ahead" in str(headrace.DataLoader(TarStream(url, transform=by_size), 8).explain())


def test_rows_of_jpegs_are_learned_if_asked(folder: Path) -> None:
    """Not by default: how many samples a stream has is not known."""
    with ObjectServer(folder) as server:
        dataset = stream(server, label="txt", transform=T.Compose([T.CenterCrop(16), T.ToTensor()]))
        wanted = list(loader(dataset))
        made = loader(dataset, entry_points="1 MB")
        assert_same(list(made), wanted)
        learned = made.stats().entry_points
        assert learned is not None and learned.images > 0 and learned.entered > 0
        made.set_epoch(1)
        assert_same(list(made), wanted)
