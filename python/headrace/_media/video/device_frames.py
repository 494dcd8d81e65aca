"""Frames of videos that torchcodec decodes on a device: by NVDEC, whose colours differ from FFmpeg's by roundings."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import io
import threading
from contextlib import AbstractContextManager

import av
import torch

from headrace._base.safe_exceptions import message_of
from headrace._base.types import Array
from headrace._media.library_decoders import open_decoder
from headrace._media.video.frame_times import WantedFrames
from headrace._media.video.packet_index import PacketIndex
from headrace._media.video.video_files import open_exact
from headrace._storage.parts.sample_bytes import SampleBytes


class DeviceFrames:
    """Decodes frames on a device and returns them in this machine's memory. Any thread may call it.

    Args:
        device: of CUDA; or the CPU, in place of it.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._own = threading.local()
        self._lock = threading.Lock()
        self._made = self._left = 0
        self._why_left = ""

    def decode(self, file: SampleBytes, wanted: WantedFrames, index: PacketIndex | None) -> tuple[Array, bool]:
        """Returns the frames as torchcodec makes them, uint8 (n, H, W, 3), and whether its CPU decoder made them,
        because the device's does not take the video.

        Args:
            index: see `open_exact`.

        Raises:
            ValueError, RuntimeError, IndexError: torchcodec's.
            OSError: the file cannot be read.
        """
        with self._stream():
            made, fallback = decode_by_library(file, wanted, index, str(self._device))
        with self._lock:
            self._made += 1
            self._left += bool(fallback)
            self._why_left = fallback or self._why_left
        return made, bool(fallback)

    @property
    def trouble(self) -> str:
        """Why the device has decoded nothing of all that was decoded so far; "": it has decoded something."""
        with self._lock:
            if not self._made or self._left < self._made:
                return ""
            return f"NVDEC has decoded none of {self._made} samples, torchcodec's CPU decoder all ({self._why_left})"

    def _stream(self) -> AbstractContextManager[object]:
        """Returns a context whose work on the device is on a stream of this thread: to wait for the frames is not to
        wait for the program's work."""
        if self._device.type != "cuda":
            return contextlib.nullcontext()
        if not hasattr(self._own, "stream"):
            self._own.stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        return torch.cuda.stream(self._own.stream)


def decode_by_library(
    file: SampleBytes, wanted: WantedFrames, index: PacketIndex | None = None, device: str = "cpu"
) -> tuple[Array, str]:
    """Returns frames as torchcodec makes them, uint8 (n, H, W, 3) in this machine's memory; and why its CPU decoder
    made them on another device, or "".

    Args:
        index, device: see `open_exact`.
    """
    decoder, source = open_exact(file, index, device)
    try:
        if wanted.numbers is None:
            frames = decoder.get_frames_played_at(wanted.seconds)
        else:
            frames = decoder.get_frames_at(wanted.numbers)
    finally:
        if source is not None:
            source.check()
    fallback = getattr(decoder, "cpu_fallback", None) if device != "cpu" else None
    return frames.data.cpu().contiguous().numpy(), str(fallback) if fallback else ""


@functools.cache
def why_not_on(device: torch.device) -> str:
    """Returns why torchcodec decodes nothing on a device, and what to do; "": it decodes there."""
    try:
        open_decoder("VideoDecoder", _make_video(), device=str(device))
    except (RuntimeError, ValueError) as error:
        version, message = importlib.metadata.version("torchcodec"), message_of(error)
        if "Unsupported device" in message:
            return f"torchcodec {version} was built without CUDA; install its CUDA build, or leave decoder out"
        return f"torchcodec {version} opens no video on {device}: {message.partition(chr(10))[0]}"
    return ""


def _make_video() -> bytes:
    """Returns the bytes of a video of one gray frame."""
    made = io.BytesIO()
    with av.open(made, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=25, width=64, height=64, pix_fmt="yuv420p")
        frame = av.VideoFrame(64, 64, "yuv420p")
        for plane in frame.planes:
            plane.update(bytes([128]) * plane.buffer_size)
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return made.getvalue()
