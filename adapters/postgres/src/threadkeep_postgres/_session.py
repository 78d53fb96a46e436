"""What a call does with the connection it was lent: statements, and transactions in two round trips."""

from __future__ import annotations

from typing import Any, NamedTuple

from psycopg import AsyncConnection, AsyncCursor

from ._pool import Lent
from ._queries import Statement

__all__ = ["LostRaceError", "Result", "Row", "Session"]

Row = tuple[Any, ...]

_BEGIN = Statement(b"BEGIN ISOLATION LEVEL READ COMMITTED")
_SNAPSHOT = Statement(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_COMMIT = Statement(b"COMMIT")


class LostRaceError(Exception):
    """Another transaction got in between: to be tried again from the start. Nothing was written."""


class Result(NamedTuple):
    """The rows of a statement, and how many it returned or changed."""

    rows: list[Row]
    affected: int


class Session:
    """One call's use of a connection.

    Attributes:
        writing: Whether something was sent that may have been committed.
        reused: Whether the connection had been idle in the pool.
    """

    def __init__(self, lent: Lent) -> None:
        self._connection: AsyncConnection[Any] = lent.connection
        self._cursor = lent.cursor
        self.reused = lent.reused
        self.writing = False

    async def read(self, statement: Statement) -> list[Row]:
        """The rows of a single statement, in no transaction but its own."""
        return (await self._one(statement)).rows

    async def write(self, statement: Statement) -> Result:
        """Run a single statement that writes, in no transaction but its own."""
        self.writing = True
        return await self._one(statement)

    async def read_snapshot(self, *statements: Statement) -> list[list[Row]]:
        """The rows of several statements that see one state of the database, in one round trip."""
        if len(statements) == 1:
            return [await self.read(statements[0])]
        results = await self._batch(_SNAPSHOT, *statements, _COMMIT)
        return [result.rows for result in results[1:-1]]

    async def begin(self, *statements: Statement) -> list[list[Row]]:
        """Begin a transaction with these statements, in one round trip; each sees all committed before it."""
        return [result.rows for result in (await self._batch(_BEGIN, *statements))[1:]]

    async def go_on(self, *statements: Statement) -> list[Result]:
        """Run more statements of a transaction, in one round trip."""
        return await self._batch(*statements)

    async def commit(self, *statements: Statement) -> list[Result]:
        """End a transaction with these statements, in one round trip."""
        self.writing = True
        return (await self._batch(*statements, _COMMIT))[:-1]

    async def abandon(self) -> None:
        """Undo a transaction."""
        await self._connection.rollback()

    async def _one(self, statement: Statement) -> Result:
        await self._cursor.execute(statement.sql, statement.parameters or None)
        return await _result(self._cursor)

    async def _batch(self, *statements: Statement) -> list[Result]:
        cursors: list[AsyncCursor[Any]] = []
        async with self._connection.pipeline():
            for statement in statements:
                cursor = self._connection.cursor(binary=True)
                await cursor.execute(statement.sql, statement.parameters or None)
                cursors.append(cursor)
        return [await _result(cursor) for cursor in cursors]


async def _result(cursor: AsyncCursor[Any]) -> Result:
    raw = cursor.pgresult  # cursor.description would make an object a column, 50 us in all
    return Result(await cursor.fetchall() if raw is not None and raw.nfields else [], cursor.rowcount)
