"""The hooks a plugin can implement. They *find* adapters; ``StorageAdapter`` says what one must do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec
import pluggy

from .capabilities import Capability, Pushdown, Support

if TYPE_CHECKING:
    import click

    from .adapter import StorageAdapter

__all__ = ["CONTRACT", "AdapterSpec", "Connect", "Register", "hookimpl", "hookspec"]

CONTRACT = "1.0"
"""The version of the contract this package holds; adapters of the same major version work with it."""

hookspec = pluggy.HookspecMarker("threadkeep")
hookimpl = pluggy.HookimplMarker("threadkeep")


class Connect(Protocol):
    """Opens an adapter for a URL. Imports the driver here, never earlier."""

    def __call__(self, url: str, *, migrate: bool) -> Awaitable[StorageAdapter]:
        """Open the database at *url*.

        Args:
            url: As the user gave it; it may hold credentials, which must not appear in any message.
            migrate: Create or migrate the schema. False: leave it, and refuse an outdated one.

        Raises:
            InvalidArgumentError: The URL has a part or an option this adapter does not know.
            SchemaVersionError: The schema is newer than the code, or outdated and *migrate* is False.
            UnavailableError: The database cannot be reached.
        """
        ...


class AdapterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How an adapter describes itself. Making one imports no driver.

    Attributes:
        name: ``postgres``, say.
        schemes: The URL schemes it answers to.
        connect: Opens it.
        contract: The version of the contract it was written to.
        support: What it can do; capabilities left out are absent.
        limits: Limits worth knowing, by name, as text with their units.
        drivers: The modules it needs, which discovery only looks for.
        install: The command that installs the adapter with its driver.
        probe: Import string (``package.module:name``) of what the conformance kit may use to spy on the
            driver.
    """

    name: str
    schemes: tuple[str, ...]
    connect: Connect
    contract: str
    support: Mapping[Capability, Support | Pushdown]
    limits: Mapping[str, str] = {}
    drivers: tuple[str, ...] = ()
    install: str = ""
    probe: str | None = None


Register = Callable[[AdapterSpec], None]


@hookspec
def threadkeep_register_adapters(register: Register) -> None:
    """Call *register* once for each adapter the plugin offers."""


@hookspec
def threadkeep_register_commands(cli: click.Group) -> None:
    """Add subcommands to the ``threadkeep`` command."""
