"""States that do not fit are refused in one sentence; states of torchdata's StatefulDataLoader are accepted."""

from __future__ import annotations

import copy
import random
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from test_fallback_state import plain
from torch.utils.data import BatchSampler, Dataset

from headrace import DataLoader
from headrace import transforms as T
from stateful_datasets import Counting, Deck, Plain, Resumed, Stream, same
from support import TENSOR, blobs
from trainers import finish, fork, needs

pytestmark = pytest.mark.processes


def state_of(position: int, *arguments: Any, **more: Any) -> dict[str, Any]:
    loader = DataLoader(*arguments, **more)
    batches = iter(loader)
    for _ in range(position):
        next(batches)
    return loader.state_dict()


@pytest.mark.parametrize(
    ("saved", "now", "words"),
    [
        (
            (Counting(), 3),
            (Counting(), 3, False, None, None, 1),
            "the state is of 0 worker processes, but .*=1",
        ),
        ((Resumed(), 3), (Resumed(), 3, False, None, None, 1), "the state is of 0 worker processes, but .*=1"),
        ((Plain(), 3), (Plain(), 4), r"the loader has another batch_size \(saved 3, now 4\)"),
        ((Plain(), 3), (Plain(), 3, None, None, None, 0, None, False, True), "the loader has another drop_last"),
        ((Plain(), 3), (Plain(21), 3), r"the dataset has another number of samples \(saved 20, now 21\)"),
        ((Plain(), 3, True), (Plain(), 3, None, [4] * 20), ""),
        ((Plain(), 3, None, Deck()), (Plain(), 3), "state contains one for the sampler, but SequentialSampler has no"),
        ((Counting(), 3), (Plain(), 3), "the state contains one for the dataset, but Plain has no state_dict"),
        ((Plain(), 3, None, [1] * 20), (Plain(), 3, None, [1] * 6), "says 4 batches were drawn, but .* have only 2"),
    ],
)
def test_another_loader(saved: tuple[Any, ...], now: tuple[Any, ...], words: str) -> None:
    state = state_of(4, *saved)
    other = DataLoader(*now)
    other.load_state_dict(state)
    if not words:
        assert len(list(other)) == 3
        return
    for _ in range(2):  # each attempt raises: the loader never silently starts from the beginning
        with pytest.raises(ValueError, match=words) as raised:
            next(iter(other))
    assert "\n" not in str(raised.value)
    assert isinstance(raised.value, AssertionError) is ("worker processes" in words)  # as torchdata raises


def test_a_sampler_that_hides_one_with_a_state() -> None:
    class Pairs(BatchSampler):
        """A custom batch sampler without a state."""

    make = lambda: DataLoader(Plain(), batch_sampler=Pairs(Deck(), 2, False))  # noqa: E731
    loader = make()
    next(iter(loader))
    other = make()
    other.load_state_dict(loader.state_dict())
    with pytest.raises(
        ValueError, match=r"the order of .*Pairs cannot be resumed: it draws from Deck, which has a state"
    ):
        next(iter(other))


def test_another_seed_generator_or_world() -> None:
    state = state_of(2, Plain(), 3, True, seed=1)
    generator = torch.Generator()
    for more, words in (
        ({"seed": 2}, r"another seed \(saved 1, now 2\)"),
        ({"seed": 1, "rank": 0, "world_size": 2}, "another number of ranks"),
        ({"seed": 1, "generator": generator}, "another number of torch.Generators"),
    ):
        other = DataLoader(Plain(), 3, True, **more)
        other.load_state_dict(state)
        with pytest.raises(ValueError, match=words):
            iter(other)


def test_what_is_no_state() -> None:
    native = DataLoader(blobs(6, T.Compose([T.Resize((2, 2)), *TENSOR])), 2)
    good = state_of(2, Plain(), 3)
    loader = DataLoader(Plain(), 3)
    for state, words in (
        (
            native.state_dict(),
            r"of a loader with headrace's native path, but torch delivers .* loader.explain\(\)",
        ),
        (
            {"a": 1},
            "neither a state of a headrace loader whose batches torch delivers, nor of a StatefulDataLoader: {'a': 1}",
        ),
        ([3], "neither a state"),
        ({**good, "headrace": {**good["headrace"], "version": 9}}, "of version 9; this headrace reads version 1"),
        ({key: value for key, value in good.items() if key != "fetcher_state"}, "lacks its entry 'fetcher_state'"),
        ({**good, "headrace": 3}, "the state is damaged"),
        ({**good, "_num_yielded": None}, "the state is damaged"),
    ):
        with pytest.raises(ValueError, match=words):
            loader.load_state_dict(state)  # type: ignore[arg-type]
    handed = DataLoader(Plain(), 3)
    handed.load_state_dict(good)
    assert len(list(handed)) == 5  # the refused loads did not change `good`


