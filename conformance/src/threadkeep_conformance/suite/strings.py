"""Strings outside content: lengths, forbidden characters, exact comparison."""

from __future__ import annotations

from typing import Any

import pytest

from threadkeep import InvalidArgumentError, MessageUpdate, NewMessage, Store

from ..cases import case
from .base import AdapterSuite
from .samples import HOSTILE, ids, unchanged

__all__ = ["TestStrings"]


class TestStrings(AdapterSuite):
    """Ids, roles, types and titles."""

    @case("strings.hostile_everywhere", "4.exact", "4.1.compare", "5.4.injection")
    async def test_hostile_strings_are_ordinary_ids_roles_types_and_titles(self, store: Store) -> None:
        """Every hostile string is an id of a resource, thread and message, a role, a type and a title,
        found by itself.
        """
        for text in HOSTILE:
            await store.create_thread(text, thread_id=text, title=text)
            await store.save_messages([NewMessage(text, text, text, id=text, type=text, resource_id=text)])
            await store.update_resource(text, metadata={"name": text})

        for text in HOSTILE:
            thread, resource = await store.get_thread(text, resource_id=text), await store.get_resource(text)
            (message,) = (await store.list_messages(text, resource_id=text)).items
            assert thread is not None
            assert resource is not None
            assert (thread.id, thread.resource_id, thread.title) == (text, text, text)
            assert (message.id, message.thread_id, message.resource_id) == (text, text, text)
            assert (message.role, message.type, message.content) == (text, text, text)
            assert (resource.id, resource.metadata) == (text, {"name": text})
            assert ids(await store.list_threads(resource_id=text)) == [text]

    @case("strings.longest", "4.1.length")
    async def test_the_longest_strings_are_legal(self, store: Store) -> None:
        """255 characters of four bytes each for ids, roles and types, 1,000 for titles: stored, filtered,
        paged.
        """
        long = "\U0001f600" * 255
        await store.create_thread(long, thread_id=long, title="\U0001f600" * 1000, metadata={"k" * 128: long})
        await store.save_messages([NewMessage(long, long, 0, id=long, type=long, metadata={"k" * 128: long})])

        thread = await store.get_thread(long)
        assert thread is not None
        assert thread.title == "\U0001f600" * 1000
        assert ids(
            await store.list_threads(resource_id=long, where={"k" * 128: long}, order_by="updated_at")
        ) == [long]
        page = await store.list_messages(long, where={"k" * 128: long})
        assert (ids(page), page.items[0].role, page.items[0].type) == ([long], long, long)

    @case("strings.too_long_or_empty", "4.1.length", "3.validate")
    async def test_empty_and_overlong_strings_are_refused(self, store: Store) -> None:
        """Ids, roles and types of 0 and 256 characters and titles of 1,001 are errors; nothing is written."""
        await store.create_thread("user-1", thread_id="t")
        async with unchanged(store):
            for bad in ("", "x" * 256):
                with pytest.raises(InvalidArgumentError):
                    await store.create_thread(bad)
                with pytest.raises(InvalidArgumentError):
                    await store.create_thread("user-1", thread_id=bad)
                for message in (
                    NewMessage("t", "user", 0, id=bad),
                    NewMessage(bad, "user", 0),
                    NewMessage("t", bad, 0),
                    NewMessage("t", "user", 0, type=bad),
                    NewMessage("t", "user", 0, resource_id=bad),
                ):
                    with pytest.raises(InvalidArgumentError):
                        await store.save_messages([message])
                for change in (
                    MessageUpdate("m", role=bad),
                    MessageUpdate("m", type=bad),
                    MessageUpdate(bad, role="x"),
                ):
                    with pytest.raises(InvalidArgumentError):
                        await store.update_messages([change])
            for title in ("x" * 1001, None, 7):
                wrong: Any = title
                with pytest.raises(InvalidArgumentError):
                    await store.create_thread("user-1", title=wrong)
                with pytest.raises(InvalidArgumentError):
                    await store.update_thread("t", title=wrong)

    @case("strings.forbidden", "4.1.forbidden", "3.validate")
    async def test_nul_and_lone_surrogates_are_refused_outside_content(self, store: Store) -> None:
        """NUL and lone surrogates in ids, roles, types, titles, and metadata keys and values are errors."""
        await store.create_thread("user-1", thread_id="t")
        async with unchanged(store):
            for bad in ("a\0b", "\0", "\ud800", "a\udfff", "\udc00\ud800"):
                for message in (
                    NewMessage("t", "user", 0, id=bad),
                    NewMessage("t", bad, 0),
                    NewMessage("t", "user", 0, type=bad),
                    NewMessage("t", "user", 0, metadata={bad: 1}),
                    NewMessage("t", "user", 0, metadata={"k": bad}),
                    NewMessage("t", "user", 0, metadata={"k": [{"deep": bad}]}),
                ):
                    with pytest.raises(InvalidArgumentError):
                        await store.save_messages([message])
                for arguments in (
                    {"resource_id": bad},
                    {"resource_id": "user-1", "thread_id": bad},
                    {"resource_id": "user-1", "title": bad},
                    {"resource_id": "user-1", "metadata": {bad: 1}},
                ):
                    with pytest.raises(InvalidArgumentError):
                        await store.create_thread(**arguments)  # pyright: ignore[reportArgumentType]  (on purpose)
                with pytest.raises(InvalidArgumentError):
                    await store.get_thread(bad)
                with pytest.raises(InvalidArgumentError):
                    await store.get_messages([bad])

    @case("strings.ids_compare_exactly", "4.1.compare")
    async def test_ids_are_equal_only_code_point_by_code_point(self, store: Store) -> None:
        """Ids that differ in case, accents, normalisation, trailing spaces or invisible characters are
        different.
        """
        names = (
            "a",
            "A",
            "a ",
            " a",
            "á",
            "a\u0301",
            "a\u200b",
            "ａ",
            "\ufeffa",
            "a\x01",
            "ß",
            "ss",
            "ẞ",
            "İ",
            "i",
            "ı",
            "I",
        )
        for name in names:
            await store.create_thread("user-1", thread_id=name, title=name)
        await store.save_messages([NewMessage("a", "user", name, id=name) for name in names])

        for name in names:
            thread = await store.get_thread(name)
            assert thread is not None
            assert thread.title == name
            assert [m.content for m in await store.get_messages([name])] == [name]
        assert await store.delete_messages(["A"]) == 1
        assert len((await store.list_messages("a", per_page=None)).items) == len(names) - 1

    @case("strings.subclasses", "4.plain", "3.validate")
    async def test_subclasses_of_str_are_stored_as_plain_strings(self, store: Store) -> None:
        """A str subclass (an enum member, say) is stored as the string it holds and read as a plain str."""

        class Text(str):
            __slots__ = ()

        await store.create_thread(
            Text("user-1"), thread_id=Text("t"), title=Text("title"), metadata={Text("k"): Text("v")}
        )
        await store.save_messages([NewMessage("t", Text("user"), Text("content"), id="m")])

        thread, (message,) = await store.get_thread("t"), await store.get_messages(["m"])
        assert thread is not None
        for value in (
            thread.id,
            thread.resource_id,
            thread.title,
            *thread.metadata,
            *thread.metadata.values(),
        ):
            assert type(value) is str
        assert (type(message.role), type(message.content)) == (str, str)
        assert ids(await store.list_threads(where={"k": Text("v")})) == ["t"]
