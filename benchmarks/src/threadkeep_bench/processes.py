"""Commands in processes of their own: how long they take, and how much memory at most."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from time import perf_counter

import msgspec

__all__ = ["Finished", "run_module"]


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """What a process took.

    Attributes:
        seconds: From its start to its end, the interpreter's start included.
        peak_bytes: The most memory it held at once; None on Windows. Linux counts from before the program is
            exchanged, so it is never less than what this process held when it started the other.
    """

    seconds: float
    peak_bytes: int | None


def run_module(module: str, *arguments: str) -> Finished:
    """Run ``python -m MODULE ARGUMENT...`` to its end.

    Raises:
        RuntimeError: It failed; the message is what it printed.
    """
    command = [sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryFile() as output:
        start = perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        peak = None
        if sys.platform == "win32":
            process.wait()
        else:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        seconds = perf_counter() - start
        if process.returncode:
            output.seek(0)
            raise RuntimeError(f"{module} {arguments[0]} failed: {output.read().decode(errors='replace')}")
    return Finished(seconds=seconds, peak_bytes=peak)
