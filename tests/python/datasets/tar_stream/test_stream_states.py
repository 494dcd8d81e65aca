"""A state of a stream: kilobytes, and the exact sample."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from stream_shards import EACH, SHARDS, ObjectServer, keys, loader, stream, write_shards

from headrace import Network
from support import assert_same

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("bucket"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True, "buffer": 1},
        {"shuffle": True, "buffer": 9},
        {"shuffle": True, "buffer": 1000},
        {"shuffle": True, "buffer": 9, "length": 100},
        {"length": [EACH] * SHARDS},
    ],
    ids=["in order", "shards", "small buffer", "large buffer", "several turns", "counts"],
)
def test_it_continues_at_every_batch(folder: Path, options: dict[str, Any]) -> None:
    with ObjectServer(folder) as server:
        one = stream(server, label="__key__", **options)
        made = loader(one)
        wanted, batches, states = list(made), iter(made), []
        made.set_epoch(0)
        batches = iter(made)
        for batch in wanted:
            states.append(made.state_dict())
            assert_same(next(batches), batch)
        states.append(made.state_dict())
        for done, state in list(enumerate(states))[:: 1 if len(states) < 8 else 4]:
            file = io.BytesIO()
            torch.save(state, file)
            assert len(file.getvalue()) < 14_000  # 10 kB of it are the states of two generators
            assert "127.0.0.1" not in repr(state)
            again = loader(pickle.loads(pickle.dumps(one)), workers=done % 3)
            again.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=True))
            rest = list(again)
            if done < len(wanted):
                assert_same(rest, wanted[done:])
                assert again.upcoming_epoch == 1


def test_ranks_have_states_of_their_own(folder: Path) -> None:
    with ObjectServer(folder) as server:
        one = stream(server, label="__key__", shuffle=True, length=[EACH] * SHARDS)
        for rank in range(2):
            made = loader(one, rank=rank, world_size=2)
            wanted, batches = list(made), iter(made)
            made.set_epoch(0)
            batches = iter(made)
            next(batches)
            state = made.state_dict()
            again = loader(one, rank=rank, world_size=2)
            again.load_state_dict(state)
            assert_same(list(again), wanted[1:])
            for other in ({"rank": 1 - rank, "world_size": 2}, {"rank": 0, "world_size": 3}, {}):
                with pytest.raises(ValueError, match=f"rank {rank} of 2"):
                    loader(one, **other).load_state_dict(state)
        for changed in ({"shuffle": False}, {"buffer": 5}, {"length": 48}, {"label": "cls"}):
            options: dict[str, Any] = {"label": "__key__", "shuffle": True, "length": [EACH] * SHARDS} | changed
            different = stream(server, **options)
            with pytest.raises(ValueError, match="the state does not fit"):
                loader(different, rank=1, world_size=2).load_state_dict(state)


def test_only_the_buffer_and_what_follows_are_read_again(folder: Path) -> None:
    with ObjectServer(folder) as server:
        one = stream(server, label="__key__", shuffle=True, buffer=4)
        made = loader(one, prefetch_factor=1)
        batches = iter(made)
        for _ in range(5):
            next(batches)
        state = made.state_dict()
        iterator = state["sampler_state"]["iterator"]
        assert len(iterator["buffer"]) == 3  # the fourth has left it
        again = loader(stream(server, label="__key__", shuffle=True, buffer=4))
        again.load_state_dict(state)
        before = {name: count for name, count in server.counts.items() if name.startswith("GET")}
        assert len(keys(again)) == 8
        asked = {name: server.counts[name] - before.get(name, 0) for name in before}
        assert sum(asked.values()) <= 3 + 1  # of the buffer, and of the last shard
        assert 0 in asked.values()  # not of all shards


def test_a_shard_that_changed_is_an_error(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "bucket")
    with ObjectServer(folder) as server:
        made = loader(stream(server, label="__key__", shuffle=True, buffer=4))
        batches = iter(made)
        next(batches)
        state = made.state_dict()
        for path in folder.glob("*.tar"):
            data = path.read_bytes()
            path.write_bytes(data[:-512] + b"\0" * 512)  # the same size, written later
        again = loader(stream(server, label="__key__", shuffle=True, buffer=4, network=Network(patience=2)))
        again.load_state_dict(state)
        with pytest.raises(OSError, match="the object was changed after it was indexed"):
            list(again)


def test_damaged_states_are_refused(folder: Path) -> None:
    with ObjectServer(folder) as server:
        one = stream(server, label="__key__", shuffle=True, buffer=4)
        made = loader(one)
        batches = iter(made)
        next(batches)
        for change in (
            {"version": 2},
            {"at": (1,)},
            {"stamps": [(0, "x", "")]},
            {"buffer": torch.tensor([[1 << 60, 5]])},
            {"buffer": torch.tensor([[3, 2048]])},
            {"buffer": None},
        ):
            state = made.state_dict()
            state["sampler_state"]["iterator"].update(change)
            again = loader(one)
            again.load_state_dict(state)
            with pytest.raises(ValueError, match=r"state|no sample begins"):
                iter(again)
