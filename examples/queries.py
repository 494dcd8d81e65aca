"""Trains on an image, a query and a label per sample: images from their files, queries and labels from arrays.

    python examples/queries.py [FOLDER] [--epochs N] [--workers N]

Does the image show what the query names? Without a folder it uses the photographs inside headrace. Queries are
tokenized once, into a file that is mapped. Two loaders with one seed have one order, so their batches belong together.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

from headrace import Columns, DataLoader, ImageFolder, token_columns, transforms
from headrace._cli.demo.photo_folder import make_photo_folder


class Matcher(nn.Module):
    """Compares the features of an image with the mean of the embeddings of a query's tokens."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.image = nn.Sequential(
            *(nn.Conv2d(3, width, 5, stride=4), nn.ReLU(), nn.Conv2d(width, width, 3, stride=2), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        )
        self.query = nn.Embedding(256, width)

    def forward(self, image: torch.Tensor, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        weights = mask.unsqueeze(2)  # padding has no part in the mean
        words = (self.query(tokens) * weights).sum(dim=1) / weights.sum(dim=1)
        return (self.image(image) * words).sum(dim=1)


def letters(texts: list[str]) -> list[list[int]]:
    """A tokenizer: one token per byte."""
    return [list(text.encode()) for text in texts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or make_photo_folder(Path(temporary) / "set", files=50).train
        crop = [transforms.RandomResizedCrop(64), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        photographs = ImageFolder(folder, transforms.Compose(crop))
        random = np.random.default_rng(0)
        shown = np.array([label for _, label in photographs.samples])
        asked = np.where(
            random.random(len(shown)) < 0.5, shown, random.integers(0, len(photographs.classes), len(shown))
        )
        queries = [f"is this {photographs.classes[one].replace('_', ' ')}?" for one in asked]
        columns = Columns(
            {
                **token_columns(queries, letters, Path(temporary) / "queries.npy", mask=True),
                "label": (shown == asked).astype(np.float32),
            }
        )
        same = {"batch_size": 8, "shuffle": True, "seed": 0, "num_workers": options.workers}
        images, texts = DataLoader(photographs, **same), DataLoader(columns, **same)
        torch.manual_seed(0)
        model = Matcher()
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        for epoch in range(options.epochs):
            losses = []
            for (image, _), text in zip(images, texts, strict=True):
                batch = {"image": image, **text}
                scores = model(batch["image"], batch["tokens"], batch["mask"])
                loss = nn.functional.binary_cross_entropy_with_logits(scores, batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} of {len(columns)} images and queries")


if __name__ == "__main__":
    main()
