"""A loader of a dataset of the user's own with ``device=``: workers send records, and the main process makes what
torch's DataLoader delivers."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from record_datasets import (
    COUNT,
    Decoded,
    InMemory,
    Keeping,
    Labelled,
    Looking,
    Stateful,
    Stream,
    write_damaged,
)
from record_loaders import EDGE, MEAN, ON_DEVICE, STD, alike, assert_alike, delivered
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import default_collate

from headrace import DataLoader
from headrace import transforms as T
from headrace._loading.records.record_lane import RecordLane
from support import EMULATED_BY_A_GPU

pytestmark = pytest.mark.processes


class Case(NamedTuple):
    """A dataset, and the options of its loader."""

    kind: Any
    options: dict[str, Any] = {}  # noqa: RUF012 - not changed


def seed_differently(worker: int) -> None:
    random.seed(100 + worker)
    torch.manual_seed(100 + worker)


def name_case(case: Case) -> str:
    """Returns the same words in each process, which a function's address is not."""
    options = {name: getattr(value, "__name__", value) for name, value in case.options.items()}
    return f"{case.kind.__name__}-{options}"


RECORDED = [
    Case(Labelled),
    Case(Labelled, {"num_workers": 0}),
    Case(Labelled, {"seed": 5}),
    Case(Labelled, {"persistent_workers": True, "epochs": 2}),
    Case(Labelled, {"prefetch_factor": 4, "batch_size": 1}),
    Case(Labelled, {"worker_init_fn": seed_differently}),
    Case(InMemory),
    Case(Stateful),
    Case(Stream),
    Case(Stream, {"num_workers": 0}),
]


@pytest.mark.parametrize("case", RECORDED, ids=name_case)
@pytest.mark.parametrize("version", ["train", "train_v2"])
def test_batches_of_records_are_torchs(
    case: Case, version: str, paths: list[Path], request: pytest.FixtureRequest
) -> None:
    options = dict(case.options)
    make = functools.partial(case.kind, paths, request.getfixturevalue(version))
    seed = options.pop("seed", None)
    if seed is not None:  # torch has no such argument: both loaders are ours
        here, _ = delivered(DataLoader, make(), seed=seed)
        there, loader = delivered(ON_DEVICE, make(), seed=seed)
        assert alike(there, here)
        images = loader._torch_epochs.images
    else:
        images = assert_alike(make, **options)
    assert not images.natively and not images.by_others, images
    assert images.recorded.total() == COUNT and set(images.fields.values()) == {"recorded"}


def test_workers_that_are_spawned_send_records(paths: list[Path]) -> None:
    transform = T.Compose([T.RandomResizedCrop(EDGE), T.ToTensor(), T.Normalize(MEAN, STD)])
    images = assert_alike(lambda: Labelled(paths, transform), num_workers=1, multiprocessing_context="spawn")
    assert images.recorded.total() == COUNT and not images.natively


@pytest.mark.filterwarnings("ignore:The image decoding and encoding")  # torchvision 0.29's
def test_tensors_of_torchvisions_decoder_are_recorded(paths: list[Path], train_v2: Any) -> None:
    if not hasattr(torch.ops.image, "decode_image"):
        pytest.skip("this torchvision has no compiled decoder")
    images = assert_alike(lambda: Decoded(paths, train_v2))
    assert images.recorded.total() == COUNT and not images.natively


def with_noise(torchvision: Any) -> Any:
    from torchvision import transforms

    erased = transforms.RandomErasing(1.0, value="random")
    return transforms.Compose([transforms.Resize((EDGE, EDGE)), transforms.ToTensor(), erased])


def of_many_sizes(torchvision: Any) -> Any:
    from torchvision import transforms

    return transforms.Compose([transforms.Resize(EDGE), transforms.ToTensor()])


def tiny(torchvision: Any) -> Any:
    from torchvision import transforms

    return transforms.Compose([transforms.Resize((4, 4)), transforms.PILToTensor()])


