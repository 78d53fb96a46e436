"""What the commands take: sizes such as ``10k,1m``."""

from __future__ import annotations

import re

import click

__all__ = ["counts", "in_words"]

_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def counts(ctx: click.Context, param: click.Parameter, value: str) -> list[int]:
    """A click callback: counts with commas between them, each a number that may end in ``k`` or ``m``.

    Returns:
        Each once, the smallest first.

    Raises:
        click.BadParameter: One is no such number, or below 1,000.
    """
    found: set[int] = set()
    for text in value.lower().split(","):
        parts = re.fullmatch(r"(\d+)([km]?)", text.strip())
        if parts is None or int(parts[1]) * _UNITS[parts[2]] < 1000:
            raise click.BadParameter(f"{text!r} is not a count of at least 1,000, such as 10k", ctx, param)
        found.add(int(parts[1]) * _UNITS[parts[2]])
    return sorted(found)


def in_words(count: int) -> str:
    """A count as it is written in options and names: ``10k``."""
    for unit in ("m", "k"):
        if count % _UNITS[unit] == 0:
            return f"{count // _UNITS[unit]}{unit}"
    return str(count)
