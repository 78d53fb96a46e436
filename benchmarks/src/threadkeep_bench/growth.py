"""How a latency grows with the size of what it is measured on."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["growth"]


def growth(points: Sequence[tuple[int, float]]) -> float:
    """The exponent b of time = a * size**b through the points: 0 is flat, 1 linear. NaN for one point."""
    logs = [(math.log(size), math.log(value)) for size, value in points]
    x, y = (sum(column) / len(logs) for column in zip(*logs, strict=True))
    spread = sum((a - x) ** 2 for a, _ in logs)
    return sum((a - x) * (b - y) for a, b in logs) / spread if spread else math.nan
