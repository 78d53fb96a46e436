from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest

from threadkeep import UnavailableError
from threadkeep.records import MessageRecord, ThreadRecord
from threadkeep.reference import ReferenceAdapter
from threadkeep.requests import SaveMessages
from threadkeep_conformance.cases import CASES
from threadkeep_conformance.databases import Database
from threadkeep_conformance.probe import Server

from .toys import ONE_PROCESS, installed, run_case

SERVER_CASES = ["faults.server_killed", "faults.connections_cut", "faults.server_away"]


class Machine:
    """What the toy's server does."""

    up: ClassVar[bool] = True
    cuts: ClassVar[int] = 0
    held: ClassVar[Any] = None


class OnServer(ReferenceAdapter):
    """Works while its server is up; a cut connection fails one call."""

    def __init__(self, tables: Any) -> None:
        super().__init__(tables)
        self._cuts = Machine.cuts
        Machine.held = tables  # the data outlive the connections
        self._reach()

    def _reach(self) -> None:
        if not Machine.up:
            raise UnavailableError("the server is away")
        if self._cuts != Machine.cuts:
            self._cuts = Machine.cuts
            raise UnavailableError("the connection was cut", "unknown")

    async def get_thread(self, thread_id: str) -> ThreadRecord | None:
        self._reach()
        return await super().get_thread(thread_id)

    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        self._reach()
        return await super().save_messages(request)


class NeverRecovers(OnServer):
    def _reach(self) -> None:
        if getattr(self, "_dead", False):
            raise UnavailableError("the server is away")
        try:
            super()._reach()
        except UnavailableError:
            self._dead = True
            raise


class SaysNotApplied(OnServer):
    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        if self._cuts != Machine.cuts or not Machine.up:
            await ReferenceAdapter.save_messages(self, request)
        try:
            return await super().save_messages(request)
        except UnavailableError as exc:
            raise UnavailableError(exc.reason, "not_applied") from exc


class RaisesDriverErrors(OnServer):
    def _reach(self) -> None:
        try:
            super()._reach()
        except UnavailableError as exc:
            raise ConnectionError("the driver's own") from exc


class Power:
    """The toy's probe: a server that keeps its data, unless it forgets them."""

    one_process = True
    forgets = False

    @asynccontextmanager
    async def private_server(self) -> AsyncGenerator[str]:
        yield "toy:server"

    async def kill(self, url: str) -> None:
        Machine.up = False
        if self.forgets:
            Machine.held.messages.clear()

    async def start(self, url: str) -> None:
        Machine.up = True

    async def cut_connections(self, url: str) -> None:
        Machine.cuts += 1


class ForgetfulPower(Power):
    forgets = True


POWER = f"{__name__}:Power"
FORGETFUL_POWER = f"{__name__}:ForgetfulPower"


@pytest.fixture(autouse=True)
def running() -> Iterator[None]:
    yield
    Machine.up, Machine.held = True, None


async def run_server_case(identifier: str, url: str) -> None:
    async with Database(url) as database:
        probe = database.probe
        assert isinstance(probe, Server)
        async with probe.private_server() as private:
            case: Any = CASES[identifier]
            await case.function(_suite(database), server=(probe, private))


def _suite(database: Database) -> Any:
    from threadkeep_conformance.suite.faults import TestServer

    instance: Any = TestServer()
    vars(instance)["_database"] = database
    return instance


@pytest.mark.asyncio
@pytest.mark.parametrize("case", SERVER_CASES)
async def test_a_store_that_recovers_passes(case: str) -> None:
    with installed(OnServer, probe=POWER) as url:
        await run_server_case(case, url)


@pytest.mark.asyncio
async def test_lost_acknowledged_writes_are_noticed() -> None:
    with (
        installed(OnServer, probe=FORGETFUL_POWER) as url,
        pytest.raises(AssertionError, match="acknowledged"),
    ):
        await run_server_case("faults.server_killed", url)


@pytest.mark.asyncio
async def test_a_store_that_never_recovers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadkeep_conformance.faults._RECOVERS_WITHIN_S", 0.5)
    with installed(NeverRecovers, probe=POWER) as url, pytest.raises(TimeoutError):
        await run_server_case("faults.server_killed", url)


@pytest.mark.asyncio
async def test_a_wrong_outcome_is_noticed() -> None:
    with installed(SaysNotApplied, probe=POWER) as url, pytest.raises(AssertionError, match="not applied"):
        await run_server_case("faults.server_killed", url)


@pytest.mark.asyncio
async def test_a_drivers_error_is_noticed() -> None:
    with installed(RaisesDriverErrors, probe=POWER) as url, pytest.raises(ConnectionError):
        await run_server_case("faults.server_away", url)


@pytest.mark.asyncio
@pytest.mark.parametrize("case", ["faults.read_only", "faults.full_disk", "faults.killed_writer"])
async def test_what_a_probe_does_not_offer_is_said(case: str) -> None:
    with installed(ReferenceAdapter, probe=ONE_PROCESS) as url:
        assert await run_case(case, url) == [("threadkeep_outcome", "not offered")]


@pytest.mark.asyncio
@pytest.mark.parametrize("case", ["faults.read_only", "faults.full_disk"])
async def test_the_embedded_backend_refuses_writes_as_it_should(case: str) -> None:
    assert await run_case(case, "libsql:///{tmp}/memory.db") == []
