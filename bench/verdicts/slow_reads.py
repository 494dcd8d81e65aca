"""Makes read() and pread() of files take longer, in this process and the ones forked from it: a library that is loaded
ahead of the C library."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
static volatile long delay_us;
void set_read_delay(long us) { delay_us = us; }
static void hold(int fd) {
  struct stat about;
  if (delay_us == 0 || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return;
  struct timespec time = {delay_us / 1000000, delay_us % 1000000 * 1000};
  nanosleep(&time, 0);
}
ssize_t read(int fd, void* to, size_t size) {
  static ssize_t (*real)(int, void*, size_t);
  if (!real) real = (ssize_t(*)(int, void*, size_t))dlsym(RTLD_NEXT, "read");
  if (size > 0) hold(fd);
  return real(fd, to, size);
}
"""


def library() -> Path:
    """Returns the path of the library, compiled once a user."""
    path = Path(tempfile.gettempdir()) / f"headrace-slow-reads-{os.getuid()}.so"
    if not path.exists():
        source = path.with_suffix(".c")
        source.write_text(_SOURCE)
        made = path.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl"], check=True)
        made.rename(path)
    return path


def set_delay(seconds: float) -> None:
    """Sets the time that each read of a file takes at least. The process must have been started with the library in
    LD_PRELOAD."""
    ctypes.CDLL(None).set_read_delay(ctypes.c_long(round(1e6 * seconds)))
