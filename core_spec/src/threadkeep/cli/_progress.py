"""A progress bar on the terminal, and nothing where there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(what: str, total: float | None) -> Generator[Callable[[float], None]]:
    """A bar on standard error, gone when it is done.

    Args:
        what: What is being done.
        total: How much there is, in any unit; None where nobody knows.

    Yields:
        What to call with how much more is done.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from ._output import console

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console(err=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda amount: bar.advance(task, amount)
