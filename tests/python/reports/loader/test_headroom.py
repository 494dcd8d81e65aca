"""headroom() tells how fast the loop would be with a perfect loader."""

from __future__ import annotations

import time
from typing import Any

import pytest

from headrace import DataLoader
from headrace import transforms as T
from support import TENSOR, assert_same, blobs, eventually


def numbers(count: int) -> Any:
    """A dataset by what it does: its type is not torch's."""
    return list(range(count))


class Waiting:
    def __call__(self, image: Any) -> Any:
        time.sleep(0.01)
        return image


def test_the_loop_without_the_loader_is_timed() -> None:
    loader = DataLoader(blobs(48, T.Compose([T.Resize((8, 8)), Waiting(), *TENSOR])), 2, num_workers=1)

    def quicker_without_the_loader() -> bool:
        loop, seen = loader.headroom(10), []
        for images, _ in loop:
            seen.append(images)
            time.sleep(0.002)
        assert len(seen) == 17  # of the ten, seven are timed and have a counterpart
        assert_same(seen[10:14], seen[6:10])  # the newest four again
        assert_same(seen[14:], seen[6:9])
        found = loop.result
        assert found.batches == 7 and found.loader_ms > 10 and found.ready_ms > 2
        assert found.gain == pytest.approx(found.loader_ms / found.ready_ms) and f"{found.gain:.2f}x" in str(found)
        return found.ready_ms < found.loader_ms

    assert eventually(quicker_without_the_loader)  # other work on the machine slows the loop in either part


@pytest.mark.parametrize("batched", [True, False])
def test_torchs_loader_and_short_epochs(batched: bool) -> None:
    loader = DataLoader(numbers(12), 2 if batched else None)
    loop = loader.headroom()
    assert len(list(loop)) == (6 + 3 if batched else 12 + 9)
    assert loop.result.batches == (3 if batched else 9)


def test_what_cannot_be_measured_is_said() -> None:
    loader = DataLoader(numbers(3))
    with pytest.raises(RuntimeError, match="has 3 batches; headroom needs 4"):
        list(loader.headroom(4))
    wrong: Any
    for wrong in (3, True, 2.5, None):
        with pytest.raises(ValueError, match="from 4 up"):
            loader.headroom(wrong)
    loop = DataLoader(numbers(30)).headroom(5)
    next(iter(loop))
    with pytest.raises(RuntimeError, match="has not run to its end"):
        _ = loop.result
