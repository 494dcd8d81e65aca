"""One changed state, or one changed sidecar: what must hold of it."""

from __future__ import annotations

import importlib.util
import io
import pickle
import random
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fuzz.states import helper_messages
from fuzz.states.loaders import COUNT, KINDS, loader, states
from fuzz.states.values import changed, damaged
from fuzz.states.watched import watched
from headrace._storage.entry_points import sidecar
from headrace.datasets.lmdb.lmdb_values import unpickle_keys
from headrace.datasets.tar_shards import tar_index


class Bomb:
    """Runs code when it is unpickled, as a hostile file would."""

    def __reduce__(self) -> Any:
        return eval, ("__import__('os').environ.__setitem__('HEADRACE_FUZZ_BOMB', 'exploded')",)


class States:
    """Changes the states of all kinds of loaders.

    Attributes:
        refused: number of states that raised ValueError; the others delivered the rest of an epoch.
    """

    def __init__(self, draw: random.Random) -> None:
        self._draw, self.refused = draw, 0
        self._states = {kind: states(kind) for kind in KINDS}
        self._all = [one for some in self._states.values() for one in some]

    def trial(self) -> str:
        """Gives one changed state to a loader. Returns what is wrong; "" if nothing is."""
        draw, kind = self._draw, self._draw.choice(KINDS)
        how = draw.random()
        if how < 0.1:
            state = draw.choice(self._all)
        elif how < 0.25:
            state = self._through_a_file(draw.choice(self._all))
        else:
            state = changed(draw, draw.choice(self._states[kind]), self._all)
        before = repr(state)
        made = loader(kind)
        with watched() as seen:
            try:
                made.load_state_dict(state)
            except ValueError:
                self.refused += 1
                return f"{kind}: {seen} while it was refused" if seen else ""
            except Exception:
                return f"{kind}: {traceback.format_exc()} for {before:.2000}"
        if seen:
            return f"{kind}: {seen}"
        return self._delivered(kind, made, before)

    def _through_a_file(self, state: Any) -> Any:
        """What torch loads from a damaged checkpoint. Without one, the checkpoint's bytes themselves."""
        out = io.BytesIO()
        torch.save(state, out)
        data = damaged(self._draw, out.getvalue())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return torch.load(io.BytesIO(data), weights_only=True)
        except Exception:  # torch's own refusal, in many classes
            return data

    def _delivered(self, kind: str, made: Any, state: str) -> str:
        labels: list[int] = []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for number, (_, targets) in enumerate(made):
                    labels += targets.tolist() if isinstance(targets, torch.Tensor) else [targets]
                    if number > COUNT:
                        return f"{kind}: the epoch does not end, from {state:.2000}"
        except ValueError:  # that the epoch has fewer batches than the state says
            return ""
        except Exception:
            return f"{kind}: {traceback.format_exc()} from {state:.2000}"
        return "" if all(0 <= one < COUNT for one in labels) else f"{kind}: labels {labels} from {state:.2000}"


class Files:
    """Changes the sidecars that headrace writes, lists that foreign programs pickle, and what helpers are sent."""

    def __init__(self, draw: random.Random, folder: Path) -> None:
        self._draw = draw
        self._seeds: list[tuple[bytes, Callable[[bytes], Any]]] = []
        archives = Path(__file__).parents[1] / "corpus_tar"
        for path in sorted(archives.glob("*.tar")):
            kept = folder / f"{path.name}.npz"
            tar_index.store(kept, tar_index.read_index(str(path), path.name))
            self._seeds.append((kept.read_bytes(), tar_index.parse_sidecar))
        if importlib.util.find_spec("av") is not None:
            from fuzz.states.video_indexes import read_index, read_signed_index, video_index

            self._seeds += [(video_index(), reader) for reader in (read_index, read_signed_index)]
        self._seeds += [
            (helper_messages.order(), helper_messages.read_order),
            (helper_messages.request(), helper_messages.make_samples),
            (helper_messages.planned_request(), helper_messages.make_planned_samples),
        ]
        entries = folder / "entries.npz"
        sidecar.load_or_make(str(entries), 1 << 20)
        self._seeds.append((entries.read_bytes(), _entries))
        for protocol in (2, 4):
            self._seeds.append((pickle.dumps([b"key %d" % number for number in range(9)], protocol), unpickle_keys))
        self._hostile = [pickle.dumps([Bomb()]), self._object_array()]

    def _object_array(self) -> bytes:
        """A sidecar one of whose arrays is a pickle."""
        out = io.BytesIO()
        np.savez(out, version=np.array([Bomb()], object), stamp=np.array([Bomb()], object), keys=np.zeros(3))
        return out.getvalue()

    def trial(self) -> str:
        """Gives one changed file to its reader. Returns what is wrong; "" if nothing is."""
        data, reader = self._draw.choice(self._seeds)
        data = self._draw.choice(self._hostile) if self._draw.random() < 0.05 else damaged(self._draw, data)
        if reader is helper_messages.read_order and self._draw.random() < 0.8:
            data = helper_messages.changed_order(self._draw)
        with watched() as seen, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's about old headers
            try:
                reader(data)
            except ValueError:
                pass
            except Exception:
                return f"{reader.__module__}: {traceback.format_exc()} for {data!r:.3000}"
        if reader is unpickle_keys:  # its find_class is called for a class, and refuses it
            seen = [one for one in seen if not one.startswith("pickle.find_class")]
        return f"{reader.__module__}: {seen} for {data!r:.3000}" if seen else ""


def _entries(data: bytes) -> Any:
    return sidecar.parse_content(data, "entries.npz")
