"""Resolves the loader's argument ``cpu_affinity``: the cores that its threads run on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from headrace._base.checks import whole_number
from headrace._base.cores import allowed_cpus, can_bind

GPU = "gpu"
_ROOT = Path("/")


def resolve_cores(given: object, device: torch.device) -> tuple[int, ...]:
    """Returns the cores, as the operating system numbers them; none if nothing was given.

    Args:
        given: None, a list of cores, or ``"gpu"``: those of the NUMA node that the GPU is attached to.
        device: of the batches. If it is no GPU, ``"gpu"`` means torch's current one.

    Raises:
        TypeError: it is neither.
        ValueError: it is empty, this process may not run on one of the cores, there is no GPU, or
            the system cannot bind threads.
    """
    if given is None:
        return ()
    if not can_bind():
        raise ValueError("cpu_affinity: this operating system cannot bind threads to cores; leave cpu_affinity out")
    allowed = allowed_cpus()
    if isinstance(given, str):
        if given != GPU:
            raise ValueError(f"cpu_affinity must be a list of cores, {GPU!r} or None, not {given!r}")
        near = _cores_near_gpu(device)
        if not near & allowed:
            raise ValueError(
                f"cpu_affinity='gpu': the GPU's cores are {write_cores(near)}, but this process may run on "
                f"{write_cores(allowed)} only; leave cpu_affinity out, or start the process on the GPU's cores"
            )
        return tuple(sorted(near & allowed))
    if not isinstance(given, Iterable):
        raise TypeError(f"cpu_affinity must be a list of cores, {GPU!r} or None, not {given!r}")
    cores = {whole_number("a core of cpu_affinity", one) for one in given}
    if not cores:
        raise ValueError("cpu_affinity is empty: name at least one core, or leave it out")
    if cores - allowed:
        raise ValueError(
            f"cpu_affinity: this process may not run on core {min(cores - allowed)}; choose from {write_cores(allowed)}"
        )
    return tuple(sorted(cores))


def _cores_near_gpu(device: torch.device) -> set[int]:
    """Returns the cores near a GPU."""
    if device.type != "cuda" and not torch.cuda.is_available():
        raise ValueError("cpu_affinity='gpu' needs an NVIDIA GPU that torch finds; name the cores, or leave it out")
    index = torch.cuda.current_device() if device.type != "cuda" or device.index is None else device.index
    about: Any = torch.cuda.get_device_properties(index)
    address = f"{about.pci_domain_id:04x}:{about.pci_bus_id:02x}:{about.pci_device_id:02x}.0"
    return cores_near(address)


def cores_near(address: str, root: Path = _ROOT) -> set[int]:
    """Returns the cores that the system says are near a PCI device: all of a machine with one node.

    Args:
        address: of the device, as in ``"0000:3b:00.0"``.
        root: root of the file system, which holds ``sys/bus/pci/devices``.

    Raises:
        ValueError: the system does not tell.
    """
    try:
        text = (root / "sys/bus/pci/devices" / address / "local_cpulist").read_text()
    except OSError as error:
        raise ValueError(
            f"cpu_affinity='gpu': the system does not tell which cores are near the GPU at {address} "
            f"({error.strerror}); name the cores instead"
        ) from error
    return numbers_in(text)


def numbers_in(text: str) -> set[int]:
    """Returns the numbers in a list as the kernel writes it: ``"0-3,8"``."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def write_cores(cores: Iterable[int]) -> str:
    """Returns a set of cores as the kernel writes it; the opposite of `numbers_in`."""
    parts: list[list[int]] = []
    for one in sorted(cores):
        if parts and one == parts[-1][1] + 1:
            parts[-1][1] = one
        else:
            parts.append([one, one])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
