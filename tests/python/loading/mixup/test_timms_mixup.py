"""timm's Mixup in a collate_fn and as out_transform: timm's values, with numpy's draws by seed, epoch and batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import default_collate

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._loading.mixup import timm_twins
from headrace._loading.mixup.recognition import draws_from_numpy, mixing_of_batch, mixing_of_samples
from support import TENSOR, assert_same, numpy_words, pictures
from torchvision_shim import import_torchvision

try:
    import_torchvision()
    from timm.data.mixup import FastCollateMixup, Mixup
except ImportError as error:
    pytest.skip(f"timm is needed: {error}", allow_module_level=True)

OPTIONS: dict[str, dict[str, Any]] = {
    "mixup": {"mixup_alpha": 0.8},
    "cutmix": {"mixup_alpha": 0.0, "cutmix_alpha": 1.0},
    "lam as drawn": {"mixup_alpha": 0.0, "cutmix_alpha": 1.0, "correct_lam": False},
    "both": {"mixup_alpha": 0.8, "cutmix_alpha": 1.0, "label_smoothing": 0.0},
    "minmax": {"mixup_alpha": 0.8, "cutmix_minmax": [0.2, 0.8]},
    "rarely": {"prob": 0.3},
}
MODES = ("batch", "pair", "elem")
DATA = EncodedImages(pictures(10), range(10), T.Compose([T.RandomResizedCrop(8), *TENSOR]))


def collate(mix: Any) -> Callable[[Any], Any]:
    return lambda samples: mix(*default_collate(samples))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_values(options: dict[str, Any], mode: str, dtype: torch.dtype, layout: torch.memory_format) -> None:
    mix = Mixup(num_classes=10, mode=mode, **options)
    mixing = mixing_of_samples(collate(mix))
    assert mixing is not None
    images = torch.rand(6, 3, 9, 11).to(dtype).contiguous(memory_format=layout)
    samples = [(image, place) for place, image in enumerate(images)]
    before = numpy_words()  # timm's own generator
    made = [mixing(samples, seed << 21) for seed in range(12)]  # numpy gets the high bits
    assert np.array_equal(numpy_words(), before)
    for seed, ours in enumerate(made):
        np.random.seed(seed)  # noqa: NPY002
        assert all(map(torch.equal, ours, collate(mix)(samples)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_with_a_collate_fn(mode: str, workers: int) -> None:
    mix = Mixup(cutmix_alpha=1.0, num_classes=10, mode=mode)
    loader = DataLoader(DATA, 4, True, drop_last=True, collate_fn=collate(mix), num_workers=workers, seed=4)
    assert loader.native
    drawn = []
    for _ in range(2):
        assert assert_same(loader, list(loader.reference())) == 2
        drawn += [labels for _, labels in loader]
    assert not torch.equal(drawn[0], drawn[1])


@pytest.mark.parametrize("mode", MODES)
def test_a_loader_with_an_out_transform(mode: str) -> None:
    mix = Mixup(cutmix_alpha=1.0, num_classes=10, mode=mode)
    loader = DataLoader(DATA, 4, True, drop_last=True, num_workers=2, seed=4, out_transform=lambda batch: mix(*batch))
    for _ in range(2):
        assert assert_same(loader, list(loader.reference())) == 2


BYTES = EncodedImages(pictures(10), range(10), T.Compose([T.RandomResizedCrop(8), T.PILToTensor()]))
COLLATING_MODES = (*MODES, "half")


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("mode", COLLATING_MODES)
def test_bytes_that_are_mixed_while_they_are_collated(options: dict[str, Any], mode: str) -> None:
    mix = FastCollateMixup(num_classes=10, mode=mode, **options)
    mixing = mixing_of_samples(mix)
    assert mixing is not None and draws_from_numpy(mix)
    images = torch.randint(0, 256, (6, 3, 9, 11), dtype=torch.uint8)
    for seed in range(12):
        made = mixing([(image, place) for place, image in enumerate(images.clone())], seed << 21)
        np.random.seed(seed)  # noqa: NPY002
        theirs = mix([(image, place) for place, image in enumerate(images.clone())])
        assert made[0].dtype == torch.uint8 and all(map(torch.equal, made, theirs))
    np.random.seed(0)  # noqa: NPY002
    before = numpy_words()
    mixing([(image, place) for place, image in enumerate(images)], 7)
    assert np.array_equal(numpy_words(), before)


@pytest.mark.parametrize("mode", COLLATING_MODES)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_that_mixes_bytes(mode: str, workers: int) -> None:
    mix = FastCollateMixup(cutmix_alpha=1.0, num_classes=10, mode=mode)
    loader = DataLoader(BYTES, 4, True, drop_last=True, collate_fn=mix, num_workers=workers, seed=4)
    assert loader.native
    drawn = []
    for _ in range(2):
        assert assert_same(loader, list(loader.reference())) == 2
        drawn += [labels for _, labels in loader]
    assert not torch.equal(drawn[0], drawn[1])


def test_a_batch_of_odd_size_is_timms_error() -> None:
    loader = DataLoader(BYTES, 3, collate_fn=FastCollateMixup(num_classes=10), num_workers=1)
    with pytest.raises(AssertionError, match="should be even"):
        list(loader)


def test_subclasses_that_mix_bytes_are_not_recognised() -> None:
    class Own(FastCollateMixup):
        pass

    assert mixing_of_samples(Own(num_classes=10)) is None


def test_mixing_ends_when_the_program_says_so() -> None:
    mix = Mixup(num_classes=10, prob=1.0)
    mixing = mixing_of_batch(lambda batch: mix(*batch))
    assert mixing is not None
    images = torch.rand(4, 3, 8, 8)
    mix.mixup_enabled = False
    made, _ = mixing([images.clone(), torch.arange(4)])
    assert torch.equal(made, images)


def test_an_odd_batch_is_refused_as_timm_refuses_it() -> None:
    loader = DataLoader(DATA, 3, collate_fn=collate(Mixup(num_classes=10)), num_workers=1)
    with pytest.raises(AssertionError, match="Batch size should be even"):
        next(iter(loader))


class Own(Mixup):
    pass


def test_what_is_not_timms_own_is_left_alone() -> None:
    replaced = Mixup(num_classes=10)
    replaced._params_per_batch = lambda: (0.5, False)
    for mix in (Own(num_classes=10), FastCollateMixup(num_classes=10), replaced):
        assert timm_twins.make_timm_twin(mix) is None and mixing_of_samples(collate(mix)) is None
        assert not draws_from_numpy(collate(mix))
    loader = DataLoader(DATA, 4, collate_fn=collate(Own(num_classes=10)))
    assert not loader.native and "numpy.random" in str(loader.explain())
