"""What every suite class has: a fresh database for each case, stores on it, and proof for what is refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, ClassVar, TypeVar

import pytest
import pytest_asyncio

from threadkeep import Capability, Store, UnsupportedCapabilityError

from ..cases import declared, register
from ..databases import Database
from ..witness import prove_atomic_batch_refused

__all__ = ["AdapterSuite"]

Offer = TypeVar("Offer")

_CASE_TIMEOUT_S = 180  # a case that hangs must fail, however slow the database


@pytest.mark.asyncio(loop_scope="function")  # whatever scope the tests around it have
class AdapterSuite:
    """The base of the suite's classes.

    An adapter's own tests import the classes and define one fixture, ``threadkeep_url``, or are run with
    ``--threadkeep-url``. All other fixtures are in here, so nothing is added to other tests.

    Attributes:
        requires: Capabilities that all cases of the class need. Where one is absent, they prove the refusal.
    """

    requires: ClassVar[frozenset[Capability]] = frozenset()

    _database: Database
    _node: pytest.Item

    def __init_subclass__(cls) -> None:
        """Note the cases of the class."""
        super().__init_subclass__()
        register(cls)

    @pytest_asyncio.fixture(loop_scope="function")
    async def database(self, threadkeep_url: str, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
        """A fresh, empty database; ``open()`` gives any number of stores on it."""
        async with Database(threadkeep_url) as database:
            self._database, self._node = database, request.node
            yield database

    @pytest_asyncio.fixture(loop_scope="function")
    async def store(self, database: Database) -> Store:
        """A store on the case's fresh database."""
        return await database.open()

    @pytest.fixture
    def rng(self, request: pytest.FixtureRequest) -> random.Random:
        """Random numbers that the run's seed (``--threadkeep-seed``) repeats."""
        marked = declared(getattr(type(self), request.node.originalname))
        assert marked is not None, "only cases have random numbers"
        return random.Random(f"{request.config.getoption('threadkeep_seed')}:{marked.id}")

    async def run_case(
        self,
        function: Callable[..., Awaitable[None]],
        args: tuple[Any, ...],
        fixtures: Mapping[str, Any],
        requires: frozenset[Capability],
    ) -> None:
        """Run a case, or prove that what it needs is refused. Called by the wrapper that ``@case`` makes."""
        missing: set[Capability] = set()
        if requires:  # cases without requirements need no database of their own
            capabilities = await self._database.capabilities()
            missing = {capability for capability in requires if not capabilities.has(capability)}
        async with asyncio.timeout(_CASE_TIMEOUT_S):
            if not missing:
                await function(self, *args, **fixtures)
                return
            self._database.refusing = True
            if missing == {Capability.ATOMIC_BATCH}:
                await prove_atomic_batch_refused(await self._database.open())
            else:
                await self._prove_refused(function, args, fixtures, missing)
        self._node.user_properties.append(("threadkeep_outcome", "refused"))

    def offered(self, protocol: type[Offer]) -> Offer:
        """The adapter's probe as *protocol*; a case that cannot do without is counted as not offered."""
        probe = self._database.probe
        if not isinstance(probe, protocol):
            self._node.user_properties.append(("threadkeep_outcome", "not offered"))
            pytest.skip(f"the probe of {self._database.spec.name} does not offer {protocol.__name__}")
        return probe

    async def _prove_refused(
        self,
        function: Callable[..., Awaitable[None]],
        args: tuple[Any, ...],
        fixtures: Mapping[str, Any],
        missing: set[Capability],
    ) -> None:
        fixtures = dict(fixtures)
        if "store" in fixtures:
            fixtures["store"] = await self._database.open()
        with pytest.raises(UnsupportedCapabilityError) as refusal:  # declared absent, so it must be refused
            await function(self, *args, **fixtures)
        assert refusal.value.capability in missing, f"refused for another reason: {refusal.value}"
