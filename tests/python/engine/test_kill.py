"""kill -9 at random moments of training, and resume: the concatenated run equals the uninterrupted one."""

from __future__ import annotations

import os

import pytest

from support import output_of

pytestmark = pytest.mark.processes

# A parent that has imported everything forks the training processes, each of which is killed from outside while it
# works: between two batches, within one, or while it writes its checkpoint.
CODE = """
import hashlib, os, random, signal, sys, tempfile
import torch
from headrace import EncodedImages, DataLoader
from support import pictures, train

torch.set_num_threads(1)
KILLS, EPOCHS, OPTIONS = {kills}, {epochs}, {options}
DATA = EncodedImages(pictures() * 12, range(288), train(24))
CHECKPOINT = os.path.join(tempfile.mkdtemp(), "run.pt")


def digest(batch):
    return hashlib.sha256(batch[0].numpy().tobytes() + batch[1].numpy().tobytes()).hexdigest()


def run(workers, told=None):
    # Trains to the end; what was trained on is in the checkpoint, as a model's weights would be.
    loader = DataLoader(DATA, num_workers=workers, **OPTIONS)
    done, first = [], 0
    if os.path.exists(CHECKPOINT):
        saved = torch.load(CHECKPOINT, weights_only=True)
        done, first = saved["done"], saved["loader"]["epoch"]
        loader.load_state_dict(saved["loader"])
    for epoch in range(first, EPOCHS):
        for batch in loader:
            done.append(digest(batch))
            if told is not None:
                torch.save({{"done": done, "loader": loader.state_dict()}}, CHECKPOINT + ".part")
                os.replace(CHECKPOINT + ".part", CHECKPOINT)
                os.write(told, b".")
    return done


chance = random.Random(0)
kills = 0
while True:
    listen, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(listen)
        run(chance.randrange(4), told)
        os._exit(0)
    os.close(told)
    chance.random()
    if kills < KILLS:  # after some batches more, at whatever it does then
        for _ in range(chance.randrange(1, 4)):
            os.read(listen, 1)
        os.kill(child, signal.SIGKILL)
    ended = os.waitpid(child, 0)[1]
    os.close(listen)
    if ended == 0:
        break
    assert os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGKILL
    kills += 1
parts = torch.load(CHECKPOINT, weights_only=True)["done"]
os.remove(CHECKPOINT)
whole = run(2)
print(kills, len(whole), len(set(whole)) == len(whole), parts == whole)
"""


#: A child trains until it is killed, so each costs a third of a second, more on a busy machine.
KILLS = int(os.environ.get("HEADRACE_KILLS", "40"))


# 576 batches: a hundred kills need 200 on average.
def test_killed_runs_are_the_uninterrupted_one() -> None:
    options = "dict(batch_size=1, shuffle=True, seed=3, rank=1, world_size=2)"
    out = output_of(CODE.format(options=options, epochs=4, kills=KILLS), "-W", "ignore")
    assert out.split() == [str(KILLS), "576", "True", "True"]
