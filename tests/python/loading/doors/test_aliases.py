"""Memory that deferred tensors share, arguments that change after a call, and states of torch while they are read."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace._loading.doors.tensors.deferred_tensor import recording_of
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from support import PHOTOS
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import functional as v1  # noqa: E402
from torchvision.transforms.v2 import functional as f2  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors")

HALVES = [0.5] * 3
Program = Callable[[torch.Tensor], Any]


def written_whole(t: torch.Tensor) -> Any:
    part = t[:, 2:50, 2:50]
    t.fill_(7)
    return part.float()


def written_sibling(t: torch.Tensor) -> Any:
    one, other = t[:, 2:9, 2:9], t[:, 2:9, 2:9]
    one.zero_()
    return other * 2, other.flip(-1)


def part_of_part(t: torch.Tensor) -> Any:
    part = t[:, 2:90, 2:90][:, 3:30, 3:30]
    t.zero_()
    return f2.resize(part, [9, 9]), v1.pad(part, 2)


def written_by_index(t: torch.Tensor) -> Any:
    part = t[:, 2:9, 2:9]
    t[:, 3:9, 3:9] = 5
    return part.flip(-1)


def written_through_numpy(t: torch.Tensor) -> Any:
    part, array = t[:, 2:9, 2:9], t.numpy()
    array[:] = 9
    return f2.resize(part, [9, 9])


def normalized_in_place(t: torch.Tensor) -> Any:
    values = t.float()
    part = values[:, 1:9, 1:9]
    f2.normalize(values, HALVES, HALVES, inplace=True)
    return part * 2, values


def normalized_alone(t: torch.Tensor) -> Any:
    values = t.float()
    made = f2.normalize(values, HALVES, HALVES, inplace=True)
    before = values * 2
    again = f2.normalize(values, HALVES, [0.1] * 3, inplace=True)
    return made is values, again is values, before, values


def first_dimension(t: torch.Tensor) -> Any:
    batch = t.unsqueeze(0)
    t.zero_()
    return f2.resize(batch, [8, 8]), batch[0].float(), t[None].stride()


def written_after(t: torch.Tensor) -> Any:
    values, resized = t.float(), f2.resize(t, [20, 20])
    t.zero_()
    return values, resized


def changed_factor(t: torch.Tensor) -> Any:
    factor, means = torch.tensor(2.0), torch.tensor(HALVES)
    made, normalized = torch.mul(t, other=factor), f2.normalize(t.float(), means, HALVES)
    factor.fill_(5.0)
    means.fill_(3.0)
    return made, normalized


def negative_zero(t: torch.Tensor) -> Any:
    return 1 / (t * 0.0), 1 / (t * -0.0)


def other_default(t: torch.Tensor) -> Any:
    made = t.mul(1.5)
    torch.set_default_dtype(torch.float16)
    try:
        return made.clone()
    finally:
        torch.set_default_dtype(torch.float32)


def other_memory(t: torch.Tensor) -> Any:
    values: Any = t.float()
    values.set_(torch.zeros(2, 2))
    return values


def autograd_versions(t: torch.Tensor) -> Any:
    values, weight = t.float(), torch.ones((), requires_grad=True)
    part = values[:, 1:9, 1:9]
    loss = (weight * values).sum()
    part.add_(1)
    loss.backward()


def same_size(t: torch.Tensor) -> Any:
    image = tv_tensors.Image(t)
    return f2.resize(image, list(image.shape[-2:])) is image, f2.to_dtype(image, torch.uint8) is image


def own_list(t: torch.Tensor) -> Any:
    class Tensors(list[torch.Tensor]):
        pass

    return torch.stack(Tensors([t, t]))


def by_keyword(t: torch.Tensor) -> Any:
    return torch.flip(input=t, dims=(2,))


def inference(t: torch.Tensor) -> Any:
    values, weight = t.float(), torch.ones((), requires_grad=True)
    with torch.inference_mode():
        values.sum()
    (weight * values).sum().backward()
    return values.is_inference(), weight.grad


def vmap(t: torch.Tensor) -> Any:
    values = t * 0.777
    return torch.func.vmap(lambda weight: (values * weight).sum())(torch.ones(2))


def arrays_of_means(t: torch.Tensor) -> Any:
    return v1.normalize(t.float(), np.array(HALVES), np.array(HALVES))


def odd_pads(t: torch.Tensor) -> Any:
    return v1.pad(t, [3], fill=float("inf"))


def odd_class(t: torch.Tensor) -> Any:
    wrong: Any = 3
    return t.as_subclass(wrong)


PROGRAMS: list[Program] = [
    *(written_whole, written_sibling, part_of_part, written_by_index, written_through_numpy, normalized_in_place),
    *(normalized_alone, first_dimension, written_after, changed_factor, negative_zero, other_default, other_memory),
    *(autograd_versions, same_size, own_list, by_keyword, inference, vmap, arrays_of_means, odd_pads, odd_class),
]


def result_of(program: Program, tensor: torch.Tensor) -> list[Any]:
    try:
        made = program(tensor)
    except Exception as error:
        return [type(error), str(error)]
    return [
        (one.dtype, one.stride(), one.tolist()) if isinstance(one, torch.Tensor) else one
        for one in (made if isinstance(made, tuple) else (made,))
    ]


def files() -> dict[str, bytes]:
    sound = (PHOTOS / "archway.jpg").read_bytes()
    return {"sound": sound, "damaged": sound[:9000] + bytes(500) + sound[9500:]}


def to_tensor(data: bytes) -> torch.Tensor:
    return v1.pil_to_tensor(Image.open(io.BytesIO(data)).convert("RGB"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("kind", ["sound", "damaged"])
def test_programs_see_what_torch_shows(kind: str, program: Program) -> None:
    if kind == "damaged" and program is other_default:
        pytest.skip("a damaged file is decoded by Pillow when it is read, with the default dtype of that moment")
    data = files()[kind]
    expected = result_of(program, to_tensor(data))
    with deferred_here(ImageCounts()):
        tensor = to_tensor(data)
        assert recording_of(tensor) is not None
        assert result_of(program, tensor) == expected


def test_a_capsule_has_the_values() -> None:
    with deferred_here(ImageCounts()):
        tensor = to_tensor(files()["sound"])
        capsule = getattr(torch.utils.dlpack, "to_dlpack")(tensor)  # noqa: B009 - not exported
        assert torch.equal(torch.utils.dlpack.from_dlpack(capsule), to_tensor(files()["sound"]))


def test_a_child_process_may_read_what_a_thread_of_its_parent_was_making(tmp_path: Path) -> None:
    path = tmp_path / "large.jpg"
    Image.effect_noise((4000, 4000), 50).convert("RGB").save(path)
    with deferred_here(ImageCounts()):
        tensor = v1.pil_to_tensor(Image.open(path))
        thread = threading.Thread(target=tensor.sum)
        recording: Any = recording_of(tensor)
        thread.start()
        while thread.is_alive() and recording._making.acquire(blocking=False):  # until the thread has it
            recording._making.release()
        child = os.fork()
        if child == 0:
            os._exit(0 if tensor[:, :2, :2].shape == (3, 2, 2) and int(tensor[0, 0, 0]) >= 0 else 1)
        thread.join()
        assert os.waitpid(child, 0)[1] == 0
