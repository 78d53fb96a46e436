"""The one module that touches the embedded engine: the standard library's ``sqlite3``.

The ``libsql`` package (0.1.11) reads and writes the same file format and was measured first. It cannot be
made safe for an event loop: it holds the interpreter lock for a whole call, so that a query of one second
stops every task and every thread for 0.99 s (``sqlite3``: 13 ms). It binds integers beyond 32 bits as floats,
so that times would have to be written into the statement's text; it keeps no prepared statements (a join of
400 characters: 36 us against 4.3); its ``executescript`` swallows errors.
``python -m threadkeep_bench.engines`` measures all of this again.

Every method raises only :class:`DriverError` and its subclasses.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

__all__ = [
    "Busy",
    "CannotOpen",
    "Closed",
    "Connection",
    "Constraint",
    "Corrupt",
    "DriverError",
    "Full",
    "IoFailed",
    "NotADatabase",
    "ReadOnly",
    "TooBig",
    "Value",
]

Value = str | int | None
"""What is bound. Floats never are: numbers are stored inside JSON text, exactly."""

Result = TypeVar("Result")

_FIRST_WAIT_S = 0.0002  # about one commit
_LONGEST_WAIT_S = 0.02


class DriverError(Exception):
    """Anything that went wrong in the engine; the base of all errors of this module."""


class Busy(DriverError):
    """Another writer held the lock for the whole busy timeout. Nothing was written."""


class Constraint(DriverError):
    """A unique or not-null rule of the schema was broken."""


class Full(DriverError):
    """The disk is full. Nothing was written."""


class ReadOnly(DriverError):
    """The file cannot be written."""


class CannotOpen(DriverError):
    """The file, or one beside it, cannot be opened or created."""


class IoFailed(DriverError):
    """The disk failed. Raised by a commit, the transaction may have been applied."""


class Corrupt(DriverError):
    """The file is damaged."""


class NotADatabase(Corrupt):
    """The file is something else."""


class TooBig(DriverError):
    """A value is larger than the engine takes."""


class Closed(DriverError):
    """The connection was closed."""


_BY_CODE: dict[int, type[DriverError]] = {
    sqlite3.SQLITE_BUSY: Busy,
    sqlite3.SQLITE_LOCKED: Busy,
    sqlite3.SQLITE_CONSTRAINT: Constraint,
    sqlite3.SQLITE_FULL: Full,
    sqlite3.SQLITE_READONLY: ReadOnly,
    sqlite3.SQLITE_PERM: ReadOnly,
    sqlite3.SQLITE_AUTH: ReadOnly,
    sqlite3.SQLITE_CANTOPEN: CannotOpen,
    sqlite3.SQLITE_IOERR: IoFailed,
    sqlite3.SQLITE_PROTOCOL: IoFailed,
    sqlite3.SQLITE_CORRUPT: Corrupt,
    sqlite3.SQLITE_NOTADB: NotADatabase,
    sqlite3.SQLITE_TOOBIG: TooBig,
}


_RAISED = (sqlite3.Error, OverflowError, UnicodeDecodeError)
"""What a statement may raise; the last where the engine's own message quotes a damaged name."""


def _translated(exc: sqlite3.Error | OverflowError | UnicodeDecodeError) -> DriverError:
    # Python's own errors have no code, and most of them no class of their own.
    code, text = getattr(exc, "sqlite_errorcode", None), str(exc)
    if isinstance(exc, sqlite3.ProgrammingError) and "closed database" in text:
        return Closed(text)
    if isinstance(exc, sqlite3.DataError) or (isinstance(exc, OverflowError) and "INT_MAX" in text):
        return TooBig(text)
    if isinstance(exc, UnicodeDecodeError) or text.startswith("Could not decode to UTF-8"):
        return Corrupt("a stored text is not UTF-8")
    if text == "malformed JSON":
        return Corrupt("a stored text is not JSON")
    return _BY_CODE.get(code & 0xFF if code is not None else -1, DriverError)(text)