def test_a_native_state_does_not_get_lost_where_torch_takes_over() -> None:
    data = blobs(6, T.Compose([T.Resize((2, 2)), *TENSOR]))
    loader = DataLoader(data, 2)
    next(iter(loader))
    loader.load_state_dict(loader.state_dict())
    loader.collate_fn = lambda samples: len(random.sample(samples, len(samples)))
    with pytest.raises(RuntimeError, match="the state that was loaded is of headrace's native path"):
        iter(loader)
    loader.set_epoch(3)
    assert list(loader) == [2, 2, 2]


def test_the_argument() -> None:
    with pytest.raises(ValueError, match="snapshot_every_n_steps must be 0 or more"):
        DataLoader(Plain(), snapshot_every_n_steps=-1)
    with pytest.raises(TypeError, match="snapshot_every_n_steps must be a whole number"):
        DataLoader(Plain(), snapshot_every_n_steps=1.5)  # type: ignore[arg-type]


def test_states_are_copies() -> None:
    loader = DataLoader(Counting(), 3, collate_fn=same)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    before = copy.deepcopy(state)
    next(batches)
    assert state == before
    other = DataLoader(Counting(), 3, collate_fn=same)
    other.load_state_dict(state)
    state["dataset_state"]["made"] = 99
    assert next(iter(other))[0] == [3, 4]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("every", [1, 4])
def test_checkpoints_of_torchdata(workers: int, every: int) -> None:
    needs("torchdata")
    from torchdata.stateful_dataloader import StatefulDataLoader

    cases: list[tuple[Dataset[Any], dict[str, Any]]] = [
        (Plain(), {"batch_size": 3, "shuffle": True}),
        (Plain(), {"batch_size": None, "shuffle": True}),
        (Plain(), {"batch_size": 3}),
        (Counting(), {"batch_size": 3, "collate_fn": same}),
        (Resumed((9, 9)), {"batch_size": 2, "collate_fn": same}),
        (Stream((9, 9)), {"batch_size": 2, "collate_fn": same}),
        (Plain(), {"batch_size": 3, "sampler": Deck()}),
    ]
    for data, more in cases:
        theirs = StatefulDataLoader(data, num_workers=workers, snapshot_every_n_steps=every, **more)
        batches = iter(theirs)
        for _ in range(5):
            next(batches)
        state = theirs.state_dict()
        rest = plain(batches)
        ours = DataLoader(data, num_workers=workers, snapshot_every_n_steps=every, **more)
        ours.load_state_dict(state)
        if isinstance(data, Stream) and not isinstance(data, Resumed):
            assert [[one for one, _ in batch] for batch in ours] == [[one for one, _ in batch] for batch in rest]
        else:
            assert plain(ours) == rest, (data, more)


FIT = """
from torchvision_shim import import_torchvision
import importlib.util
if importlib.util.find_spec("torchvision"):
    import_torchvision()
import logging, sys, warnings
warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.demos.boring_classes import BoringModel, RandomDataset
from headrace import DataLoader

class Model(BoringModel):
    def __init__(self, stop):
        super().__init__()
        self.stop, self.seen = stop, []
    def train_dataloader(self):
        lightning.seed_everything(4, verbose=False)
        return DataLoader(RandomDataset(32, 24), 2, shuffle=True)
    def val_dataloader(self):
        return None
    validation_step = None
    def training_step(self, batch, number):
        if len(self.seen) == self.stop:
            raise KeyboardInterrupt
        self.seen.append(float(batch.sum()))
        return super().training_step(batch, number)

def run(stop=None, path=None):
    model = Model(stop)
    saves = ModelCheckpoint(sys.argv[1], every_n_train_steps=1, save_last=True, enable_version_counter=False)
    trainer = lightning.Trainer(max_epochs=2, callbacks=[saves], logger=False, enable_progress_bar=False,
                                enable_model_summary=False, default_root_dir=sys.argv[1], accelerator="cpu")
    try:
        trainer.fit(model, ckpt_path=path)
    except (KeyboardInterrupt, SystemExit):
        pass
    return model.seen

whole = run()
assert len(whole) == 24, len(whole)
first = run(7)
rest = run(path=sys.argv[1] + "/last.ckpt")
assert first == whole[:7] and rest[:5] == whole[7:12] and len(rest) == 17, (first, rest, whole)
"""


def test_lightning_saves_and_goes_on(tmp_path: Path) -> None:
    needs("lightning")
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(FIT))
    finish(fork("lightning", program, tmp_path / "checkpoints"))
