"""Python threads in which the frames of videos are decoded: all frames of a sample at once, by one thread."""

from __future__ import annotations

import functools
import threading
import time

from headrace._base.native import core
from headrace._base.safe_exceptions import format_error, message_of, without_frames
from headrace._engine.lanes.decoding_lane import DecodingLane
from headrace._media.video.clip_limits import ClipLimits
from headrace._media.video.device_frames import DeviceFrames
from headrace._media.video.video_clips import NO_LIMITS, Clip, open_clip
from headrace._storage.video_indexes.shared_indexes import SharedIndexes
from headrace.datasets.videos.clip_samplers import ClipSampler
from headrace.datasets.videos.video_names import find_sample

_WAITERS = 16  # threads beside those that decode, which wait for the bytes of the next samples


class _Sample:
    """The frames of a sample.

    Attributes:
        waiting: jobs that other threads have taken while the first one decodes.
        clip: the decoded frames, or why there are none; None: not decoded yet.
        left: number of frames that are not finished.
    """

    def __init__(self, frames: int) -> None:
        self.waiting: list[core.PythonJob] = []
        self.clip: Clip | BaseException | None = None
        self.left = frames


class FrameLane(DecodingLane):
    """Takes the frames of videos from the pipeline, whose bytes name the sample, and returns their pixels.

    The frames of a sample follow one another in a batch. The thread that gets the first of them decodes all; another
    thread leaves it those that it gets meanwhile.

    Args:
        pipeline, threads: as in `DecodingLane`.
        clips: chooses the frames of a sample.
        first_draw: column of the draws of the clips' starts, one for each clip.
        indexes: of videos, shared with other processes; None: they are not.
        ahead_bytes: most bytes of videos in other machines that are fetched before they are decoded; 0: all are here.
            More threads than `threads` wait for such bytes, but only `threads` of them decode at the same time.
        on_device: decodes on a device; None: FFmpeg does.
    """

    name = "video"

    def __init__(
        self,
        pipeline: core.Pipeline,
        threads: int,
        clips: ClipSampler,
        first_draw: int,
        indexes: SharedIndexes | None = None,
        ahead_bytes: int = 0,
        on_device: DeviceFrames | None = None,
    ) -> None:
        self._clips, self._indexes, self._on_device = clips, indexes, on_device
        self._waiters = _WAITERS if ahead_bytes and threads else 0
        self._limits = ClipLimits(threads, ahead_bytes) if self._waiters else NO_LIMITS
        self._columns = range(first_draw, first_draw + clips.drawn)
        self._samples: dict[tuple[int, int], _Sample] = {}  # by batch and number in it
        self._turn = threading.Lock()
        super().__init__(pipeline, threads + self._waiters)

    def resize(self, threads: int) -> None:
        self._limits.resize(threads)
        super().resize(threads + self._waiters)

    def _run_job(self, job: core.PythonJob) -> None:
        begin = time.perf_counter_ns()
        key = job.batch_id, job.sample // self._clips.frames
        with self._turn:
            sample = self._samples.get(key)
            decodes = sample is None
            if sample is None:
                sample = self._samples[key] = _Sample(self._clips.frames)
            elif sample.clip is None:
                sample.waiting.append(job)
                return
        if decodes:
            if self.threads > 1:  # the jobs of other samples may come while this thread decodes
                self._try_to_start_thread()
            try:
                clip = self._decode(job)
                with self._turn:
                    self.cost += clip.cost
                sample.clip = clip
                del clip  # another thread may finish the last frame
            except BaseException as error:
                if self.threads == 0 and not isinstance(error, Exception):  # an interrupt: the job will run again
                    del self._samples[key]
                    raise
                sample.clip = without_frames(error)
        try:
            self._finish(key, sample, job, begin)
        finally:
            if decodes:
                self._finish_waiting(key, sample)

    def _finish_waiting(self, key: tuple[int, int], sample: _Sample) -> None:
        """Ends the jobs that other threads have left to this one, each of which must end: the batch waits for it."""
        with self._turn:
            waiting, sample.waiting = sample.waiting, []
        for one in waiting:
            try:
                self._finish(key, sample, one, time.perf_counter_ns())
            except BaseException as error:
                self._fail(one, error, format_error(error))

    def _decode(self, job: core.PythonJob) -> Clip:
        draws = [job.draw(column) for column in self._columns]
        videos, number = find_sample(job.data)
        file, pipeline = videos.file(number), self._pipeline
        if not isinstance(file, str):
            file.open(lambda: pipeline.closed)
        choose = functools.partial(self._clips.choose, draws=draws, sample=number)
        return open_clip(file, choose, self._indexes, self._limits, self._on_device)

    def _finish(self, key: tuple[int, int], sample: _Sample, job: core.PythonJob, begin: int) -> None:
        """Ends the job of a frame; after the last one nothing refers to the sample's frames.

        Args:
            begin: when the work for it began, in nanoseconds.
        """
        self._deliver(sample.clip, job, begin)
        with self._turn:
            sample.left -= 1
            if sample.left == 0:
                sample.clip = None
                self._samples.pop(key, None)

    def _deliver(self, clip: Clip | BaseException | None, job: core.PythonJob, begin: int) -> None:
        assert clip is not None
        if isinstance(clip, BaseException):
            self._fail(job, clip, message_of(clip))
            return
        try:
            pixels = clip[job.sample % self._clips.frames]
        except Exception as error:
            self._fail(job, without_frames(error), message_of(error))
        else:
            height, width, _ = pixels.shape
            self._pipeline.finish(job, pixels, width, height, time.perf_counter_ns() - begin)

    def take_errors(self, batch_id: int) -> dict[int, BaseException]:
        with self._turn:  # frames of a cancelled batch may never come
            for key in [key for key in self._samples if key[0] == batch_id]:
                del self._samples[key]
        return super().take_errors(batch_id)
