"""What the position tables and the counters must hold, computed anew from messages and threads.

It reads the file with its own connection and takes nothing from the adapter but the tokens stored beside the
metadata, and checks these against core's too.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from threadkeep.tokens import metadata_tokens

__all__ = ["assert_consistent"]

Rows = set[tuple[Any, ...]]


def assert_consistent(path: Path) -> None:
    """Assert that a file is whole and that everything derived in it follows from the rest."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        indexed = {key for (key,) in db.execute("SELECT key FROM threadkeep_indexed_key")}
        owners = dict(db.execute("SELECT key, resource_key FROM threadkeep_thread"))
        assert set(owners.values()) <= {key for (key,) in db.execute("SELECT key FROM threadkeep_resource")}
        _assert_messages(db, owners, indexed)
        _assert_threads(db, indexed)


def _tokens(metadata: str, stored: str, indexed: set[str]) -> list[str]:
    """The tokens that an item must be found under."""
    found = metadata_tokens(json.loads(metadata))
    pairs = [(token.partition("=")[0], token) for token in found]
    assert json.loads(stored) == {key: token.removeprefix(key + "=") for key, token in pairs}
    return [token for key, token in pairs if "*" in indexed or key in indexed]


def _assert_messages(db: sqlite3.Connection, owners: dict[int, int], indexed: set[str]) -> None:
    expected: Rows = set()
    counts: Counter[int] = Counter()
    rows = db.execute("SELECT key, id, thread_key, created_at, seq, metadata, tokens FROM threadkeep_message")
    for key, identifier, thread, created_at, seq, metadata, stored in rows:
        counts[thread] += 1
        for token in ["", *_tokens(metadata, stored, indexed)]:
            for scope in (thread, -owners[thread]):
                expected.add((scope, token, created_at, seq, identifier, key))
    found = db.execute("SELECT scope, token, created_at, seq, id, key FROM threadkeep_position").fetchall()
    _assert_same(set(found), expected)
    counters = dict(db.execute("SELECT key, message_count FROM threadkeep_thread"))
    assert counters == {thread: counts[thread] for thread in owners}


def _assert_threads(db: sqlite3.Connection, indexed: set[str]) -> None:
    expected: Rows = set()
    rows = db.execute("SELECT key, id, resource_key, created_at, metadata, tokens FROM threadkeep_thread")
    for key, identifier, owner, created_at, metadata, stored in rows:
        for token in _tokens(metadata, stored, indexed):
            for scope in (0, -owner):
                expected.add((scope, token, created_at, identifier, key))
    found = db.execute("SELECT scope, token, created_at, id, key FROM threadkeep_thread_position").fetchall()
    _assert_same(set(found), expected)


def _assert_same(found: Rows, expected: Rows) -> None:
    assert not sorted(expected - found), "missing"
    assert not sorted(found - expected), "left over"
