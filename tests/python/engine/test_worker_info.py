"""``get_worker_info()`` in a Python step is that of a torch worker if the loader has workers; elsewhere it is None."""

from __future__ import annotations

import threading
from collections.abc import Sized
from typing import Any, cast

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import get_worker_info  # by name, as programs do, before a loader is made

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from support import WATCHDOG_S, pictures

COUNT = 24


class Asking:
    """Returns the worker info, as the bytes of the image."""

    def __call__(self, image: Any) -> torch.Tensor:
        info = get_worker_info()
        words = [-1] * 4 if info is None else [info.id, info.num_workers, info.seed, len(cast(Sized, info.dataset))]
        return torch.tensor(words).view(torch.uint8).reshape(1, 1, -1)


class Drawing(Asking):
    """Draws from the generator of the whole process, so it runs in the caller's thread."""

    def __call__(self, image: Any) -> torch.Tensor:
        __import__("random").random()
        return super().__call__(image)


def worker_values(kind: type, step: Any, workers: int) -> torch.Tensor:
    torch.manual_seed(5)
    loader = kind(EncodedImages(pictures(COUNT), None, T.Compose([step])), 4, num_workers=workers)
    assert kind is TorchDataLoader or loader.native
    return torch.cat(list(loader)).view(torch.int64).reshape(-1, 4)


@pytest.mark.parametrize("step", [Asking(), Drawing()], ids=["threads", "the caller's thread"])
def test_a_step_sees_what_torchs_workers_are(step: Asking | Drawing) -> None:
    theirs, ours = worker_values(TorchDataLoader, step, 2), worker_values(DataLoader, step, 2)
    assert theirs[:, 1:2].eq(2).all() and ours[:, 1:2].eq(2).all()
    assert ours[:, 3].eq(COUNT).all()
    assert set(ours[:, 0].tolist()) <= {0, 1}
    # torch draws the base seed where headrace does, so the seeds of the workers are the same.
    assert set(ours[:, 2].tolist()) <= set(theirs[:, 2].tolist())
    assert torch.equal(ours[:, 2] - ours[:, 0], theirs[:, 2] - theirs[:, 0])


@pytest.mark.parametrize("step", [Asking(), Drawing()], ids=["a step", "one that draws from the whole process"])
def test_without_workers_there_is_none(step: Asking | Drawing) -> None:
    assert torch.equal(worker_values(DataLoader, step, 0), worker_values(TorchDataLoader, step, 0))


def test_other_threads_see_nothing() -> None:
    """While a step sees itself in a worker, the main thread and the user's threads do not."""
    inside, go_on = threading.Event(), threading.Event()

    class Waiting(Asking):
        def __deepcopy__(self, memo: Any) -> Waiting:
            return self

        def __call__(self, image: Any) -> torch.Tensor:
            inside.set()
            assert go_on.wait(WATCHDOG_S)
            return super().__call__(image)

    go_on.set()
    loader = DataLoader(
        EncodedImages(pictures(4), None, T.Compose([Waiting()])), 4, num_workers=1
    )  # runs the step on trial
    assert loader.native
    go_on.clear()
    inside.clear()
    iterator = iter(loader)
    assert inside.wait(WATCHDOG_S)
    seen: list[Any] = [get_worker_info()]
    mine = threading.Thread(target=lambda: seen.append(get_worker_info()))
    mine.start()
    mine.join()
    go_on.set()
    assert next(iterator).view(torch.int64)[:, 0, 0, 1].eq(1).all()
    assert seen == [None, None]
    assert get_worker_info() is None
    assert torch.utils.data.get_worker_info is get_worker_info


def test_torchs_own_workers_see_their_own() -> None:
    worker_values(DataLoader, Asking(), 2)  # after a headrace loader has replaced the function
    theirs = worker_values(TorchDataLoader, Asking(), 2)
    assert theirs[:, 0].reshape(-1, 4)[:, 0].tolist() == [0, 1, 0, 1, 0, 1]
    assert theirs[:, 1].eq(2).all()
