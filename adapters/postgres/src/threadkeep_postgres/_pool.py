"""A bounded pool of connections.

Not ``psycopg_pool``: that opens connections in tasks of its own, so that while a server is down every call
waits for the pool's timeout, and after it is back for a retry interval of up to minutes. Here a call opens
its connection itself: it gets the server's own error at once, and the first call after a restart succeeds.
What else a pool does for this adapter is little: it lends the most recently used connection, after a look at
its socket that costs no round trip, and lets surplus ones go.
"""

from __future__ import annotations

import asyncio
import select
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.pq import ConnStatus, PipelineStatus, TransactionStatus

from threadkeep.errors import UnavailableError

__all__ = ["Lent", "Pool"]

_IDLE_S = 300.0
"""How long a connection beyond ``least`` may be unused."""

Connection = AsyncConnection[Any]


class Lent:
    """A connection on loan.

    Attributes:
        connection: It.
        cursor: For one statement after the other: to make a new one takes 15 us.
        reused: Whether it had been idle in the pool, so that it may have died there unnoticed.
        idle_since: When it came back to the pool, on the monotonic clock.
    """

    __slots__ = ("connection", "cursor", "idle_since", "reused")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.cursor = connection.cursor(binary=True)
        self.reused = False
        self.idle_since = 0.0


class _Loan:
    """The context manager of :meth:`Pool.lend`; one made of a generator takes 10 us more."""

    __slots__ = ("_lent", "_pool")

    _lent: Lent

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def __aenter__(self) -> Lent:
        self._lent = await self._pool.take()
        return self._lent

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self._pool.give_back(self._lent, kind)


class Pool:
    """Connections, made when needed.

    Args:
        connect: Opens one.
        least: How many idle ones are kept, whatever their age.
        most: How many there are at most.
        timeout_s: How long to wait for one.

    Attributes:
        cursor_factory: The class of the cursors of what is lent; a probe puts its own there.
        on_lend: Called with each connection before it is lent, where a probe wants that.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[Connection]], *, least: int, most: int, timeout_s: float
    ) -> None:
        self._connect = connect
        self._least, self._most, self._timeout_s = least, most, timeout_s
        self.cursor_factory: type[AsyncRawCursor[Any]] = AsyncRawCursor
        self.on_lend: Callable[[Connection], Awaitable[None]] | None = None
        self._free = asyncio.Semaphore(most)
        self._idle: deque[Lent] = deque()  # the most recently used is last

    def lend(self) -> AbstractAsyncContextManager[Lent]:
        """Lend a connection that looks alive; take it back, rolled back where need be, or close it.

        Raises:
            UnavailableError: None became free within the timeout.
            psycopg.Error: A new one could not be opened.
        """
        return _Loan(self)

    async def take(self) -> Lent:
        """Take a connection, as :meth:`lend` does; it must be given back."""
        if self._free.locked():
            await self._wait()
        else:
            await self._free.acquire()
        try:
            lent = await self._living()
            if type(lent.cursor) is not self.cursor_factory:
                lent.connection.cursor_factory = self.cursor_factory
                lent.cursor = lent.connection.cursor(binary=True)
            if self.on_lend is not None:
                try:
                    await self.on_lend(lent.connection)
                except BaseException:
                    await lent.connection.close()
                    raise
        except BaseException:
            self._free.release()
            raise
        return lent

    async def give_back(self, lent: Lent, error: type[BaseException] | None) -> None:
        """Take a connection back, after its use or what ended it."""
        connection = lent.connection
        try:
            if error is not None and not _is_ready(connection):
                if issubclass(error, Exception):
                    await _roll_back(connection)
                else:  # cancelled: what the server is doing is not waited for
                    await connection.close()
            if not _is_ready(connection):
                await connection.close()
                return
            lent.reused, lent.idle_since = True, time.monotonic()
            self._idle.append(lent)
            while len(self._idle) > self._least and self._idle[0].idle_since < lent.idle_since - _IDLE_S:
                await self._idle.popleft().connection.close()
        except BaseException:  # cancelled once more
            await connection.close()
            raise
        finally:
            self._free.release()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._free.acquire()
        except TimeoutError as exc:
            reason = f"all {self._most} connections stayed busy for {self._timeout_s:g} s"
            raise UnavailableError(f"{reason}; raise pool_max or pool_timeout_s in the URL") from exc

    async def _living(self) -> Lent:
        while self._idle:
            lent = self._idle.pop()
            if await _is_alive(lent.connection):
                return lent
            await lent.connection.close()
        return Lent(await self._connect())

    async def drop_idle(self) -> None:
        """Close what is idle: one connection turned out dead, so the others may be."""
        while self._idle:
            await self._idle.pop().connection.close()

    async def close(self) -> None:
        """Wait until all are back, then close them."""
        for _ in range(self._most):
            await self._free.acquire()
        await self.drop_idle()


async def _roll_back(connection: Connection) -> None:
    """End the transaction that an error left open."""
    try:
        await connection.rollback()
    except psycopg.Error:
        await connection.close()


def _is_ready(connection: Connection) -> bool:
    """Whether a connection is open and outside of any transaction and pipeline."""
    raw = connection.pgconn
    return (
        raw.status == ConnStatus.OK
        and raw.transaction_status == TransactionStatus.IDLE
        and raw.pipeline_status == PipelineStatus.OFF
    )


async def _is_alive(connection: Connection) -> bool:
    """Whether an idle connection still is one, by what has arrived on its socket; mostly nothing, in 3 us."""
    raw = connection.pgconn
    try:
        if not _has_arrived(raw.socket):
            return True
        raw.consume_input()  # a notice, or the server's farewell
        await connection.execute(b"SELECT 1")
    except (psycopg.Error, OSError, ValueError):
        return False
    return _is_ready(connection)


if hasattr(select, "poll"):

    def _has_arrived(socket: int) -> bool:
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return bool(poll.poll(0))
else:  # Windows, whose select has no limit on the number of a socket

    def _has_arrived(socket: int) -> bool:
        return bool(select.select([socket], [], [], 0)[0])
