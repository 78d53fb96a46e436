from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conftest import Database, Invoke

InvokeJson = Callable[..., Any]


def test_memories_are_added_recalled_pinned_and_deleted(database: Database, invoke_json: InvokeJson) -> None:
    def memories(*arguments: str) -> Any:
        return invoke_json("memories", database.url, *arguments)

    tea, coffee = memories("add", "likes Tea", "hates coffee", "--actor", "user:ada")
    assert (tea["content"], tea["actor_type"], tea["actor_id"], tea["pinned"]) == (
        "likes Tea",
        "user",
        "ada",
        False,
    )
    [found] = memories("recall", "TEA", "--actor", "user:ada")
    assert found == tea

    assert memories("pin", str(tea["id"]))["pinned"] is True
    assert memories("recall", "--actor", "user:ada") == [coffee]
    assert memories("pin", str(tea["id"]), "--unpin")["pinned"] is False

    assert memories("delete", str(coffee["id"]), "--actor", "user:ada") == {"deleted": 1}
    assert memories("delete", "--all", "--actor", "user:ada") == {"deleted": 1}
    assert memories("list")["items"] == []


def test_recall_finds_shared_memories_and_not_those_of_others(
    database: Database, invoke_json: InvokeJson
) -> None:
    invoke_json("memories", database.url, "add", "for all", "--actor", "shared")
    invoke_json("memories", database.url, "add", "hers", "--actor", "end_user:a:b")
    invoke_json("memories", database.url, "add", "his", "--actor", "user:him")

    found = invoke_json("memories", database.url, "recall", "--actor", "end_user:a:b", "--limit", "5")

    assert [memory["content"] for memory in found] == ["hers", "for all"]


def test_the_list_has_pages(database: Database, invoke: Invoke, invoke_json: InvokeJson) -> None:
    invoke_json("memories", database.url, "add", "1", "2", "3", "--actor", "shared", "--pinned")

    page = invoke_json("memories", database.url, "list", "--per-page", "2", "--total")
    rest = invoke_json("memories", database.url, "list", "--per-page", "2", "--cursor", page["next_cursor"])
    shown = invoke("memories", database.url, "list", "--actor", "shared").stdout

    assert [memory["content"] for memory in page["items"] + rest["items"]] == ["3", "2", "1"]
    assert page["total"] == 3
    assert "pinned" in shown
    assert "3 matched" in shown


def test_pinning_what_is_not_there_is_exit_code_1(database: Database, invoke: Invoke) -> None:
    result = invoke("memories", database.url, "pin", "5")

    assert (result.exit_code, result.stderr) == (1, "threadkeep: memory '5' does not exist\n")
