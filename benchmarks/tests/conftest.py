"""Databases to measure on: files, and one throw-away server a test process, or the one a variable names."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio

from threadkeep.registry import registry
from threadkeep_bench.databases import address, probe_of


@pytest.fixture(scope="session")
def postgres_server() -> Generator[str]:
    given = os.environ.get("THREADKEEP_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with asyncio.Runner() as runner:
        server = address("postgres")
        yield runner.run(server.__aenter__())
        runner.run(server.__aexit__(None, None, None))


@pytest_asyncio.fixture
async def postgres_url(postgres_server: str) -> AsyncGenerator[str]:
    """A schema of its own."""
    probe = cast("Any", probe_of(registry().spec_for(postgres_server)))
    url = probe.fresh_url(postgres_server, f"b{secrets.token_hex(6)}")
    yield url
    await probe.discard(url)


@pytest.fixture(params=["libsql", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh database of each backend that has hand-written code."""
    if request.param == "libsql":
        return f"libsql://{tmp_path}/bench.db"
    return request.getfixturevalue("postgres_url")
