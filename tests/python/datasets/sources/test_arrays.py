"""Arrays of pixels: the oracle's batches without a decoder, from any strides, on both backends, in constant memory."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, ImageArray
from headrace import transforms as T
from headrace._base.native import core
from headrace.datasets.sources.dataset import BlobDataset
from support import TENSOR, assert_same, evaluation, eventually, recipe_of, resident_mb, train

RNG = np.random.default_rng(7)
COLOUR = RNG.integers(0, 256, (23, 32, 32, 3), dtype=np.uint8)
WIDE = RNG.integers(0, 256, (9, 47, 130, 3), dtype=np.uint8)
GRAY = RNG.integers(0, 256, (23, 28, 28), dtype=np.uint8)
PLAIN = T.Compose([T.ToTensor()])
CIFAR = T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), *TENSOR])
GRAY_TENSOR = (T.ToTensor(), T.Normalize([0.1307], [0.3081]))
RECIPES = {
    "plain": PLAIN,
    "cifar": CIFAR,
    "train": train(24),
    "enlarged": train(70),
    "evaluation": evaluation(20, 16),
    "reflected": T.Compose([T.RandomCrop(40, padding=9, padding_mode="reflect"), T.ToImage()]),
    "gray": T.Compose([T.Resize(20), T.CenterCrop(20), T.Grayscale(1), T.ToTensor()]),
    "two resizes": T.Compose([T.Resize(40), T.RandomResizedCrop(16), T.ToImage()]),
}
GRAY_RECIPES = {
    "plain": PLAIN,
    "mnist": T.Compose([T.RandomCrop(28, padding=2, fill=9), *GRAY_TENSOR]),
    "train": T.Compose([T.RandomResizedCrop(20), T.RandomHorizontalFlip(), *GRAY_TENSOR]),
    "in colours": T.Compose([T.Resize(40), T.Grayscale(3), T.CenterCrop(36), *TENSOR]),
}


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("images", [COLOUR, WIDE], ids=["32x32", "47x130"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_colours_equal_the_oracle(recipe: str, images: np.ndarray, device: str | None) -> None:
    data = ImageArray(images, range(len(images)), RECIPES[recipe])
    loader = DataLoader(data, 5, True, seed=3, num_workers=2, device=device)
    assert loader.native
    assert assert_same(loader, list(loader.reference())) == len(loader)


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("recipe", GRAY_RECIPES)
@pytest.mark.parametrize("axes", [3, 4])
def test_gray_equals_the_oracle(recipe: str, axes: int, device: str | None) -> None:
    images = GRAY if axes == 3 else GRAY[..., None]
    data = ImageArray(images, None, GRAY_RECIPES[recipe])
    loader = DataLoader(data, 5, True, seed=3, num_workers=1, device=device)
    assert loader.native and isinstance(loader._source, BlobDataset) and loader._source.channels == 1
    assert_same(loader, list(loader.reference()))
    assert next(iter(loader)).shape[1] == (3 if recipe == "in colours" else 1)


def test_a_gray_recipe_that_makes_colours_by_broadcasting_does_so_in_python() -> None:
    data = ImageArray(GRAY, None, T.Compose(TENSOR))
    loader = DataLoader(data, 2)
    assert loader.native and "channels" in str(loader.explain())
    assert_same(loader, TorchDataLoader(data, 2))


def turned(image: Image.Image) -> Image.Image:
    return image.rotate(30)


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("images", [COLOUR, GRAY], ids=["colours", "gray"])
@pytest.mark.parametrize("workers", [0, 2])
def test_steps_that_python_does(images: np.ndarray, device: str | None, workers: int) -> None:
    ways: tuple[list[Any], ...] = (
        [turned, T.Resize((9, 8)), T.ToTensor()],
        [T.Resize((9, 8)), T.ToTensor(), torch.square],
    )
    for steps in ways:
        data = ImageArray(images, range(23), T.Compose(steps))
        loader = DataLoader(data, 5, num_workers=workers, device=device)
        assert loader.native
        assert_same(loader, TorchDataLoader(data, 5))


STRIDED = {
    "every other image": COLOUR[::2],
    "backwards": COLOUR[::-1],
    "upside down": COLOUR[:, ::-1],
    "mirrored": COLOUR[:, :, ::-1],
    "blue first": COLOUR[..., ::-1],
    "every third pixel": COLOUR[:, ::3, ::3],
    "planes": np.ascontiguousarray(COLOUR.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1),
    "columns first": np.asfortranarray(COLOUR),
    "one of four channels": np.repeat(COLOUR, 2, axis=3)[..., 1:4],
    "one channel": COLOUR[..., 1],
    "the same one": np.broadcast_to(COLOUR[3], (6, 32, 32, 3)),
    "read only": np.frombuffer(COLOUR.tobytes(), np.uint8).reshape(COLOUR.shape),
}


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("images", STRIDED.values(), ids=STRIDED)
def test_any_strides(images: np.ndarray, device: str | None) -> None:
    data = ImageArray(images, None, T.Compose([T.Resize((8, 9)), T.ToImage()]))
    loader = DataLoader(data, 4, device=device)
    assert loader.native
    assert_same(loader, list(loader.reference()))
    plain = DataLoader(ImageArray(images, None, T.Compose([T.CenterCrop(images.shape[1:3]), T.ToImage()])), len(images))
    wanted = torch.from_numpy(np.array(images).reshape(*images.shape[:3], -1)).permute(0, 3, 1, 2)
    assert torch.equal(next(iter(plain)), wanted)


@pytest.mark.parametrize("channels", [1, 3])
def test_tensors_and_mapped_files(tmp_path: Path, channels: int) -> None:
    images = COLOUR[..., :channels]
    np.save(tmp_path / "images.npy", images)
    transform = T.Compose([T.Resize((8, 8)), T.ToImage()])
    kinds = [images, torch.tensor(images), np.load(tmp_path / "images.npy", mmap_mode="r")]
    batches = [next(iter(DataLoader(ImageArray(kind, None, transform), 23, num_workers=1))) for kind in kinds]
    assert all(torch.equal(one, batches[0]) for one in batches)


def test_a_sample_is_torchvisions_pil_image() -> None:
    data = ImageArray(COLOUR, range(23))
    image, label = data[-1]
    assert (image.mode, label) == ("RGB", 22) and image.tobytes() == Image.fromarray(COLOUR[22]).tobytes()
    gray = ImageArray(GRAY)[3]
    assert gray.mode == "L" and gray.tobytes() == GRAY[3].tobytes()
    assert ImageArray(GRAY[..., None])[3].tobytes() == gray.tobytes()


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dtypes_and_layouts(dtype: torch.dtype, memory_format: torch.memory_format) -> None:
    loader = DataLoader(ImageArray(COLOUR, None, CIFAR), 7, seed=1, dtype=dtype, memory_format=memory_format)
    assert_same(loader, list(loader.reference()))


@pytest.mark.parametrize("isa", core.isas())
def test_every_instruction_set(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace._engine.image_engine import ImageEngine
    from headrace._recipe.draws.draws import Draws
    from headrace._recipe.images.memory_format import Layout

    data = ImageArray(COLOUR, None, CIFAR)
    recipe = recipe_of(DataLoader(data))
    engine = ImageEngine(recipe, Layout.PLANAR, threads=0, slots_kept=1, isa=isa)
    rows = np.arange(23)
    draws = Draws(recipe.columns, 5).batch(0, rows, np.zeros_like(rows))
    flight = engine.submit(data.blob_table(), rows, draws)
    assert engine.wait(flight, 10)
    assert torch.equal(engine.tensor(flight), torch.cat(list(DataLoader(data, 23, seed=5))))
    engine.close()


def test_an_image_too_small_is_named() -> None:
    loader = DataLoader(ImageArray(COLOUR, None, T.Compose([T.RandomCrop(40), T.ToTensor()])), 4, num_workers=1)
    with pytest.raises(
        ValueError, match=r"^plan: sample 0 \(image 0 of an array \(23, 32, 32, 3\)\): Required crop size"
    ):
        next(iter(loader))


def test_a_table_costs_nothing_an_image() -> None:
    many = np.broadcast_to(COLOUR[0], (50_000_000, 32, 32, 3))
    before = resident_mb()
    loader = DataLoader(ImageArray(many, None, CIFAR), batch_sampler=[[49_999_999, 3], [17]])
    assert [len(batch) for batch in loader] == [2, 1]
    assert resident_mb() - before < 250  # the counts of a sampler that may repeat: 4 bytes a sample


def test_stats_and_explain() -> None:
    loader = DataLoader(ImageArray(np.repeat(COLOUR, 20, axis=0), None, CIFAR), 64, num_workers=1)
    list(loader)
    stages = {one.name: one for one in loader.stats().stages}
    assert stages["read"].items == stages["resize"].items == 460
    assert 0 < stages["resize"].busy_s < 5 and stages["decode"].items == stages["pillow"].items == 0
    text = str(loader.explain())
    assert "460 images of 32 x 32 x 3" in text and "pixels in memory" in text and "libjpeg" not in text


def test_the_memory_lives_as_long_as_batches_need_it() -> None:
    def loader() -> Any:
        return iter(DataLoader(ImageArray(COLOUR.copy(), None, CIFAR), 4, num_workers=1))

    iterator = loader()
    assert eventually(lambda: len(list(iterator)) == 6)


@pytest.mark.parametrize(
    ("images", "error", "words"),
    [
        (COLOUR.tolist(), TypeError, "a numpy array or a torch tensor of uint8, not list"),
        (COLOUR / np.float32(255), TypeError, "images are float32, but pixels are bytes: give uint8 values"),
        (torch.zeros(2, 8, 8, 3), TypeError, "images are torch.float32, but pixels are bytes"),
        (COLOUR > 3, TypeError, "images are bool"),
        (torch.zeros(2, 8, 8, 3, dtype=torch.uint8, device="meta"), TypeError, "on meta; a dense one in this machine"),
        (torch.zeros(2, 8, dtype=torch.uint8).to_sparse(), TypeError, "images are a torch.sparse_coo tensor"),
        (COLOUR[0, 0], ValueError, r"images are \(32, 3\); \(N, H, W, 3\), \(N, H, W, 1\) or \(N, H, W\) is needed"),
        (COLOUR[None], ValueError, r"images are \(1, 23, 32, 32, 3\); "),
        (COLOUR[..., :2], ValueError, r"images are \(23, 32, 32, 2\); "),
        (COLOUR.transpose(0, 3, 1, 2), ValueError, r"looks like \(N, C, H, W\); .*: images.transpose\(0, 2, 3, 1\)"),
        (torch.zeros(5, 1, 8, 8, dtype=torch.uint8), ValueError, r"looks like .*: images.permute\(0, 2, 3, 1\)"),
        (COLOUR[:, :0], ValueError, r"images are \(23, 0, 32, 3\): they have no pixels"),
    ],
)
def test_what_is_no_array_of_images_is_refused(images: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        ImageArray(images)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("shape", [(1, 1, 2**32 + 1), (1, 2**31, 1, 3)])
def test_an_edge_that_no_int_holds_is_not_cut_to_one_that_it_does(shape: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="edges are below"):
        core.BlobTable.of_pixels(np.broadcast_to(np.uint8(7), shape))


def test_labels_and_lengths() -> None:
    with pytest.raises(ValueError, match="there are 23 images but 22 labels"):
        ImageArray(COLOUR, range(22))
    assert list(DataLoader(ImageArray(COLOUR[:0], None, CIFAR))) == []
    with pytest.raises(TypeError, match="an array's images are not encoded"):
        ImageArray(COLOUR).read(0)


def test_an_array_that_changes_its_size_is_noticed() -> None:
    images = COLOUR.copy()
    data = ImageArray(images, None, CIFAR)
    with pytest.raises(ValueError, match="cannot resize"):
        images.resize((3, 32, 32, 3))
    with warnings.catch_warnings():  # NumPy 2.5 deprecates it
        warnings.simplefilter("ignore", DeprecationWarning)
        images.shape = (46, 16, 32, 3)
    with pytest.raises(
        RuntimeError, match=r"array was \(23, 32, 32, 3\) and is \(46, 16, 32, 3\) now; make a new ImageArray"
    ):
        next(iter(DataLoader(data)))
