"""Content and metadata: what is legal, and that it comes back exactly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from threadkeep import InvalidArgumentError, MessageUpdate, NewMessage, Resource, Store, Thread

from ..cases import case
from .base import AdapterSuite
from .samples import HOSTILE, NOON, NUMBERS, add, exactly, ids, unchanged

__all__ = ["TestContent", "TestCopies", "TestMetadata"]

ROWS_OF_ONE_KIND: tuple[Any, ...] = (None, True, False, 0, "", [], {}, 1.0, "text")


def deep_list(levels: int) -> Any:
    """Lists inside lists, so many levels."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def deep_dict(levels: int) -> dict[str, Any]:
    """Objects inside objects, so many levels."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"d": value}
    return value


async def content_round_trip(store: Store, content: Any) -> None:
    """Assert that a content comes back exactly, from the save, the read, the list and an update."""
    await store.ensure_thread("user-1", thread_id="t")
    (saved,) = await store.save_messages([NewMessage("t", "user", content, id="m")])
    exactly(saved.content, content)
    exactly((await store.get_messages(["m"]))[0].content, content)
    exactly((await store.list_messages("t")).items[0].content, content)
    (updated,) = await store.update_messages([MessageUpdate("m", content=content)])
    exactly(updated.content, content)


async def metadata_round_trip(store: Store, metadata: dict[str, Any]) -> None:
    """Assert that metadata comes back exactly from messages, threads and resources."""
    thread = await store.create_thread("user-1", metadata=metadata)
    exactly(thread.metadata, metadata)
    read = await store.get_thread(thread.id)
    assert read is not None
    exactly(read.metadata, metadata)
    (saved,) = await store.save_messages([NewMessage(thread.id, "user", 0, metadata=metadata)])
    exactly(saved.metadata, metadata)
    exactly((await store.get_messages([saved.id]))[0].metadata, metadata)
    exactly(
        (await store.update_resource("user-1", metadata=metadata, replace_metadata=True)).metadata, metadata
    )
    resource = await store.get_resource("user-1")
    assert resource is not None
    exactly(resource.metadata, metadata)


class TestContent(AdapterSuite):
    """content: any JSON value."""

    @case("content.any_kind", "4.3.any", "4.exact")
    async def test_every_kind_of_json_comes_back(self, store: Store) -> None:
        """null, bools, numbers, texts, lists and objects come back equal in value and kind."""
        for content in ROWS_OF_ONE_KIND:
            await content_round_trip(store, content)

    @case("content.unknown_keys", "4.3.any")
    async def test_nothing_in_content_is_interpreted(self, store: Store) -> None:
        """Unknown keys, keys that look like operators, classes, references and decorations come back as
        they were.
        """
        await content_round_trip(
            store,
            {
                "type": "x",
                "lc": 1,
                "__class__": "os.system",
                "py/object": "builtins.eval",
                "$ref": "#/x",
                "$oid": "507f1f77bcf86cd799439011",
                "$date": 0,
                "$numberLong": "1",
                "_type": "constructor",
                "id": ["langchain", "schema"],
                "": {"": [[], [{}]]},
                "a.b": {"$ne": None},
                "__proto__": {"x": 1},
                "base64:": "AAA=",
            },
        )

    @case("content.key_order", "4.exact")
    async def test_keys_keep_their_order(self, store: Store) -> None:
        """Objects come back with their keys in the order they had."""
        await content_round_trip(
            store, {"z": 1, "a": {"y": 1, "b": 2, "1": 3, "0": 4}, "m": [{"q": 1, "c": 2}]}
        )

    @case("content.big_integers", "4.3.any")
    async def test_integers_of_any_size_survive(self, store: Store) -> None:
        """Integers around 2**53, 2**63, 2**64 and with hundreds of digits come back exactly."""
        numbers = [2**53 + 1, -(2**53) - 1, 2**63, 2**64 + 1, -(2**64), 10**100, -(10**300) + 7]
        await content_round_trip(store, numbers)
        await content_round_trip(store, 2**64 + 1)

    @case("content.floats", "4.3.any", "4.exact")
    async def test_floats_keep_value_and_kind(self, store: Store) -> None:
        """-0.0, 1.0, 1e16, subnormals and the largest float come back as floats with the same bits."""
        await content_round_trip(store, [value for value in NUMBERS if isinstance(value, float)])
        await content_round_trip(store, -0.0)
        await content_round_trip(store, 1.0)

    @case("content.nul", "4.3.any")
    async def test_nul_survives(self, store: Store) -> None:
        """NUL in texts and keys, first, last and in the middle, comes back."""
        await content_round_trip(store, "a\0b")
        await content_round_trip(store, {"\0": "\0a", "k\0": ["x\0", "\0\0"], "\\u0000": "\\u0000"})

    @case("content.surrogates", "4.3.any")
    async def test_lone_surrogates_survive_and_poison_nothing(self, store: Store) -> None:
        """Lone surrogates in texts and keys come back, and the messages around them can be read."""
        await store.create_thread("user-1", thread_id="around")
        await add(store, "around", "before")
        await store.save_messages(
            [NewMessage("around", "user", {"\udfff": ["\ud800", "a\udc00b", "\udc00\ud800"]}, id="odd")]
        )
        await add(store, "around", "after")

        page = await store.list_messages("around")
        assert ids(page) == ["before", "odd", "after"]
        exactly(page.items[1].content, {"\udfff": ["\ud800", "a\udc00b", "\udc00\ud800"]})
        await content_round_trip(store, "\ud800")
        await content_round_trip(store, ["\ude00\ud83d", "\U0001f600", 10**40])

    @case("content.surrogate_pairs", "4.3.any")
    async def test_a_surrogate_pair_is_the_character_it_encodes(self, store: Store) -> None:
        """JSON cannot tell a high and a low surrogate in a row from the character they encode: every call
        gives that.
        """
        await store.create_thread("user-1", thread_id="t")

        (saved,) = await store.save_messages([NewMessage("t", "user", "\ud83d\ude00", id="m")])

        assert saved.content == "\U0001f600"
        assert await store.get_messages(["m"]) == [saved]

    @case("content.hostile", "4.exact", "5.4.injection")
    async def test_hostile_texts_survive(self, store: Store) -> None:
        """Hostile texts as content, keys and values come back as they were."""
        await content_round_trip(store, {text: [text, {"x": text}] for text in HOSTILE})
        await content_round_trip(store, "".join(map(chr, range(1, 0x250))))

    @case("content.depth", "4.3.depth")
    async def test_256_levels_are_legal_and_more_are_not(self, store: Store) -> None:
        """Lists and objects of 256 levels come back; 257 are an error, 100,000 too, without a crash."""
        await content_round_trip(store, deep_list(256))
        await content_round_trip(store, deep_dict(256))
        await content_round_trip(store, "[" * 1000 + "{" * 1000)
        async with unchanged(store):
            for deep in (deep_list(257), deep_dict(257), deep_list(100_000)):
                with pytest.raises(InvalidArgumentError):
                    await store.save_messages([NewMessage("t", "user", deep)])

    @case("content.nan", "4.3.nan")
    async def test_nan_and_infinities_are_refused(self, store: Store) -> None:
        """NaN and infinities, at the top and deep inside, are errors; nothing is written."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "m")
        async with unchanged(store):
            for value in (float("nan"), float("inf"), float("-inf")):
                for content in (value, [value], {"a": [{"b": value}]}):
                    with pytest.raises(InvalidArgumentError):
                        await store.save_messages([NewMessage("t", "user", content)])
                    with pytest.raises(InvalidArgumentError):
                        await store.update_messages([MessageUpdate("m", content=content)])

    @case("content.not_json", "4.3.any", "3.validate")
    async def test_what_json_does_not_have_is_refused(self, store: Store) -> None:
        """Bytes, sets, tuples, dates, objects and keys that are no strings are errors, never converted."""
        await store.create_thread("user-1", thread_id="t")
        wrong: list[Any] = [
            b"x",
            {1},
            (1,),
            NOON,
            object(),
            1j,
            {1: "a"},
            {None: 1},
            {True: 1},
            [{"a": (1,)}],
            {"a": {2: 3}},
        ]
        async with unchanged(store):
            for content in wrong:
                with pytest.raises(InvalidArgumentError):
                    await store.save_messages([NewMessage("t", "user", content)])

    @case("content.megabytes", "4.3.any", "4.exact")
    async def test_a_content_of_a_megabyte_survives(self, store: Store) -> None:
        """A megabyte of mixed text in one message comes back."""
        await content_round_trip(store, {"text": "é\U0001f600 \0" * 150_000})


