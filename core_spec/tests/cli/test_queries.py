from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import threadkeep
from threadkeep.cli._options import condition, page_size, since, until, where_of, window

if TYPE_CHECKING:
    from .conftest import Database, Invoke

InvokeJson = Callable[..., Any]


def _ids(page: dict[str, Any]) -> list[str]:
    return [item["id"] for item in page["items"]]


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=5", 5),
        ("a=5.0", 5.0),
        ("a=true", True),
        ("a=null", None),
        ('a="5"', "5"),
        ("a=billing", "billing"),
        ("a=True", "True"),
        ("a=NaN", "NaN"),
        ("a=-Infinity", "-Infinity"),
        ("a= 5", " 5"),
        ("a=", ""),
        ("a=[1]", "[1]"),
        ('a={"b": 1}', '{"b": 1}'),
        ("a=x=y", "x=y"),
        ("a=>5", ">5"),
        ("a=line\nbreak", "line\nbreak"),
        ("a>=5", threadkeep.gte(5)),
        ("a>5", threadkeep.gt(5)),
        ("a<=5.5", threadkeep.lte(5.5)),
        ("a<m", threadkeep.lt("m")),
        ("a!=true", threadkeep.not_equal(True)),
        ("a?", threadkeep.exists()),
        ("a!?", threadkeep.missing()),
    ],
)
def test_a_condition_is_a_json_scalar_or_a_string(text: str, value: object) -> None:
    key, found = condition(text)

    assert key == "a"
    assert (type(found), found) == (type(value), value)


def test_several_conditions_on_one_key_must_all_hold() -> None:
    given = (condition("a>=5"), condition("b=x"), condition("a<9"))

    assert where_of(given) == {"a": (threadkeep.gte(5), threadkeep.lt(9)), "b": ("x",)}


@pytest.mark.parametrize(
    ("text", "identifier"), [("m:2:3", "m"), ("conv-26/D1:1:2:3", "conv-26/D1:1"), ("a:b:c:2:3", "a:b:c")]
)
def test_a_window_is_read_from_the_right(text: str, identifier: str) -> None:
    assert window(text) == threadkeep.Include(identifier, before=2, after=3)


def test_a_page_size_is_a_number_or_all() -> None:
    assert (page_size("0"), page_size("25"), page_size("all")) == (0, 25, "all")


def test_a_time_without_an_offset_is_utc() -> None:
    assert since("2025-05-31T14:30:00") == datetime(2025, 5, 31, 14, 30, tzinfo=UTC)
    assert since("2025-05-31T14:30:00+02:00") == datetime(2025, 5, 31, 12, 30, tzinfo=UTC)


