"""A database for each contestant: files, or databases of one server."""

from __future__ import annotations

import secrets
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from .databases import address
from .workers import Contestant

__all__ = ["places"]


@asynccontextmanager
async def places(
    backend: str, contestants: Sequence[Contestant], url: str | None
) -> AsyncGenerator[list[str]]:
    """Where each contestant stores: threadkeep gets its URL, a peer a path or the server's URL.

    Args:
        backend: Of the contestants.
        contestants: Who.
        url: A PostgreSQL server whose user may create databases; None starts one. Files are temporary.
    """
    if backend == "libsql":
        with tempfile.TemporaryDirectory(prefix="threadkeep-bench-") as folder:
            yield [_file(Path(folder), number, each) for number, each in enumerate(contestants)]
    else:
        async with address(url or backend) as server, _databases(server, contestants) as urls:
            yield urls


def _file(folder: Path, number: int, contestant: Contestant) -> str:
    path = folder / f"{number}.db"
    if not contestant.peer:
        return f"libsql://{path}?{contestant.options}".removesuffix("?")
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")  # a property of the file: some peers leave it as it is
    return str(path)


@asynccontextmanager
async def _databases(server: str, contestants: Sequence[Contestant]) -> AsyncGenerator[list[str]]:
    from psycopg import AsyncConnection, sql

    names = [f"threadkeep_bench_{secrets.token_hex(4)}_{number}" for number in range(len(contestants))]
    async with await AsyncConnection.connect(server, autocommit=True) as db:
        try:
            for name in names:
                await db.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            yield [_url(server, name, each) for name, each in zip(names, contestants, strict=True)]
        finally:
            for name in names:
                await db.execute(
                    sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
                )


def _url(server: str, name: str, contestant: Contestant) -> str:
    parts = urlsplit(server)
    query = "&".join(filter(None, (parts.query, contestant.options)))
    return urlunsplit(parts._replace(path=f"/{name}", query=query))
