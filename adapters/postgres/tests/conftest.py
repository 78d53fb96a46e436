"""One throw-away server for each test process, or the one that THREADKEEP_TEST_POSTGRES_URL names."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from threadkeep_postgres.embedded import EmbeddedServer
from threadkeep_postgres.probe import Probe

# Nobody pulls the plug of this one, and plans must be right without statistics.
_FAST = {"fsync": "off", "autovacuum": "off"}


@pytest.fixture(scope="session")
def threadkeep_url() -> Iterator[str]:
    """A database for the kit, which makes a schema in it for each case."""
    given = os.environ.get("THREADKEEP_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with EmbeddedServer(settings=_FAST) as server:
        yield server.url


@pytest_asyncio.fixture
async def url(threadkeep_url: str) -> AsyncIterator[str]:
    """A fresh schema."""
    fresh = Probe().fresh_url(threadkeep_url, f"t{secrets.token_hex(6)}")
    yield fresh
    await Probe().discard(fresh)
