"""What every command needs, and nothing slow to import: `threadkeep backends` needs it too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..store import Store

__all__ = ["json_option", "run", "url_argument"]

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])


def run(url: str, action: Callable[[Store], Awaitable[Result]], *, migrate: bool) -> Result:
    """Open the store, do something with it, close it.

    Args:
        url: The database.
        action: What to do.
        migrate: Whether the schema may be created or brought up to date: for commands that write. One that
            only reads leaves a database as it is, and makes none of a misspelt file name.
    """
    import asyncio

    from ..registry import open_store

    async def opened() -> Result:
        async with open_store(url, migrate=migrate) as store:
            return await action(store)

    return asyncio.run(opened())


url_argument = click.argument("url")


def json_option(command: Command) -> Command:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)
