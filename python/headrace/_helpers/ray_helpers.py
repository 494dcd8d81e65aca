"""Helpers on the nodes of a Ray cluster: Ray places them, and starts them where nodes join."""

from __future__ import annotations

import secrets
import threading
from typing import Any

from headrace._base.checks import checked_size
from headrace._helpers.argument import Helpers, RayHelpers
from headrace._helpers.connection import Address

_NAMESPACE = "headrace"
_START_S = 10.0  # for new helpers to start; later ones serve the next epoch
_lock = threading.Lock()
#: By job and node, the actor, which Ray ends when nobody refers to it, and its address.
_asked: dict[tuple[str, str], tuple[Any, Any]] = {}


class NodeHelper:
    """An actor with a helper that listens at the address of its node.

    Args:
        threads: number of threads that make samples.
    """

    def __init__(self, threads: int) -> None:
        import ray.util

        from headrace._helpers.server import HelperServer

        self._token = secrets.token_hex(16)  # only processes of the cluster can ask the actor
        self._host = ray.util.get_node_ip_address()
        self._server = HelperServer((self._host, 0), threads, self._token)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def address(self) -> tuple[str, int, str]:
        """Returns host, port and token."""
        return self._host, self._server.server_address[1], self._token

    def samples(self) -> int:
        """Returns how many samples were made here."""
        return self._server.samples


def addresses_of(helpers: Helpers) -> tuple[Address, ...]:
    """Returns the addresses that a loader's argument stands for now; see `ray_addresses`."""
    return ray_addresses(helpers) if isinstance(helpers, RayHelpers) else helpers


def ray_addresses(given: RayHelpers) -> tuple[Address, ...]:
    """Returns the addresses of helpers on nodes of the Ray cluster but this one, whose cores a loader has anyway.

    An actor of a node serves all processes of the cluster that ask for it, and ends with those. It reserves its CPUs,
    each for a thread: where these are in use, it starts later. Of more nodes than are wanted those with a helper are
    taken first, this process's before those of others, and last those that have been asked and have not answered. These
    are given up when enough others have answered.

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
    here, session = ray.get_runtime_context().get_node_id(), ray.get_runtime_context().get_job_id()
    others = [node for node in ray.nodes() if node["Alive"] and node["NodeID"] != here]
    alive = {node["NodeID"] for node in others}
    memory = 0 if given.memory is None else checked_size(given.memory, "memory")
    nodes = {
        node["NodeID"]: given.cores or int(node["Resources"].get("CPU", 0))
        for node in others
        if _has(node["Resources"], given.cores or 1, memory)
    }
    with _lock:
        for key in [one for one in _asked if one[0] != session or one[1] not in alive]:
            del _asked[key]
        known = _known_addresses(ray)
        chosen = [(session, node) for node in nodes]
        if given.nodes is not None and given.nodes < len(nodes):
            named = _named_helpers(ray)

            def order_of(key: tuple[str, str]) -> tuple[int, str]:
                if key in _asked:
                    return (0 if key in known else 3), key[1]
                return (1 if _name_of(key[1]) in named else 2), key[1]

            chosen = sorted(chosen, key=order_of)[: given.nodes]
        if chosen and all(key in known for key in chosen):
            for key in [one for one in _asked if one not in known]:
                del _asked[key]
        new = [key for key in chosen if key not in _asked]
        for key in new:
            actor = _actor_on(ray, key[1], nodes[key[1]], memory)
            _asked[key] = actor, actor.address.remote()
        answers = [_asked[key][1] for key in chosen]
    if answers:
        ray.wait(answers, num_returns=len(answers), timeout=_START_S if new else 0.1)
    with _lock:
        known = _known_addresses(ray)
    return tuple(known[key] for key in chosen if key in known)


def _known_addresses(ray: Any) -> dict[tuple[str, str], Address]:
    """Returns the addresses of the actors that have answered, by job and node. Those that cannot are forgotten."""
    found = {}
    answers = {answer: key for key, (_, answer) in _asked.items()}
    ready = ray.wait(list(answers), num_returns=len(answers), timeout=0)[0] if answers else []
    for answer in ready:
        try:
            found[answers[answer]] = Address(*ray.get(answer))
        except ray.exceptions.RayError:  # the node has left, or the actor has died
            del _asked[answers[answer]]
    return found


def _named_helpers(ray: Any) -> set[str]:
    """Returns the names of the cluster's helpers, whoever has started them."""
    actors = ray.util.list_named_actors(all_namespaces=True)
    return {one["name"] for one in actors if one["namespace"] == _NAMESPACE}


def _name_of(node: str) -> str:
    return f"helper-{node}"


def _has(resources: dict[str, float], cores: int, memory: int) -> bool:
    """Returns whether a node has what a helper reserves."""
    return resources.get("CPU", 0) >= cores and resources.get("memory", 0) >= memory


def _actor_on(ray: Any, node: str, cores: int, memory: int) -> Any:
    """Returns the helper of a node; it is started if there is none."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    options = {
        "name": _name_of(node),
        "namespace": _NAMESPACE,
        "get_if_exists": True,
        "num_cpus": cores,
        "memory": memory or None,
        "max_concurrency": 2,
        "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
    }
    return ray.remote(NodeHelper).options(**options).remote(cores)
