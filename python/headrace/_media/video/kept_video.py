"""What is known of a video: by this process, or by others that share their indexes with it."""

from __future__ import annotations

from collections.abc import Callable

from headrace._base import loggers
from headrace._media.video.index_encoding import decode_video, encode_video, name_index
from headrace._media.video.known_videos import KnownVideo, KnownVideos, key_of
from headrace._storage.parts.sample_bytes import SampleBytes
from headrace._storage.video_indexes.shared_indexes import SharedIndexes

LEARNED = "learned"  #: where the index of a video comes from, if it was not known, nor found where others keep theirs


class KeptVideo:
    """A place to look for one stream of a file, and to keep what is learned of it.

    Args:
        known: what this process knows.
        shared: of other processes; None: nothing.
        file: its bytes, open.
        stream_index: number of the stream; None: the best one.
        library: returns name and version of the one that describes the stream.

    Attributes:
        origin: where `find` has found the video, "memory" or "folder", or `LEARNED`; "": this process knew it.
    """

    def __init__(
        self,
        known: KnownVideos,
        shared: SharedIndexes | None,
        file: SampleBytes,
        stream_index: int | None,
        library: Callable[[], str],
    ) -> None:
        self._known, self._shared, self._file, self._stream_index = known, shared, file, stream_index
        self._library = library
        self.key = key_of(file, stream_index)
        self._name: str | None = None
        self.origin = ""

    def find(self) -> KnownVideo | None:
        """Returns what is known of the stream."""
        found = self._known.find(self.key)
        if found is not None or self._shared is None:
            return found
        # Before the file is read: a name that is made after it could be that of a file which was changed meanwhile.
        self._name = name_index(self._file, self._stream_index, self._library())
        for origin, data in [] if self._name is None else self._shared.find(self._name):
            try:
                found = decode_video(data, self._name or "", self._file.size)
            except ValueError as error:
                loggers.storage.info("the index of a video is learned again: the one in the %s: %s", origin, error)
                continue
            self._known.add(self.key, found)
            if origin == "folder":
                self._shared.add_to_memory(self._name or "", data)
            self.origin = origin
            break
        return found

    def add(self, video: KnownVideo) -> None:
        """Keeps what was learned of the stream, after `find` has found nothing."""
        self._known.add(self.key, video)
        self.origin = LEARNED
        if self._shared is not None and self._name is not None:
            data = encode_video(self._name, video)
            if data is not None:
                self._shared.add(self._name, data)
