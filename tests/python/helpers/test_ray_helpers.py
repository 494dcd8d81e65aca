"""``helpers="ray"`` on a local cluster of several nodes: one leaves and one joins in the middle of an epoch."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import headrace
from headrace import DataLoader, RayHelpers
from support import output_of, pictures, train

PROGRAM = """
import os, sys, time
import ray
from ray.cluster_utils import Cluster
import headrace
from headrace import DataLoader, RayHelpers
from headrace._helpers import helper_lane, ray_helpers
from headrace._helpers.ray_helpers import ray_addresses
from support import assert_same, pictures, train

helper_lane.HelperLane._samples_made_here = lambda self, seconds: 1  # small samples are made before an answer arrives
sys.stderr = open(os.devnull, "w")  # Ray's messages
cluster = Cluster(initialize_head=True, head_node_args=dict(num_cpus=0, include_dashboard=False))
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")

dataset = headrace.EncodedImages(pictures(24, 250) * 4, list(range(96)), train(96))
options = dict(batch_size=16, shuffle=True, num_workers=1, prefetch_factor=5, seed=7)
loader, alone = DataLoader(dataset, helpers="ray", **options), DataLoader(dataset, **options)

def epoch(event):
    batches = []
    for number, batch in enumerate(loader):
        batches.append(batch)
        if number == 1:
            event()
    assert_same(batches, alone)
    work = loader.stats().helpers.values()
    return len(work), sum(one.samples for one in work)

def epochs(helpers):
    # Whether so many helpers are known, and samples were made by them, before long: Ray notices late that a node left.
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found, made = epoch(int)
        if found == helpers and made:
            return True
    return False

one = RayHelpers(nodes=1, cores=1, memory="50 MB")

def addresses(helpers):
    # Those of the first helper that answers: starting one may take long.
    end = time.monotonic() + 240
    while not (found := ray_addresses(helpers)) and time.monotonic() < end:
        time.sleep(0.2)
    return found

few = addresses(one)
reserved = {name: ray.cluster_resources()[name] - ray.available_resources()[name] for name in ("CPU", "memory")}
print("found:", len(few) == 1 and few == ray_addresses(one) and reserved == {"CPU": 1.0, "memory": 50e6})
print("found:", all(ray_addresses(one) == () for one in (RayHelpers(cores=2), RayHelpers(memory=10**18))))

@ray.remote(num_cpus=1)
class Busy:
    def node(self):
        return ray.get_runtime_context().get_node_id()

ray_helpers._asked.clear()  # its helper ends
busy = [Busy.remote() for _ in nodes]
nodes_of = ray.get([each.node.remote() for each in busy])
nobody = ray_addresses(one)  # the node that is asked first has no free CPU
ray.kill(busy[nodes_of.index(max(nodes_of))])
free = addresses(one)
print("found:", nobody == () and len(free) == 1)
ray.kill(busy[nodes_of.index(min(nodes_of))])
print("found:", epochs(2))
first = ray_addresses(RayHelpers())
time.sleep(3)
print("found:", first == ray_addresses(RayHelpers()) and epochs(2))  # the same helpers, still there
epoch(lambda: cluster.remove_node(nodes[0], allow_graceful=False))
print("found:", epochs(1))
epoch(lambda: cluster.add_node(num_cpus=1))
print("found:", epochs(2))
ray.shutdown()
cluster.shutdown()
"""


@pytest.mark.slow
@pytest.mark.trainers
@pytest.mark.processes
def test_nodes_leave_and_join() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    out = output_of(PROGRAM)
    found = [line for line in out.splitlines() if line.startswith("found:")]  # among Ray's lines
    assert found == ["found: True"] * 7


def test_a_cluster_is_needed() -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    assert not ray.is_initialized()
    dataset = headrace.EncodedImages(pictures(6), list(range(6)), train(32))
    with pytest.raises(RuntimeError, match=r'helpers="ray" needs a cluster: call ray.init\(\)'):
        list(DataLoader(dataset, num_workers=1, helpers="ray"))


def test_what_nodes_are_is_checked() -> None:
    assert pickle.loads(pickle.dumps(RayHelpers(2, 8, "4 GB"))) == RayHelpers(2, 8, "4 GB")
    wrong: dict[str, Any]
    for wrong in ({"nodes": 0}, {"nodes": True}, {"cores": 1.5}, {"cores": -1}, {"memory": "much"}, {"memory": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            RayHelpers(**wrong)
    loader = DataLoader(headrace.EncodedImages(pictures(6), list(range(6)), train(32)), helpers=RayHelpers(nodes=1))
    assert loader.helpers == RayHelpers(nodes=1)
    assert DataLoader(loader.dataset, helpers="ray").helpers == RayHelpers()
