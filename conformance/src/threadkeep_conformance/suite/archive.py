"""Archive memories: adding, recalling, listing, pinning, deleting."""

from __future__ import annotations

from typing import Any

import pytest

from threadkeep import (
    Actor,
    AlreadyExistsError,
    ArchiveMemory,
    InvalidArgumentError,
    NewMemory,
    NotFoundError,
    Store,
)

from ..cases import case
from .base import AdapterSuite
from .samples import HOSTILE, NOON, at, unchanged

__all__ = ["TestArchive", "TestRecall"]

ADA = Actor("user", "ada")
BOB = Actor("user", "bob")
GUEST = Actor("end_user", "ada")
SHARED = Actor("shared")


def texts(memories: list[ArchiveMemory]) -> list[str]:
    """The contents, in order."""
    return [memory.content for memory in memories]


class TestArchive(AdapterSuite):
    """add_memories, save_memories, list_memories, pin_memory, delete_memories."""

    @case("memories.add.strings", "3.memories", "4.exact")
    async def test_strings_become_memories(self, store: Store) -> None:
        """Each string becomes an unpinned memory of the actor, with a random id from 1 to 2**53 - 1 and a
        time.
        """
        added = await store.add_memories(ADA, ["likes tea", "lives in Bern"])

        assert texts(added) == ["likes tea", "lives in Bern"]
        assert {(m.actor_type, m.actor_id, m.pinned) for m in added} == {("user", "ada", False)}
        assert all(1 <= m.id < 2**53 for m in added)
        assert len({m.id for m in added}) == 2
        assert (await store.list_memories(ADA)).items == added[::-1]

    @case("memories.add.one_string", "3.memories")
    async def test_a_lone_string_is_one_memory(self, store: Store) -> None:
        """A string is one memory, never a list of letters; an empty list adds nothing."""
        assert texts(await store.add_memories(ADA, "likes tea")) == ["likes tea"]
        assert await store.add_memories(ADA, []) == []
        assert len((await store.list_memories()).items) == 1

    @case("memories.add.new_memory", "3.memories", "4.exact")
    async def test_a_new_memory_keeps_what_it_is_given(self, store: Store) -> None:
        """NewMemory keeps id, pin and time; the largest id comes back exactly."""
        given = [NewMemory("a", id=2**53 - 1, pinned=True, created_at=NOON), NewMemory("b", id=1)]

        added = await store.add_memories(ADA, given)

        assert [(m.id, m.content, m.pinned) for m in added] == [(2**53 - 1, "a", True), (1, "b", False)]
        assert added[0].created_at == NOON
        assert sorted((await store.list_memories(ADA)).items, key=lambda m: m.id) == sorted(
            added, key=lambda m: m.id
        )

    @case("memories.add.taken_id", "3.memories", "7.repeat")
    async def test_a_taken_id_is_an_error_and_nothing_is_added(self, store: Store) -> None:
        """A taken id is AlreadyExistsError, for any actor; nothing of the batch is added."""
        await store.add_memories(ADA, [NewMemory("first", id=7)])

        for actor in (ADA, BOB, SHARED):
            async with unchanged(store):
                with pytest.raises(AlreadyExistsError) as taken:
                    await store.add_memories(actor, [NewMemory("new", id=8), NewMemory("second", id=7)])
            assert (taken.value.kind, taken.value.identifier) == ("memory", "7")

    @case("memories.add.twice_in_a_batch", "3.memories", "3.validate")
    async def test_an_id_is_given_once_in_a_batch(self, store: Store) -> None:
        """Two equal ids in one call are an error; nothing is added."""
        async with unchanged(store):
            with pytest.raises(InvalidArgumentError):
                await store.add_memories(ADA, [NewMemory("a", id=7), NewMemory("b", id=7)])

    @case("memories.add.invalid", "8.length", "3.validate", "4.1.forbidden")
    async def test_memories_and_actors_that_break_a_rule_are_refused(self, store: Store) -> None:
        """Empty and overlong texts, NUL, surrogates, ids out of range, naive times, and impossible actors
        are errors.
        """
        naive = NOON.replace(tzinfo=None)
        odd: list[Any] = [0, -1, 2**53, True, 1.5, "7"]
        texts_: list[Any] = ["", "x" * 2001, "a\0", "\ud800", 7, None, b"x", {"a": 1}]
        wrong: list[Any] = [
            *texts_,
            *[NewMemory(text) for text in texts_],
            *[NewMemory("x", id=i) for i in odd],
        ]
        wrong += [NewMemory("x", created_at=naive), NewMemory("x", pinned=1)]  # pyright: ignore[reportArgumentType]  (on purpose)
        async with unchanged(store):
            for memory in wrong:
                with pytest.raises(InvalidArgumentError):
                    await store.add_memories(ADA, ["fine", memory])
            kinds: list[Any] = ["User", "", None, "agent", {"$ne": ""}]
            actors: list[Any] = [Actor(kind, "ada") for kind in kinds]
            actors += [
                Actor("user"),
                Actor("user", ""),
                Actor("end_user", "x" * 256),
                Actor("shared", "ada"),
                "ada",
                None,
            ]
            for actor in actors:
                with pytest.raises(InvalidArgumentError):
                    await store.add_memories(actor, ["x"])
                with pytest.raises(InvalidArgumentError):
                    await store.recall_memories(actor)

    @case("memories.add.longest", "8.length", "4.exact")
    async def test_2000_characters_of_any_kind_are_kept(self, store: Store) -> None:
        """A memory of 2,000 characters of four bytes each, and hostile texts, come back as they were."""
        given = ["\U0001f600" * 2000, "ß" * 2000, *HOSTILE]

        await store.add_memories(ADA, given)

        assert texts((await store.list_memories(ADA)).items)[::-1] == given

    @case("memories.save.keeps_all", "3.imports")
    async def test_saving_keeps_what_it_is_given(self, store: Store) -> None:
        """save_memories stores id, actor, pin and time as they are, replaces equal ids, and is safe to
        repeat.
        """
        memories = [
            ArchiveMemory(
                id=5, content="a", pinned=True, actor_type="end_user", actor_id="ada", created_at=NOON
            ),
            ArchiveMemory(
                id=6, content="b", pinned=False, actor_type="shared", actor_id=None, created_at=at(1)
            ),
        ]
        await store.add_memories(BOB, [NewMemory("old text", id=5)])

        for _ in range(2):
            assert await store.save_memories(memories) == memories
            assert (await store.list_memories()).items == memories[::-1]
        assert texts(await store.recall_memories(BOB, "old")) == []

    @case("memories.list.by_actor", "3.memories", "5.3.reads")
    async def test_a_list_is_of_one_actor_or_of_all(self, store: Store) -> None:
        """list_memories gives one actor's memories, pinned too, without the shared ones; None gives
        everybody's.
        """
        for index, actor in enumerate((ADA, BOB, GUEST, SHARED)):
            await store.add_memories(
                actor, [NewMemory(f"m{index}", pinned=index % 2 == 0, created_at=at(index))]
            )

        for index, actor in enumerate((ADA, BOB, GUEST, SHARED)):
            assert texts((await store.list_memories(actor)).items) == [f"m{index}"]
        assert texts((await store.list_memories()).items) == ["m3", "m2", "m1", "m0"]
        assert (await store.list_memories(with_total=True, per_page=1)).total == 4

    @case("memories.list.newest_first", "8.recall", "4.5.total")
    async def test_the_newest_come_first_and_ties_by_rising_id(self, store: Store) -> None:
        """Order: newest first, then by id, rising."""
        given = [(3, at(1)), (9, at(2)), (1, at(1)), (2, at(2)), (7, at(1)), (10, at(1))]
        await store.add_memories(ADA, [NewMemory("x", id=i, created_at=moment) for i, moment in given])

        expected = [2, 9, 1, 3, 7, 10]
        assert [m.id for m in (await store.list_memories(ADA)).items] == expected
        assert [m.id for m in await store.recall_memories(ADA)] == expected
        assert [m.id for m in await store.recall_memories(ADA, limit=3)] == expected[:3]

    @case("memories.pin", "3.memories", "8.recall")
    async def test_pinning_keeps_a_memory_out_of_recall(self, store: Store) -> None:
        """A pinned memory is listed but not recalled; unpinned it is recalled again."""
        (memory,) = await store.add_memories(ADA, ["likes tea"])

        pinned = await store.pin_memory(memory.id)
        assert pinned.pinned is True
        assert await store.recall_memories(ADA) == []
        assert (await store.list_memories(ADA)).items == [pinned]
        assert await store.pin_memory(memory.id, pinned=False) == memory
        assert await store.recall_memories(ADA) == [memory]

    @case("memories.pin.unknown", "3.memories")
    async def test_an_unknown_memory_cannot_be_pinned(self, store: Store) -> None:
        """pin_memory of an unknown id is NotFoundError."""
        await store.add_memories(ADA, [NewMemory("x", id=1)])
        with pytest.raises(NotFoundError) as absent:
            await store.pin_memory(2)
        assert (absent.value.kind, absent.value.identifier) == ("memory", "2")

    @case("memories.delete.some", "3.memories", "4.8.absent", "5.3.writes")
    async def test_only_the_actors_own_memories_are_deleted(self, store: Store) -> None:
        """delete_memories deletes those of the ids that are the actor's own, and counts them."""
        await store.add_memories(ADA, [NewMemory("a", id=1), NewMemory("b", id=2)])
        await store.add_memories(BOB, [NewMemory("c", id=3)])
        await store.add_memories(GUEST, [NewMemory("d", id=4)])
        await store.add_memories(SHARED, [NewMemory("e", id=5)])

        assert await store.delete_memories(ADA, [1, 1, 3, 4, 5, 99]) == 1
        assert await store.delete_memories(ADA, [1]) == 0
        assert await store.delete_memories(SHARED, 5) == 1
        assert sorted(m.id for m in (await store.list_memories()).items) == [2, 3, 4]

    @case("memories.delete.all_or_none", "3.empty_list", "3.memories")
    async def test_none_deletes_all_and_an_empty_list_nothing(self, store: Store) -> None:
        """ids=None deletes all of the actor's memories, pinned too; an empty list deletes none."""
        await store.add_memories(ADA, ["a", NewMemory("b", pinned=True)])
        await store.add_memories(BOB, ["c"])

        assert await store.delete_memories(ADA, []) == 0
        assert await store.delete_memories(ADA) == 2
        assert texts((await store.list_memories()).items) == ["c"]

    @case("memories.add.order_of_a_batch", "4.5.batch", "8.recall")
    async def test_the_last_of_a_batch_is_the_newest(self, store: Store) -> None:
        """Memories added together without times are recalled in reverse order; later calls are newer."""
        await store.add_memories(ADA, [f"m{index}" for index in range(5)])
        await store.add_memories(ADA, ["later"])

        assert texts(await store.recall_memories(ADA)) == [
            "later",
            *[f"m{index}" for index in range(4, -1, -1)],
        ]


