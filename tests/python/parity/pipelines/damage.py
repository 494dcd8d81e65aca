"""Files that are not plain RGB JPEG, and damaged ones, in programs that expect them and in programs that do not."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageFile, UnidentifiedImageError
from torch.utils.data import Dataset
from torchvision import datasets
from torchvision import transforms as T
from torchvision.transforms import functional as F

from pipelines.material import Material
from pipelines.reading import Each, lists, loader_of
from pipelines.registry import Pipeline, pipeline

CROP = T.Compose([T.RandomResizedCrop(40), T.ToTensor()])


@pipeline()
def all_kinds_of_files(material: Material) -> dict[str, Any]:
    """Converted to RGB, to gray and not at all."""

    def look(path: Path) -> Any:
        with Image.open(path) as image:
            gray = image.convert("L").resize((9, 8))
        with Image.open(path) as image:
            crop = CROP(image.convert("RGB"))
        kept = Image.open(io.BytesIO(path.read_bytes()))
        small = kept.resize((7, 9))
        kept.load()
        return crop, F.pil_to_tensor(gray), kept, small

    return loader_of(material.odd, look)


@pipeline()
def alpha_over_white(material: Material) -> dict[str, Any]:
    """Palettes with transparency go through RGBA, as programs do to silence Pillow's warning."""

    def look(path: Path) -> Any:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            image: Image.Image = Image.open(io.BytesIO(path.read_bytes()))
            if image.mode in ("P", "LA", "RGBA"):
                image = image.convert("RGBA")
                white = Image.new("RGBA", image.size, "white")
                image = Image.alpha_composite(white, image)
            return CROP(image.convert("RGB")), [str(one.message) for one in told]

    return loader_of([*material.odd, *material.photos[:3]], look)


class NextGoodOne(Dataset[Any]):
    """Takes the next sample in place of a file that raises."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths, self.refused = paths, list[str]()

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        try:
            sample = CROP(Image.open(self.paths[index]).convert("RGB"))
        except (OSError, SyntaxError) as error:
            self.refused.append(f"{type(error).__name__}: {error}")
            return self[(index + 1) % len(self)]
        return sample, self.paths[index].name, len(self.refused), (self.refused or [""])[-1]


@pipeline()
def next_sample_for_a_damaged_file(material: Material) -> dict[str, Any]:
    return {"dataset": NextGoodOne(material.damaged), "batch_size": 3, "shuffle": True}


@pipeline()
def next_sample_for_a_file_refused_late(material: Material) -> dict[str, Any]:
    return {"dataset": NextGoodOne(material.refused_late), "batch_size": 2, "shuffle": True}


@pipeline()
def damage_caught_where_the_file_is_opened(material: Material) -> dict[str, Any]:
    """Only opening and converting is in `try`; the transform comes after it."""

    def look(path: Path) -> Any:
        try:
            image = Image.open(path).convert("RGB")
        except OSError as error:
            return path.name, str(error)
        return path.name, CROP(image)

    return loader_of([*material.damaged, *material.refused_late], look)


@pipeline()
def damage_caught_by_load(material: Material) -> dict[str, Any]:
    """`load()` decides whether a file is good, as in scripts that clean a dataset."""

    def look(path: Path) -> Any:
        try:
            with Image.open(path) as image:
                image.load()
        except Exception as error:
            return path.name, type(error).__name__, str(error)
        return path.name, image.size, image.tobytes()

    return loader_of([*material.damaged, *material.refused_late], look)


@pipeline()
def corner_of_a_damaged_file(material: Material) -> dict[str, Any]:
    """A small crop above the damage."""

    def look(path: Path) -> Any:
        try:
            return path.name, F.to_tensor(Image.open(path).crop((0, 0, 24, 16)))
        except OSError as error:
            return path.name, type(error).__name__, str(error)

    return loader_of([*material.damaged, *material.refused_late], look)


@pipeline()
def none_for_a_damaged_file(material: Material) -> dict[str, Any]:
    """A collate_fn that drops what is None."""

    def look(path: Path) -> Any:
        try:
            return CROP(Image.open(path).convert("RGB"))
        except Exception:
            return None

    def collate(batch: list[Any]) -> Any:
        kept = [sample for sample in batch if sample is not None]
        return torch.utils.data.default_collate(kept) if kept else torch.zeros(0)

    return {"dataset": Each(material.damaged, look), "batch_size": 4, "shuffle": True, "collate_fn": collate}


@pipeline()
def truncated_files_allowed(material: Material) -> dict[str, Any]:
    """Pillow's switch for files that end too early, set by many programs."""

    def look(path: Path) -> Any:
        before = ImageFile.LOAD_TRUNCATED_IMAGES
        ImageFile.LOAD_TRUNCATED_IMAGES = True
        try:
            return path.name, CROP(Image.open(path).convert("RGB")), Image.open(path).convert("RGB")
        except OSError as error:
            return path.name, type(error).__name__, str(error)
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = before

    return loader_of([*material.damaged, *material.refused_late], look)


