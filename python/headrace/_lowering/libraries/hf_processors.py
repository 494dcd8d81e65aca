"""Lowers an image processor of transformers: its resize and crop to steps, its values to a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.families.geometry import tensor_filter
from headrace._lowering.families.pointwise import add_pointwise, begin_tensor
from headrace._lowering.pil_or_tensor import Lower
from headrace._recipe.hf_processors.processor_steps import steps_of
from headrace._recipe.hf_processors.processor_values import ProcessorValues


def processor_transform(builder: Builder, transform: Any, library: str) -> str:
    if builder.values is not None:
        builder.refuse(f"takes PIL images; put it before {builder.converter}")
    if builder.container:
        builder.refuse(
            f"makes a tensor inside {builder.container}, where only transforms of PIL images are lowered; put it "
            "after that"
        )
    processor, done = transform.processor, []
    steps = steps_of(processor)
    if processor.do_convert_rgb and builder.channels == 1:
        builder.channels = 3
        done.append(builder.add(S.Grayscale(3)))
    for step in steps:
        mode = S.TENSOR_FILTERS.get(getattr(step, "filter", ""))
        if isinstance(step, (S.Resize, S.ResizeShorter)) and mode is not None:
            narrowest = step.width if isinstance(step, S.Resize) else step.size if step.max_size is None else 1
            step = replace(step, filter=tensor_filter(builder, mode, 2, narrowest))
        done.append(builder.add(step))
    begin_tensor(builder)
    return ", ".join([*done, add_pointwise(builder, ProcessorValues(processor))]).replace(", native ", ", ")


LOWERS: dict[str, Lower] = {"ProcessorTransform": processor_transform}
