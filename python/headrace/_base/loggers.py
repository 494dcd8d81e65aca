"""The package's loggers: children of ``headrace`` by purpose, silent until the program gives them a handler.

Decision: 0084.
"""

from __future__ import annotations

import logging

logging.getLogger("headrace").addHandler(logging.NullHandler())  # without a handler Python would print WARNING records

#: Requests made again, caches, indexes that are kept beside data.
storage = logging.getLogger("headrace.storage")

#: Who delivers an epoch, and why.
loading = logging.getLogger("headrace.loading")

#: What ``num_workers="auto"`` tries, keeps and takes back.
tuning = logging.getLogger("headrace.tuning")

#: How batches get to a GPU, and what decodes for it.
device = logging.getLogger("headrace.device")
