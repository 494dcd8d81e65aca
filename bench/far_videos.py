"""Bytes fetched over HTTP for one clip of a file of about 100 MB.

    python -m bench.far_videos [--seconds N] [--out FILE]

ffmpeg makes the file: noise, H.264 at 27 Mbit/s, a key frame every second, with sound; its tables at the end, as ffmpeg
writes them, or at the beginning (`faststart`). A server of this machine counts what it sends for the first clip of the
file (16 frames, 4 apart), which also learns its index, and for later ones. Each clip is compared with that of the local
file. Without an index, as in torchcodec's exact mode, a clip takes all of the file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import headrace
from bench.machine import describe
from bench.remote.object_server import ObjectServer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
from torchvision_shim import import_torchvision

v2 = import_torchvision().transforms.v2

CLIP = headrace.clips_at_random_indices(num_frames_per_clip=16, num_indices_between_frames=4)
LATER = 8


def make_file(path: Path, seconds: int) -> None:
    """Makes the file, and a copy that begins with its tables."""
    video = f"testsrc2=size=640x360:rate=30:duration={seconds},noise=alls=40:allf=t"
    sources = ["-f", "lavfi", "-i", video, "-f", "lavfi", "-i", f"sine=440:duration={seconds}"]
    codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "27M", "-g", "30", "-pix_fmt", "yuv420p"]
    codecs += ["-c:a", "aac"]
    copied = ["-c", "copy", "-movflags", "+faststart", str(path.with_name("first.mp4"))]
    for arguments in ([*sources, *codecs, str(path)], ["-i", str(path), *copied]):
        subprocess.run(["ffmpeg", "-v", "error", "-y", *arguments], check=True, stdin=subprocess.DEVNULL)


def clips_of(source: str) -> Any:
    """Yields a clip of an epoch, for as many epochs as are wanted."""
    data = headrace.Videos([source], None, v2.CenterCrop(224), clips=CLIP)
    loader = headrace.DataLoader(data, num_workers=1, seed=1)
    while True:
        yield next(iter(loader))


def fetched(server: ObjectServer, path: Path) -> dict[str, Any]:
    """Bytes and requests of the first clip, and of each later one."""
    figures: list[tuple[int, int]] = []
    far, near = clips_of(f"{server.url}/{path.name}"), clips_of(str(path))
    for _ in range(1 + LATER):
        before = server.bytes_of.total(), server.requests()
        clip = next(far)
        figures.append((server.bytes_of.total() - before[0], server.requests() - before[1]))
        assert torch.equal(clip, next(near))
    first, *later = figures
    mean = [sum(column) / LATER for column in zip(*later, strict=True)]
    return {"first clip": {"bytes": first[0], "requests": first[1]}, "later": {"bytes": mean[0], "requests": mean[1]}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.far_videos", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=30, help="length of the file")
    parser.add_argument("--out", type=Path, help="also writes the figures here, as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ObjectServer(Path(folder)) as server:
        path = Path(folder) / "last.mp4"
        make_file(path, options.seconds)
        results: dict[str, Any] = {"machine": describe(), "file": path.stat().st_size}
        for name in ("last", "first"):
            results[f"tables {name}"] = found = fetched(server, path.with_name(f"{name}.mp4"))
            for when, one in found.items():
                share = one["bytes"] / results["file"]
                print(
                    f"bytes fetched over http for one clip of a {results['file'] / 1e6:.0f} MB file (tables {name}, "
                    f"{when}): {one['bytes'] / 1e6:.1f} MB in {one['requests']:.1f} requests, {share:.1%} of it"
                )
        if options.out:
            options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
