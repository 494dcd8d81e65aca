"""Changed states and sidecars: a few of those that `python -m fuzz.states` gives, and that it finds what is wrong."""

from __future__ import annotations

import io
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fuzz.states import trials
from fuzz.states.loaders import loader, states
from fuzz.states.values import changed, places
from fuzz.states.watched import watched

from headrace.datasets.tar_shards import tar_index


def test_a_few_states_and_files(tmp_path: Path) -> None:
    draw = random.Random(7)
    of_loaders, of_files = trials.States(draw), trials.Files(draw, tmp_path)
    assert [said for _ in range(150) for said in (of_loaders.trial(),) if said] == []
    assert [said for _ in range(400) for said in (of_files.trial(),) if said] == []
    assert 60 < of_loaders.refused < 150


def test_code_that_is_unpickled_is_noticed() -> None:
    with watched() as seen:
        pickle.loads(pickle.dumps(OSError))
    assert len(seen) == 1 and seen[0].startswith("pickle.find_class")
    with watched() as seen:
        pickle.loads(pickle.dumps([1, "a"]))
    assert seen == []


def test_a_loader_that_raises_another_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    of_loaders = trials.States(random.Random(1))
    made = loader("seed")

    def raising(state: Any) -> None:
        raise AttributeError("'int' object has no attribute 'get'")

    monkeypatch.setattr(trials, "loader", lambda kind: made)
    monkeypatch.setattr(made, "load_state_dict", raising)
    assert "AttributeError" in of_loaders.trial()


def test_a_change_leaves_the_state_it_was_made_from() -> None:
    (state, *_), draw = states("generator"), random.Random(0)
    before = {name: repr(value) for name, value in state.items()}
    for _ in range(50):
        changed(draw, state, [state])
    assert {name: repr(value) for name, value in state.items()} == before
    assert ("generator_states", 0) in places(state)


# ---- what the fuzzer found -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["recipe", "seed", "version", "batch_size", "epoch", "world_size"])
@pytest.mark.parametrize("value", [torch.zeros(0), torch.zeros(3, dtype=torch.uint8)], ids=["empty", "several"])
def test_a_tensor_in_place_of_a_value_is_refused(name: str, value: torch.Tensor) -> None:
    """Its comparison is a tensor, which is no condition."""
    state = {**states("seed")[2], name: value}
    with pytest.raises(ValueError, match="state"):
        loader("seed").load_state_dict(state)


@pytest.mark.parametrize("kind", ["generator", "weighted"])
@pytest.mark.parametrize("value", [torch.zeros(5055, dtype=torch.uint8), torch.full((5056,), 255, dtype=torch.uint8)])
def test_what_is_no_state_of_a_generator_is_refused(kind: str, value: torch.Tensor) -> None:
    made = loader(kind)
    with pytest.raises(ValueError, match=r"damaged: its default_generator_state is .* not a state of torch's default"):
        made.load_state_dict({**states(kind)[2], "default_generator_state": value})
    made.load_state_dict({**states(kind)[2], "generator_states": [value]})
    with pytest.raises(ValueError, match=r"the state is damaged: it holds no state of a torch\.Generator"):
        next(iter(made))


@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
@pytest.mark.parametrize("value", [3, [1], "x", {"samples_yielded": "x", "more": 1}])
def test_what_is_no_state_of_torchs_batch_sampler_is_refused(value: Any) -> None:
    made = loader("torch")
    made.load_state_dict({**states("torch")[2], "_sampler_iter_state": value})
    with pytest.raises(ValueError, match="the state is damaged: the state of its batch sampler is"):
        next(iter(made))


@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
@pytest.mark.parametrize("value", ["", -1, True, torch.zeros(3, dtype=torch.uint8)], ids=repr)
def test_what_is_no_count_is_refused(value: Any) -> None:
    state, made = states("torch")[2], loader("torch")
    for changed_one in (
        {**state, "_sampler_iter_yielded": value},
        {**state, "headrace": {**state["headrace"], "drawn": value}},
    ):
        with pytest.raises(ValueError, match="not an integer >= 0"):
            made.load_state_dict(changed_one)


@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
def test_a_tensor_among_what_a_state_belongs_to_is_refused() -> None:
    state = states("torch")[2]
    of_headrace = {**state["headrace"], "fits": {**state["headrace"]["fits"], "seed": torch.zeros(0)}}
    with pytest.raises(ValueError, match=r"its seed is .* not an integer"):
        loader("torch").load_state_dict({**state, "headrace": of_headrace})


@pytest.mark.parametrize(("at", "value"), [(8, 99), (6, 1), (4, 200)], ids=["compression", "encrypted", "version"])
def test_a_sidecar_in_a_zip_that_python_does_not_read_is_ignored(at: int, value: int) -> None:
    """zipfile raises NotImplementedError and RuntimeError for these."""
    out = io.BytesIO()
    np.savez(out, version=np.array(1))
    data = bytearray(out.getvalue())
    directory = data.index(b"PK\x01\x02")
    data[directory + 2 + at] = data[at] = value
    assert tar_index.parse_sidecar(bytes(data)) is None


def test_an_epoch_that_began_without_a_base_seed_is_refused() -> None:
    state = {**states("generator")[2], "drew_seed": False, "base_seed": None}
    assert state["begun"]
    with pytest.raises(ValueError, match="the state is damaged: an epoch that has begun has a base_seed"):
        loader("generator").load_state_dict(state)