class Connection:
    """One connection, used by one thread at a time. Autocommit; transactions are explicit.

    Args:
        path: A file; it is created if missing, its folder is not.
        durability: With ``full`` a write that returned survives a power loss, with ``relaxed`` only a crash
            of the process; the file stays whole in both.
        busy_timeout_s: How long to wait for another writer before ``Busy``.

    Attributes:
        is_abandoned: Whether nobody waits for the call any more: then neither does it wait for a lock.

    Raises:
        CannotOpen: There is no such folder, or it cannot be written.
        NotADatabase: The file is something else.
        Busy: The file stayed locked.
    """

    def __init__(self, path: str, *, durability: Literal["full", "relaxed"], busy_timeout_s: float) -> None:
        self._busy_timeout_s = busy_timeout_s
        self.is_abandoned: Callable[[], bool] = lambda: False
        try:
            # The engine's own wait is off: it grows to 100 ms a turn, which starves some of many writers.
            self._raw = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=256
            )
        except sqlite3.Error as exc:
            raise _translated(exc) from exc
        try:
            self._configure("FULL" if durability == "full" else "NORMAL")
        except BaseException:
            self.close()
            raise

    def _configure(self, synchronous: str) -> None:
        self.query(f"PRAGMA synchronous = {synchronous}")
        self.query("PRAGMA cache_size = -16000")  # 16 MB; a busy thread's hot pages
        self.query("PRAGMA journal_size_limit = 67108864")

    def use_write_ahead_log(self) -> None:
        """Let reads and a write run side by side. It is a property of the file: once is enough.

        Raises:
            CannotOpen: The file system cannot hold one.
        """
        # Processes that switch a new file at once find it locked, as writers do: hence the retry.
        self._patiently(self._switch_to_wal)

    def _switch_to_wal(self) -> None:
        if self._call("PRAGMA journal_mode", ()) == [("wal",)]:
            return  # without taking a lock
        if self._call("PRAGMA journal_mode = WAL", ()) != [("wal",)]:
            raise CannotOpen("the file system cannot hold a write-ahead log")

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        try:  # as _patiently, without one more function where nothing is in the way
            return self._call(sql, parameters)
        except Busy:
            # Even inside a snapshot: its first read, while another process recovers the log after a crash.
            return self._again(lambda: self._call(sql, parameters))

    def run(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """How many rows a statement inserted, updated or deleted. Inside a transaction only."""
        try:
            return self._raw.execute(sql, parameters).rowcount
        except _RAISED as exc:
            raise _translated(exc) from exc

    def run_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Run a statement once for each row. Inside a transaction only."""
        try:
            self._raw.executemany(sql, rows)
        except _RAISED as exc:
            raise _translated(exc) from exc

    def script(self, sql: str) -> None:
        """Run several statements without parameters. Inside a transaction only."""
        for statement in _statements(sql):
            self.run(statement)

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Hold the write lock; commit at the end, or roll back when anything at all is raised.

        Raises:
            Busy: The lock was not free in time. Nothing was written.
            IoFailed: From the commit: the writes may be in place.
        """
        # A deferred BEGIN can find its snapshot outdated at the first write, when no retry helps.
        self._patiently(lambda: self._call("BEGIN IMMEDIATE", ()))
        try:
            yield
            self._call("COMMIT", ())
        except BaseException:
            self._end()
            raise

    @contextmanager
    def snapshot(self) -> Generator[None]:
        """Let all queries inside see one state of the database."""
        self._patiently(lambda: self._call("BEGIN", ()))
        try:
            yield
        finally:
            self._end()

    def _end(self) -> None:
        try:
            unfinished = self._raw.in_transaction
        except sqlite3.Error as exc:
            raise _translated(exc) from exc
        if unfinished:
            self._call("ROLLBACK", ())

    def close(self) -> None:
        """Close; idempotent. An open transaction is rolled back."""
        self._raw.close()

    def _call(self, sql: str, parameters: Sequence[Value]) -> list[tuple[Any, ...]]:
        try:
            return self._raw.execute(sql, parameters).fetchall()
        except _RAISED as exc:
            raise _translated(exc) from exc

    def _patiently(self, call: Callable[[], Result]) -> Result:
        """Repeat while busy."""
        try:
            return call()
        except Busy:
            return self._again(call)

    def _again(self, call: Callable[[], Result]) -> Result:
        """Repeat what was busy, after growing, jittered waits so that no writer is starved."""
        deadline = time.monotonic() + self._busy_timeout_s
        wait_s = _FIRST_WAIT_S
        while True:
            time.sleep(wait_s * random.uniform(0.5, 1.5))
            if self.is_abandoned():
                raise Busy("nobody waits for the answer any more")
            try:
                return call()
            except Busy:
                if time.monotonic() >= deadline:
                    raise
            wait_s = min(wait_s * 1.5, _LONGEST_WAIT_S)


def _statements(sql: str) -> Generator[str]:
    """Cut a script at the semicolons that end a statement."""
    statement = ""
    for piece in sql.split(";"):
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip("; \n"):
        yield statement
