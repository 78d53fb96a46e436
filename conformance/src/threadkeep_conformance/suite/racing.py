"""What the cases have in common that race in several stores or processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

import pytest

from threadkeep import Capability, Support

from ..databases import Database
from ..plans import Outcomes, Plan
from ..races import Racers, is_one_process, race_stores, shared_racers
from .base import AdapterSuite

__all__ = ["Arena", "RacingSuite"]


class Arena(NamedTuple):
    """Where a race takes place, as part of names, and how to run it there."""

    name: str
    race: Callable[[Sequence[Plan]], Awaitable[list[Outcomes]]]


class RacingSuite(AdapterSuite):
    """Cases that race in two stores, and then in several processes."""

    @pytest.fixture
    def racers(self, request: pytest.FixtureRequest) -> Racers:
        """Processes, started at their first use and kept for the whole run: starting them is dear."""
        return shared_racers(request.config)

    def needs_processes(self, database: Database) -> None:
        """End a case about processes, as not offered, where other processes cannot open the database."""
        if is_one_process(database):
            self._node.user_properties.append(("threadkeep_outcome", "not offered"))
            pytest.skip("other processes cannot open this database")

    async def arenas(
        self, database: Database, racers: Racers, decides: Capability = Capability.CONDITIONAL_WRITES
    ) -> AsyncIterator[Arena]:
        """Two stores; and processes, unless what decides the race is emulated, or there can be only one."""
        stores = [await database.open(), await database.open()]
        yield Arena("stores", partial(race_stores, stores))
        emulated = (
            decides is Capability.CONDITIONAL_WRITES and stores[0].capabilities[decides] != Support.NATIVE
        )
        if not emulated and not is_one_process(database):
            yield Arena("processes", partial(racers.race, database.url))
