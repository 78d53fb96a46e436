"""What a benchmark is doing, on stderr: a bar for each step."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["Advance", "Steps"]

Advance = Callable[[int], object]
"""Told how much more of a step is done."""


class Steps:
    """The steps of a run; shown while it is entered."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True))

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextmanager
    def step(self, description: str, total: int) -> Generator[Advance]:
        """A step of so many parts."""
        task = self._progress.add_task(description, total=total)
        yield lambda more: self._progress.advance(task, more)
