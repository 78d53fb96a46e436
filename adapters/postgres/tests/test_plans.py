"""A filtered page is one range of an index, whatever the values, the skew and the statistics.

Seen as the kit sees it: blocks that the server looked at, in the plans that calls really use (prepared ones,
kept by their sessions), not in those that EXPLAIN would make.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from psycopg import AsyncConnection

import threadkeep
from threadkeep import Actor, Include, Page, Store, exists, gte, one_of
from threadkeep.tokens import token
from threadkeep_postgres._settings import Settings
from threadkeep_postgres.probe import Probe

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = 100_000
PAGE = 20
MOST_BLOCKS = 12 * PAGE
"""Of 8 KiB, for a page of 20: an index entry, a row and its index a message, mostly alone in a block."""

_FILL = """
INSERT INTO {s}.message (id, thread_key, resource_key, role, type, content, metadata, tokens, created_at, seq)
SELECT
    'm' || n, t.key, t.resource_key, 'user', 'text', '"message ' || n || '"', '{{}}',
    ARRAY[
        CASE WHEN n % 2 = 0 THEN '{half}' ELSE '{other_half}' END,
        CASE WHEN n % 100 = 0 THEN '{hundredth}' ELSE '{usual}' END,
        CASE WHEN n % 10000 = 7 THEN '{rare}' ELSE '{not_rare}' END,
        CASE WHEN n < {long} / 10 THEN '{early}' ELSE '{late}' END
    ],
    1700000000000000 + n, n
