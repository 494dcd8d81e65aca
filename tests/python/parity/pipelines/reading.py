"""Programs that use Pillow's methods themselves, and what images tell besides their pixels."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch
from PIL import ExifTags, Image, ImageChops, ImageDraw, ImageEnhance, ImageFilter, ImageOps, ImageStat
from PIL.JpegImagePlugin import JpegImageFile
from torch.utils.data import Dataset

from pipelines.material import Material
from pipelines.registry import pipeline


class Each(Dataset[Any]):
    """What `look` returns for each path."""

    def __init__(self, paths: list[Path], look: Callable[[Path], Any]) -> None:
        self.paths, self.look = paths, look

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        return self.look(self.paths[index])


def lists(batch: list[Any]) -> list[Any]:
    return batch


def loader_of(paths: list[Path], look: Callable[[Path], Any]) -> dict[str, Any]:
    return {"dataset": Each(paths, look), "batch_size": 3, "shuffle": True, "collate_fn": lists}


@pipeline()
def sizes_and_headers(material: Material) -> dict[str, Any]:
    """Reads what the header says, before and after the pixels."""

    def look(path: Path) -> Any:
        def header(image: Any) -> Any:
            exif = {ExifTags.TAGS.get(tag, tag): value for tag, value in image.getexif().items()}
            layers = getattr(image, "layers", None), getattr(image, "layer", None), getattr(image, "bits", None)
            return image.size, image.width, image.mode, image.format, dict(image.info), exif, image.getbands(), layers

        with Image.open(path) as image:
            before = (
                header(image),
                image.is_animated if hasattr(image, "is_animated") else None,
                image.get_format_mimetype(),
            )
            image.load()
            after = header(image)
            quantization = {key: list(value) for key, value in getattr(image, "quantization", {}).items()}
            return before, after, header(image.convert("RGB")), quantization, str(image).split(" at ")[0]

    return loader_of([*material.photos, *material.odd], look)


@pipeline()
def single_pixels_and_statistics(material: Material) -> dict[str, Any]:
    def look(path: Path) -> Any:
        image = Image.open(path)
        small = image.resize((20, 15))
        access: Any = image.load()
        return [
            image.getpixel((3, 4)),
            access[5, 6],
            image.histogram(),
            small.getextrema(),
            small.getcolors(400),
            image.getbbox(),
            small.entropy(),
            ImageStat.Stat(image).mean,
            small.getchannel("G").tobytes(),
            [band.tobytes() for band in small.split()],
            small.getprojection(),
            image == Image.open(path),
            small != image,
        ]

    return loader_of(material.photos, look)


@pipeline()
def changes_in_place(material: Material) -> dict[str, Any]:
    """Draws on images, pastes into them, and keeps what was made from them before."""

    def look(path: Path) -> Any:
        image = Image.open(path).convert("RGB")
        before, half = image.copy(), image.crop((0, 0, 40, 30))
        ImageDraw.Draw(image).rectangle((2, 2, 20, 20), fill="red")
        image.paste(half.resize((10, 10)), (30, 5))
        image.putpixel((0, 0), (1, 2, 3))
        access: Any = image.load()
        access[1, 1] = (4, 5, 6)
        alpha = before.copy()
        alpha.putalpha(half.convert("L").resize(alpha.size))
        thumb = Image.open(path)
        thumb.thumbnail((33, 33))
        return [image, before, half, alpha, thumb, ImageChops.difference(image, before)]

    return loader_of(material.photos, look)


@pipeline()
def drafts_and_thumbnails(material: Material) -> dict[str, Any]:
    def look(path: Path) -> Any:
        draft = Image.open(path)
        told = draft.draft("RGB", (draft.width // 3, draft.height // 3))
        gray = Image.open(path)
        gray.draft("L", gray.size)
        thumbs = [Image.open(path), Image.open(path).convert("RGB"), Image.open(path)]
        thumbs[2].load()
        for thumb in thumbs:
            thumb.thumbnail((40, 40), Image.Resampling.LANCZOS)
        return [told, draft.convert("RGB"), gray.resize((9, 9)), *thumbs]

    return loader_of(material.photos, look)


@pipeline()
def image_ops(material: Material) -> dict[str, Any]:
    def look(path: Path) -> Any:
        def rgb() -> Any:
            return Image.open(path).convert("RGB")

        with Image.open(path) as opened:
            turned = ImageOps.exif_transpose(opened)
        in_place = Image.open(path)
        ImageOps.exif_transpose(in_place, in_place=True)
        return [
            turned,
            in_place,
            ImageOps.fit(Image.open(path), (30, 20), Image.Resampling.BICUBIC, centering=(0.3, 0.8)),
            ImageOps.contain(rgb(), (25, 25)),
            ImageOps.pad(rgb(), (25, 40), color="white"),
            ImageOps.expand(rgb().resize((9, 8)), 3, fill=7),
            ImageOps.autocontrast(rgb()),
            ImageOps.equalize(rgb()),
            ImageOps.invert(rgb()),
            ImageOps.posterize(rgb(), 3),
            ImageOps.grayscale(Image.open(path)),
            ImageOps.flip(ImageOps.mirror(rgb())),
            ImageOps.scale(rgb(), 0.3),
        ]

    return loader_of([*material.photos[:3], *(path for path in material.odd if path.name.startswith("turned"))], look)


@pipeline()
def filters_and_enhancers(material: Material) -> dict[str, Any]:
    def look(path: Path) -> Any:
        image = Image.open(path)
        small = Image.open(path).convert("RGB").resize((40, 30), Image.Resampling.HAMMING)
        return [
            image.filter(ImageFilter.GaussianBlur(2)),
            small.filter(ImageFilter.SHARPEN),
            small.filter(ImageFilter.MedianFilter(3)),
            ImageEnhance.Color(small).enhance(0.4),
            ImageEnhance.Contrast(Image.open(path)).enhance(1.7),
            ImageEnhance.Brightness(small).enhance(0.7),
            ImageEnhance.Sharpness(small).enhance(2.0),
            small.point(lambda value: value // 2),
            image.quantize(16),
            small.convert("P", palette=Image.Palette.ADAPTIVE, colors=8),
            small.convert("HSV"),
            small.convert("L", matrix=(0.2, 0.5, 0.3, 0)),
            small.convert("1"),
            small.convert("CMYK").convert("RGB"),
            image.effect_spread(0),
            small.reduce((2, 3)),
            small.rotate(33, Image.Resampling.BICUBIC, expand=True, fillcolor=(1, 2, 3)),
            small.transform((20, 20), Image.Transform.AFFINE, (1.1, 0.1, 0, 0, 0.9, 1), Image.Resampling.BILINEAR),
            image.getchannel(1).resize((8, 8), Image.Resampling.NEAREST),
            Image.merge("RGB", small.split()[::-1]),
            Image.blend(small, small.transpose(Image.Transpose.ROTATE_180), 0.3),
            Image.composite(small, small.rotate(180), small.convert("L")),
        ]

    return loader_of(material.photos[1:4], look)


@pipeline()
def all_filters(material: Material) -> dict[str, Any]:
    """Each filter that the installed Pillow has, after a crop, for enlarging and for reducing."""

    def look(path: Path) -> Any:
        image = Image.open(path).convert("RGB")
        crop = image.crop((5, 6, 85, 66))
        return [
            one.resize(size, by) for by in Image.Resampling for one in (image, crop) for size in ((30, 41), (97, 70))
        ]

    return loader_of(material.photos[:3], look)


@pipeline()
def files_closed_by_hand(material: Material) -> dict[str, Any]:
    """`close()` before and after what is read: Pillow refuses pixels of a closed image."""

    def look(path: Path) -> Any:
        steps: list[Callable[[Any], Any]] = [
            lambda image: image.close(),
            lambda image: (image.convert("RGB"), image.close()),
            lambda image: (image.load(), image.close()),
            lambda image: (image.getpixel((0, 0)), image.close()),
            lambda image: (image.crop((0, 0, 9, 9)), image.close(), image.close()),
            lambda image: (image.load(), image.__exit__(None, None, None)),
        ]
        told = []
        for step in steps:
            for use in (lambda image: image.resize((5, 4)), lambda image: image.getpixel((1, 2)), Image.Image.copy):
                image = Image.open(path)
                step(image)
                try:
                    told.append(use(image))
                except ValueError as error:
                    told.append(str(error))
        return told

    return loader_of(material.photos[:4], look)


@pipeline()
def boxes_outside_and_odd_arguments(material: Material) -> dict[str, Any]:
    """Crops that reach over the edges, fractions, resizes of boxes, empty results."""

    def look(path: Path) -> Any:
        image = Image.open(path).convert("RGB")
        width, height = image.size
        size = np.array([7, 8]) if PIL.__version__ >= "11" else (7, 8)  # Pillow 10 takes no array
        return [
            image.crop((-5, -6, 30, 20)),
            image.crop((width - 10, height - 10, width + 10, height + 10)).resize((9, 9)),
            image.crop((1.4, 2.6, 33.5, 44.49)),
            image.crop((20, 20, 20, 40)),
            image.crop(),
            image.crop((width + 5, 0, width + 9, 4)),
            image.crop((4, 4, 60, 60)).crop((3, -3, 80, 20)),
            image.resize((11, 13), box=(0.5, 1.5, 30.25, 40)),
            image.resize(size, Image.Resampling.BOX),
            image.resize([12, 10]).resize((30, 2)),
            image.resize((width, height)),
            image.resize((width, 5)),
            image.transpose(Image.Transpose.TRANSVERSE).crop((0, 0, 20, 20)),
            image.convert("L").crop((2, 2, 30, 30)).convert("RGB"),
            image.rotate(90, expand=True).crop((1, 1, 9, 9)),
            image.rotate(0),
        ]

    return loader_of(material.photos[:6], look)


@pipeline()
def copies_pickles_and_files(material: Material) -> dict[str, Any]:
    def look(path: Path) -> Any:
        import copy

        image = Image.open(path)
        image.load()
        resized = Image.open(path).resize((21, 17))
        stream = io.BytesIO()
        Image.open(path).convert("RGB").crop((0, 0, 32, 32)).save(stream, "PNG")
        again = io.BytesIO()
        Image.open(path).save(again, "JPEG", quality="keep")
        return [
            copy.copy(image),
            copy.deepcopy(image),
            pickle.loads(pickle.dumps(image)),
            pickle.loads(pickle.dumps(resized)),
            copy.deepcopy(resized),
            stream.getvalue(),
            again.getvalue(),
            Image.frombytes("RGB", resized.size, resized.tobytes()),
            Image.fromarray(np.asarray(resized)),
            isinstance(resized, Image.Image),
            bool(image),
            isinstance(image, JpegImageFile),
        ]

    return loader_of(material.photos, look)


@pipeline()
def ways_to_open(material: Material) -> dict[str, Any]:
    """Strings, paths, streams, buffers; with and without `with`; headers verified first."""

    def look(path: Path) -> Any:
        with Image.open(path) as checked:
            checked.verify()
        with path.open("rb") as stream, Image.open(stream) as image:
            one = image.convert("RGB").resize((8, 8))
        with Image.open(str(path)) as image:
            two = image.crop((0, 0, 20, 20))
        three = Image.open(io.BytesIO(path.read_bytes()), formats=["JPEG"]).convert("RGB").reduce(4)
        with Image.open(path) as image:
            image.seek(0)
            told = image.tell(), image.n_frames if hasattr(image, "n_frames") else 1
            five = image.copy()
        with path.open("rb") as unbuffered:
            left = Image.open(unbuffered).convert("L"), unbuffered.closed, unbuffered.tell() > 0
        return [one, two, three, told, five, *left]

    return loader_of(material.photos, look)


@pipeline()
def patches_of_a_large_image(material: Material) -> dict[str, Any]:
    """Many crops of few images, as of slides and satellites; the images stay open."""

    class Patches(Dataset[Any]):
        def __init__(self) -> None:
            self.images = [Image.open(path) for path in material.photos[::3]]

        def __len__(self) -> int:
            return 6 * len(self.images)

        def __getitem__(self, index: int) -> Any:
            image = self.images[index // 6]
            x, y = (int(torch.randint(0, edge - 64, ())) for edge in image.size)
            patch = image.crop((x, y, x + 64, y + 64))
            return torch.from_numpy(np.array(patch)).permute(2, 0, 1), (x, y)

    # Workers would share the file positions of the open files, with torch's loader as well.
    return {"dataset": Patches(), "batch_size": 5, "shuffle": True, "num_workers": 0}