class TestMetadata(AdapterSuite):
    """metadata: a JSON object with limits."""

    @case("metadata.nested", "4.4.nested", "4.exact")
    async def test_nested_values_and_nulls_are_kept(self, store: Store) -> None:
        """Objects, lists, empty ones and nulls inside metadata come back, in order."""
        await metadata_round_trip(
            store, {"z": None, "a": {"y": [1, {"x": None}], "b": {}}, "l": [], "t": [True, [None]]}
        )
        await metadata_round_trip(store, {})

    @case("metadata.numbers", "4.4.numbers", "4.exact")
    async def test_numbers_keep_value_and_kind(self, store: Store) -> None:
        """int64 and every finite float, -0.0 and 1e16 among them, come back as they were."""
        await metadata_round_trip(store, {f"n{index}": value for index, value in enumerate(NUMBERS)})
        await metadata_round_trip(store, {"deep": [list(NUMBERS)]})

    @case("metadata.hostile", "4.exact", "5.4.injection")
    async def test_hostile_keys_and_values_are_kept(self, store: Store) -> None:
        """Every hostile string is a key and a value of metadata."""
        await metadata_round_trip(
            store, {text: text for text in HOSTILE} | {"$set": {"$inc": 1}, "a.b.c": 1, "": ""}
        )

    @case("metadata.depth", "4.4.limits")
    async def test_64_levels_are_legal_and_more_are_not(self, store: Store) -> None:
        """64 levels come back; 65 are an error."""
        await metadata_round_trip(store, deep_dict(64))
        async with unchanged(store):
            for metadata in (deep_dict(65), {"a": deep_list(64)}, deep_dict(50_000)):
                with pytest.raises(InvalidArgumentError):
                    await store.create_thread("user-1", metadata=metadata)

    @case("metadata.size", "4.4.limits")
    async def test_64_kib_are_legal_and_more_are_not(self, store: Store) -> None:
        """Exactly 64 KiB encoded comes back; one byte more is an error, counted in bytes of UTF-8."""
        room = 64 * 1024 - len('{"a":""}')
        await metadata_round_trip(store, {"a": "x" * room})
        await metadata_round_trip(store, {"a": "é" * (room // 2)})
        async with unchanged(store):
            for text in ("x" * (room + 1), "é" * (room // 2 + 1), "\n" * (room // 2 + 1)):
                with pytest.raises(InvalidArgumentError):
                    await store.create_thread("user-1", metadata={"a": text})

    @case("metadata.illegal", "4.4.limits", "4.4.numbers", "3.validate")
    async def test_what_breaks_a_rule_is_refused(self, store: Store) -> None:
        """No object, NaN, infinities, integers beyond int64, bytes, tuples, keys that are no strings:
        nothing written.
        """
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "m")
        wrong: list[Any] = [
            [], "x", 7, True, [("a", 1)], {"a": float("nan")}, {"a": {"b": [float("inf")]}}, {"a": 2**63},
            {"a": -(2**63) - 1}, {"a": [10**100]}, {"a": b"x"}, {"a": (1,)}, {"a": {1}}, {1: 1}, {None: 1},
            {"a": {2: 1}}, {"a": NOON}, {"a": object()},
        ]  # fmt: skip
        async with unchanged(store):
            for metadata in wrong:
                with pytest.raises(InvalidArgumentError):
                    await store.create_thread("user-1", metadata=metadata)
                with pytest.raises(InvalidArgumentError):
                    await store.update_thread("t", metadata=metadata)
                with pytest.raises(InvalidArgumentError):
                    await store.save_messages([NewMessage("t", "user", 1, metadata=metadata)])
                with pytest.raises(InvalidArgumentError):
                    await store.update_messages([MessageUpdate("m", metadata=metadata)])
                with pytest.raises(InvalidArgumentError):
                    await store.update_resource("user-1", metadata=metadata)
                with pytest.raises(InvalidArgumentError):
                    await store.save_thread(
                        Thread(
                            id="t", resource_id="user-1", metadata=metadata, created_at=NOON, updated_at=NOON
                        )
                    )
                with pytest.raises(InvalidArgumentError):
                    await store.save_resource(
                        Resource(id="user-1", metadata=metadata, created_at=NOON, updated_at=NOON)
                    )

    @case("metadata.null_deletes_nothing", "4.7.shallow", "5.4.null")
    async def test_a_null_is_a_value_on_insert_and_on_update(self, store: Store) -> None:
        """{"a": None} is stored, found as null, and still there after an update that sets it again."""
        await store.create_thread("user-1", thread_id="t", metadata={"a": None})
        await add(store, "t", "m", metadata={"a": None})

        await store.update_thread("t", metadata={"a": None, "b": 1})
        await store.update_messages([MessageUpdate("m", metadata={"a": None, "b": 1})])

        assert [t.metadata for t in (await store.list_threads(where={"a": None})).items] == [
            {"a": None, "b": 1}
        ]
        assert [m.metadata for m in (await store.list_messages("t", where={"a": None})).items] == [
            {"a": None, "b": 1}
        ]


class TestCopies(AdapterSuite):
    """Nothing is shared between what a caller holds and what is stored."""

    @case("copies.on_write", "4.plain")
    async def test_changing_what_was_given_changes_nothing_stored(self, store: Store) -> None:
        """Dicts and lists are copied on write: the caller's later changes, also to what was returned, stay
        outside.
        """
        content: dict[str, Any] = {"a": [1]}
        metadata: dict[str, Any] = {"b": {"c": [2]}}
        thread = await store.create_thread("user-1", thread_id="t", metadata=metadata)
        (saved,) = await store.save_messages([NewMessage("t", "user", content, id="m", metadata=metadata)])

        content["a"].append("changed")
        metadata["b"]["c"].append("changed")
        saved.content["x"] = "changed"
        saved.metadata["b"]["x"] = "changed"
        thread.metadata["x"] = "changed"

        (message,) = await store.get_messages(["m"])
        stored = await store.get_thread("t")
        assert stored is not None
        assert (message.content, message.metadata, stored.metadata) == (
            {"a": [1]},
            {"b": {"c": [2]}},
            {"b": {"c": [2]}},
        )

    @case("copies.on_read", "4.plain")
    async def test_each_read_is_fresh(self, store: Store) -> None:
        """Two reads share no dict or list, and what is inside is plain."""
        await store.create_thread("user-1", thread_id="t", metadata={"a": {"b": [1]}})
        await store.save_messages([NewMessage("t", "user", {"a": [{"b": 1}]}, id="m")])

        (first,), (second,) = await store.get_messages(["m"]), await store.get_messages(["m"])
        first.content["a"][0]["b"] = 2
        thread = await store.get_thread("t")
        assert thread is not None
        thread.metadata["a"]["b"].append(2)
        again = await store.get_thread("t")
        assert again is not None

        assert second.content == {"a": [{"b": 1}]}
        assert again.metadata == {"a": {"b": [1]}}
        assert (type(second.content), type(second.content["a"]), type(again.metadata["a"])) == (
            dict,
            list,
            dict,
        )

    @case("copies.immutable", "4.plain")
    async def test_models_are_immutable(self, store: Store) -> None:
        """Threads, messages, resources, memories and pages refuse assignment."""
        thread = await store.create_thread("user-1", thread_id="t")
        (message,) = await add(store, "t", "m")
        resource = await store.update_resource("user-1", metadata={})
        page = await store.list_messages("t")
        models: list[Any] = [thread, message, resource, page]
        for model in models:
            for field in ("id", "items", "metadata", "updated_at"):
                if hasattr(model, field):
                    with pytest.raises(AttributeError):
                        setattr(model, field, None)

    @case("copies.hidden_types", "4.plain", "4.exact")
    async def test_what_is_read_is_json(self, store: Store) -> None:
        """Everything read can be written as JSON by the standard library: no driver's types inside."""
        await store.create_thread("user-1", thread_id="t", metadata={"a": [1, 1.5, None, {"b": "x"}]})
        await store.save_messages(
            [NewMessage("t", "user", {"a": [1, 2**40, True]}, metadata={"i": 2**40}, id="m")]
        )

        (message,), thread = await store.get_messages(["m"]), await store.get_thread("t")
        assert thread is not None
        for value in (message.content, message.metadata, thread.metadata):
            exactly(json.loads(json.dumps(value)), value)
        for text in (message.id, message.role, thread.title):
            assert type(text) is str
        assert (type(message.seq), type(thread.message_count)) == (int, int)
