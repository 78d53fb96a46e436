"""What an adapter may offer the kit besides itself, to look behind its own words and to break its database.

``AdapterSpec.probe`` is an import string, ``package.module:name``, of one object (or a class, which is called
without arguments). The object has whichever of the protocols below its database allows: the kit asks with
``isinstance``; what is not offered is neither used nor held against the adapter. Nothing has to be imported
from the kit.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from importlib import import_module
from typing import Protocol, runtime_checkable

from threadkeep import AdapterSpec, Store

__all__ = [
    "Databases",
    "FullDisk",
    "Observed",
    "OneProcess",
    "Raw",
    "ReadOnly",
    "Server",
    "Spy",
    "Versions",
    "load_probe",
]


@runtime_checkable
class Databases(Protocol):
    """Fresh, empty databases beside the one a URL names, so that a URL needs no ``{namespace}``."""

    def fresh_url(self, url: str, name: str) -> str:
        """The URL of an empty database, schema or prefix.

        Args:
            url: What the user gave.
            name: Unique; 1 to 20 lower-case ASCII letters and digits, starting with a letter.
        """
        ...

    async def discard(self, url: str) -> None:
        """Remove all that a URL with a fresh name (made here or by a placeholder) left behind."""
        ...


@runtime_checkable
class Versions(Protocol):
    """Versions for the report."""

    async def versions(self, store: Store) -> Mapping[str, str]:
        """``driver`` and ``server``, each with its name and version, such as ``psycopg 3.3.9``."""
        ...


class Observed(Protocol):
    """What a spy has counted so far.

    Attributes:
        statements: Statements or commands that were sent.
        rows: Rows or documents that crossed the driver towards the adapter.
        volume: Characters or bytes of text in those rows; None where that cannot be told.
        work: The database's own count of its work, in any unit that grows with rows looked at (SQLite's
            progress steps, buffers of ``EXPLAIN ANALYZE``, ``docsExamined + keysExamined``); None where
            it has none.
    """

    statements: int
    rows: int
    volume: int | None
    work: int | None


@runtime_checkable
class Spy(Protocol):
    """A view of the driver's boundary: what was really sent, and what really came back."""

    def spy(self, store: Store) -> AbstractContextManager[Observed]:
        """Count everything that the store's adapter does through its driver inside the ``with`` block."""
        ...


@runtime_checkable
class Raw(Protocol):
    """Writing to the database past the adapter."""

    async def corrupt_message(self, url: str, message_id: str) -> None:
        """Overwrite the stored content of a message with bytes that are not JSON."""
        ...

    async def set_schema_version(self, url: str, version: int) -> int:
        """Overwrite the version that the schema records; returns what it was."""
        ...


@runtime_checkable
class Server(Protocol):
    """Power over the server; each method returns when the state is reached."""

    def private_server(self) -> AbstractAsyncContextManager[str]:
        """Start a server of our own, with durable storage, and give its URL; remove it at the end."""
        ...

    async def kill(self, url: str) -> None:
        """Kill the server as a power cut would."""
        ...

    async def start(self, url: str) -> None:
        """Start it again on the same data and address."""
        ...

    async def cut_connections(self, url: str) -> None:
        """Cut every open connection from the server's side; the server goes on."""
        ...


@runtime_checkable
class ReadOnly(Protocol):
    """A database that takes no writes for a while."""

    def read_only(self, url: str, store: Store) -> AbstractAsyncContextManager[None]:
        """Make every write through the store fail inside the ``async with`` block, as on a standby."""
        ...


@runtime_checkable
class FullDisk(Protocol):
    """A disk that fills up."""

    def full_disk(self, url: str, store: Store) -> AbstractAsyncContextManager[None]:
        """Make every write through the store that needs space fail inside the ``async with`` block."""
        ...


@runtime_checkable
class OneProcess(Protocol):
    """A database that other processes cannot open, such as one in memory: races then run inside this process.

    Attributes:
        one_process: True where that is so.
    """

    one_process: bool


def load_probe(spec: AdapterSpec) -> object:
    """The adapter's probe; an object that offers nothing where it names none.

    Raises:
        ImportError: The import string names nothing.
    """
    if spec.probe is None:
        return object()
    module, _, name = spec.probe.partition(":")
    try:
        found = getattr(import_module(module), name)
    except AttributeError as exc:
        raise ImportError(f"the probe {spec.probe!r} of adapter {spec.name!r} does not exist") from exc
    return found() if inspect.isclass(found) else found
