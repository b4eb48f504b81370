"""Keep what a page's tensors or images freed, so that the next page's need no fresh pages from the kernel."""

from __future__ import annotations

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
KEPT = 512 << 20  # bytes at the end of the heap that may stay unused
LARGEST = 32 << 20  # bytes; larger pieces are always mapped anew; glibc takes no larger value


def keep_freed_memory(kept: int = KEPT) -> bool:
    """Ask malloc to hold on to up to ``kept`` bytes of freed memory, for the whole process. False where it is not
    glibc's.

    By default a view's activations, some MB each, go back to the kernel at every page and are zeroed when they return:
    an eighth of nano's time on a tiled page.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(TRIM_THRESHOLD, kept)) and bool(mallopt(MMAP_THRESHOLD, LARGEST))
