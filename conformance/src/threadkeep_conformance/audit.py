"""The audit: what a call costs at the driver's boundary, at two sizes, whatever the adapter says of itself.

The adapter's probe counts (:class:`threadkeep_conformance.probe.Spy`). What the database does for itself, an
adapter does not fetch: rows that cross the driver stay the same when a thread grows tenfold. Where the
database counts its own work, that shows a scan or a sort behind a page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from threadkeep import Page, Store

from .databases import Database
from .probe import Spy

__all__ = ["LARGE", "SMALL", "Cost", "Growth", "Unobserved", "measured"]

SMALL, LARGE = 300, 3000
"""The sizes of the two threads that are compared."""

_ROWS_SLACK = 10  # look-ups of owners, counters and index entries, which may come and go
_WORK_FACTOR, _WORK_SLACK = 2.0, 200  # a deeper index is no scan: the data grow tenfold


class Unobserved(Exception):  # noqa: N818  (it is no error of the adapter's)
    """The adapter's probe does not show what crosses the driver."""


class Cost(NamedTuple):
    """What one call cost.

    Attributes:
        statements: Statements that were sent.
        rows: Rows that crossed the driver.
        volume: Characters of text in them; None where it cannot be told.
        work: The database's own count of its work; None where it has none.
        returned: How many items a page or a list had.
    """

    statements: int
    rows: int
    volume: int | None
    work: int | None
    returned: int


class Growth(NamedTuple):
    """What one call cost on small and on large data that it must not depend on."""

    small: Cost
    large: Cost

    def rows_are_flat(self) -> None:
        """Assert that rows that cross the driver do not grow, and are not many more than what is returned."""
        most = self.small.rows + _ROWS_SLACK
        assert self.large.rows <= most, f"rows that cross the driver grow with the data: {self}"
        assert self.large.rows <= 3 * self.large.returned + 3 * _ROWS_SLACK, (
            f"too many rows for the answer: {self}"
        )

    def statements_are_flat(self) -> None:
        """Assert that the number of statements does not grow."""
        assert self.large.statements <= self.small.statements + 1, f"statements grow with the data: {self}"

    def work_is_flat(self) -> None:
        """Assert that the database's work does not grow, where it counts it."""
        if self.small.work is None or self.large.work is None:
            return
        most = self.small.work * _WORK_FACTOR + _WORK_SLACK
        assert self.large.work <= most, f"the database's work grows with the data: {self}"


async def measured(database: Database, store: Store, call: Callable[[], Awaitable[object]]) -> Cost:
    """Make a call twice and count the second time, when plans and schemas are known to the driver.

    Raises:
        Unobserved: There is nothing to count with.
    """
    if not isinstance(database.probe, Spy):
        raise Unobserved
    await call()
    with database.probe.spy(store) as observed:
        result = await call()
    found: object = result.items if isinstance(result, Page) else result  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  (of whatever)
    returned = len(found) if isinstance(found, list) else 1  # pyright: ignore[reportUnknownArgumentType]  (of whatever)
    return Cost(observed.statements, observed.rows, observed.volume, observed.work, returned)
