"""Writing the report; imported only where matplotlib is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..result import Result
from .drawing import standalone
from .page import page_of
from .plots import panels_of

__all__ = ["write_pictures", "write_report"]


def write_report(results: Sequence[Result], path: Path) -> None:
    """Write one page of all results."""
    path.write_text(page_of(results), "utf-8")


def write_pictures(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write each panel as a file of its own, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for result in results:
        for panels in panels_of(result).values():
            for name, text in standalone(panels).items():
                path = folder / f"{name}.svg"
                path.write_text(text, "utf-8")
                written.append(path)
    return written
