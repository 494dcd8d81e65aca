"""Training with headrace's batches and with the oracle's has losses that are equal to the bit, in each trainer."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace._cli.demo.photo_folder import make_photo_folder
from trainers import EXAMPLES, RUNNER, curve, finish, killed_and_resumed, losses, needs, start, stock, torchrun

pytestmark = pytest.mark.trainers


@dataclass(frozen=True)
class Chain:
    """Runs that are killed after some batches or steps; each continues from the last checkpoint of the one before."""

    arguments: tuple[object, ...]
    kills: tuple[int, ...]
    begins: list[int]  # the first batch of each run


@dataclass(frozen=True)
class Trainer:
    """An example, and how it is run."""

    needs: tuple[str, ...] = ()
    arguments: tuple[object, ...] = ()
    ranks: int = 1
    chains: tuple[Chain, ...] = ()


# On 40 photographs: two epochs of five batches. A key is the example's name, and what is special about the run.
TRAINERS = {
    # Everything is saved after each batch, including a gradient that is half accumulated.
    "resnet18_accumulate": Trainer(chains=(Chain((), (5, 8), [0, 5, 8]),)),
    "ddp": Trainer(arguments=("--batch-size", 4), ranks=2, chains=(Chain((), (3,), [0, 3]),)),
    "fsdp2_checkpoint": Trainer(arguments=("--batch-size", 4), ranks=2, chains=(Chain((), (3, 7), [0, 3, 7]),)),
    "compiled_step": Trainer(),
    "timm_train": Trainer(("timm", "torchvision")),
    # Saved with each step of the optimiser: every second batch, and the last of an epoch.
    "lightning_module": Trainer(
        ("lightning",),
        ("--accumulate", 2),
        chains=(Chain((), (3, 5), [0, 2, 5]), Chain(("--every-epoch",), (7,), [0, 5])),
    ),
    "lightning_module of two ranks": Trainer(
        ("lightning",),
        ("--devices", 2, "--batch-size", 4),
        ranks=2,
        chains=(Chain(("--every-epoch",), (7,), [0, 5]),),
    ),
    "accelerate_loop": Trainer(
        ("accelerate",),
        chains=(Chain(("--resume", "stateful"), (3, 5), [0, 2, 5]), Chain(("--resume", "skip"), (4, 7), [0, 4, 7])),
    ),
    "diffusers_unconditional": Trainer(
        ("diffusers", "accelerate"), ("--size", 32), chains=(Chain((), (3, 5), [0, 3, 5]),)
    ),
    "transformers_trainer": Trainer(
        ("transformers", "accelerate"), ("--accumulate", 2), chains=(Chain((), (1, 4), [0, 2, 7]),)
    ),
}
MARK = re.compile(r"^ *# It was: (loader = torch\.utils\.data\.DataLoader\(.*\))$", re.MULTILINE)
OURS = re.compile(r"^ *loader = (?:headrace\.)?DataLoader\(", re.MULTILINE)


@pytest.fixture(scope="module")
def training_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_photo_folder(tmp_path_factory.mktemp("trainers") / "set", files=50).train


@pytest.mark.parametrize("name", TRAINERS)
def test_losses_are_the_oracles_and_a_killed_run_goes_on_with_the_very_next_batch(
    name: str, training_set: Path, tmp_path: Path
) -> None:
    trainer, script = TRAINERS[name], name.split()[0]
    needs(*trainer.needs)
    with ThreadPoolExecutor(2) as two:
        oracle, native = (
            two.submit(curve, whose, tmp_path, script, training_set, *trainer.arguments, ranks=trainer.ranks)
            for whose in ("oracle", "native")
        )
        runs = []
        for number, chain in enumerate(trainer.chains):
            options = (*trainer.arguments, *chain.arguments, "--checkpoint", tmp_path / f"saved-{number}")
            runs.append(
                two.submit(killed_and_resumed, script, training_set, *options, kills=chain.kills, ranks=trainer.ranks)
            )
    expected = oracle.result()
    assert list(expected) == list(range(10))
    assert len(set(expected.values())) == 10
    assert native.result() == expected
    for chain, run in zip(trainer.chains, runs, strict=True):
        found, begins = run.result()
        assert begins == chain.begins
        assert found == expected


def test_ray_starts_killed_workers_anew(training_set: Path, tmp_path: Path) -> None:
    needs("ray", "ray.train")
    common = (training_set, "--batch-size", 4)
    with ThreadPoolExecutor(2) as two:  # the oracle runs the same training under torchrun, since Ray starts slowly
        oracle = two.submit(curve, "oracle", tmp_path, "ddp", *common, ranks=2)
        native = two.submit(curve, "native", tmp_path, "ray_train", *common, "--every", 3, "--kill-after", 7)
    assert list(oracle.result()) == list(range(10))
    assert native.result() == oracle.result()


STOCK = {
    "resnet18_accumulate": (),
    "ddp": ("--batch-size", 4, "--epochs", 2),
    "fsdp2_checkpoint": ("--batch-size", 4, "--epochs", 2),
    "compiled_step": ("--backend", "eager"),
    "lightning_module": (),
    "accelerate_loop": ("--resume", "skip"),
    "diffusers_unconditional": (),
    "transformers_trainer": (),
}


@pytest.mark.parametrize("name", STOCK)
def test_the_stock_line_runs_too(name: str, training_set: Path, tmp_path: Path) -> None:
    trainer, arguments = TRAINERS[name], ("--epochs", 1, *STOCK[name])
    needs(*trainer.needs)
    command = (RUNNER, "oracle", stock(name, tmp_path), training_set, *arguments)  # without a native engine
    lines = finish(start(*(torchrun(2) if trainer.ranks > 1 else []), *command))
    assert list(losses(lines)) == list(range(10 if "--epochs" in STOCK[name] else 5))


def test_an_oracles_run_can_make_no_native_engine(training_set: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom headrace import ImageFolder, loader, transforms\n"
        "images = ImageFolder(sys.argv[1], transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor()]))\n"
        "print(len(list(loader.DataLoader(images, 10))))\n"
    )
    assert finish(start(RUNNER, "native", program, training_set)) == ["4"]
    for whose in ("oracle", "processes"):
        process = start(RUNNER, whose, program, training_set)
        assert "a native engine in a run of the oracle's" in process.communicate()[1]
        assert process.returncode == 1


def test_each_example_names_the_one_line_that_changed() -> None:
    for name in {name.split()[0] for name in TRAINERS} | {"ray_train"}:
        text = (EXAMPLES / f"{name}.py").read_text()
        assert len(MARK.findall(text)) == len(OURS.findall(text)) == 1, name