def test_a_date_is_a_whole_day() -> None:
    assert since("2025-05-31") == datetime(2025, 5, 31, tzinfo=UTC)
    assert until("2025-05-31") == datetime(2025, 5, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert until("2025-05-31T12:00:00") == datetime(2025, 5, 31, 12, tzinfo=UTC)


# --- messages -------------------------------------------------------------------------------------


def test_messages_prints_the_page_with_the_models_field_names(
    database: Database, invoke_json: InvokeJson
) -> None:
    database.save("t", "hello", mood="fine")

    page = invoke_json("messages", database.url, "--thread", "t", "--total")

    [stored] = database.do(database.store.get_messages("t/0"))
    assert page == {
        "items": [
            {
                "id": "t/0",
                "thread_id": "t",
                "resource_id": "r",
                "role": "user",
                "type": "text",
                "content": "hello",
                "metadata": {"mood": "fine", "n": 0},
                "created_at": stored.created_at.isoformat().replace("+00:00", "Z"),
                "seq": stored.seq,
            }
        ],
        "page": 0,
        "per_page": 40,
        "has_more": False,
        "next_cursor": None,
        "total": 1,
        "matched_ids": ["t/0"],
    }


def test_messages_of_several_threads_and_of_a_resource(database: Database, invoke_json: InvokeJson) -> None:
    database.save("a", "1")
    database.save("b", "2")
    database.save("c", "3", resource="other")

    assert _ids(invoke_json("messages", database.url, "--thread", "a", "--thread", "b")) == ["a/0", "b/0"]
    assert _ids(invoke_json("messages", database.url, "--resource", "r")) == ["a/0", "b/0"]
    assert _ids(invoke_json("messages", database.url, "--thread", "c", "--resource", "r")) == []


def test_messages_filters_in_every_way(database: Database, invoke_json: InvokeJson) -> None:
    database.save("t", *"abcdef")
    database.save("u", "x", kind="odd")

    def found(*conditions: str) -> list[str]:
        options = [option for text in conditions for option in ("--where", text)]
        return _ids(invoke_json("messages", database.url, "--resource", "r", *options))

    assert found("n=2") == ["t/2"]
    assert found("n>=2", "n<4") == ["t/2", "t/3"]
    assert found("kind?") == ["u/0"]
    assert found("kind!?", "n<=0") == ["t/0"]
    assert found("kind=odd") == ["u/0"]
    assert found('n="2"') == []


def test_pages_and_cursors_walk_the_same_way(database: Database, invoke_json: InvokeJson) -> None:
    database.save("t", *"abcde")

    first = invoke_json("messages", database.url, "--thread", "t", "--per-page", "2", "--order", "desc")
    by_cursor = invoke_json(
        "messages",
        database.url,
        "--thread",
        "t",
        "--per-page",
        "2",
        "--order",
        "desc",
        "--cursor",
        first["next_cursor"],
    )
    by_number = invoke_json(
        "messages", database.url, "--thread", "t", "--per-page", "2", "--order", "desc", "--page", "1"
    )

    assert _ids(first) == ["t/4", "t/3"]
    assert _ids(by_cursor) == _ids(by_number) == ["t/2", "t/1"]


def test_per_page_all_is_everything(database: Database, invoke_json: InvokeJson) -> None:
    database.save("t", *map(str, range(120)))

    page = invoke_json("messages", database.url, "--thread", "t", "--per-page", "all")

    assert len(page["items"]) == 120
    assert page["per_page"] is None


def test_an_include_adds_neighbours_and_leaves_the_total(database: Database, invoke_json: InvokeJson) -> None:
    database.save("t", *"abcdef")

    page = invoke_json(
        "messages", database.url, "--thread", "t", "--where", "n=0", "--include", "t/4:1:1", "--total"
    )

    assert _ids(page) == ["t/0", "t/3", "t/4", "t/5"]
    assert (page["matched_ids"], page["total"]) == (["t/0"], 1)


def test_since_and_until_belong_to_the_range(database: Database, invoke_json: InvokeJson) -> None:
    database.do(database.store.create_thread("r", thread_id="t"))
    days = [datetime(2025, 5, day, 12, tzinfo=UTC) for day in range(1, 6)]
    messages = [threadkeep.NewMessage("t", "user", "x", id=str(day.day), created_at=day) for day in days]
    database.do(database.store.save_messages(messages))

    def found(*options: str) -> list[str]:
        return _ids(invoke_json("messages", database.url, "--thread", "t", *options))

    assert found("--since", "2025-05-02", "--until", "2025-05-04") == ["2", "3", "4"]
    assert found("--since", "2025-05-02T12:00:00Z", "--until", "2025-05-02T12:00:00Z") == ["2"]


def test_content_that_no_utf8_holds_is_printed_escaped(database: Database, invoke_json: InvokeJson) -> None:
    content = {"broken": "\ud800", "nul": "\0", "big": 2**80, "ok": "é🎉"}
    database.do(database.store.create_thread("r", thread_id="t"))
    database.do(database.store.save_messages([threadkeep.NewMessage("t", "user", content)]))

    assert invoke_json("messages", database.url, "--thread", "t")["items"][0]["content"] == content


def test_a_terminal_obeys_nothing_that_a_message_holds(database: Database, invoke: Invoke) -> None:
    database.save("t", "\x1b[2Jcleared\u202e [bold]as it is[/bold]")

    shown = invoke("messages", database.url, "--thread", "t").stdout

    assert "\\x1b[2Jcleared\\u202e [bold]as it is[/bold]" in shown


def test_the_table_says_how_to_go_on(database: Database, invoke: Invoke) -> None:
    database.save("t", *"abc")

    shown = invoke("messages", database.url, "--thread", "t", "--per-page", "2", "--total").stdout

    assert "2 of 3; more with --cursor " in shown


# --- threads --------------------------------------------------------------------------------------


def test_threads_filters_orders_and_counts(database: Database, invoke_json: InvokeJson) -> None:
    for name, level in (("a", 1), ("b", 2), ("c", 3)):
        database.do(database.store.create_thread("r", thread_id=name, metadata={"level": level}))
    database.do(database.store.create_thread("s", thread_id="d"))
    database.do(database.store.update_thread("a", title="touched"))

    everything = invoke_json("threads", database.url, "--total")
    filtered = invoke_json(
        "threads", database.url, "--resource", "r", "--where", "level>=2", "--order", "asc"
    )
    touched = invoke_json("threads", database.url, "--order-by", "updated_at", "--per-page", "1")

    assert (_ids(everything), everything["total"]) == (["d", "c", "b", "a"], 4)
    assert _ids(filtered) == ["b", "c"]
    assert (_ids(touched), touched["has_more"]) == (["a"], True)
    assert touched["items"][0]["title"] == "touched"


def test_threads_shows_a_table(database: Database, invoke: Invoke) -> None:
    database.do(
        database.store.create_thread("owner", thread_id="t", title="Über uns", metadata={"open": True})
    )

    shown = invoke("threads", database.url).stdout

    for text in ("owner", "Über uns", "open=true", "1 matched"):
        assert text in shown


# --- explain --------------------------------------------------------------------------------------


def test_explain_tells_what_is_pushed_down(
    database: Database, invoke: Invoke, invoke_json: InvokeJson
) -> None:
    database.save("t", *"abc")

    options = (
        "--thread",
        "t",
        "--where",
        "n=1",
        "--since",
        "2025-01-01",
        "--per-page",
        "5",
        "--order",
        "desc",
    )
    found = invoke_json("explain", database.url, *options)
    shown = invoke("explain", database.url, *options).stdout

    assert (found["adapter"], found["filter"], found["rows_examined"]) == ("memory", "emulated", 3)
    assert "rows examined   3" in shown
    assert "look at every message in memory" in shown


def test_explain_takes_threads_too(database: Database, invoke_json: InvokeJson) -> None:
    database.save("t", "a")

    found = invoke_json("explain", database.url, "--threads", "--where", "a=1", "--order-by", "updated_at")

    assert found["plan"] == ["look at every thread in memory"]
