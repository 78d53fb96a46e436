"""The databases of a run: those of given URLs, or throw-away ones of backends given by name."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

import threadkeep
from threadkeep import AdapterSpec, InvalidArgumentError, Store
from threadkeep.registry import registry

from .floors import Floor, floor_for

__all__ = ["Database", "address", "opened", "probe_of"]

_FILE_BACKEND = "libsql"
_MEMORY = "memory"


class Database(msgspec.Struct, frozen=True, kw_only=True):
    """A database to measure.

    Attributes:
        name: The adapter's name, numbered where several are measured.
        url: Where it is.
        spec: The adapter's description.
        store: The open store.
        floor: Hand-written code on the same database; None where there is none for this adapter.
        resource_id: The owner of all that is stored here for the benchmark; deleted at the end.
    """

    name: str
    url: str
    spec: AdapterSpec
    store: Store
    floor: Floor | None
    resource_id: str


@runtime_checkable
class _Servers(Protocol):
    """What the probe of a server's adapter offers; see ``threadkeep_conformance.probe.Server``."""

    def private_server(self) -> AbstractAsyncContextManager[str]: ...


def probe_of(spec: AdapterSpec) -> object | None:
    """The adapter's probe, which may look at the driver's boundary and start servers; None without one."""
    if spec.probe is None:
        return None
    module, _, name = spec.probe.partition(":")
    found = getattr(import_module(module), name)
    return found() if inspect.isclass(found) else found


@asynccontextmanager
async def address(wanted: str) -> AsyncGenerator[str]:
    """The URL of a database: *wanted* itself, or that of a throw-away one of the backend of this name.

    ``libsql`` is a temporary file, ``postgres`` a server that is started for it and removed at the end.

    Raises:
        InvalidArgumentError: It is neither a URL nor a backend of which there are throw-away databases.
    """
    if ":" in wanted:
        yield wanted
    elif wanted == _MEMORY:
        yield "memory:"
    elif wanted == _FILE_BACKEND:
        with tempfile.TemporaryDirectory(prefix="threadkeep-bench-") as folder:
            yield f"libsql://{Path(folder) / 'bench.db'}"
    else:
        spec = registry().specs.get(wanted)
        probe = None if spec is None else probe_of(spec)
        if not isinstance(probe, _Servers):
            known = ", ".join(sorted(registry().specs))
            raise InvalidArgumentError(
                "url", f"a URL, or a backend that can be started ({known})", repr(wanted)
            )
        async with probe.private_server() as url:
            yield url


@asynccontextmanager
async def opened(wanted: Sequence[str], run_id: str) -> AsyncGenerator[list[Database]]:
    """Open the databases; what the benchmark stored in them is deleted at the end."""
    databases: list[Database] = []
    async with AsyncExitStack() as stack:
        for each in wanted:
            url = await stack.enter_async_context(address(each))
            spec = registry().spec_for(url)
            count = sum(database.spec is spec for database in databases)
            store = await stack.enter_async_context(threadkeep.open(url))
            resource = f"threadkeep-bench-{run_id}"
            stack.push_async_callback(store.delete_resource, resource)
            floor = await floor_for(spec.name, url)
            if floor is not None:
                stack.push_async_callback(floor.close)
            databases.append(
                Database(
                    name=f"{spec.name}#{count + 1}" if count else spec.name,
                    url=url,
                    spec=spec,
                    store=store,
                    floor=floor,
                    resource_id=resource,
                )
            )
        yield databases
