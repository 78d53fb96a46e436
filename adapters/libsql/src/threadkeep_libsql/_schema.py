"""The schema: numbered migrations, recorded in the database, and the choice of indexed metadata keys."""

from __future__ import annotations

import re
import time
from importlib.resources import files

from threadkeep.errors import SchemaVersionError
from threadkeep.tokens import TOKEN_VERSION

from ._driver import Connection
from ._queries import sql

__all__ = [
    "SCHEMA_VERSION",
    "choose_indexed_keys",
    "forget_statistics",
    "indexed_keys",
    "migrate",
    "migrations",
    "require_current",
    "version",
]


def migrations() -> dict[int, str]:
    """Each migration's script, by the version it makes."""
    folder = files("threadkeep_libsql").joinpath("sql/migrations")
    return {
        int(match[1]): file.read_text("utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if (match := re.fullmatch(r"(\d{4})_\w+\.sql", file.name))
    }


SCHEMA_VERSION = max(migrations())
"""The schema this code works with."""


def version(db: Connection) -> int:
    """The schema's version; 0 for a file without one."""
    if not db.query("SELECT 1 FROM sqlite_master WHERE name = 'threadkeep_migration'"):
        return 0
    return db.query("SELECT coalesce(max(version), 0) FROM threadkeep_migration")[0][0]


def require_current(found: int) -> None:
    """Refuse a schema that this code does not work with.

    Raises:
        SchemaVersionError: It is newer, or outdated.
    """
    if found > SCHEMA_VERSION:
        raise SchemaVersionError(found, SCHEMA_VERSION, "upgrade threadkeep-libsql")
    if found < SCHEMA_VERSION:
        raise SchemaVersionError(
            found, SCHEMA_VERSION, "run 'threadkeep migrate URL', or open it with migrate=True"
        )


def migrate(db: Connection) -> None:
    """Bring the schema up to date; one process does it, the others wait and find it done.

    Raises:
        SchemaVersionError: The schema is newer than this code. Nothing was changed.
    """
    if version(db) == SCHEMA_VERSION:
        return
    with db.transaction():
        found = version(db)
        if found > SCHEMA_VERSION:
            require_current(found)
        for number, script in migrations().items():
            if number > found:
                db.script(script)
                now = time.time_ns() // 1000
                db.run("INSERT INTO threadkeep_migration VALUES (?, ?, ?)", (number, TOKEN_VERSION, now))


def forget_statistics(db: Connection) -> None:
    """Remove what ``ANALYZE`` left about these tables; other tables keep theirs.

    Every statement is written for one plan, which the engine chooses without statistics. With those of a file
    that was small then, or of many small threads, it prefers scans: replacing one message of 50,000 took it
    3,500,000 steps instead of 1,000.
    """
    if not db.query("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1'"):
        return
    if db.query("SELECT 1 FROM sqlite_stat1 WHERE tbl GLOB 'threadkeep_*' LIMIT 1"):
        with db.transaction():
            db.run("DELETE FROM sqlite_stat1 WHERE tbl GLOB 'threadkeep_*'")
        db.query("ANALYZE sqlite_master")  # which only loads what is left


def indexed_keys(db: Connection) -> frozenset[str]:
    """The metadata keys that are indexed; ``*`` is all of them."""
    return frozenset([row[0] for row in db.query(sql("indexed_keys"))])


def choose_indexed_keys(db: Connection, wanted: frozenset[str]) -> None:
    """Index these keys and no others, rebuilding the index if that is a change."""
    with db.transaction():
        if indexed_keys(db) == wanted:
            return  # another process that opened the file at the same time has done it
        db.run("DELETE FROM threadkeep_indexed_key")
        db.run_many("INSERT INTO threadkeep_indexed_key VALUES (?)", [(key,) for key in sorted(wanted)])
        db.run(sql("drop_token_positions"))
        db.run(sql("index_tokens"))
        db.run(sql("drop_thread_positions"))
        db.run(sql("index_thread"), (0, 2**63 - 1))
