"""Questions 4 to 6: when nvJPEG writes, the effect of damaged files, which files it takes, and which parts of them."""

from __future__ import annotations

import io
import multiprocessing
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from bench.gpu.questions.decoding import ask_each, opened
from bench.gpu.questions.nvjpeg import STATUS, YUV, Nvjpeg, NvjpegError, images
from bench.gpu.questions.place import POISON, Place, Planes
from headrace._engine import destination

if TYPE_CHECKING:
    from headrace._core import JpegHeader

BACKENDS = ("hardware", "cuda")
BUSY_CYCLES = 200_000_000  # a tenth of a second of a GPU's clock
PATIENCE = 20.0  # seconds after which a decoder counts as hung


def order(place: Place, candidates: Sequence[str], files: Sequence[bytes]) -> list[dict[str, Any]]:
    """Question 4: does nvJPEG write before its turn on the stream, and does later work on the stream wait for it?"""
    if not place.cuda:
        return [{"failed": "streams are a GPU's"}]

    def ask(library: Nvjpeg) -> Iterator[dict[str, Any]]:
        state, stream, other = library.state(), place.stream(), place.stream()
        encoded, kept = place.encoded(files, "pinned")
        to = Planes.of(place, files, POISON)
        library.initialize(state, len(files))
        place.finish(place.current())
        library.decode(state, encoded, to.destinations, place.handle(stream))  # the first call allocates
        torch.cuda.synchronize()
        truth = to.memory.clone()
        to.memory.fill_(POISON)
        behind = torch.empty_like(to.memory)
        torch.cuda.synchronize()

        with torch.cuda.stream(stream):
            torch.cuda._sleep(BUSY_CYCLES)
            turn = torch.cuda.Event()
            turn.record(stream)
        library.decode(state, encoded, to.destinations, place.handle(stream))
        returned_early = not turn.query()
        with torch.cuda.stream(other):
            seen = to.memory.clone()
        other.synchronize()
        in_time = not turn.query()  # otherwise an early write cannot be distinguished
        with torch.cuda.stream(stream):
            behind.copy_(to.memory)
        torch.cuda.synchronize()
        del kept
        yield {
            "call_returned_before_its_turn": returned_early,
            "wrote_before_its_turn": bool((seen != POISON).any()) if in_time else None,
            "work_behind_it_saw_all": bool(torch.equal(behind, truth)),
            "right_in_the_end": bool(torch.equal(to.memory, truth)),
        }
        library.free(state)

    return ask_each(BACKENDS, candidates, ask)


# ---- damaged files ---------------------------------------------------------------------------------------------------