@pipeline(fails=UnidentifiedImageError)
def error_of_a_text_file(material: Material) -> dict[str, Any]:
    paths = [*material.photos[:5], material.damaged[6]]
    dataset = Each(paths, lambda path: CROP(Image.open(path).convert("RGB")))
    return {"dataset": dataset, "batch_size": 2, "shuffle": True}


@pipeline(fails=OSError)
def error_of_a_truncated_file(material: Material) -> dict[str, Any]:
    paths = [*material.photos[:5], material.damaged[1]]
    dataset = Each(paths, lambda path: CROP(Image.open(path).convert("RGB")))
    return {"dataset": dataset, "batch_size": 2, "shuffle": True}


@pipeline(fails=OSError)
def error_of_a_file_refused_late(material: Material) -> dict[str, Any]:
    dataset = Each(material.refused_late, lambda path: F.to_tensor(Image.open(path).convert("RGB").resize((30, 30))))
    return {"dataset": dataset, "batch_size": 2, "shuffle": True}


@pipeline(fails=FileNotFoundError)
def error_of_a_missing_file(material: Material) -> dict[str, Any]:
    paths = [*material.photos[:5], material.root / "missing.jpg"]
    dataset = Each(paths, lambda path: CROP(Image.open(path).convert("RGB")))
    return {"dataset": dataset, "batch_size": 2, "shuffle": True}


@pipeline(fails=ValueError)
def error_of_a_crop_that_is_too_large(material: Material) -> dict[str, Any]:
    paths = [material.photos[0], material.photos[1]]
    steps = T.Compose([T.RandomCrop(160), T.ToTensor()])
    return {"dataset": Each(paths, lambda path: steps(Image.open(path).convert("RGB"))), "shuffle": True}


@pipeline()
def warnings_of_the_program(material: Material) -> dict[str, Any]:
    """The dataset and the collate_fn warn, in the process that runs them."""

    def look(path: Path) -> Any:
        image = Image.open(path)
        if image.width > 300:
            warnings.warn(f"{path.name} is large", UserWarning, stacklevel=2)
        return F.to_tensor(image.resize((30, 20)))

    def collate(batch: list[Any]) -> Any:
        warnings.warn("a batch", DeprecationWarning, stacklevel=2)
        return lists(batch)

    return {"dataset": Each(material.photos, look), "batch_size": 5, "shuffle": True, "collate_fn": collate}


@pipeline()
def folder_that_checks_its_files(material: Material) -> dict[str, Any]:
    """ImageFolder's `is_valid_file` opens every file; its loader ignores damage."""

    def good(path: str) -> bool:
        try:
            with Image.open(path) as image:
                image.verify()
        except Exception:
            return False
        return path.endswith(".jpg")

    def opened(path: str) -> Any:
        try:
            return Image.open(path).convert("RGB").resize((32, 32))
        except OSError:
            return Image.new("RGB", (32, 32))

    folder = material.damaged[0].parent.parent / "checked"
    for path in material.damaged:
        (folder / "all").mkdir(parents=True, exist_ok=True)
        (folder / "all" / path.name).write_bytes(path.read_bytes())
    dataset = datasets.ImageFolder(folder, T.ToTensor(), loader=opened, is_valid_file=good)
    return {"dataset": dataset, "batch_size": 3, "shuffle": True}


def over_files(paths: list[Path]) -> Pipeline:
    """A pipeline over files of all kinds, which returns what Pillow says of those that it refuses."""

    def look(path: Path) -> Any:
        try:
            with Image.open(path) as image:
                told = image.size, image.mode, sorted(map(str, image.info))
                rgb = image.convert("RGB")
                return path.name, told, CROP(rgb), rgb.resize((20, 20), Image.Resampling.BICUBIC)
        except Exception as error:
            return path.name, type(error).__name__, str(error)

    def odd_and_broken_files(material: Material) -> dict[str, Any]:
        return loader_of(paths, look)

    return Pipeline(odd_and_broken_files)
