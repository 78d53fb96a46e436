"""How the database answers a query, out of ``EXPLAIN (ANALYZE, FORMAT JSON)``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from threadkeep.models import Explanation

from ._queries import Statement
from ._session import Row, Session

__all__ = ["Planned", "explanation"]

_EXPLAIN = b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "

Node = dict[str, Any]


class Planned:
    """A reader that also has each statement explained.

    Attributes:
        plans: The top node of each statement's plan.
    """

    def __init__(self, db: Session) -> None:
        self._db = db
        self.plans: list[Node] = []

    async def read_snapshot(self, *statements: Statement) -> list[list[Row]]:
        """The rows of statements."""
        for statement in statements:
            rows = await self._db.read(Statement(_EXPLAIN + statement.sql, statement.parameters))
            self.plans.append(cast("list[Node]", rows[0][0])[0]["Plan"])
        return await self._db.read_snapshot(*statements)


def explanation(adapter: str, planned: Planned, *, filtered: bool) -> Explanation:
    """What the plans say."""
    nodes = [each for plan in planned.plans for each in _nodes(plan, 0)]
    indexes = dict.fromkeys([node["Index Name"] for node, _ in nodes if "Index Name" in node])
    return Explanation(
        adapter=adapter,
        filter="native" if filtered else None,
        order="native",
        limit="native",
        indexes=list(indexes),
        rows_examined=sum(_examined(node) for node, _ in nodes),
        plan=[_line(node, depth) for node, depth in nodes],
    )


def _nodes(node: Node, depth: int) -> Iterator[tuple[Node, int]]:
    yield node, depth
    for child in node.get("Plans", ()):
        yield from _nodes(child, depth + 1)


def _examined(node: Node) -> int:
    """The rows or index entries that a scan of a table or an index read, in all its loops."""
    if "Relation Name" not in node and "Index Name" not in node:
        return 0
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return round((node["Actual Rows"] + removed) * node["Actual Loops"])


def _line(node: Node, depth: int) -> str:
    what = node["Node Type"]
    if "Index Name" in node:
        what += f" using {node['Index Name']}"
    if "Relation Name" in node:
        what += f" on {node['Relation Name']}"
    condition = node.get("Index Cond") or node.get("Filter")
    rows = f" (rows={node['Actual Rows']:g} loops={node['Actual Loops']})"
    return "  " * depth + what + (f" where {condition}" if condition else "") + rows