FROM generate_series(0, {long} - 1) AS n CROSS JOIN {s}.thread AS t
WHERE t.id = 'long';
INSERT INTO {s}.position (thread_key, resource_key, token, created_at, seq, id)
SELECT m.thread_key, m.resource_key, u.token, m.created_at, m.seq, m.id
FROM {s}.message AS m CROSS JOIN unnest(m.tokens) AS u (token);
UPDATE {s}.thread SET message_count = {long} WHERE id = 'long';
"""
_TOKENS = {
    "half": token("half", True),
    "other_half": token("half", False),
    "hundredth": token("hundredth", 1),
    "usual": token("hundredth", 0),
    "rare": token("rare", "yes"),
    "not_rare": token("rare", "no"),
    "early": token("when", "early"),
    "late": token("when", "late"),
}
FILTERS: list[dict[str, Any]] = [
    {"half": True},  # 50 %
    {"hundredth": 1},  # 1 %
    {"rare": "yes"},  # 0.01 %
    {"rare": "never"},
    {"when": "early"},  # 10 %, all of them the oldest
    {"when": one_of("early", "nowhere")},
    {"hundredth": 1, "half": True},
    {"half": True, "hundredth": 1},
]
SCOPES: list[dict[str, Any]] = [
    {"threads": "long"},
    {"resource_id": "owner"},
    {"threads": ["long", "short"]},
    {"threads": ["long", "short"], "resource_id": "owner"},
]


class Long:
    """A store with a long thread, opened while the tables were empty, so that its plans are from then."""

    def __init__(self, store: Store, url: str) -> None:
        self.store, self.url = store, url

    async def run(self, text: str) -> None:
        settings = Settings.parse(self.url)
        async with await AsyncConnection.connect(settings.conninfo, autocommit=True) as db:
            words = {"s": f'"{settings.schema}"', "long": LONG, **_TOKENS}
            await db.execute(text.format(**words).encode())

    async def blocks(self, call: Callable[[], Awaitable[Any]]) -> tuple[Any, int]:
        """What a call returns, and the blocks that it made the server look at."""
        await call()
        with Probe().spy(self.store) as observed:
            found = await call()
        assert observed.work is not None, "this server does not count in time"
        return found, observed.work


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["stale", "fresh"])
async def long(threadkeep_url: str, request: pytest.FixtureRequest) -> AsyncIterator[Long]:
    url = Probe().fresh_url(threadkeep_url, f"t{secrets.token_hex(6)}")
    async with threadkeep.open(url) as store:
        await store.create_thread("owner", thread_id="long")
        await store.create_thread("owner", thread_id="short")
        found = Long(store, url)
        await found.run("ANALYZE {s}.message; ANALYZE {s}.position; ANALYZE {s}.thread")  # of nothing
        for _ in range(12):  # more often than a session plans a statement with its values
            for where in (None, *FILTERS):
                await store.list_messages("long", where=where, order="desc", per_page=PAGE)
        await found.run(_FILL)
        if request.param == "fresh":
            await found.run("ANALYZE {s}.message; ANALYZE {s}.position; ANALYZE {s}.thread")
        yield found
    await Probe().discard(url)


@pytest.mark.parametrize("where", FILTERS, ids=str)
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("scope", SCOPES, ids=str)
async def test_a_filtered_page_looks_at_a_page(
    long: Long, scope: dict[str, Any], order: Any, where: dict[str, Any]
) -> None:
    page, blocks = await long.blocks(
        lambda: long.store.list_messages(**scope, where=where, order=order, per_page=PAGE)
    )

    candidates = 2 if len(where) == 2 else 1  # of two keys one is checked on what the other finds
    assert blocks <= MOST_BLOCKS * candidates
    assert len(page.items) == {"never": 0, "yes": LONG // 10_000}.get(where.get("rare", ""), PAGE)


@pytest.mark.parametrize("scope", SCOPES, ids=str)
async def test_a_page_far_down_looks_at_as_much_as_the_first(long: Long, scope: dict[str, Any]) -> None:
    first: Page[Any] = await long.store.list_messages(**scope, where={"half": True}, per_page=LONG // 4)

    for where in (None, {"half": True}):
        start = first if where else await long.store.list_messages(**scope, per_page=LONG // 2)
        page, blocks = await long.blocks(
            lambda where=where, start=start: long.store.list_messages(
                **scope, where=where, per_page=PAGE, cursor=start.next_cursor
            )
        )
        assert len(page.items) == PAGE
        assert blocks <= MOST_BLOCKS


async def test_the_total_of_a_thread_is_not_counted(long: Long) -> None:
    page, blocks = await long.blocks(
        lambda: long.store.list_messages("long", order="desc", per_page=PAGE, with_total=True)
    )

    assert page.total == LONG
    assert blocks <= MOST_BLOCKS


async def test_windows_and_ids_look_at_what_they_return(long: Long) -> None:
    page, blocks = await long.blocks(
        lambda: long.store.list_messages("long", per_page=0, include=[Include("m50000", before=5, after=5)])
    )
    assert len(page.items) == 11
    assert blocks <= MOST_BLOCKS

    found, blocks = await long.blocks(lambda: long.store.get_messages([f"m{n}" for n in range(0, 200, 10)]))
    assert len(found) == PAGE
    assert blocks <= MOST_BLOCKS


async def test_a_write_looks_at_what_it_writes(long: Long) -> None:
    numbers = iter(range(10))

    async def save() -> None:
        number = next(numbers)
        batch = [
            threadkeep.NewMessage("short", "user", "text", metadata={"half": True, "rare": f"{number}-{n}"})
            for n in range(PAGE)
        ]
        saved = await long.store.save_messages(batch)
        await long.store.update_messages(
            [threadkeep.MessageUpdate(each.id, metadata={"half": False}) for each in saved]
        )
        await long.store.delete_messages([each.id for each in saved])

    _, blocks = await long.blocks(save)

    assert blocks <= 10 * MOST_BLOCKS


async def test_explain_names_the_index_and_the_rows(long: Long) -> None:
    equal = await long.store.explain_messages("long", where={"rare": "yes"}, order="desc", per_page=PAGE)
    assert "position_thread" in equal.indexes
    assert equal.rows_examined is not None
    assert equal.rows_examined <= 4 * PAGE

    owned = await long.store.explain_messages(resource_id="owner", where={"half": True}, per_page=PAGE)
    assert "position_resource" in owned.indexes

    ranged = await long.store.explain_messages("long", where={"hundredth": gte(1)}, per_page=PAGE)
    assert ranged.rows_examined is not None
    assert LONG // 100 <= ranged.rows_examined <= 2 * LONG // 100  # every match is read, and no other

    assert (await long.store.explain_messages("long", where={"rare": exists()})).filter == "native"


async def test_archive_recall_of_a_rare_word_uses_the_trigram_index(long: Long) -> None:
    await long.run(
        "INSERT INTO {s}.memory (id, created_at, pinned, actor_type, actor_id, content, folded)"
        " SELECT n, n, FALSE, 'user', 'a', 'fact ' || n || ' usual', 'fact ' || n || ' usual'"
        " FROM generate_series(1, 20000) AS n ON CONFLICT DO NOTHING;"
        " UPDATE {s}.memory SET folded = 'a zebra' WHERE id = 17; ANALYZE {s}.memory"
    )

    found, blocks = await long.blocks(lambda: long.store.recall_memories(Actor("user", "a"), "ZEBRA"))

    assert [memory.id for memory in found] == [17]
    assert blocks <= MOST_BLOCKS


async def test_a_page_is_one_statement(long: Long) -> None:
    for where in (None, {"half": True}):
        with Probe().spy(long.store) as observed:
            await long.store.list_messages("long", where=where, per_page=PAGE)

        assert observed.statements == 1