class TestRecall(AdapterSuite):
    """recall_memories."""

    @case("memories.recall.own_and_shared", "8.recall", "5.3.reads")
    async def test_an_actor_recalls_its_own_and_the_shared(self, store: Store) -> None:
        """Visible are the actor's own memories (type and id) and the shared ones; a shared actor sees the
        shared.
        """
        for index, actor in enumerate((ADA, BOB, GUEST, SHARED)):
            await store.add_memories(actor, [NewMemory(f"m{index}", created_at=at(index))])

        assert texts(await store.recall_memories(ADA)) == ["m3", "m0"]
        assert texts(await store.recall_memories(BOB)) == ["m3", "m1"]
        assert texts(await store.recall_memories(GUEST)) == ["m3", "m2"]
        assert texts(await store.recall_memories(SHARED)) == ["m3"]
        assert texts(await store.recall_memories(Actor("user", "ADA"))) == ["m3"]

    @case("memories.recall.substring", "8.substring")
    async def test_a_query_is_a_substring_anywhere(self, store: Store) -> None:
        """q matches at the start, in the middle and at the end, over words and lines; an empty q matches
        all.
        """
        await store.add_memories(ADA, ["Tea at five", "a cup of tea", "steam\ntea  pot", "coffee"])

        assert texts(await store.recall_memories(ADA, "tea")) == [
            "steam\ntea  pot",
            "a cup of tea",
            "Tea at five",
        ]
        assert texts(await store.recall_memories(ADA, "of t")) == ["a cup of tea"]
        assert texts(await store.recall_memories(ADA, "m\nt")) == ["steam\ntea  pot"]
        assert texts(await store.recall_memories(ADA, "a  p")) == ["steam\ntea  pot"]
        assert texts(await store.recall_memories(ADA, "teas")) == []
        assert len(await store.recall_memories(ADA, "")) == len(await store.recall_memories(ADA, None)) == 4

    @case("memories.recall.casefold", "8.substring")
    async def test_case_is_folded_on_both_sides(self, store: Store) -> None:
        """Unicode casefold of both: ß and SS, İ and its folded form, final sigma, Cherokee, ligatures."""
        pairs = [
            ("Straße 5", "STRASSE"), ("MASSE", "maße"), ("İstanbul", "i̇stanbul"), ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
            ("ﬁnance", "FINANCE"), ("ÉCOLE", "école"), ("ŒUVRE", "œuvre"), ("ꮳherokee", "Ꮳ"),
            ("ǅungla", "ǆUNGLA"),
        ]  # fmt: skip
        await store.add_memories(ADA, [text for text, _ in pairs])

        for text, query in pairs:
            expected = [other for other, _ in reversed(pairs) if query.casefold() in other.casefold()]
            assert text in expected
            assert texts(await store.recall_memories(ADA, query)) == expected

    @case("memories.recall.no_more_than_casefold", "8.substring", "4.1.compare")
    async def test_nothing_but_case_is_folded(self, store: Store) -> None:
        """Accents, normalisation forms, dotless i and full-width letters stay distinct."""
        await store.add_memories(ADA, ["école", "e\u0301cole", "ısı", "ｆｕｌｌ"])

        assert texts(await store.recall_memories(ADA, "ecole")) == []
        assert texts(await store.recall_memories(ADA, "é")) == ["école"]
        assert texts(await store.recall_memories(ADA, "e\u0301")) == ["e\u0301cole"]
        assert texts(await store.recall_memories(ADA, "i")) == []
        assert texts(await store.recall_memories(ADA, "full")) == []

    @case("memories.recall.wildcards", "8.substring", "5.4.injection")
    async def test_wildcards_and_operators_are_ordinary_characters(self, store: Store) -> None:
        """%, _, *, ?, backslashes, brackets and regular expressions match themselves alone."""
        queries = (
            "%",
            "_",
            "*",
            "?",
            "\\",
            "\\%",
            "[a-z]",
            ".*",
            "' OR '1'='1",
            "^",
            "$",
            "%%",
            "a_b",
            "(",
            "+",
        )
        contents = [
            "100% sure",
            "snake_case",
            "a*b?",
            "C:\\dir\\%",
            "[a-z]",
            ".*",
            "x' OR '1'='1",
            "^start$",
            "plain",
        ]
        await store.add_memories(ADA, contents)

        for query in queries:
            expected = [text for text in reversed(contents) if query in text]
            assert texts(await store.recall_memories(ADA, query)) == expected

    @case("memories.recall.hostile", "8.substring", "5.4.injection")
    async def test_hostile_texts_are_found_by_themselves(self, store: Store) -> None:
        """Every hostile string finds exactly the texts that hold it."""
        await store.add_memories(ADA, list(HOSTILE))

        for text in HOSTILE:
            expected = [other for other in reversed(HOSTILE) if text.casefold() in other.casefold()]
            assert texts(await store.recall_memories(ADA, text, limit=50)) == expected

    @case("memories.recall.limit", "8.limit")
    async def test_the_limit_is_1_to_50(self, store: Store) -> None:
        """10 by default, 1 to 50 on request; anything else is an error."""
        await store.add_memories(ADA, [f"m{index}" for index in range(60)])

        for limit in (1, 10, 50):
            found = texts(await store.recall_memories(ADA, limit=limit))
            assert found == [f"m{index}" for index in range(59, 59 - limit, -1)]
        assert len(await store.recall_memories(ADA)) == 10
        wrong: list[Any] = [0, -1, 51, 1.5, True, None, "10"]
        for limit in wrong:
            with pytest.raises(InvalidArgumentError):
                await store.recall_memories(ADA, limit=limit)

    @case("memories.recall.query_before_limit", "8.recall", "8.substring")
    async def test_the_query_comes_before_the_limit(self, store: Store) -> None:
        """An old match is found although many newer memories do not match, and pinned ones take no place."""
        await store.add_memories(ADA, ["the needle"])
        await store.add_memories(ADA, [f"hay {i}" for i in range(60)])
        await store.add_memories(ADA, [NewMemory(f"needle {i}", pinned=True) for i in range(5)])

        assert texts(await store.recall_memories(ADA, "NEEDLE", limit=1)) == ["the needle"]

    @case("memories.recall.long_query", "8.substring", "3.validate")
    async def test_a_query_is_any_text_up_to_2000_characters(self, store: Store) -> None:
        """A whole memory can be searched for; longer queries, NUL, surrogates and other types are errors."""
        long = "\U0001f600ß" * 1000
        await store.add_memories(ADA, [long])

        assert texts(await store.recall_memories(ADA, long)) == [long]
        wrong: list[Any] = ["x" * 2001, "a\0", "\ud800", 7, b"x", {"$regex": ".*"}]
        for query in wrong:
            with pytest.raises(InvalidArgumentError):
                await store.recall_memories(ADA, query)
