"""The page that names the tables: it names all of them as they are, and its queries run."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[3] / "docs/libsql-tables.md").read_text("utf-8")
NEWEST = max((Path(__file__).parent / "fixtures").glob("schema_*.db"))


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """The samples of ``test_schema``, not to be written to."""
    with closing(sqlite3.connect(f"file:{NEWEST}?immutable=1", uri=True)) as opened:
        yield opened


def test_every_table_is_named_with_its_columns_in_their_order(db: sqlite3.Connection) -> None:
    named: dict[str, list[str]] = {}
    for section in PAGE.split("\n## ")[1:]:
        table = section.partition("\n")[0]
        if table.startswith("threadkeep_"):
            cells = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
            named[table] = re.findall(r"`(\w+)`", " ".join(cells))
    tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()

    assert {
        table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")] for (table,) in tables
    } == named


def answers(db: sqlite3.Connection) -> list[list[tuple[Any, ...]]]:
    return [db.execute(query).fetchall() for query in re.findall(r"```sql\n(.+?)```", PAGE, re.DOTALL)]


def test_the_queries_answer_what_the_page_says(db: sqlite3.Connection) -> None:
    newest, by_value, by_token, by_resource = answers(db)

    assert [row[:2] for row in newest[:2]] == [
        ("2024-02-29 12:30:24", "assistant"),
        ("2024-02-29 12:30:24", "user"),
    ]
    assert len(newest) == 20
    assert [row[0] for row in by_value] == [f"thread-1/{n}" for n in range(15, 20)]
    assert [row[0] for row in by_token] == ["thread-1/10"]
    assert [row[:3] for row in by_resource] == [("user-0", 2, 20), ("user-1", 1, 20)]
