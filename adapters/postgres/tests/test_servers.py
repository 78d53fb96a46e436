"""Other servers, where installed: the oldest there is, with the worst settings, and pgbouncer between."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import threadkeep
from threadkeep import NewMessage
from threadkeep_postgres.embedded import EmbeddedServer, free_port

DEBIAN = Path("/usr/lib/postgresql/15/bin")
PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

_HOSTILE = {
    "fsync": "off",
    "TimeZone": "Asia/Kolkata",
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "sql_standard",
    "bytea_output": "escape",
    "default_transaction_isolation": "serializable",
    "standard_conforming_strings": "off",
    "search_path": "nowhere",
    "idle_session_timeout": "1s",
}
_NATURAL_ORDER = (
    "--encoding=UTF8",
    "--locale-provider=icu",
    "--icu-locale=en-US-u-kn-ks-level1",
    "--locale=C.UTF-8",
)


def conforms(url: str, *areas: str) -> None:
    """Run areas of the kit on a database, in a process of its own."""
    run = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:xdist",
                "--no-header",
            ),
            *("-W", "error", "--pyargs", "threadkeep_conformance", f"--threadkeep-url={url}"),
            *[f"--threadkeep-area={area}" for area in areas],
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-1000:]


@pytest.mark.skipif(not DEBIAN.exists(), reason="Debian's postgresql-15 is not installed")
def test_the_oldest_server_here_with_the_worst_settings_conforms() -> None:
    with EmbeddedServer(programs=DEBIAN, settings=_HOSTILE, locale=_NATURAL_ORDER) as server:
        with psycopg.connect(server.url) as db:  # the database's own order is not ours
            assert db.execute("SELECT 'a10' > 'a9', version() LIKE '%% 15.%%'").fetchone() == (True, True)
        conforms(server.url, "filters", "pagination", "archive")


@contextmanager
def pooled(server: EmbeddedServer) -> Generator[str]:
    """The URL of a pgbouncer in transaction mode, with two connections for everybody."""
    assert PGBOUNCER is not None, "the test is skipped without it"
    folder = server.folder / "pgbouncer"
    folder.mkdir()
    port = free_port()
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host=127.0.0.1 port={server.port} user=postgres\n[pgbouncer]\n"
        f"listen_addr=127.0.0.1\nlisten_port={port}\nunix_socket_dir=\nauth_type=any\n"
        "pool_mode=transaction\ndefault_pool_size=2\nmax_client_conn=200\n"
    )
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([PGBOUNCER, str(settings)], stdout=log, stderr=log, **server.user)
    try:
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        deadline = time.monotonic() + 20
        while True:
            try:
                psycopg.connect(url).close()
                break
            except psycopg.OperationalError:
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, (folder / "log").read_text()
        yield url
    finally:
        process.terminate()
        process.wait()


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
def test_the_adapter_conforms_through_pgbouncer_in_transaction_mode() -> None:
    with EmbeddedServer(settings={"fsync": "off"}) as server, pooled(server) as url:
        conforms(f"{url}?pgbouncer=true", "messages", "merges", "clones")


@pytest.mark.asyncio
@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
async def test_without_the_parameter_pgbouncer_is_named_as_the_reason() -> None:
    with EmbeddedServer(settings={"fsync": "off"}) as server, pooled(server) as url:
        with pytest.raises(threadkeep.UnavailableError, match="pgbouncer=true"):
            await threadkeep.open(url)
        async with threadkeep.open(f"{url}?pgbouncer=true") as store:
            await store.create_thread("user-1", thread_id="t")
            assert await store.save_messages([NewMessage("t", "user", "x")])
