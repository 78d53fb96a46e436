from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import threadkeep
from threadkeep import Capabilities, Capability, Pushdown, Store, Support
from threadkeep.reference import SPEC, ReferenceAdapter
from threadkeep.requests import MessageQuery, MessageSlice
from threadkeep_conformance.suite.samples import filled_thread
from threadkeep_libsql.probe import Probe

from .toys import installed, run_case

NATIVE = {
    **SPEC.support,
    Capability.METADATA_PUSHDOWN: Pushdown(Support.NATIVE, Support.NATIVE, Support.NATIVE),
}


class Claims(ReferenceAdapter):
    """Says that its database does it all; what crosses its driver is counted."""

    def __init__(self, tables: Any) -> None:
        super().__init__(tables)
        self.capabilities = Capabilities(NATIVE)
        self.statements = self.rows = self.work = 0
        self.volume = None

    def sends(self, statements: int, rows: int, work: int) -> None:
        self.statements += statements
        self.rows += rows
        self.work += work


class Honest(Claims):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(query)
        self.sends(1, len(found.messages), 10 * len(found.messages))
        return found


class FiltersInPython(Claims):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(query)
        self.sends(1, len(self._tables.messages), 10 * len(self._tables.messages))
        return found


class SortsInDatabase(Claims):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(query)
        size = len([row for row in self._tables.messages.values() if row.thread_id in (query.threads or ())])
        self.sends(1, len(found.messages), 20 * size)
        return found


class AsksForEachRow(Claims):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(query)
        size = len([row for row in self._tables.messages.values() if row.thread_id in (query.threads or ())])
        self.sends(size, len(found.messages), 10)
        return found


class Spying:
    """The toys' probe."""

    one_process = True

    @contextmanager
    def spy(self, store: Store) -> Generator[Claims]:
        adapter: Any = vars(store)["_adapter"]
        adapter.statements = adapter.rows = adapter.work = 0
        yield adapter


SPYING = f"{__name__}:Spying"


@pytest.mark.asyncio
@pytest.mark.parametrize("case", ["pushdown.filter", "pushdown.order_and_limit"])
async def test_pushdown_that_is_real_passes(case: str) -> None:
    with installed(Honest, probe=SPYING, support=NATIVE) as url:
        assert await run_case(case, url) == []


@pytest.mark.asyncio
@pytest.mark.parametrize("case", ["pushdown.filter", "pushdown.order_and_limit"])
async def test_filtering_in_python_is_no_pushdown(case: str) -> None:
    with (
        installed(FiltersInPython, probe=SPYING, support=NATIVE) as url,
        pytest.raises(AssertionError, match="rows"),
    ):
        await run_case(case, url)


@pytest.mark.asyncio
async def test_a_claimed_order_cannot_hide_a_sort() -> None:
    with (
        installed(SortsInDatabase, probe=SPYING, support=NATIVE) as url,
        pytest.raises(AssertionError, match="work"),
    ):
        await run_case("pushdown.order_and_limit", url)


@pytest.mark.asyncio
async def test_a_statement_for_each_row_is_growth() -> None:
    refused = pytest.raises(AssertionError, match="statements grow")
    with installed(AsksForEachRow, probe=SPYING, support=NATIVE) as url, refused:
        await run_case("growth.pages", url)


@pytest.mark.asyncio
@pytest.mark.parametrize("case", ["pushdown.filter", "growth.pages"])
async def test_what_cannot_be_seen_is_not_proven(case: str) -> None:
    with installed(Honest, support=NATIVE) as url:
        assert await run_case(case, url) == [("threadkeep_outcome", "unproven")]


@pytest.mark.asyncio
async def test_an_emulated_part_has_nothing_to_prove() -> None:
    assert await run_case("pushdown.filter", "memory:") == []


@pytest.mark.asyncio
async def test_the_embedded_backends_spy_counts_at_the_engine(tmp_path: Path) -> None:
    async with threadkeep.open(f"libsql://{tmp_path.as_posix()}/memory.db") as store:
        await filled_thread(store, 50)

        with Probe().spy(store) as observed:
            await store.list_messages("thread-1", per_page=10)
        assert (observed.statements, observed.rows) == (1, 11)
        assert observed.volume > 0
        assert observed.work > 10

        before = observed.work
        await store.list_messages("thread-1", per_page=None)
        assert (observed.rows, observed.work) == (11, before)


@pytest.mark.asyncio
async def test_the_embedded_backends_spy_sees_connections_opened_meanwhile(tmp_path: Path) -> None:
    async with threadkeep.open(f"libsql://{tmp_path.as_posix()}/memory.db") as store:
        with Probe().spy(store) as observed:
            await store.get_thread("thread-1")

    assert observed.statements >= 1
