"""Freed memory stays with the process once asked for, and goes back to the kernel before."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
from jocr.decoding.memory import keep_freed_memory
if "keep" in sys.argv:
    assert keep_freed_memory()
def faults():
    for _ in range(50):
        pieces = [bytearray(b"x") * (3 << 20) for _ in range(4)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
faults()
before = faults()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_used_again_without_page_faults() -> None:
    def faults(*words: str) -> int:
        done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert faults("keep") < 1000
    assert faults() > 10 * faults("keep") + 1000
