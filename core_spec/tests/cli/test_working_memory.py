from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conftest import Database, Invoke

InvokeJson = Callable[..., Any]


def test_a_resources_working_memory_is_set_merged_and_read(
    database: Database, invoke: Invoke, invoke_json: InvokeJson
) -> None:
    command = ("working-memory", database.url)

    assert (
        invoke(*command, "set", '{"city": "Bern", "zip": 3011}', "--resource", "r").stdout == "revision 1\n"
    )
    merged = invoke_json(*command, "merge", '{"zip": null, "name": "Ada"}', "--resource", "r")

    assert (merged["revision"], json.loads(merged["working_memory"])) == (2, {"city": "Bern", "name": "Ada"})
    assert invoke(*command, "get", "--resource", "r").stdout == merged["working_memory"] + "\n"
    assert invoke_json(*command, "get", "--resource", "r") == merged


def test_a_threads_working_memory_is_its_own(
    database: Database, invoke: Invoke, invoke_json: InvokeJson
) -> None:
    database.save("t", "hi")
    command = ("working-memory", database.url)

    assert invoke(*command, "set", "# notes", "--thread", "t").stdout == "saved\n"

    assert invoke(*command, "get", "--thread", "t").stdout == "# notes\n"
    assert invoke_json(*command, "set", "--clear", "--thread", "t")["working_memory"] is None
    assert invoke(*command, "get", "--thread", "t").stdout == ""


def test_a_dash_is_standard_input(database: Database, invoke: Invoke) -> None:
    command = ("working-memory", database.url)

    invoke(*command, "set", "-", "--resource", "r", stdin="grüße\n")
    assert invoke(*command, "get", "--resource", "r").stdout == "grüße\n\n"

    invoke(*command, "merge", "-", "--resource", "r", stdin='{"a": 1}')
    assert invoke(*command, "get", "--resource", "r").stdout == '{"a":1}\n'


def test_a_revision_guards_a_write(database: Database, invoke: Invoke) -> None:
    command = ("working-memory", database.url, "set", "--resource", "r", "--if-revision", "0")

    assert invoke(*command, "first").exit_code == 0
    assert invoke(*command, "second").exit_code == 1


def test_standard_input_that_is_not_utf8_is_refused(database: Database, invoke: Invoke) -> None:
    result = invoke("working-memory", database.url, "set", "-", "--resource", "r", stdin=b"\xff\xfe")

    assert result.exit_code == 2
    assert "not UTF-8" in result.stderr
