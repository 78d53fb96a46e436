"""What the conformance kit may look at and break; nothing else imports it.

It sees the engine from outside the adapter: rows are counted where ``sqlite3`` makes them, statements where
the engine starts them, and work by the engine's own progress handler.
"""

# ruff: noqa: SLF001  (a probe looks behind its own adapter)
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from threadkeep import Store
from threadkeep.urls import StoreUrl

from ._driver import Connection
from .adapter import _OPTIONS, LibsqlAdapter, _path_of

__all__ = ["Observed", "Probe"]


class Observed:
    """What has passed between the adapter and the engine.

    Attributes:
        statements: Statements that were started, one for each row of an ``executemany``.
        rows: Rows that were fetched.
        volume: Characters of text in them.
        work: Steps of the engine's virtual machine, which grow with every row and index entry looked at.
    """

    def __init__(self) -> None:
        self.statements = 0
        self.rows = 0
        self.volume = 0
        self.work = 0

    def attach(self, raw: sqlite3.Connection) -> None:
        """Count what a connection does from now on."""
        raw.row_factory = self._note_row
        raw.set_trace_callback(self._note_statement)
        raw.set_progress_handler(self._note_step, 1)

    @staticmethod
    def detach(raw: sqlite3.Connection) -> None:
        """Count no more."""
        raw.row_factory = None
        raw.set_trace_callback(None)
        raw.set_progress_handler(None, 0)

    def _note_row(self, _: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        self.rows += 1
        self.volume += sum(len(value) for value in row if isinstance(value, str))
        return row

    def _note_statement(self, text: str) -> None:
        if not text.startswith("--"):  # a comment stands for a statement inside a trigger
            self.statements += 1

    def _note_step(self) -> int:
        self.work += 1
        return 0


class Probe:
    """The embedded backend's probe."""

    def fresh_url(self, url: str, name: str) -> str:
        """A file beside the one that is named, with the same options."""
        path, mark, options = url.partition("?")
        folder, slash, file = path.rpartition("/")
        scheme, colon, file = file.rpartition(":")  # as in libsql:relative.db
        return f"{folder}{slash}{scheme}{colon}{name}-{file}{mark}{options}"

    async def discard(self, url: str) -> None:
        """Remove the file and what the engine keeps beside it."""
        path = _path_of(StoreUrl.parse(url, known=_OPTIONS))
        for file in (path, *[path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal")]):
            file.unlink(missing_ok=True)

    async def versions(self, store: Store) -> Mapping[str, str]:
        """The engine is driver and server in one."""
        del store
        return {"driver": "sqlite3 of Python", "server": f"SQLite {sqlite3.sqlite_version}"}

    @contextmanager
    def spy(self, store: Store) -> Generator[Observed]:
        """Count what the store's connections do, those included that are opened meanwhile."""
        adapter, observed = _adapter_of(store), Observed()
        opened: list[sqlite3.Connection] = []
        original = adapter._connection

        def connection() -> Connection:
            found = original()
            raw = _raw_of(found)
            if raw not in opened:
                opened.append(raw)
                observed.attach(raw)
            return found

        adapter._connection = connection
        try:
            yield observed
        finally:
            adapter._connection = original
            for raw in opened:
                observed.detach(raw)

    async def corrupt_message(self, url: str, message_id: str) -> None:
        """Overwrite the content with text that is not JSON."""
        with _other_connection(url) as db:
            db.execute("UPDATE threadkeep_message SET content = '{not json' WHERE id = ?", (message_id,))

    async def set_schema_version(self, url: str, version: int) -> int:
        """Overwrite the last migration's number; returns what it was."""
        with _other_connection(url) as db:
            before: int = db.execute("SELECT max(version) FROM threadkeep_migration").fetchone()[0]
            db.execute("UPDATE threadkeep_migration SET version = ? WHERE version = ?", (version, before))
        return before

    @asynccontextmanager
    async def read_only(self, url: str, store: Store) -> AsyncGenerator[None]:
        """Let the engine refuse writes, with the error code of a file that may not be written."""
        del url
        for raw in _writers_of(store):
            raw.execute("PRAGMA query_only = ON")
        try:
            yield
        finally:
            for raw in _writers_of(store):
                raw.execute("PRAGMA query_only = OFF")

    @asynccontextmanager
    async def full_disk(self, url: str, store: Store) -> AsyncGenerator[None]:
        """Let the file not grow beyond its size, with the error code of a full disk."""
        del url
        limits = [(raw, raw.execute("PRAGMA max_page_count").fetchone()[0]) for raw in _writers_of(store)]
        for raw, _ in limits:
            raw.execute("PRAGMA max_page_count = 1")  # which the engine takes for the present size
        try:
            yield
        finally:
            for raw, limit in limits:
                raw.execute(f"PRAGMA max_page_count = {limit}")


def _adapter_of(store: Store) -> LibsqlAdapter:
    adapter = store._adapter
    if not isinstance(adapter, LibsqlAdapter):
        raise TypeError(f"the probe knows only its own adapter, not {adapter.name}")
    return adapter


def _raw_of(connection: Connection) -> sqlite3.Connection:
    return connection._raw


def _writers_of(store: Store) -> list[sqlite3.Connection]:
    return [_raw_of(connection) for connection in _adapter_of(store)._connections]


@contextmanager
def _other_connection(url: str) -> Generator[sqlite3.Connection]:
    """A connection of our own, committed at the end."""
    db = sqlite3.connect(_path_of(StoreUrl.parse(url, known=_OPTIONS)))
    try:
        with db:
            yield db
    finally:
        db.close()
