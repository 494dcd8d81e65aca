"""Python threads in which torchcodec, or libsndfile, makes the clips that native threads do not."""

from __future__ import annotations

import os
import time

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.native import core
from headrace._base.safe_exceptions import message_of, without_frames
from headrace._engine.lanes.decoding_lane import DecodingLane
from headrace._media.audio.audio_clip import AudioClip
from headrace._media.audio.clip_reader import read_clip


class AudioLane(DecodingLane):
    """Takes files from the pipeline, and returns the samples of their clips. The libraries release the GIL.

    Args:
        pipeline, threads: as in `DecodingLane`.
        clip: which part of a file, and how.
    """

    name = "audio"

    def __init__(self, pipeline: core.Pipeline, threads: int, clip: AudioClip) -> None:
        self._clip = clip  # first: the base class starts a thread
        super().__init__(pipeline, threads)

    def _run_job(self, job: core.PythonJob) -> None:
        begin = time.perf_counter_ns()
        try:
            made = read_clip(os.fsdecode(job.path), self._clip, job.draw(0))
            padded = self._pad(made)
        except Exception as error:
            self._fail(job, without_frames(error), message_of(error))
        else:
            took = time.perf_counter_ns() - begin
            self._pipeline.finish_elements(job, padded, took, width=made.shape[1], height=made.shape[0])

    def _pad(self, made: torch.Tensor) -> npt.NDArray[np.uint8]:
        """Returns the bytes of a sample whose waveform is `made`, with zeros after it."""
        assert self._clip.samples is not None
        padded = torch.zeros((made.shape[0], self._clip.samples), dtype=torch.float32, device="cpu")
        padded[:, : made.shape[1]] = made
        elements: npt.NDArray[np.uint8] = padded.view(torch.uint8).flatten().numpy()
        return elements
