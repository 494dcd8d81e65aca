"""The figures that a verdict follows from, in words."""

from __future__ import annotations

from headrace._loading.bottleneck.batch_cost import RECORDS, Load


def reasons(load: Load, found: str) -> str:
    """Returns the figures that lead to a bottleneck, as one line."""
    setting = load.setting
    waits = f"of {1e3 * load.period:.3g} ms a batch the consumer works {_share(load.step, load.period)} and waits"
    parts = [f"{waits} {_share(load.period - load.step, load.period)}"]
    there = setting.threads * load.period
    cores = cores_in_words(setting.cores)
    if setting.threads == 0:
        parts.append(f"nothing is made meanwhile (num_workers=0, {cores})")
    elif setting.native and found not in load.lanes:  # else the native threads have little to do
        busy = load.cpu + load.delayed + load.stuck
        threads = "1 thread" if setting.threads == 1 else f"{setting.threads} threads"
        are = "is" if setting.threads == 1 else "are"
        parts.append(f"{threads} on {cores} {are} busy {_share(busy, there)}")
        if busy > 0.02 * there:
            parts.append(
                f"of which {_share(load.cpu, busy)} on a core, {_share(load.delayed, busy)} waiting for a core, "
                f"{_share(load.stuck, busy)} waiting for data" + (", which needs no core" if found == "read" else "")
            )
    elif not setting.native:
        workers = "1 worker on" if setting.threads == 1 else f"{setting.threads} workers on"
        run = "runs" if setting.threads == 1 else "run"
        parts.append(f"{workers} {cores} {run} {_share(load.cpu + load.delayed, there)} of the time")
        if RECORDS in load.lanes:
            share = _share(load.lanes[RECORDS], setting.making * load.period)
            makers = "1 thread that makes" if setting.making == 1 else f"{setting.making} threads that make"
            parts.append(f"{makers} images from records {'is' if setting.making == 1 else 'are'} busy {share}")
    all_stages = sum(load.stages.values()) + sum(load.lanes.values())
    part = load.stages.get(found, load.lanes.get(found))
    if part is not None and all_stages and found != RECORDS:
        parts.append(f"{found} takes {_share(part, all_stages)} of the work")
        if found in load.lanes and setting.threads:
            held = sum(load.lanes.values())
            parts.append(
                f"{1e3 * held:.3g} ms a batch in Python threads, {_share(load.python_cpu, held)} of it on a core, "
                f"{_share(load.python_delayed, held)} waiting for a core"
            )
    elif found in load.handed:
        parts.append(f"{found} takes {1e3 * load.handed[found]:.3g} ms of the consumer's thread")
    if found == "prefetch":
        parts.append(f"both sides wait in turn with {setting.depth} batches in flight")
    return "; ".join(parts)


def cores_in_words(cores: float) -> str:
    """Returns "1 core", "1.5 cores" or "2 cores"."""
    return f"{cores:.3g} core" + ("" if cores == 1 else "s")


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "0%"
