"""Trains a model of timm with timm's transforms, optimiser, schedule and moving average of weights.

    python examples/timm_train.py [FOLDER] [--epochs 2] [--model resnet10t]

Without a folder it uses the photographs inside headrace. The one line that differs from stock torch is marked; timm's
own `create_loader` makes a torch DataLoader, too, and would be replaced in the same way.
"""

from __future__ import annotations

import shared
import timm
import timm.data
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils

import headrace


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("--model", default="resnet10t")
    options = parser.parse_args()
    dataset = shared.photographs(options)
    dataset.transform = timm.data.create_transform(
        options.size, is_training=True, color_jitter=0.4, re_prob=0.25, interpolation="random"
    )
    common = {"batch_size": options.batch_size, "shuffle": True, "num_workers": options.workers}
    # It was: loader = torch.utils.data.DataLoader(dataset, **common)
    loader = headrace.DataLoader(dataset, **common, seed=0)
    timm.utils.random_seed(0)
    model = timm.create_model(options.model, num_classes=len(dataset.classes))
    average = timm.utils.ModelEmaV3(model, decay=0.9)
    optimiser = timm.optim.create_optimizer_v2(model, opt="lamb", lr=5e-3, weight_decay=0.02)
    schedule, epochs = timm.scheduler.create_scheduler_v2(
        optimiser, sched="cosine", num_epochs=options.epochs, warmup_epochs=0, cooldown_epochs=0
    )
    criterion = timm.loss.LabelSmoothingCrossEntropy(0.1)
    log = shared.Log()
    for epoch in range(epochs):
        model.train()
        for images, labels in loader:
            loss = criterion(model(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            average.update(model)
            log.step(loss, len(images))
        schedule.step(epoch + 1)
    log.end()


if __name__ == "__main__":
    main()
