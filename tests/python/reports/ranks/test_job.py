"""Ranks of a real job: all of them, headrace top, Prometheus and the page of a loader name the one that is slow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed as dist

from support import WATCHDOG_S

library = pytest.importorskip("torch._C._distributed_c10d", reason="this torch has no torch.distributed")

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch has no gloo"),
    pytest.mark.skipif(not hasattr(library, "_dump_fr_trace"), reason="this torch does not record gloo's collectives"),
]

TESTS = str(Path(__file__).parents[2])
RANKS = 3
SCRIPT = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import torch, torch.distributed as dist
import headrace
from headrace._cli.main import main
from headrace._reports.metrics.publish import _loaders
from headrace._reports.metrics.metrics import collect_metrics
from support import blobs, train

torch.set_num_threads(1)
tests, rank, ranks, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=ranks)
loader = headrace.DataLoader(blobs(96, train(24)), 4, num_workers=1, distributed=True, seed=0)
said = {}
with headrace.publish(folder=f"{folder}/published", every_s=0.2) as published:
    seen = torch.zeros(1)
    while not seen.item():
        for images, labels in loader:
            time.sleep(0.1 if rank == 1 else 0.005)
            job = published.job
            knows = job is not None and job.straggler == 1 and job.certainty == "sure"
            seen = torch.tensor([float(knows)])
            dist.all_reduce(seen, dist.ReduceOp.MIN)  # until all ranks know it
            if seen.item():
                break
    said = {"straggler": job.straggler, "reason": job.reason, "seen": job.seen, "cost": job.cost, "text": str(job)}
    if rank == 0:
        found = {one.name: one.points for one in collect_metrics(_loaders)}
        said |= {"metric": found["straggler"], "costs": found["rank.cost"]}
        loader.report(f"{folder}/page.html", batches=4)
        main(["top", "--json", "--folder", f"{folder}/published"])
    else:
        said |= {"metric": [one.points for one in collect_metrics(_loaders) if one.name == "straggler"][0]}
    dist.barrier()
with open(f"{folder}/{rank}.json", "w") as file:
    json.dump(said, file)
dist.destroy_process_group()
"""


def test_all_ranks_name_the_one_whose_step_is_slow(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    base = [sys.executable, str(tmp_path / "script.py"), TESTS]
    unknown = {name: value for name, value in os.environ.items() if not name.startswith(("HEADRACE_", "TORCH_"))}
    ranks = [
        subprocess.Popen(
            [*base, str(rank), str(RANKS), str(tmp_path)],
            env=unknown,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        for rank in range(RANKS)
    ]
    try:
        outputs = [one.communicate(timeout=WATCHDOG_S)[0] for one in ranks]
    finally:
        for one in ranks:
            if one.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)
    assert [one.returncode for one in ranks] == [0] * RANKS, "\n".join(outputs)
    said = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(RANKS)]
    assert all((one["straggler"], one["reason"], one["seen"]) == (1, "step", RANKS) for one in said), said
    assert all(one["cost"] > 0.3 for one in said)
    assert said[0]["metric"] == [[{"rank": "1", "reason": "step", "certainty": "sure"}, 1.0]]
    assert said[1]["metric"] == said[2]["metric"] == []  # rank 0 reports the job
    costs = {labels["rank"]: cost for labels, cost in said[0]["costs"]}
    assert sorted(costs) == ["0", "1", "2"] and max(costs, key=lambda rank: costs[rank]) == "1"
    seen = json.loads(outputs[0][outputs[0].index("[\n") :])
    assert [one["rank"] for one in seen] and {one["job"]["straggler"] for one in seen} == {1}
    assert "slow in its own step, not in the loader" in (tmp_path / "page.html").read_text()
    assert list((tmp_path / "published").iterdir()) == []  # nothing is left of the job
