"""The files that the pipelines read: photographs of many shapes, masks, boxes, shards, odd and damaged files."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tarfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from support import PHOTOS

COUNT = 12
CLASSES = "ant", "bee", "cat"


@dataclass(frozen=True)
class Material:
    """Folders below `root`."""

    root: Path

    def write(self) -> Material:
        """Writes all files: later a worker process would, beside another one."""
        for name, kept in vars(Material).items():
            if isinstance(kept, cached_property):
                getattr(self, name)
        return self

    @cached_property
    def photos(self) -> list[Path]:
        """Twelve JPEG files: photographs as they are, and smaller ones of all subsamplings, some progressive."""
        sources = sorted(PHOTOS.glob("*.jpg"))[:COUNT]
        made = []
        for number, source in enumerate(sources):
            path = self._folder("photos") / f"{number:03}_{source.stem}.jpg"
            made.append(path)
            if number % 3 == 0:
                shutil.copyfile(source, path)
                continue
            with Image.open(source) as image:
                small = image.resize((110 + 13 * number, 170 - 9 * number), Image.Resampling.BOX)
            small.save(path, quality=75 + number, subsampling=number % 3, progressive=number % 4 == 1)
        return made

    @cached_property
    def folder(self) -> Path:
        """The photographs in folders of classes."""
        for number, path in enumerate(self.photos):
            shutil.copyfile(path, self._folder(f"folder/{CLASSES[number % 3]}") / path.name)
        return self.root / "folder"

    @cached_property
    def table(self) -> Path:
        """A CSV file of names in `photos` and of classes."""
        path = self.root / "labels.csv"
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["image", "class"])
            writer.writerows([photo.name, CLASSES[number % 3]] for number, photo in enumerate(self.photos))
        return path

    @cached_property
    def masks(self) -> list[Path]:
        """A palette PNG of classes for each photograph: 0, 1, 2, and 255 at some pixels."""
        made = []
        for photo in self.photos:
            with Image.open(photo) as image:
                gray = np.asarray(image.convert("L"))
            classes = (gray // 90).astype(np.uint8)
            classes[::17, ::13] = 255
            mask = Image.fromarray(classes).convert("P")
            mask.putpalette([value for entry in range(256) for value in (entry, 255 - entry, entry // 2)])
            made.append(self._folder("masks") / f"{photo.stem}.png")
            mask.save(made[-1])
        return made

    @cached_property
    def boxes(self) -> Path:
        """A JSON file in COCO's layout; the third photograph has no box."""
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for number, photo in enumerate(self.photos):
            with Image.open(photo) as image:
                width, height = image.size
            images.append({"id": number, "file_name": photo.name, "width": width, "height": height})
            for k in range(number % 4 if number != 2 else 0):
                box = [3.5 * k, 2.0 + k, width / (2 + k), height / (3 + k)]
                annotations.append(
                    {"id": len(annotations), "image_id": number, "bbox": box, "category_id": k, "iscrowd": 0}
                )
        path = self.root / "instances.json"
        path.write_text(json.dumps({"images": images, "annotations": annotations}))
        return path

    @cached_property
    def two_domains(self) -> tuple[Path, Path]:
        """Folders of five and of seven photographs."""
        for number, photo in enumerate(self.photos):
            shutil.copyfile(photo, self._folder("domain_a" if number < 5 else "domain_b") / photo.name)
        return self.root / "domain_a", self.root / "domain_b"

    @cached_property
    def shards(self) -> list[Path]:
        """Three tar files of `key.jpg`, `key.cls` and `key.json`."""
        made = []
        for start in range(0, COUNT, 4):
            path = self._folder("shards") / f"{start // 4:06}.tar"
            with tarfile.open(path, "w") as archive:
                for number in range(start, start + 4):
                    parts = {
                        "jpg": self.photos[number].read_bytes(),
                        "cls": str(number % 3).encode(),
                        "json": json.dumps({"number": number}).encode(),
                    }
                    for suffix, data in parts.items():
                        member = tarfile.TarInfo(f"{number:06}.{suffix}")
                        member.size = len(data)
                        archive.addfile(member, io.BytesIO(data))
            made.append(path)
        return made

    @cached_property
    def odd(self) -> list[Path]:
        """Good files of other kinds than RGB JPEG, and JPEG files with an orientation, a profile, a resolution."""
        with Image.open(self.photos[1]) as image:
            rgb = image.convert("RGB").resize((90, 61))
        folder = self._folder("odd")
        for mode, name in [("CMYK", "cmyk.jpg"), ("L", "gray.jpg"), ("P", "palette.png"), ("LA", "la.png")]:
            rgb.convert(mode).save(folder / name)
        rgb.convert("P").save(folder / "frames.gif")
        rgb.convert("1").save(folder / "bits.png")
        rgba = rgb.copy()
        rgba.putalpha(rgb.convert("L"))
        rgba.save(folder / "rgba.png")
        Image.fromarray(np.asarray(rgb.convert("L"), np.uint16) * 257).save(folder / "sixteen.png")
        rgb.convert("P").save(folder / "transparent.png", transparency=3)
        rgb.save(folder / "bitmap.bmp")
        rgb.save(folder / "png_named.jpg", "PNG")
        rgb.resize((1, 1)).save(folder / "one_pixel.jpg")
        rgb.resize((640, 3)).save(folder / "flat.jpg")
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[0x0112], exif[0x010F] = orientation, "a camera"
            rgb.save(folder / f"turned_{orientation}.jpg", exif=exif, dpi=(72, 96), comment=b"a comment")
        rgb.save(folder / "profile.jpg", icc_profile=bytes(200), qtables="web_low")
        return sorted(folder.iterdir())

    @cached_property
    def damaged(self) -> list[Path]:
        """JPEG files that Pillow refuses, or decodes with wrong pixels, and good ones between them."""
        folder = self._folder("damaged")
        data = self.photos[1].read_bytes()
        begin = data.index(b"\xff\xda") + 40  # within the first scan
        changed = bytearray(data)
        changed[len(data) // 2 : len(data) // 2 + 30] = bytes(30)
        files = {
            "a_good": data,
            "b_truncated": data[: len(data) // 2],
            "c_good": self.photos[2].read_bytes(),
            "d_header_only": data[:begin],
            "e_wrong_pixels": bytes(changed),
            "f_empty": b"",
            "g_text": b"<html>not found</html>",
            "h_no_end": data[:-2],
            "i_good": self.photos[4].read_bytes(),
            "j_tail": data + b"something after the end",
        }
        for name, content in files.items():
            (folder / f"{name}.jpg").write_bytes(content)
        (folder / "k_truncated.png").write_bytes(self.masks[0].read_bytes()[:300])
        return sorted(folder.iterdir())

    @cached_property
    def refused_late(self) -> list[Path]:
        """Complete JPEG files; Pillow opens all and refuses to load two, for a marker amid the pixels."""
        folder = self._folder("refused_late")
        for number, photo in enumerate(self.photos[3:9]):
            data = photo.read_bytes()
            if number in (1, 4):
                middle = (data.index(b"\xff\xda") + len(data)) // 2
                data = data[:middle] + b"\xff\xd8" + data[middle:]  # a second "start of image"
            (folder / photo.name).write_bytes(data)
        return sorted(folder.iterdir())

    def _folder(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path
