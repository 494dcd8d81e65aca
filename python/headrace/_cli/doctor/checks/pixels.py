"""Checks of what determines the pixels: torch, Pillow, libjpeg-turbo, torchvision."""

from __future__ import annotations

import importlib
import platform
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import PIL
import torch
from PIL import features

from headrace._base.messages import install_command
from headrace._base.native import core
from headrace._base.safe_exceptions import named_message_of
from headrace._base.version import __version__
from headrace._cli.demo.photo_folder import PHOTOS
from headrace._cli.doctor.checks.finding import Finding, means
from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.arithmetic.functional_pil import open_rgb
from headrace.ops import functions as ops

_PILLOW = 10  # minimum in pyproject.toml; 9.5 makes the same pixels


@means("What to name in a report of a bug.")
def versions() -> Finding:
    return Finding("ok", "headrace", f"{__version__}, Python {platform.python_version()}, {platform.platform()}")


@means("Its DataLoader delivers what headrace does not know.")
def torch_() -> Finding:
    if not hasattr(torch, "accelerator"):
        return Finding("wrong", "torch", f"{torch.__version__} is older than 2.6", "pip install --upgrade torch")
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return Finding("ok", "torch", f"{torch.__version__}, accelerator: {accelerator or 'none'}")


@means("headrace's pixels are those of this Pillow, to the bit.")
def pillow() -> Finding:
    if int(PIL.__version__.split(".")[0]) < _PILLOW:
        text = f"{PIL.__version__} is older than {_PILLOW}, which headrace requires; see resize and decode below"
        return Finding("note", "Pillow", text, "pip install --upgrade Pillow")
    return Finding("ok", "Pillow", PIL.__version__)


@means("Two releases of one library decode JPEGs to the same pixels.")
def pillow_libjpeg() -> Finding:
    ours = core.libjpeg_version()
    if not features.check("jpg"):
        return Finding("wrong", "libjpeg-turbo", "this Pillow reads no JPEGs", "pip install --force-reinstall Pillow")
    if not features.check_feature("libjpeg_turbo"):
        text = f"headrace has {ours}, Pillow another libjpeg: its pixels may differ"
        return Finding("wrong", "libjpeg-turbo", text, "pip install --force-reinstall Pillow, from a wheel of PyPI")
    text = f"headrace has {ours}, Pillow has {features.version_feature('libjpeg_turbo')}"
    if not core.libjpeg_has_vectors():
        text += "; headrace's was built without nasm: Pillow decodes rare JPEGs, and all that threads decode for a GPU"
        return Finding("note", "libjpeg-turbo", text, "a wheel, or nasm and a new build")
    return Finding("ok", "libjpeg-turbo", text)


@means("Pillow's versions order the passes of a resize differently; headrace follows.")
def pass_order() -> Finding:
    report = pillow_rule.probe_pass_order()
    took = f"{report.cases} small resizes in {1e3 * report.seconds:.0f} ms"
    if report.expected in report.fitting:
        order = pillow_rule.describe_order(report.order)
        return Finding("ok", "resize", f"{order}, as Pillow {report.pillow} is known to do; proved by {took}")
    if report.fitting:
        follows = pillow_rule.describe_order(report.order)
        text = f"Pillow {report.pillow} has another order of passes than was expected of it: {follows} ({took})"
        return Finding("note", "resize", text, "headrace follows it; loader.verify() proves that on your data")
    text = f"Pillow {report.pillow} follows no order of passes that headrace knows ({took})"
    return Finding(
        "wrong", "resize", text, f"pixels may differ by rounding: install a released Pillow, {_PILLOW} to 13"
    )


@means("The shipped photographs, decoded by both, prove it here.")
def decoding() -> Finding:
    paths = sorted(PHOTOS.glob("*.jpg"))
    blobs = [path.read_bytes() for path in paths]
    natively = sum(core.jpeg_header(blob)["not_plain"] is None for blob in blobs)
    differ = [
        path.name
        for path, blob, image in zip(paths, blobs, ops.decode_jpeg(blobs), strict=True)
        if not np.array_equal(image.permute(1, 2, 0).numpy(), np.asarray(open_rgb(blob)))
    ]
    if differ:
        text = f"{len(differ)} of {len(paths)} photographs differ from Pillow's pixels, {differ[0]} first"
        return Finding(
            "wrong",
            "decode",
            text,
            f"pip install --force-reinstall Pillow, then headrace once more ({install_command()}); "
            "if that does not help, report a bug",
        )
    return Finding(
        "ok", "decode", f"{len(paths)} photographs, {natively} of them natively: 0 bytes differ from Pillow's"
    )


@means("Not needed by headrace.")
def torchvision() -> Finding:
    try:
        there = version("torchvision")
    except PackageNotFoundError:
        return Finding("ok", "torchvision", "not installed, and not needed: headrace.transforms has the same names")
    try:
        importlib.import_module("torchvision")
    except Exception as error:  # of its compiled part, where it was built for another torch
        return Finding(
            "note",
            "torchvision",
            f"{there} cannot be imported ({named_message_of(error).splitlines()[0]})",
            "if you use it, install torch and torchvision from the same index, which has builds of both that fit: "
            "pip install --force-reinstall torch torchvision --index-url https://download.pytorch.org/whl/cpu, or "
            "another one of pytorch.org; headrace.transforms has the same names",
        )
    return Finding("ok", "torchvision", f"{there}: its datasets and transforms are recognised")
