"""Trains a small classifier of sounds on log spectrograms, computed from batches of waveforms.

    python examples/audio_classes.py [FOLDER] [--seconds S] [--sample-rate R] [--epochs N] [--workers N]

The folder has one folder of audio files for each class, such as Speech Commands' or ESC-50's. Without one, tones of
three pitches in noise are written as WAV files. Clips are drawn from longer files, and shorter ones are padded.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import wave
from pathlib import Path

import torch
from torch import nn

from headrace import Audio, DataLoader


class Spectrogram(nn.Module):
    """Waveforms (n, 1, samples) to log power spectrograms (n, 1, frequencies, times)."""

    window: torch.Tensor

    def __init__(self, size: int = 256) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("window", torch.hann_window(size))

    def forward(self, waveforms: torch.Tensor) -> torch.Tensor:
        made = torch.stft(waveforms[:, 0], self.size, self.size // 2, window=self.window, return_complex=True)
        return (made.abs().square() + 1e-6).log()[:, None]


def write_tones(folder: Path, each: int = 20, rate: int = 8000) -> None:
    """Writes 16-bit WAV files, one to three seconds of a tone in noise, into a folder for each pitch."""
    random = torch.Generator().manual_seed(0)
    for pitch in (220, 440, 880):
        (folder / str(pitch)).mkdir()
        for number in range(each):
            time = torch.arange(rate * (1 + number % 3)) / rate
            tone = torch.sin(2 * math.pi * pitch * time) + torch.randn(len(time), generator=random)
            with wave.open(str(folder / str(pitch) / f"{number}.wav"), "wb") as file:
                file.setparams((1, 2, rate, len(time), "NONE", ""))
                file.writeframes((tone * 4000).to(torch.int16).numpy().tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--sample-rate", type=int, default=8000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if options.folder is None:
            write_tones(folder)
        classes = sorted(one.name for one in folder.iterdir() if one.is_dir())
        files = [(path, label) for label, name in enumerate(classes) for path in sorted((folder / name).iterdir())]
        clips = Audio(
            [path for path, _ in files],
            [label for _, label in files],
            seconds=options.seconds,
            sample_rate=options.sample_rate,
        )
        loader = DataLoader(clips, batch_size=16, shuffle=True, num_workers=options.workers, seed=0)
        model = nn.Sequential(
            *(Spectrogram(), nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d((8, 1)), nn.Flatten(), nn.Linear(256, len(classes))),
        )
        optimizer = torch.optim.Adam(model.parameters(), 3e-3)
        for epoch in range(options.epochs):
            total = right = 0
            for waveforms, labels in loader:
                scores = model(waveforms)
                loss = nn.functional.cross_entropy(scores, labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total, right = total + len(labels), right + int((scores.argmax(1) == labels).sum())
            print(f"epoch {epoch}: {right} of {total} clips named rightly while training")


if __name__ == "__main__":
    main()
