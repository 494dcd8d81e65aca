"""Trainers of all kinds learn the same from headrace's batches as from the oracle's: losses are equal to the bit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.demo.folder import lay_out
from trainers import EXAMPLES, curves, finish, killed_and_resumed, losses, needs, start, stock

#: Example -> the modules it needs, and its arguments beside the folder. 40 photographs, two epochs of five batches.
TRAINERS = {
    "resnet18_accumulate": ((), ()),
    "compiled_step": ((), ()),
    "timm_train": (("timm", "torchvision"), ()),
    "lightning_module": (("lightning",), ("--accumulate", 2)),
    "accelerate_loop": (("accelerate",), ("--resume", "skip")),
    "transformers_trainer": (("transformers", "accelerate"), ("--accumulate", 2)),
}
MARK = re.compile(r"^ *# It was: (.*torch\.utils\.data\.DataLoader\(.*\))$", re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("trainers") / "set", files=50).train


@pytest.fixture(scope="module")
def whole(folder: Path) -> dict[str, dict[int, str]]:
    """Example -> the losses of a run from start to end, as tests find them."""
    return {}


@pytest.mark.parametrize("name", TRAINERS)
def test_the_loss_curve_is_the_oracles(name: str, folder: Path, whole: dict[str, dict[int, str]]) -> None:
    modules, arguments = TRAINERS[name]
    needs(*modules)
    native, oracle = curves(name, folder, *arguments)
    assert list(native) == list(range(10))
    assert native == oracle
    assert len(set(native.values())) == 10
    whole[name] = native


@pytest.mark.parametrize(
    ("name", "arguments", "kills", "begins"),
    [
        # Everything is saved after each batch, half an accumulated gradient among it.
        ("resnet18_accumulate", (), (3, 5, 8), [0, 3, 5, 8]),
        # Saved with each step of the optimiser: every second batch, and the last of an epoch.
        ("lightning_module", (), (3, 5, 7), [0, 2, 5, 7]),
        ("lightning_module", ("--every-epoch",), (7,), [0, 5]),
        ("accelerate_loop", ("--resume", "stateful"), (3, 5, 7), [0, 2, 5, 7]),
        ("accelerate_loop", ("--resume", "skip"), (4, 7), [0, 4, 7]),
        ("transformers_trainer", (), (1, 4), [0, 2, 7]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_killed_run_goes_on_with_the_very_next_batch(
    name: str,
    arguments: tuple[str, ...],
    kills: tuple[int, ...],
    begins: list[int],
    folder: Path,
    whole: dict[str, dict[int, str]],
    tmp_path: Path,
) -> None:
    needs(*TRAINERS[name][0])
    if name not in whole:
        whole[name] = curves(name, folder, *TRAINERS[name][1])[1]
    found, first = killed_and_resumed(name, folder, *arguments, "--checkpoint", tmp_path / "state", kills=kills)
    assert first == begins
    assert found == whole[name]


@pytest.mark.parametrize("name", ["resnet18_accumulate", "compiled_step", "accelerate_loop"])
def test_the_stock_line_runs_too(name: str, folder: Path, tmp_path: Path) -> None:
    needs(*TRAINERS[name][0])
    found = losses(finish(start(stock(name, tmp_path), folder, *TRAINERS[name][1], "--epochs", 1)))
    assert list(found) == list(range(5))


def test_each_example_names_the_one_line_that_changed() -> None:
    marked = [path for path in EXAMPLES.glob("*.py") if "headrace.DataLoader(" in path.read_text()]
    assert {path.stem for path in marked} >= set(TRAINERS)
    for path in marked:
        text = path.read_text()
        assert text.count("headrace.DataLoader(") == len(MARK.findall(text)) == 1, path.name
