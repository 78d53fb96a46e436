"""Conversations of other tools: chat lines and ChatGPT exports."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from threadkeep.cli.formats import BadInputError, Source, entries
from threadkeep.models import NewMessage, Thread

if TYPE_CHECKING:
    from .conftest import Database, Invoke

InvokeJson = Callable[..., Any]


def _read(text: str | bytes, format_name: str = "auto") -> tuple[list[Thread], list[NewMessage]]:
    raw = text.encode() if isinstance(text, str) else text
    records = [entry.record for entry in entries(Source(io.BytesIO(raw)), format_name, "owner")]
    threads = [record for record in records if isinstance(record, Thread)]
    return threads, [record for record in records if isinstance(record, NewMessage)]


def _chat(*messages: dict[str, Any], **fields: Any) -> str:
    return json.dumps({**fields, "messages": messages})


_HI = {"role": "user", "content": "hi"}
_HELLO = {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}


# --- chat -----------------------------------------------------------------------------------------


def test_a_chat_line_becomes_a_thread_with_its_messages_in_order() -> None:
    [thread], [hi, hello] = _read(_chat(_HI, _HELLO, id="c1", title="Greeting", user="ada", created_at=1.7e9))

    assert (thread.id, thread.title, thread.resource_id) == ("c1", "Greeting", "ada")
    assert thread.created_at == thread.updated_at == datetime.fromtimestamp(1.7e9, UTC)
    assert (hi.thread_id, hi.role, hi.content, hi.type) == ("c1", "user", "hi", "text")
    assert (hello.content, hello.type) == (_HELLO["content"], "parts")


def test_ids_that_are_not_given_are_the_same_at_every_reading() -> None:
    text = f"{_chat(_HI, _HI)}\n{_chat(_HI, _HI)}"

    first, second = _read(text), _read(text)

    ids = [thread.id for thread in first[0]], [message.id for message in first[1]]
    assert ids == ([thread.id for thread in second[0]], [message.id for message in second[1]])
    assert len(set(ids[0])) == 2
    assert len(set(ids[1])) == 4


@pytest.mark.parametrize(
    "given",
    ["2023-11-14T22:13:20Z", "2023-11-14T23:13:20+01:00", "2023-11-14T22:13:20", 1700000000, 1700000000000],
)
def test_times_are_iso_or_seconds_or_milliseconds(given: object) -> None:
    [thread], _ = _read(_chat(_HI, timestamp=given))

    assert thread.created_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_the_order_of_the_file_is_the_order_of_the_conversation() -> None:
    turns = [{**_HI, "created_at": at} for at in (30, None, 20, 40)]

    [thread], messages = _read(_chat(*turns))

    assert [message.created_at and message.created_at.timestamp() for message in messages] == [30, 30, 30, 40]
    assert (thread.created_at.timestamp(), thread.updated_at.timestamp()) == (30, 40)


def test_other_fields_are_kept_as_metadata_and_tool_calls_as_content() -> None:
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "x"}],
        "name": "bot",
        "metadata": {"a": 1},
    }

    [thread], [message] = _read(_chat(call, model="m1", metadata={"b": 2}))

    assert thread.metadata == {"model": "m1", "b": 2}
    assert message.metadata == {"name": "bot", "a": 1}
    assert (message.content, message.type) == ({"content": None, "tool_calls": [{"id": "x"}]}, "tool_calls")


def test_conversations_that_name_no_owner_get_the_one_that_is_given(
    database: Database, invoke: Invoke, invoke_json: InvokeJson
) -> None:
    invoke("import", database.url, "-", "--resource", "me", stdin=_chat(_HI))

    assert [thread["resource_id"] for thread in invoke_json("threads", database.url)["items"]] == ["me"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[1]", "not an object"),
        ('{"messages": 1}', '"messages" is not a list'),
        ('{"messages": ["hi"]}', "messages[0] is not an object"),
        ('{"messages": [{"content": "x"}]}', 'messages[0] has no "role"'),
        ('{"messages": [{"role": "user"}]}', 'messages[0] has no "content"'),
        ('{"messages": [{"role": "user", "content": 5}]}', "neither a string nor a list of parts"),
        ('{"messages": [], "created_at": "soon"}', "created_at is not a time"),
        ('{"messages": [], "created_at": true}', "created_at is not a time"),
        ('{"messages": [], "title": ["x"]}', "title is not a string"),
        ('{"messages": [], "metadata": 1}', "metadata is not an object"),
        ('{"messages": ', "not JSON"),
    ],
)
def test_a_line_that_is_no_conversation_is_named(line: str, reason: str) -> None:
    with pytest.raises(BadInputError) as caught:
        _read(f"{_chat(_HI)}\n{line}", "chat")

    assert str(caught.value).startswith("line 2: ")
    assert reason in str(caught.value)


def test_a_conversation_that_breaks_a_rule_is_named_and_not_kept(database: Database, invoke: Invoke) -> None:
    lines = [_chat(_HI, id="a"), _chat({**_HI, "metadata": {"n": 2**64}}, id="b")]

    result = invoke("import", database.url, "-", stdin="\n".join(lines))

    assert result.exit_code == 2
    assert result.stderr.startswith("threadkeep: line 2: metadata.n must be")
    assert database.do(database.store.list_threads()).items == []


@pytest.mark.parametrize("fields", [{}, {"created_at": 1.7e9}], ids=["without times", "with times"])
def test_importing_conversations_again_changes_nothing(
    database: Database, invoke: Invoke, fields: dict[str, Any]
) -> None:
    text = "\n".join([_chat(_HI, _HELLO, **fields), _chat(_HI, **fields)])
    invoke("import", database.url, "-", stdin=text)
    before = invoke("export", database.url, "-").stdout

    assert invoke("import", database.url, "-", stdin=text).exit_code == 0

    assert invoke("export", database.url, "-").stdout == before


def test_importing_again_keeps_what_the_file_does_not_say(database: Database, invoke: Invoke) -> None:
    invoke("import", database.url, "-", stdin=_chat(_HI, id="c"))
    changes: dict[str, Any] = {"title": "Named", "metadata": {"pinned": True}, "working_memory": "notes"}
    database.do(database.store.update_thread("c", **changes))

    invoke("import", database.url, "-", stdin=_chat(_HI, _HELLO, id="c"))

    thread = database.do(database.store.get_thread("c"))
    assert thread is not None
    assert {name: getattr(thread, name) for name in changes} == changes
    assert thread.message_count == 2


# --- ChatGPT --------------------------------------------------------------------------------------


def _node(name: str, parent: str | None, text: str | None = None, **message: Any) -> dict[str, Any]:
    node: dict[str, Any] = {"id": name, "parent": parent, "children": [], "message": None}
    if text is not None or message:
        author = {"role": message.pop("role", "user"), "name": None}
        content = message.pop("content", {"content_type": "text", "parts": [text]})
        node["message"] = {"id": name, "author": author, "content": content, "recipient": "all", **message}
    return node


def _conversation(*nodes: dict[str, Any], current: str | None = None, **fields: Any) -> dict[str, Any]:
    mapping = {node["id"]: node for node in nodes}
    for node in nodes:
        if node["parent"] in mapping:
            mapping[node["parent"]]["children"].append(node["id"])
    given = {"title": "Trip", "conversation_id": "conv", "create_time": 1.7e9, "update_time": 1.7e9 + 60}
    return {**given, "mapping": mapping, "current_node": current, **fields}


_TREE = _conversation(
    _node("root", None),
    _node("system", "root", "", role="system"),
    _node(
        "hidden",
        "system",
        "You are...",
        role="system",
        metadata={"is_visually_hidden_from_conversation": True},
    ),
    _node("question", "hidden", "Lisbon?", create_time=1.7e9 + 1),
    _node("rejected", "question", "No.", role="assistant"),
    _node(
        "answer", "question", "Yes!", role="assistant", create_time=1.7e9 + 2, metadata={"model_slug": "m"}
    ),
    current="answer",
)


def test_the_current_branch_of_a_conversation_becomes_the_thread() -> None:
    [thread], [question, answer] = _read(json.dumps([_TREE]))

    assert (thread.id, thread.title, thread.resource_id) == ("conv", "Trip", "owner")
    assert (thread.created_at.timestamp(), thread.updated_at.timestamp()) == (1.7e9, 1.7e9 + 60)
    assert (question.role, question.content, question.metadata) == (
        "user",
        "Lisbon?",
        {"message_id": "question"},
    )
    assert (answer.role, answer.content) == ("assistant", "Yes!")
    assert answer.metadata == {"message_id": "answer", "model": "m"}
    assert answer.created_at == datetime.fromtimestamp(1.7e9 + 2, UTC)


def test_copies_of_a_conversation_that_share_message_ids_are_both_imported(
    database: Database, invoke: Invoke
) -> None:
    text = json.dumps([_TREE, {**_TREE, "conversation_id": "copy"}])

    assert invoke("import", database.url, "-", stdin=text).exit_code == 0

    messages = database.do(
        database.store.list_messages(["conv", "copy"], where={"message_id": "answer"})
    ).items
    assert {message.thread_id for message in messages} == {"conv", "copy"}


def test_importing_an_export_again_changes_nothing(database: Database, invoke: Invoke) -> None:
    invoke("import", database.url, "-", stdin=json.dumps([_TREE]))
    before = invoke("export", database.url, "-").stdout

    invoke("import", database.url, "-", stdin=json.dumps([_TREE]))

    assert invoke("export", database.url, "-").stdout == before


def test_content_that_is_not_plain_text_is_kept_whole() -> None:
    picture = {"content_type": "multimodal_text", "parts": [{"asset_pointer": "file-1"}, "What is this?"]}
    code = {"content_type": "code", "language": "python", "text": "print(1)"}
    nothing = {"content_type": "code", "language": "python", "text": ""}
    tree = _conversation(
        _node("a", None, content=picture),
        _node("b", "a", content=code, role="assistant", recipient="python"),
        _node("c", "b", content=nothing, role="tool"),
        current="c",
    )

    _, [first, second] = _read(json.dumps([tree]))

    assert (first.content, first.type) == (picture, "multimodal_text")
    assert (second.content, second.type) == (code, "code")
    assert second.metadata == {"message_id": "b", "recipient": "python"}


def test_without_a_current_node_the_newest_leaf_ends_the_branch() -> None:
    tree = _conversation(_node("a", None, "1"), _node("b", "a", "2"), _node("c", "a", "3"))

    _, messages = _read(json.dumps([tree]))

    assert [message.content for message in messages] == ["1", "3"]


def test_an_array_is_read_through_a_window_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(
        [{**_TREE, "conversation_id": str(i), "title": 'a "quote" \\ é🎉' * i} for i in range(20)], indent=1
    )
    whole = _read(text, "chatgpt")
    monkeypatch.setattr("threadkeep.cli.formats._source._HEAD", 7)
    monkeypatch.setattr("threadkeep.cli.formats._source._CHUNK", 3)

    assert _read(text, "chatgpt") == whole
    assert _read(text.encode("utf-8-sig"), "chatgpt") == whole
    assert [thread.id for thread in whole[0]] == [str(i) for i in range(20)]


def test_of_a_long_array_only_a_window_is_read_at_a_time() -> None:
    text = json.dumps([{**_TREE, "conversation_id": str(i), "title": "x" * 100_000} for i in range(50)])
    stream = io.BytesIO(text.encode())

    next(entries(Source(stream), "chatgpt", "owner"))

    assert stream.tell() < 2 * 1024 * 1024 < len(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "not a JSON array"),
        ("[1]", "conversation 1: not a JSON object"),
        ("[{}]", 'conversation 1: it has no "mapping"'),
        ('[{"mapping": {}} {"mapping": {}}]', "conversation 2: a comma is missing before it"),
        ('[{"mapping": {}}] x', "more follows"),
        ('[{"mapping": {}', "conversation 1: not JSON"),
        ('[{"mapping": {}}', "conversation 2: "),
        ('[{"mapping": NaN}]', "NaN is no JSON number"),
        (json.dumps([_conversation(_node("a", "b"), _node("b", "a"), current="a")]), "is its own ancestor"),
        (json.dumps([_conversation(_node("a", "gone"), current="a")]), "node 'gone' is missing"),
    ],
)
def test_an_array_that_is_no_export_is_named(text: str, reason: str) -> None:
    with pytest.raises(BadInputError) as caught:
        _read(text, "chatgpt")

    assert reason in str(caught.value)


def test_bytes_that_are_not_utf8_are_named() -> None:
    with pytest.raises(BadInputError, match="not UTF-8"):
        _read(b'[{"title": "\xff"}]', "chatgpt")


# --- auto -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "threads"),
    [
        ("", 0),
        ("  \n", 0),
        ("[ ]", 0),
        ("\ufeff" + _chat(_HI), 1),
        ("\n" + _chat(_HI) + "\n\n" + _chat(_HI), 2),
        (json.dumps([json.loads(_chat(_HI)), json.loads(_chat(_HI))], indent=2), 2),
        (json.dumps([_TREE]), 1),
        (_chat({"role": "user", "content": "y" * 200_000}), 1),
    ],
)
def test_the_format_is_recognised(text: str, threads: int) -> None:
    assert len(_read(text)[0]) == threads


@pytest.mark.parametrize("text", ["hello", '{"rows": []}', "[1]", "\x00\x01"])
def test_what_is_not_recognised_asks_for_the_format(database: Database, invoke: Invoke, text: str) -> None:
    result = invoke("import", database.url, "-", stdin=text)

    assert result.exit_code == 2
    assert "say which with --format threadkeep, chat or chatgpt" in result.stderr


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("mapping", (["x"], 1, "x")),
        ("mapping.a", (["x"], 1, "x")),
        ("mapping.a.parent", (["x"], {"x": 1}, 1)),
        ("mapping.a.children", ({"x": 1}, 1, "x", ["a"])),
        ("mapping.a.message", (["x"], 1, "x")),
        ("mapping.a.message.author", (["x"], 1, "x")),
        ("mapping.a.message.content", (["x"], 1, "x")),
        ("mapping.a.message.metadata", (["x"], 1, "x")),
        ("mapping.a.message.create_time", (["x"], {"x": 1}, "x")),
        ("mapping.a.message.author.role", (["x"], {"x": 1}, 1.5)),
        ("mapping.a.message.content.content_type", (["x"], {"x": 1}, 1.5)),
        ("current_node", (["x"], {"x": 1}, 1)),
        ("conversation_id", (["x"], {"x": 1}, 1.5)),
        ("create_time", (["x"], {"x": 1}, "x")),
        ("title", (["x"], {"x": 1}, 1.5)),
    ],
)
def test_a_chatgpt_field_of_a_wrong_type_is_refused_by_the_conversations_number(
    path: str, wrong: tuple[object, ...]
) -> None:
    *above, last = path.split(".")
    for value in wrong:
        found = _conversation(_node("a", None, "hi", metadata={}))
        at = found
        for name in above:
            at = at[name]
        at[last] = value

        with pytest.raises(BadInputError, match=r"^conversation 2: "):
            _read(json.dumps([_TREE, found]), "chatgpt")


@pytest.mark.parametrize("parent", [["x"], {}, 1])
def test_a_chatgpt_node_whose_parent_is_no_name_is_refused_by_number(parent: object) -> None:
    text = json.dumps([{"mapping": {"a": {"parent": parent}}, "current_node": "a"}])

    with pytest.raises(BadInputError, match="conversation 1: the parent of node 'a' is no name"):
        _read(text)


def test_chat_messages_that_are_numbered_anew_in_each_conversation_are_all_kept() -> None:
    lines = [
        {"id": name, "messages": [{"role": "user", "content": "x", "id": 1}]}
        for name in ("a", "b", "c" * 255)
    ]

    _, messages = _read("\n".join(map(json.dumps, lines)))

    ids = [message.id for message in messages]
    assert ids[:2] == ["a/1", "b/1"]
    assert len(ids[2] or "") <= 255


def test_two_chat_messages_with_one_id_in_a_conversation_are_refused_by_line() -> None:
    message = {"role": "user", "content": "x", "id": "1"}

    with pytest.raises(BadInputError, match="line 1: two of its messages have one id"):
        _read(json.dumps({"id": "a", "messages": [message, message]}))
