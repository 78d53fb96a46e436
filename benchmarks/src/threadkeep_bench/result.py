"""What a benchmark found, as ``result.json``: the schema is these structs, and cases are compared by name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
from msgspec.json import decode, encode, format

from .environment import Environment
from .rounds import Measured

__all__ = ["SCHEMA", "Change", "Result", "Target", "changes", "floor_limit", "read", "write"]

SCHEMA = 1
"""Raised when a field changes its meaning."""

_LEAST_NOISE = 0.1
_EMBEDDED = ("libsql", 1.3)
_NETWORKED = 1.15


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that has a limit.

    Attributes:
        name: What it is.
        value: What was measured, in *unit*.
        unit: ``x`` is a ratio, ``exponent`` that of growth with the size.
        limit: What it must not pass.
        bound: On which side of the limit it must be.
    """

    name: str
    value: float
    unit: Literal["x", "%", "MB", "exponent"]
    limit: float
    bound: Literal["at most", "at least"]

    @property
    def met(self) -> bool:
        """Whether the value is on the right side."""
        return self.value <= self.limit if self.bound == "at most" else self.value >= self.limit


def floor_limit(backend: str) -> float:
    """How many times the floor's latency a backend's may be; embedded, a hop to a thread weighs more."""
    name, limit = _EMBEDDED
    return limit if backend.partition("#")[0] == name else _NETWORKED


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    Attributes:
        schema: Of this file.
        benchmark: Which one, such as ``foundation``.
        environment: What it ran on.
        settings: What it was asked for.
        cases: Latencies, with ratios to the floor.
        figures: Everything else that was measured, by name; a name says its unit.
        targets: Figures that have a limit.
    """

    schema: int = SCHEMA
    benchmark: str
    environment: Environment
    settings: dict[str, str | int]
    cases: list[Measured]
    figures: dict[str, float]
    targets: list[Target]


def write(result: Result, path: Path) -> None:
    """Write a result for programs and people."""
    path.write_bytes(format(encode(result), indent=2) + b"\n")


def read(path: Path) -> Result:
    """Read a result.

    Raises:
        ValueError: It is none, or of another schema.
    """
    try:
        result = decode(path.read_bytes(), type=Result)
    except msgspec.MsgspecError as exc:
        raise ValueError(f"{path} is no result of a benchmark: {exc}") from exc
    if result.schema != SCHEMA:
        raise ValueError(f"{path} has schema {result.schema}, this is {SCHEMA}")
    return result


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """How one latency differs between two results.

    Attributes:
        case: The case.
        contestant: Who.
        before_us: The earlier median.
        after_us: The later one.
        noise: How far apart they may be by chance: the larger of the two spreads, at least 10 %.
    """

    case: str
    contestant: str
    before_us: float
    after_us: float
    noise: float

    @property
    def kind(self) -> Literal["slower", "faster", "same"]:
        """Which way it went beyond the noise."""
        if self.after_us > self.before_us * (1 + self.noise):
            return "slower"
        return "faster" if self.before_us > self.after_us * (1 + self.noise) else "same"


def changes(before: Result, after: Result) -> list[Change]:
    """Every latency that both results have, the one that grew most first."""
    later = {case.name: case for case in after.cases}
    found = [
        Change(
            case=case.name,
            contestant=name,
            before_us=own.p50_us,
            after_us=later[case.name].figures[name].p50_us,
            noise=max(_LEAST_NOISE, own.spread, later[case.name].figures[name].spread),
        )
        for case in before.cases
        if case.name in later
        for name, own in case.figures.items()
        if name in later[case.name].figures
    ]
    return sorted(found, key=lambda change: change.before_us / change.after_us)
