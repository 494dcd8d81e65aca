"""Helpers on the nodes of a Ray cluster: Ray places them, and starts them where nodes join."""

from __future__ import annotations

import secrets
import threading
from typing import Any

from headrace._helpers.connection import Address

_NAMESPACE = "headrace"
_START_S = 60.0  # for the helpers of a cluster to start; later ones serve the next epoch


class RayHelper:
    """An actor with a helper that listens at the address of its node.

    Args:
        threads: number of threads that make samples.
    """

    def __init__(self, threads: int) -> None:
        import ray.util

        from headrace._helpers.server import HelperServer

        self._token = secrets.token_hex(16)  # whoever may ask the actor may know it
        self._host = ray.util.get_node_ip_address()
        self._server = HelperServer((self._host, 0), threads, self._token)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def address(self) -> tuple[str, int, str]:
        """Returns host, port and token."""
        return self._host, self._server.server_address[1], self._token

    def samples(self) -> int:
        """Returns how many samples were made here."""
        return self._server.samples


def ray_addresses() -> tuple[Address, ...]:
    """Returns the addresses of a helper on each node of the Ray cluster but this one, whose cores a loader has anyway.

    An actor of a node serves all processes of the cluster that ask for it. It has as many threads as the node has CPUs
    for Ray, and reserves them.

    Raises:
        ImportError: Ray is not installed.
        RuntimeError: the program has not connected to a cluster.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError('helpers="ray" needs Ray, which is not installed: pip install ray') from error
    if not ray.is_initialized():
        raise RuntimeError('helpers="ray" needs a cluster: call ray.init() before the loader is made')
    here = ray.get_runtime_context().get_node_id()
    asked = [
        _actor_on(ray, node["NodeID"], int(node["Resources"].get("CPU", 0))).address.remote()
        for node in ray.nodes()
        if node["Alive"] and node["NodeID"] != here and node["Resources"].get("CPU", 0) >= 1
    ]
    found = []
    for answer in ray.wait(asked, num_returns=len(asked), timeout=_START_S)[0] if asked else []:
        try:
            found.append(Address(*ray.get(answer)))
        except ray.exceptions.RayError:  # the node has left
            continue
    return tuple(found)


def _actor_on(ray: Any, node: str, cores: int) -> Any:
    """Returns the helper of a node; it is started if there is none."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    options = {
        "name": f"helper-{node}",
        "namespace": _NAMESPACE,
        "get_if_exists": True,
        "num_cpus": cores,
        "max_concurrency": 2,
        "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
    }
    return ray.remote(RayHelper).options(**options).remote(cores)
