"""torchcodec's decoders, and what to install where they, or PyAV, cannot be imported."""

from __future__ import annotations

import functools
from io import RawIOBase
from typing import Any

from headrace._base.errors import HeadraceError
from headrace._base.messages import install_command
from headrace._base.safe_exceptions import message_of


class NoTorchcodec(HeadraceError, ImportError):
    """torchcodec, which decodes the file, cannot be imported."""


def install_for_video() -> str:
    """Returns the command that installs what videos need, for messages."""
    return install_command("video", "torchcodec>=0.13", "av>=14")


def install_for_audio() -> str:
    """Returns the command that installs what audio needs, for messages."""
    return install_command("audio", "torchcodec>=0.13", "soundfile>=0.13")


@functools.cache
def _decoder_class(name: str) -> Any:
    try:
        from torchcodec import decoders
    except (ImportError, RuntimeError, OSError) as error:  # without FFmpeg's libraries it raises RuntimeError
        why = message_of(error).partition("\n")[0]
        how = install_for_video() if name == "VideoDecoder" else install_for_audio()
        raise NoTorchcodec(
            f"torchcodec decodes this file, and cannot be imported: {why}; it needs FFmpeg's libraries, and {how}"
        ) from error
    return getattr(decoders, name)


def check_decoder(name: str) -> None:
    """Raises NoTorchcodec if a decoder of torchcodec's cannot be imported."""
    _decoder_class(name)


def open_decoder(name: str, source: str | bytes | RawIOBase, **options: Any) -> Any:
    """Returns a new decoder of torchcodec's.

    Args:
        name: "VideoDecoder" or "AudioDecoder".
        source: a path, the bytes of a file, or a file object.
        options: its other arguments.

    Raises:
        NoTorchcodec: torchcodec cannot be imported.
        Exception: what torchcodec raises.
    """
    return _decoder_class(name)(source, **options)
