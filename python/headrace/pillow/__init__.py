"""Pillow's images whose pixels are made natively, when they are needed, and only those of the crop.

``open`` returns what ``PIL.Image.open`` returns. Of a JPEG the header has been read; ``convert``, ``crop``,
``resize``, ``transpose`` and ``copy`` are recorded by Pillow's own methods; the first access to pixels decodes the crop
and resizes it with headrace's kernels, whose bytes equal Pillow's. PNGs and WebPs are decoded whole when they are
loaded. All other files, modes and methods are Pillow's.

Decisions: 0017, 0049, 0050, 0090, 0096.
"""

from headrace.pillow.open_patch import deferred, install, open, uninstall

__all__ = ["deferred", "install", "open", "uninstall"]
