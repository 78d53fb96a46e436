"""Merges of working memory and of metadata: the exact result, the limits, many writers."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from threadkeep import Capability, InvalidArgumentError, MessageUpdate, NewMessage, Resource, Store
from threadkeep.jsontext import merge_patch

from ..cases import case
from ..databases import Database
from .base import AdapterSuite
from .samples import HOSTILE, NOON, NUMBERS, exactly, unchanged

__all__ = ["TestDocuments", "TestMergeMetadata", "TestMergeWorkingMemory"]

WRITERS = 24


def nested(levels: int) -> dict[str, Any]:
    """An object of so many levels."""
    inner: dict[str, Any] = {}
    for _ in range(levels - 1):
        inner = {"d": inner}
    return inner


async def merged(store: Store, *patches: dict[str, Any], onto: str | None = None) -> Any:
    """The document after merging patches, as it was returned and as it is read."""
    if onto is not None:
        await store.update_resource("user-1", working_memory=onto)
    text: str | None = None
    for patch in patches:
        resource = await store.merge_working_memory("user-1", patch)
        assert resource == await store.get_resource("user-1")
        text = resource.working_memory
    assert text is not None
    return json.loads(text)


class TestMergeWorkingMemory(AdapterSuite):
    """Deep merge as one operation."""

    requires = frozenset({Capability.ATOMIC_MERGE})

    @case("merge.first_creates", "4.10.first", "4.7.revision")
    async def test_a_first_merge_creates_the_resource(self, store: Store) -> None:
        """A merge into an absent resource creates it, with revision 1 and the patch as its document."""
        resource = await store.merge_working_memory("user-1", {"name": "Ada", "home": {"city": "Bern"}})

        assert json.loads(resource.working_memory or "") == {"name": "Ada", "home": {"city": "Bern"}}
        assert (resource.id, resource.metadata, resource.revision) == ("user-1", {}, 1)
        assert await store.get_resource("user-1") == resource

    @case("merge.objects_recurse", "4.10.deep")
    async def test_objects_are_merged_level_by_level(self, store: Store) -> None:
        """Objects recurse at every depth, and other keys stay."""
        found = await merged(
            store, {"a": {"b": {"c": 1, "d": 2}, "e": 3}, "f": 4}, {"a": {"b": {"c": 9, "x": {"y": 1}}}}
        )

        exactly(found, {"a": {"b": {"c": 9, "d": 2, "x": {"y": 1}}, "e": 3}, "f": 4})

    @case("merge.null_deletes_key", "4.10.deep")
    async def test_null_deletes_the_key_and_keeps_its_siblings(self, store: Store) -> None:
        """A patch of null removes one key and touches no other; an absent key is no error."""
        found = await merged(
            store,
            {"home": {"city": "Bern", "zip": "3011"}, "a": 1},
            {"home": {"zip": None, "x": None}, "b": None},
        )

        exactly(found, {"home": {"city": "Bern"}, "a": 1})

    @case("merge.null_in_new_branch", "4.10.deep", "4.10.first")
    async def test_null_deletes_in_newly_created_branches_too(self, store: Store) -> None:
        """A null inside a new object is not stored, on the first write and on later ones."""
        exactly(await merged(store, {"a": {"b": None, "c": 1}, "d": None}), {"a": {"c": 1}})
        exactly(await merged(store, {"e": {"f": {"g": None}}}), {"a": {"c": 1}, "e": {"f": {}}})
        exactly(await merged(store, {"a": {"c": {"x": None}}}), {"a": {"c": {}}, "e": {"f": {}}})

    @case("merge.null_in_first_write", "4.10.deep", "4.10.first")
    async def test_a_first_patch_of_nulls_alone_makes_an_empty_object(self, store: Store) -> None:
        """A first patch {"a": {"b": null}} makes {"a": {}}."""
        exactly(await merged(store, {"a": {"b": None}}), {"a": {}})

    @case("merge.null_in_arrays_stays", "4.10.deep")
    async def test_null_inside_an_array_is_a_value(self, store: Store) -> None:
        """Arrays replace whole, with the nulls and objects they hold as they are."""
        exactly(await merged(store, {"a": [1, None, {"b": None}]}), {"a": [1, None, {"b": None}]})

    @case("merge.arrays_replace", "4.10.deep")
    async def test_arrays_replace(self, store: Store) -> None:
        """An array replaces what was there: no appending, no element-wise merge; so do empty ones."""
        exactly(await merged(store, {"a": [1, 2, 3], "b": [1]}, {"a": [9], "b": []}), {"a": [9], "b": []})

    @case("merge.scalars_replace_all_kinds", "4.10.deep")
    async def test_each_kind_replaces_each_other_kind(self, store: Store) -> None:
        """Scalars, arrays and objects replace one another; an object on a scalar starts from an empty
        object.
        """
        kinds: list[Any] = [1, "a", True, [1], {"x": 1}, 1.5, False, "", [], 0]
        for old in kinds:
            for new in kinds:
                await store.update_resource("user-1", working_memory=json.dumps({"k": old}))
                objects = isinstance(old, dict) and isinstance(new, dict)
                expected: Any = {**old, **new} if objects else new  # pyright: ignore[reportUnknownVariableType]  (JSON)
                exactly(await merged(store, {"k": new}), {"k": expected})

    @case("merge.empty_patch", "4.10.deep", "4.7.revision")
    async def test_an_empty_patch_keeps_the_document(self, store: Store) -> None:
        """An empty patch, or an empty object inside one, keeps what is there; the write still raises the
        revision.
        """
        await merged(store, {"a": {"b": 1}})
        before = await store.get_resource("user-1")
        assert before is not None

        exactly(await merged(store, {}, {"a": {}}), {"a": {"b": 1}})
        after = await store.get_resource("user-1")
        assert after is not None
        assert after.revision > before.revision
        assert after.updated_at > before.updated_at

    @case("merge.replaces_text", "4.10.first")
    async def test_stored_text_that_is_no_object_is_replaced(self, store: Store) -> None:
        """Markdown, arrays, scalars, broken JSON and no text at all are replaced by the merged patch."""
        for text in ("# notes", "[1, 2]", '"text"', "7", "null", "true", "{broken", "", '{"a": NaN}', " "):
            exactly(await merged(store, {"k": {"a": None, "b": 1}}, onto=text), {"k": {"b": 1}})
        await store.update_resource("user-1", working_memory=None)
        exactly(await merged(store, {"k": 1}), {"k": 1})

    @case("merge.onto_written_json", "4.10.deep")
    async def test_a_merge_continues_a_document_that_was_written_as_text(self, store: Store) -> None:
        """A JSON object written with update_resource, with white space and escapes, is merged into."""
        found = await merged(store, {"b": {"d": 2}}, onto=' \n{ "a" : "\\u00e9\\n" , "b":{"c" : 1.50} }\t')

        exactly(found, {"a": "é\n", "b": {"c": 1.5, "d": 2}})

    @case("merge.exact_numbers", "4.10.exact")
    async def test_numbers_keep_value_and_kind(self, store: Store) -> None:
        """Integers and floats, stored and patched, stay what they are: 1 and 1.0, -0.0, 1e16, 2**53 + 1,
        subnormals.
        """
        document = {f"n{index}": value for index, value in enumerate(NUMBERS)}
        exactly(await merged(store, document), document)
        exactly(await merged(store, {"other": {"x": 1.0}}), {**document, "other": {"x": 1.0}})

    @case("merge.hostile_keys", "4.10.exact", "5.4.injection")
    async def test_any_key_and_text_is_plain(self, store: Store) -> None:
        """Keys and values with dots, dollars, quotes, brackets and SQL are merged as they are."""
        document: dict[str, Any] = {
            key: {key: key} for key in (*HOSTILE, "", "a.b", "$", "$.a", "[0]", "#-1", "__proto__")
        }
        exactly(await merged(store, document), document)
        patch = {key: {key: None, "new": 1} for key in document}
        exactly(await merged(store, patch), {key: {"new": 1} for key in document})

    @case("merge.key_order", "4.10.exact")
    async def test_keys_keep_their_place(self, store: Store) -> None:
        """Existing keys keep their place and new ones follow, also when values are replaced."""
        found = await merged(store, {"b": 1, "a": 2, "c": 3}, {"a": 9, "0": 1, "b": {"z": 1, "y": 2}})

        assert list(found) == ["b", "a", "c", "0"]
        assert list(found["b"]) == ["z", "y"]

    @case("merge.as_the_core_does", "4.10.exact")
    async def test_the_result_is_that_of_the_cores_merge_function(
        self, store: Store, rng: random.Random
    ) -> None:
        """Random documents and patches give what the core's one merge function gives."""
        for _ in range(40):
            document, patch = random_object(rng, 3), random_object(rng, 3)
            found = await merged(store, patch, onto=json.dumps(document))
            exactly(found, merge_patch(document, patch))

    @case("merge.limits", "4.10.limits")
    async def test_patches_that_break_a_rule_are_refused(self, store: Store) -> None:
        """Patches that are no objects, NaN, infinities, integers beyond int64, NUL, surrogates, depth:
        nothing written.
        """
        await store.merge_working_memory("user-1", {"a": 1})
        wrong: list[Any] = [
            None, [], "x", 7, [("a", 1)], {"a": float("nan")}, {"a": [float("inf")]}, {"a": 2**63},
            {"a": -(2**63) - 1}, {"a": "x\0"}, {"a\0": 1}, {"a": "\ud800"}, {"\udfff": 1}, {1: 1},
            {"a": {None: 1}}, {"a": (1,)}, {"a": b"x"}, nested(65), {"a": "x" * 1024 * 1024},
        ]  # fmt: skip
        for patch in wrong:
            async with unchanged(store):
                with pytest.raises(InvalidArgumentError):
                    await store.merge_working_memory("user-1", patch)

    @case("merge.largest", "4.10.limits")
    async def test_a_document_may_be_a_mebibyte_but_not_more(self, store: Store) -> None:
        """Patches of more than the metadata's 64 KiB are fine; a result over 1 MiB is refused and writes
        nothing.
        """
        half = "x" * (512 * 1024)
        await store.merge_working_memory("user-1", {"a": half})

        async with unchanged(store):
            with pytest.raises(InvalidArgumentError):
                await store.merge_working_memory("user-1", {"b": half})
        exactly(await merged(store, {"a": None, "b": half}), {"b": half})

    @case("merge.deepest", "4.10.limits")
    async def test_a_document_may_have_64_levels(self, store: Store) -> None:
        """64 levels are merged exactly."""
        exactly(await merged(store, nested(64), {"e": 1}), {**nested(64), "e": 1})

    @case("merge.keeps_metadata", "3.omitted")
    async def test_a_merge_leaves_metadata_alone(self, store: Store) -> None:
        """A merge touches working memory, revision and updated_at only."""
        before = await store.update_resource("user-1", metadata={"a": 1}, working_memory='{"x": 1}')

        after = await store.merge_working_memory("user-1", {"y": 2})

        assert (after.metadata, after.created_at) == ({"a": 1}, before.created_at)
        assert after.revision == before.revision + 1
        assert after.updated_at > before.updated_at

    @case("merge.many_writers", "4.10.writers", "6.conditional")
    async def test_24_concurrent_writers_lose_nothing(self, database: Database) -> None:
        """24 tasks on two stores, each merging keys of its own, all succeed, and every key is there."""
        stores = [await database.open(), await database.open()]

        async def write(index: int) -> None:
            for step in range(3):
                await stores[index % 2].merge_working_memory("user-1", {f"w{index}": {f"s{step}": step}})

        await asyncio.gather(*[write(index) for index in range(WRITERS)])

        resource = await stores[0].get_resource("user-1")
        assert resource is not None
        expected = {f"w{index}": {f"s{step}": step for step in range(3)} for index in range(WRITERS)}
        assert json.loads(resource.working_memory or "") == expected
        assert resource.revision == 3 * WRITERS

    @case("merge.repeat", "7.repeat")
    async def test_a_merge_of_absolute_values_can_be_repeated(self, store: Store) -> None:
        """The same patch merged twice gives the same document as merged once."""
        patch = {"a": {"b": None, "c": [1]}, "d": "x"}
        once = await merged(store, patch, onto='{"a": {"b": 1, "e": 2}}')

        exactly(await merged(store, patch), once)

    @case("merge.imported_revision", "4.7.revision", "3.imports")
    async def test_a_merge_continues_an_imported_revision(self, store: Store) -> None:
        """After save_resource a merge raises the imported revision by one."""
        await store.save_resource(
            Resource(id="user-1", working_memory='{"a": 1}', revision=7, created_at=NOON, updated_at=NOON)
        )

        resource = await store.merge_working_memory("user-1", {"b": 2})

        assert (resource.revision, resource.created_at) == (8, NOON)
        exactly(json.loads(resource.working_memory or ""), {"a": 1, "b": 2})


