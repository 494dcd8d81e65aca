"""Trains with a step that torch.compile has made: forward, loss and backward in one function.

    python examples/compiled_step.py [FOLDER] [--epochs 2] [--backend inductor]

Without a folder it uses the photographs inside headrace. The one line that differs from stock torch is marked.
"""

from __future__ import annotations

import shared
import torch
from torch import nn

import headrace


def network(classes: int, patch: int = 8, width: int = 128) -> nn.Sequential:
    """(n, 3, H, W) -> (n, classes): patches of an image, each looked at on its own, and their mean."""
    patches = nn.Conv2d(3, width, patch, patch)
    layers = [nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)]
    pool = nn.Sequential(nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, classes))
    return nn.Sequential(patches, nn.Flatten(2), Transposed(), *layers, Transposed(), pool)


class Transposed(nn.Module):
    """(n, a, b) -> (n, b, a)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2)


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("--backend", default="inductor", help="of torch.compile; inductor needs a C++ compiler")
    options = parser.parse_args()
    dataset = shared.photographs(options)
    # Batches of one size, for which one compiled function serves.
    common = {"batch_size": options.batch_size, "shuffle": True, "num_workers": options.workers, "drop_last": True}
    # It was: loader = torch.utils.data.DataLoader(dataset, **common)
    loader = headrace.DataLoader(dataset, **common, seed=0)
    torch.manual_seed(0)
    model = network(len(dataset.classes))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    @torch.compile(backend=options.backend)
    def loss_of(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(model(images), labels)

    log = shared.Log()
    for _epoch in range(options.epochs):
        for images, labels in loader:
            loss = loss_of(images, labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            log.step(loss, len(images))
    log.end()


if __name__ == "__main__":
    main()
