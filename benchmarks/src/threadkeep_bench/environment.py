"""What a result was measured on, so that two results are compared only where that makes sense."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from importlib.metadata import distributions

import msgspec

__all__ = ["Environment", "environment"]

_RELEVANT = ("threadkeep", "libsql", "msgspec", "psycopg", "pymongo", "chromadb", "uuid-utils")


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """A machine and what runs on it.

    Attributes:
        python: The interpreter's version and implementation.
        system: The operating system and its release.
        machine: The processor's architecture.
        cpus: How many processors this process may use.
        load: How many processes wanted to run in the last minute; None where the system does not tell.
        versions: Of the distributions that matter and of SQLite, by name.
    """

    python: str
    system: str
    machine: str
    cpus: int
    load: float | None
    versions: dict[str, str]


def environment() -> Environment:
    """Of this process, now."""
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    found = {str(found.metadata["Name"]): found.version for found in distributions()}
    return Environment(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        cpus=usable,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        versions={"sqlite": sqlite3.sqlite_version}
        | {name: found[name] for name in sorted(found) if name.startswith(_RELEVANT)},
    )
