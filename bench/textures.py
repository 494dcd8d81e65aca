"""Measures loaders whose last step makes 13 texture channels, natively and in Python.

    python -m bench.textures FOLDER [--rounds 5] [--seconds 3] [--cores 1] [--layout CHW] [--out NAME.json]

Times, interleaved: RandomResizedCrop(224), a flip and the channels, as a plain function of torch with torch.fft in
torch's DataLoader and in headrace's, where it is called in Python; as TextureChannels in both; and one image by each
function. First, batches of the native loader are compared with the oracle to the bit, and the plain function with
TextureChannels within BOUND, since torch.fft rounds in another order.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from bench.contenders._common import import_torchvision
from bench.machine import describe, options_of
from bench.python_step import ms_a_sample

SIZE, BATCH, IMAGES = 224, 32, 64
BOUND = 2**-23  # one unit in the last place of float32 below 1
LOW, HIGH = (1 / 32, 1 / 8), (1 / 8, 1 / 2)


class PlainChannels:
    """The formulas of TextureChannels as one writes them with torch, in float64."""

    def __init__(self, layout: str) -> None:
        self.layout = layout
        y, x = ((torch.arange(SIZE, dtype=torch.float64) * 2 + 1) / SIZE - 1 for _ in range(2))
        x, y = x.expand(SIZE, SIZE), y[:, None].expand(SIZE, SIZE)
        self.places = torch.stack([x, y, ((x * x + y * y) / 2).sqrt()])
        fx, fy = torch.fft.rfftfreq(SIZE, dtype=torch.float64), torch.fft.fftfreq(SIZE, dtype=torch.float64)
        frequency = (fx * fx + (fy * fy)[:, None]).sqrt()
        self.passes = torch.stack([(low <= frequency) & (frequency < high) for low, high in (LOW, HIGH)])
        self.to_xyz = torch.tensor(
            [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]],
            dtype=torch.float64,
        ) / torch.tensor([0.95047, 1.0, 1.08883], dtype=torch.float64).view(3, 1)
        self.kernels = torch.tensor([[[[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]]], dtype=torch.float64) / 4
        self.kernels = torch.cat([self.kernels, self.kernels.transpose(2, 3)])

    def __call__(self, image: Any) -> torch.Tensor:
        from torchvision.transforms.functional import pil_to_tensor

        rgb = pil_to_tensor(image).double() / 255
        linear = torch.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        ratio = torch.einsum("ij,jhw->ihw", self.to_xyz, linear)
        x, y, z = torch.where(ratio > (6 / 29) ** 3, ratio ** (1 / 3), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
        lab = torch.stack([(116 * y - 16) / 100, (x - y) * 500 / 128, (y - z) * 200 / 128])
        luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]
        wide = torch.nn.functional.pad(luma[None, None], (1, 1, 1, 1), mode="replicate")
        sobel = torch.nn.functional.conv2d(wide, self.kernels)[0]
        bands = torch.fft.irfft2(torch.fft.rfft2(luma) * self.passes, s=luma.shape)
        made = torch.cat([rgb, lab, sobel, self.places, bands]).float()
        return made if self.layout == "CHW" else made.permute(1, 2, 0).contiguous()


def loader_of(kind: str, channels: Any, root: Path, cores: int) -> Any:
    from torch.utils.data import DataLoader as TorchDataLoader
    from torchvision import transforms as T
    from torchvision.datasets import ImageFolder

    from headrace import DataLoader

    steps = [T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), channels]
    dataset = ImageFolder(str(root), T.Compose(steps))
    options: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "num_workers": cores, "persistent_workers": True}
    return TorchDataLoader(dataset, **options) if kind == "torch" else DataLoader(dataset, **options, seed=0)


def crops(root: Path) -> list[Any]:
    from PIL import Image

    paths = sorted(path for path in root.rglob("*") if path.is_file())[:IMAGES]
    return [Image.open(path).convert("RGB").resize((SIZE, SIZE)) for path in paths]


def ms_an_image(function: Callable[[Any], torch.Tensor], images: list[Any]) -> float:
    start = time.perf_counter()
    for image in images:
        function(image)
    return 1e3 * (time.perf_counter() - start) / len(images)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--layout", choices=("CHW", "HWC"), default="CHW")
    args = options_of(parser, cores=1, rounds=5)
    import_torchvision()
    from headrace import transforms

    functions: dict[str, Callable[[Any], torch.Tensor]] = {
        "plain": PlainChannels(args.layout),
        "TextureChannels": transforms.TextureChannels(args.layout),
    }
    images = crops(args.folder)
    off = max(float((functions["plain"](one) - functions["TextureChannels"](one)).abs().max()) for one in images)
    if off > BOUND:
        raise SystemExit(f"the plain function differs from TextureChannels by {off:g}, more than {BOUND:g}")
    loaders = {
        f"{kind}, {name}": loader_of(kind, function, args.folder, args.cores)
        for kind in ("torch", "headrace")
        for name, function in functions.items()
    }
    print("verified:", loaders["headrace, TextureChannels"].verify(2), f"; the plain function differs by {off:g}")
    rounds: list[dict[str, float]] = []
    for _ in range(args.rounds):
        ms = {name: ms_a_sample(loader, args.seconds) for name, loader in loaders.items()}
        rounds.append({**ms, **{f"{name} alone": ms_an_image(one, images) for name, one in functions.items()}})
    for name in rounds[0]:
        values = [one[name] for one in rounds]
        print(f"{name:<26} {median(values):7.3f} ms a sample ({min(values):.3f} to {max(values):.3f})")
    for name in ("torch, plain", "torch, TextureChannels", "headrace, plain"):
        ratios = [one[name] / one["headrace, TextureChannels"] for one in rounds]
        print(f"{name:<26} {median(ratios):7.2f} times the native loader's ({min(ratios):.2f} to {max(ratios):.2f})")
    if args.out:
        figures = {"machine": describe(), "cores": args.cores, "layout": args.layout, "rounds": rounds}
        args.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
