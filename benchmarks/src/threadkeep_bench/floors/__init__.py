"""Hand-written code on a backend's driver and schema, one module a backend: what a ratio is taken to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

from threadkeep.urls import StoreUrl

__all__ = ["Floor", "floor_for"]

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class Floor(Protocol):
    """What every floor can do."""

    def hop(
        self, call: Callable[Arguments, Result], *args: Arguments.args, **named: Arguments.kwargs
    ) -> Awaitable[Result]:
        """Run a method on the floor's thread."""
        ...

    def newest(self, thread_id: str, limit: int, token: str = "") -> list[dict[str, Any]]:
        """The newest messages of a thread, or of those with a token, newest first."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


def floor_for(adapter: str, url: str) -> Floor | None:
    """The floor on a database that a store has opened; None where there is none for its adapter."""
    if adapter != "libsql":
        return None
    from .libsql import LibsqlFloor

    known = frozenset({"durability", "metadata_index", "busy_timeout_s"})
    return LibsqlFloor(Path(StoreUrl.parse(url, known=known).path))