MADE_IN_WORKERS = [
    ("they are erased with values that differ from pixel to pixel", Labelled, with_noise),
    ("their files have more bytes than their values", Labelled, tiny),
    ("a program has looked at some of them", Looking, None),
]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("why, kind, transform", MADE_IN_WORKERS, ids=[one[0] for one in MADE_IN_WORKERS])
def test_what_cannot_be_recorded_is_made_by_the_worker(
    why: str, kind: Any, transform: Any, workers: int, paths: list[Path], train: Any, torchvision: Any
) -> None:
    made = train if transform is None else transform(torchvision)
    images = assert_alike(lambda: kind(paths, made), num_workers=workers, shuffle=False)
    assert images.native == COUNT and images.natively.total() > 0
    assert any(why in one for one in images.fields.values()), images.fields


def keep_lists(samples: list[Any]) -> Any:
    return [one[0] for one in samples], default_collate([one[1] for one in samples])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_collate_fn_of_the_program_gets_tensors(
    workers: int, paths: list[Path], train: Any, torchvision: Any
) -> None:
    for transform in (train, of_many_sizes(torchvision)):
        images = assert_alike(lambda: Labelled(paths, transform), collate_fn=keep_lists, num_workers=workers)  # noqa: B023
        assert images.natively.total() == COUNT and not images.recorded


def test_samples_of_different_sizes_raise_torchs_error(paths: list[Path], torchvision: Any) -> None:
    errors = []
    for kind in (TorchDataLoader, ON_DEVICE):
        with pytest.raises(RuntimeError) as raised:
            delivered(kind, Labelled(paths, of_many_sizes(torchvision)), num_workers=0, shuffle=False)
        errors.append(str(raised.value))
    assert errors[0] == errors[1]


def test_kept_tensors_are_what_they_were(paths: list[Path], train_v2: Any) -> None:
    """The second epoch delivers what the program has written to its tensors, not the records."""
    images = assert_alike(lambda: Keeping(paths, train_v2), persistent_workers=True, epochs=3, shuffle=False)
    assert not images.recorded  # of the newest epoch


def test_a_damaged_file_is_made_by_its_library(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = []
    run = RecordLane._run_job

    def note(self: RecordLane, job: Any) -> None:
        reasons.append(job.reason)
        run(self, job)

    monkeypatch.setattr(RecordLane, "_run_job", note)
    broken = write_damaged(paths[0], tmp_path / "broken.jpg")
    whole = T.Compose([T.Resize((EDGE, EDGE)), T.ToTensor()])
    images = assert_alike(lambda: Labelled([*paths[1:], broken], whole))
    assert images.total == COUNT
    assert reasons == ["damaged or irregular Huffman-coded data"]


@pytest.mark.parametrize("kind", [Labelled, Stateful])
def test_a_state_goes_on_with_the_batches_that_are_left(kind: Any, paths: list[Path], train: Any) -> None:
    def new() -> Any:
        torch.manual_seed(4)
        random.seed(5)
        return ON_DEVICE(kind(paths, train), batch_size=2, shuffle=True, num_workers=2, seed=6)

    whole = list(new())
    loader = new()
    iterator = iter(loader)
    first = [next(iterator) for _ in range(2)]
    state = loader.state_dict()
    del iterator
    again = new()
    again.load_state_dict(state)
    assert alike([one[:2] for one in (*first, *again)], [one[:2] for one in whole])


@pytest.mark.parametrize("decoder", ["auto", "cpu", "hardware", "cuda"])
def test_decoders_of_the_device_take_records(decoder: str, paths: list[Path], train: Any) -> None:
    """The emulated stand-in for nvJPEG decodes as the CPU does."""
    if decoder == "cuda" and EMULATED_BY_A_GPU:
        pytest.skip("nvJPEG's pixels on CUDA cores are its own")
    theirs, _ = delivered(TorchDataLoader, Labelled(paths, train))
    ours, _ = delivered(functools.partial(ON_DEVICE, decoder=decoder), Labelled(paths, train))
    assert alike(ours, theirs)


def test_a_device_needs_deferred_images(paths: list[Path], train: Any) -> None:
    with pytest.raises(TypeError, match=r"device='emulated' needs headrace's native path"):
        ON_DEVICE(Labelled(paths, train), deferred_images=False)