def random_object(rng: random.Random, depth: int) -> dict[str, Any]:
    """A random JSON object; nulls among its values, as patches have."""
    return {rng.choice("abcdé$."): random_value(rng, depth) for _ in range(rng.randint(0, 5))}


def random_value(rng: random.Random, depth: int) -> Any:
    """A random JSON value."""
    kind = rng.randrange(7 if depth else 5)
    if kind == 5:
        return [random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    if kind == 6:
        return random_object(rng, depth - 1)
    return (None, rng.choice(NUMBERS), rng.choice(HOSTILE), rng.random() < 0.5, rng.uniform(-1e6, 1e6))[kind]


class TestDocuments(AdapterSuite):
    """Working memory as text."""

    @case("documents.any_text", "4.exact", "4.1.forbidden")
    async def test_any_text_is_a_document(self, store: Store) -> None:
        """Markdown, broken JSON, JSON of other kinds and hostile text come back as they were, byte for
        byte.
        """
        await store.create_thread("user-1", thread_id="t")
        texts = [
            *HOSTILE,
            "",
            "# Title\r\n\r\n- a\n",
            "{broken",
            "[1, 1.50, NaN]",
            '"x"',
            '  { "b" : 1.50,"a":1e2 }\n',
            "{}",
        ]
        for text in texts:
            assert (await store.update_resource("user-1", working_memory=text)).working_memory == text
            resource = await store.get_resource("user-1")
            thread = await store.update_thread("t", working_memory=text)
            assert resource is not None
            assert resource.working_memory == thread.working_memory == text
            assert await store.get_thread("t") == thread

    @case("documents.duplicate_keys", "4.10.duplicates", "4.10.limits")
    async def test_a_json_object_keeps_the_rules_of_metadata(self, store: Store) -> None:
        """An object with duplicate keys, integers beyond int64, NUL or surrogates in strings, or 65 levels
        is refused.
        """
        await store.create_thread("user-1", thread_id="t")
        wrong = [
            '{"a": 1, "a": 2}', '{"x": {"a": 1, "a": 1}}', '{"a": 9223372036854775808}', '{"a": 1e400}',
            '{"a": "\\u0000"}', '{"a": "\\ud800"}', json.dumps(nested(65)), ' {"a":1,"a":1} ',
        ]  # fmt: skip
        async with unchanged(store):
            for text in wrong:
                with pytest.raises(InvalidArgumentError):
                    await store.update_resource("user-1", working_memory=text)
                with pytest.raises(InvalidArgumentError):
                    await store.update_thread("t", working_memory=text)

    @case("documents.size", "4.10.limits")
    async def test_a_document_may_have_a_mebibyte(self, store: Store) -> None:
        """1 MiB encoded comes back whole; one byte more is refused, of any text."""
        text = "é" * (512 * 1024)

        assert (await store.update_resource("user-1", working_memory=text)).working_memory == text
        for long in (text + "x", "x" * (1024 * 1024 + 1)):
            async with unchanged(store):
                with pytest.raises(InvalidArgumentError):
                    await store.update_resource("user-1", working_memory=long)

    @case("documents.forbidden", "4.1.forbidden")
    async def test_a_document_has_no_nul_and_no_lone_surrogate(self, store: Store) -> None:
        """NUL, lone surrogates and things that are no text are refused as working memory."""
        await store.create_thread("user-1", thread_id="t")
        wrong: list[Any] = ["a\0b", "\ud800", 7, {"a": 1}, b"x", ["x"], True]
        async with unchanged(store):
            for text in wrong:
                with pytest.raises(InvalidArgumentError):
                    await store.update_resource("user-1", working_memory=text)
                with pytest.raises(InvalidArgumentError):
                    await store.update_thread("t", working_memory=text)


class TestMergeMetadata(AdapterSuite):
    """Shallow merges of metadata, whose limits hold for the result."""

    @case("metadata.merge.limit_of_the_result", "4.4.merged", "4.4.limits")
    async def test_the_size_limit_holds_for_the_result(self, store: Store) -> None:
        """Two patches that are small enough apart and too large together: the second is refused, nothing
        written.
        """
        big = "x" * (40 * 1024)
        await store.create_thread("user-1", thread_id="t", metadata={"a": big})
        await store.save_messages([NewMessage("t", "user", 1, id="m", metadata={"a": big})])
        await store.update_resource("user-1", metadata={"a": big})

        async with unchanged(store):
            with pytest.raises(InvalidArgumentError):
                await store.update_thread("t", metadata={"b": big})
            with pytest.raises(InvalidArgumentError):
                await store.update_messages([MessageUpdate("m", metadata={"b": big})])
            with pytest.raises(InvalidArgumentError):
                await store.update_resource("user-1", metadata={"b": big})
        assert (await store.update_thread("t", metadata={"a": None, "b": big})).metadata == {
            "a": None,
            "b": big,
        }
        replaced = await store.update_thread("t", metadata={"c": big}, replace_metadata=True)
        assert replaced.metadata == {"c": big}

    @case("metadata.merge.many_writers", "4.10.writers", "6.conditional")
    async def test_24_concurrent_writers_of_metadata_lose_nothing(self, store: Store) -> None:
        """24 tasks, each merging a key of its own into one thread, one message and one resource: every key
        is there.
        """
        await store.create_thread("user-1", thread_id="t")
        await store.save_messages([NewMessage("t", "user", 1, id="m")])

        async def write(index: int) -> None:
            key = {f"w{index}": index}
            await store.update_thread("t", metadata=key)
            await store.update_messages([MessageUpdate("m", metadata=key)])
            await store.update_resource("user-1", metadata=key)

        await asyncio.gather(*[write(index) for index in range(WRITERS)])

        expected = {f"w{index}": index for index in range(WRITERS)}
        thread, resource = await store.get_thread("t"), await store.get_resource("user-1")
        assert thread is not None
        assert resource is not None
        assert (
            thread.metadata == resource.metadata == (await store.get_messages(["m"]))[0].metadata == expected
        )

    @case("metadata.merge.keeps_exactness", "4.4.numbers", "4.7.shallow")
    async def test_a_merge_keeps_what_it_does_not_name_exactly(self, store: Store) -> None:
        """Numbers, nesting and key order of untouched keys are the same before and after a merge."""
        metadata: dict[str, Any] = {f"n{index}": value for index, value in enumerate(NUMBERS)}
        metadata |= {"deep": {"z": [1.0, {"y": -0.0}], "a": None}, "": 1, "a.b": {"$ne": 1}}
        await store.create_thread("user-1", thread_id="t", metadata=metadata)

        after = await store.update_thread("t", metadata={"new": 1e16})

        exactly(after.metadata, {**metadata, "new": 1e16})
        thread = await store.get_thread("t")
        assert thread is not None
        exactly(thread.metadata, {**metadata, "new": 1e16})

    @case("metadata.merge.hostile_keys", "4.7.shallow", "5.4.injection")
    async def test_keys_are_names_and_never_paths(self, store: Store) -> None:
        """A patch key with dots, dollars or quotes changes the key of exactly that name."""
        keys = ("a.b", "$set", "a", "", "x') --", "a[0]", "$", "__proto__", "b\\")
        await store.create_thread("user-1", thread_id="t", metadata={"a": {"b": 1}, "keep": [1]})

        after = await store.update_thread("t", metadata={key: {"new": key} for key in keys})

        exactly(after.metadata, {"a": {"new": "a"}, "keep": [1], **{k: {"new": k} for k in keys if k != "a"}})
