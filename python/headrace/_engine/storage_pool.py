"""Pool of torch storages for batches made in the caller's thread; a storage is reused once nothing else refers to it.

Touching fresh memory costs as much as a quarter of the work. Slots of the pipeline's pool are reused as well, but a
tensor over a slot cannot be resized, while the tensors that torch makes in its main process can.
"""

from __future__ import annotations

import sys
import threading

import torch


class StoragePool:
    """Hands out storages; thread-safe.

    Args:
        kept: number of storages that are kept for reuse.
    """

    def __init__(self, kept: int) -> None:
        self._kept = max(1, kept)
        self._lock = threading.Lock()
        self._storages: list[torch.UntypedStorage] = []

    def take(self, nbytes: int) -> torch.UntypedStorage:
        """Returns a storage that nothing else refers to; its bytes are undefined."""
        with self._lock:
            for number in reversed(range(len(self._storages))):
                if self._is_free(number):
                    storage = self._storages.pop(number)
                    if storage.nbytes() == nbytes and storage.resizable() and not storage.is_shared():
                        break
            else:
                storage = torch.UntypedStorage(nbytes, device="cpu")  # type: ignore[no-untyped-call]
            self._storages = [*self._storages, storage][-self._kept :]
            return storage

    def take_like(self, like: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of the shape, type and strides of one without memory, in such a storage."""
        memory = torch.empty(0, dtype=like.dtype, device="cpu")
        return memory.set_(self.take(like.nbytes), 0, like.shape, like.stride())

    def _is_free(self, number: int) -> bool:
        # torch counts the references of tensors. The Python object has two references: this list and the argument of
        # getrefcount.
        if sys.getrefcount(self._storages[number]) > 2:
            return False
        return int(torch._C._storage_Use_Count(self._storages[number]._cdata)) == 1
