"""What is declared absent is proven refused, and a wrong declaration fails."""

from typing import Any, cast

import pytest

from threadkeep import (
    Capabilities,
    Capability,
    Explanation,
    Pushdown,
    Store,
    Support,
    UnsupportedCapabilityError,
)
from threadkeep.reference import SPEC, ReferenceAdapter
from threadkeep.requests import ThreadQuery
from threadkeep_conformance.cases import CASES
from threadkeep_conformance.databases import Database
from threadkeep_conformance.witness import CallLog, refusing

from .toys import ONE_PROCESS, installed, run_case

REFUSED = ("threadkeep_outcome", "refused")
ABSENT = frozenset(
    {Capability.FILTER_OPERATORS, Capability.ATOMIC_BATCH, Capability.ATOMIC_MERGE, Capability.EXPLAIN}
)
SUPPORT: dict[Capability, Support | Pushdown] = {
    capability: Support.ABSENT if capability in ABSENT else support
    for capability, support in SPEC.support.items()
}


class Limited(ReferenceAdapter):
    """Declares absent whatever may be."""

    def __init__(self, tables: Any) -> None:
        super().__init__(tables)
        self.capabilities = Capabilities(SUPPORT)


class Boasting(ReferenceAdapter):
    """Declares that it explains, and does not."""

    async def explain_threads(self, query: ThreadQuery) -> Explanation:
        raise NotImplementedError


@pytest.mark.asyncio
async def test_every_case_that_needs_what_is_absent_is_refused() -> None:
    needing = [one.id for one in CASES.values() if one.requires & ABSENT]
    with installed(Limited, support=SUPPORT, probe=ONE_PROCESS) as url:
        outcomes = {name: await run_case(name, url) for name in needing}

    assert {name: noted for name, noted in outcomes.items() if REFUSED not in noted} == {}
    assert len(needing) > 40


@pytest.mark.asyncio
async def test_what_needs_nothing_absent_is_not_refused() -> None:
    with installed(Limited, support=SUPPORT, probe=ONE_PROCESS) as url:
        assert REFUSED not in await run_case("threads.create.round_trip", url)
        assert REFUSED not in await run_case("capabilities.required_is_never_absent", url)


@pytest.mark.asyncio
async def test_a_capability_that_is_declared_and_missing_fails() -> None:
    with installed(Boasting) as url, pytest.raises(NotImplementedError):
        await run_case("explain.same_arguments", url)


@pytest.mark.asyncio
async def test_a_store_that_differs_from_its_spec_fails() -> None:
    with installed(Limited) as url, pytest.raises(AssertionError):
        await run_case("capabilities.as_declared", url)


class Late:
    """A store that asks its adapter before it refuses."""

    def __init__(self, log: CallLog) -> None:
        self._log = log

    async def explain_threads(self) -> None:
        await self._log.list_threads(ThreadQuery())
        raise UnsupportedCapabilityError("explain", "toy", "explain_threads")


@pytest.mark.asyncio
async def test_a_refusal_after_io_is_noticed() -> None:
    with installed(Limited, support=SUPPORT) as url:
        async with Database(url) as database:
            _, log = await database.open_logged()
            store = refusing(cast(Store, Late(log)), log)

            with pytest.raises(AssertionError, match="after the adapter was called"):
                await store.explain_threads()