def damaged(data: bytes, header: JpegHeader, seed: int = 0) -> dict[str, bytes]:
    """Damaged versions of a file. Most do not change the header."""
    random = np.random.default_rng(seed)
    begin, end = header["scan_begin"], header["scan_end"]
    made = {
        f"cut at {share:.0%} of the scan": data[: begin + int(share * (end - begin))] for share in (0.02, 0.5, 0.98)
    }
    made["cut, with an end marker"] = data[: (begin + end) // 2] + b"\xff\xd9"
    made["no end marker"] = data[:end]

    def spoilt(places: Sequence[int], values: Sequence[int]) -> bytes:
        changed = bytearray(data)
        for at, value in zip(places, values, strict=True):
            changed[at] = value
        return bytes(changed)

    for number in range(5):
        places = random.integers(begin, end - 2, 8).tolist()
        made[f"8 bytes of the scan changed ({number})"] = spoilt(places, random.integers(0, 255, 8).tolist())
    zeros = range((begin + end) // 2, min((begin + end) // 2 + 40, end))
    made["40 zeros in the scan"] = spoilt(zeros, [0] * len(zeros))
    frame = data.find(b"\xff\xc0")
    made["twice as high in its header"] = spoilt(
        (frame + 5, frame + 6), divmod(2 * int.from_bytes(data[frame + 5 : frame + 7], "big") % 65536, 256)
    )
    huffman = data.find(b"\xff\xc4")
    made["a Huffman table with too many codes"] = spoilt(range(huffman + 5, huffman + 9), (255, 255, 255, 255))
    quantization = data.find(b"\xff\xdb")
    made["a quantization table of zeros"] = spoilt(range(quantization + 5, quantization + 69), [0] * 64)
    return made


def _child(device: str, backend: str, candidates: Sequence[str], pipe: Any) -> None:
    """Decodes each file from the pipe in one call between two good files, and sends the outcome."""
    place = Place(device)
    with opened(backend, candidates) as library:
        state, stream = library.state(), place.stream()
        pipe.send("ready")
        while (case := pipe.recv()) is not None:
            good, data = case
            batch = [good, data, good]
            to = Planes.of(place, batch, POISON)
            encoded, kept = place.encoded(batch, "pinned")
            place.finish(place.current())
            said: dict[str, Any] = {}
            try:
                library.initialize(state, len(batch), YUV)
                said["status"] = library.try_decode(state, encoded, to.destinations, place.handle(stream))
                place.finish(stream)
            except (NvjpegError, RuntimeError) as error:
                said["raised"] = str(error)
            neighbours = to.samples()[::2]
            said["neighbours_equal"] = all(
                np.array_equal(a, b) and not (a == POISON).all() for a, b in zip(*neighbours, strict=True)
            )
            del kept
            pipe.send(said)
        library.free(state)


class _Decoder:
    """A child process, which may hang or die without affecting this one."""

    def __init__(self, place: Place, backend: str, candidates: Sequence[str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (str(place.device), backend, list(candidates), theirs)
        self._process = context.Process(target=_child, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(PATIENCE):
            raise RuntimeError("a process that was to decode did not start")
        self._pipe.recv()

    def decode(self, good: bytes, data: bytes) -> dict[str, Any]:
        """The child's answer, or that it hung or died."""
        try:
            self._pipe.send((good, data))
            if self._pipe.poll(PATIENCE):
                said: dict[str, Any] = self._pipe.recv()
                return said
            return {"gone": f"hung for {PATIENCE:.0f} s"}
        except (EOFError, OSError):
            self._process.join(PATIENCE)
            return {"gone": f"died with status {self._process.exitcode}"}

    def end(self) -> None:
        """Ends the child in any state."""
        try:
            self._pipe.send(None)
            self._process.join(PATIENCE)
        except OSError:
            pass
        self._process.kill()
        self._process.join()


def corrupt(place: Place, candidates: Sequence[str], files: Sequence[tuple[bytes, JpegHeader]]) -> list[dict[str, Any]]:
    """Question 5: each damaged file in a call of three. `routed`: headrace would send the file to the decoder."""
    route = destination.require_gpu().route
    rows: list[dict[str, Any]] = []
    for backend in BACKENDS:
        try:
            with opened(backend, candidates):
                pass  # only checks that it starts: a child decodes, as it may crash
        except RuntimeError as error:
            rows.append({"backend": backend, "routed": False, "failed": str(error)})
            continue
        decoder: _Decoder | None = None
        for data, header in files:
            for what, spoilt in damaged(data, header).items():
                decoder = decoder or _Decoder(place, backend, candidates)
                said = decoder.decode(data, spoilt)
                if "status" in said:
                    said["means"] = STATUS[said["status"]]
                rows.append({"backend": backend, "what": what, "routed": route(spoilt) is None} | said)
                if "gone" in said or "raised" in said:  # its state is unknown
                    decoder.end()
                    decoder = None
        if decoder is not None:
            decoder.end()
    return rows


# ---- parts of images, and kinds of files -----------------------------------------------------------------------------


def kinds() -> dict[str, bytes]:
    """Small files of many kinds."""
    source = Image.effect_noise((96, 96), 40).convert("RGB")
    made: dict[str, bytes] = {}

    def add(what: str, image: Image.Image, **options: Any) -> None:
        out = io.BytesIO()
        image.save(out, "JPEG", **options)
        made[what] = out.getvalue()

    for edge in (8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65):
        add(f"{edge} x 80", source.resize((edge, 80)))
        add(f"80 x {edge}", source.resize((80, edge)))
    for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
        add(subsampling, source, subsampling=subsampling)
    add("gray", source.convert("L"))
    add("progressive", source, progressive=True)
    add("optimised tables", source, optimize=True)
    add("restart markers", source, restart_marker_blocks=5)
    add("quality 1", source, quality=1)
    add("red, green and blue", source, keep_rgb=True)
    add("CMYK", source.convert("CMYK"))
    return made


def takes(candidates: Sequence[str]) -> list[dict[str, Any]]:
    """The files that nvJPEG reports to take in batches, and those that headrace's router sends to it."""
    files = {what: (data, destination.require_gpu().route(data) is None) for what, data in kinds().items()}

    def ask(library: Nvjpeg) -> Iterator[dict[str, Any]]:
        for what, (data, routed) in files.items():
            row = {"what": what, "routed": routed}
            try:
                yield row | {"supported": library.supported(data)}
            except NvjpegError as error:
                yield row | {"supported": False, "said": str(error)}

    return ask_each(BACKENDS, candidates, ask)


def parts(place: Place, candidates: Sequence[str], files: Sequence[bytes]) -> list[dict[str, Any]]:
    """Question 6: regions and reduced scales: what is reported as supported, and the result for a region."""

    def ask(library: Nvjpeg) -> Iterator[dict[str, Any]]:
        for data in files:
            full = Planes.of(place, [data])
            width, height = full.at[0][0].width, full.at[0][0].height
            roi = (width // 4 // 16 * 16, height // 4 // 16 * 16, width // 2 // 16 * 16, height // 2 // 16 * 16)
            yield {
                "bytes": len(data),
                "region_supported": library.supported(data, roi=roi),
                "scales_supported": [n for n in (2, 4, 8) if library.supported(data, scale=n)],
            } | _region(place, library, data, full, roi)

    return ask_each(BACKENDS, candidates, ask)


def _region(place: Place, library: Nvjpeg, data: bytes, full: Planes, roi: tuple[int, int, int, int]) -> dict[str, Any]:
    """Decodes the whole image and the region, and compares luma. The memory for the whole image holds the region."""
    state, stream = library.state(), place.stream()
    encoded, kept = place.encoded([data], "pinned")
    library.initialize(state, 1, YUV)
    library.decode(state, encoded, full.destinations, place.handle(stream))
    place.finish(stream)
    left, top, w, h = roi
    want = full.samples()[0][0][top : top + h, left : left + w].copy()
    part = Planes.of(place, [data], POISON)
    place.finish(place.current())
    base = part.memory.data_ptr()
    to = images([[(base + room.offset, room.pitch) for room in part.at[0]]])
    library.initialize(state, 1, YUV)
    status = library.try_decode_part(state, encoded, to, place.handle(stream), roi=roi, scale=1)
    place.finish(stream)
    del kept
    library.free(state)
    if status != 0:
        return {"region": STATUS[status]}
    off = np.abs(part.read()[0][0][:h, :w].astype(int) - want.astype(int))
    return {"region": "decoded", "luma_off": int(off.max())}
