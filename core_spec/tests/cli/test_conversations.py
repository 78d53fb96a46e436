"""The command on real conversations where they are at hand, else on the bundled ones: the same questions."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from .conftest import Database, Invoke

_REAL = Path(__file__).parents[4] / "shared" / "data" / "locomo5.json"
_HAS_LOADER = importlib.util.find_spec("threadkeep_bench") is not None

InvokeJson = Callable[..., Any]


class Conversations(NamedTuple):
    """Imported conversations, and what the file says about them.

    Attributes:
        url: Where they were imported.
        lines: The file's lines.
        resource: A resource.
        thread: One of its threads.
        key: A key that some of its messages have in their metadata, with a number ...
        least: ... which for some of those is at least this.
    """

    url: str
    lines: list[dict[str, Any]]
    resource: str
    thread: str
    key: str
    least: int

    def messages(self, **fields: str) -> list[dict[str, Any]]:
        """The file's messages with these fields, in their total order."""
        found = [
            line
            for line in self.lines
            if line["kind"] == "message" and all(line[name] == value for name, value in fields.items())
        ]
        return sorted(found, key=lambda line: (line["created_at"], line["seq"], line["id"]))


@pytest.fixture
def conversations(database: Database, invoke: Invoke, tmp_path: Path) -> Conversations:
    file = tmp_path / "conversations.jsonl"
    is_real = _REAL.exists() and _HAS_LOADER
    if is_real:
        loader = [sys.executable, "-m", "threadkeep_bench.datasets", "locomo", str(_REAL), "-o", str(file)]
        subprocess.run(loader, check=True, capture_output=True)
    else:
        file.write_bytes(files("threadkeep.cli").joinpath("conversations.jsonl").read_bytes())
    result = invoke("import", database.url, str(file))
    assert result.exit_code == 0, result.stderr
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    if is_real:
        resource, thread, key, least = "conv-26", "conv-26/session_1", "session", 5
    else:
        resource, thread, key, least = "tour-shop", "tour-support-1003", "priority", 4
    return Conversations(database.url, lines, resource, thread, key, least)


def _ids(items: list[dict[str, Any]]) -> list[str]:
    return [item["id"] for item in items]


def test_all_threads_and_messages_are_there(conversations: Conversations, invoke_json: InvokeJson) -> None:
    mine = conversations.messages(resource_id=conversations.resource)

    threads = invoke_json("threads", conversations.url, "--total")
    page = invoke_json("messages", conversations.url, "--resource", conversations.resource, "--total")

    assert threads["total"] == sum(line["kind"] == "thread" for line in conversations.lines)
    assert page["total"] == len(mine)
    assert _ids(page["items"]) == _ids(mine)[:40]


def test_a_thread_is_read_whole_and_in_order(conversations: Conversations, invoke_json: InvokeJson) -> None:
    page = invoke_json("messages", conversations.url, "--thread", conversations.thread, "--per-page", "all")

    mine = conversations.messages(thread_id=conversations.thread)
    assert page["items"] == [{k: v for k, v in line.items() if k != "kind"} for line in mine]


def test_a_filter_by_range_finds_what_the_file_has(
    conversations: Conversations, invoke_json: InvokeJson
) -> None:
    options = (
        "--resource",
        conversations.resource,
        "--where",
        f"{conversations.key}>={conversations.least}",
        "--total",
    )

    page = invoke_json("messages", conversations.url, *options, "--per-page", "7", "--order", "desc")

    mine = conversations.messages(resource_id=conversations.resource)
    matching = [
        line["id"] for line in mine if line["metadata"].get(conversations.key, -1) >= conversations.least
    ]
    assert 0 < len(matching) < len(mine)
    assert page["total"] == len(matching)
    assert _ids(page["items"]) == matching[::-1][:7]


def test_a_walk_over_cursors_meets_every_message_once(
    conversations: Conversations, invoke_json: InvokeJson
) -> None:
    options = ["--resource", conversations.resource, "--per-page", "97"]
    met: list[str] = []
    cursor: list[str] = []
    while True:
        page = invoke_json("messages", conversations.url, *options, *cursor)
        met += _ids(page["items"])
        if page["next_cursor"] is None:
            break
        cursor = ["--cursor", page["next_cursor"]]

    assert met == _ids(conversations.messages(resource_id=conversations.resource))


def test_a_window_shows_a_message_among_its_neighbours(
    conversations: Conversations, invoke_json: InvokeJson
) -> None:
    mine = _ids(conversations.messages(thread_id=conversations.thread))

    page = invoke_json(
        "messages",
        conversations.url,
        "--thread",
        conversations.thread,
        "--per-page",
        "0",
        "--include",
        f"{mine[4]}:2:3",
    )

    assert _ids(page["items"]) == mine[2:8]
    assert page["matched_ids"] == []


def test_they_come_out_as_they_went_in(conversations: Conversations, invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"

    assert invoke("export", conversations.url, str(out)).exit_code == 0

    def by_kind_and_id(lines: list[dict[str, Any]]) -> dict[tuple[str, str | int], dict[str, Any]]:
        return {(line["kind"], line["id"]): line for line in lines}

    exported = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert by_kind_and_id(exported) == by_kind_and_id(conversations.lines)
