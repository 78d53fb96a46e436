"""How steady the machine itself is: work that never changes, timed among everything else.

Its spread is what no database is to blame for: other programs, other guests of a host, a changing clock.
"""

from __future__ import annotations

from .rounds import Case, Measured

__all__ = ["NAME", "STEADY", "spin_case", "spread_of"]

NAME = "machine/spin"
STEADY = 0.1
"""Above this spread (of the rounds' medians, between their quartiles) a run says that it was noisy."""

_TURNS = 20_000


def _spin(_: int) -> None:
    """About a millisecond of arithmetic."""
    total = 0
    for number in range(_TURNS):
        total += number


def spin_case() -> Case:
    """To be measured with the others."""
    return Case(name=NAME, contestants={"spin": _spin}, calls=3)


def spread_of(cases: list[Measured]) -> float | None:
    """The spread of that case; None where it was not measured."""
    return next((case.figures["spin"].spread for case in cases if case.name == NAME), None)
