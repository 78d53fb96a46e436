"""Figures as SVG that takes its colours and its font from the page: light or dark, and of any width.

The plots are matplotlib's. Colours are drawn in placeholders that become CSS variables, text stays text, and
each figure is one small panel, so that a row of them on a desk is a column on a phone, with the same letters.
"""

# matplotlib passes keyword arguments on without types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from html import escape
from io import StringIO
from typing import Any, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "FLOOR",
    "GRID",
    "MUTED",
    "OTHER",
    "OURS",
    "PYTHON",
    "Panel",
    "panel",
    "standalone",
    "variables",
]

INK, MUTED, GRID = "#010101", "#020202", "#030303"
OURS, FLOOR, PYTHON, OTHER = "#040404", "#050505", "#060606", "#070707"
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    OURS: "ours",
    FLOOR: "floor",
    PYTHON: "python",
    OTHER: "other",
}

COLOURS = {
    "light": {
        "paper": "#ffffff",
        "ink": "#1c2430",
        "muted": "#5b6675",
        "grid": "#e3e7ec",
        "ours": "#1f63d6",
        "floor": "#0b8a6a",
        "python": "#c2410c",
        "other": "#9aa5b4",
    },
    "dark": {
        "paper": "#12161c",
        "ink": "#e6eaf0",
        "muted": "#9aa7b8",
        "grid": "#2a323d",
        "ours": "#7aa8ff",
        "floor": "#4fd1a5",
        "python": "#ff9d5c",
        "other": "#66727f",
    },
}
"""The CSS variables of both themes; contrast with the paper is at least 4.5 for what is read."""

_STYLE = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "text.color": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
}
_WIDTH_IN = 4.8


class Panel:
    """A figure as SVG.

    Attributes:
        name: For the file and the element's id.
        title: What it shows, in words, for those who do not see it.
        svg: The element, with classes and variables of the page.
    """

    def __init__(self, name: str, title: str, svg: str) -> None:
        self.name, self.title, self.svg = name, title, svg


@contextmanager
def panel(name: str, title: str, found: list[Panel], *, height_in: float = 3.2) -> Generator[Axes]:
    """Draw one panel into the axes, and add it to those that were found."""
    with mpl.rc_context(cast("Any", {**_STYLE, "svg.hashsalt": name})):
        figure = Figure(figsize=(_WIDTH_IN, height_in), layout="constrained")
        axes = figure.subplots()
        axes.tick_params(length=0)
        yield axes
        found.append(Panel(name, title, _svg(figure, name, title)))


def _svg(figure: Figure, name: str, title: str) -> str:
    written = StringIO()
    metadata: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(written, format="svg", metadata=metadata)
    text = written.getvalue()
    text = text[text.index("<svg") :]
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    # The font is the page's; its size stays.
    text = re.sub(r"font: (?:(bold|[1-9]00) )?([0-9.]+)px [^;\"]+", _font, text)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    for size in ("width", "height"):
        text = re.sub(rf'(<svg [^>]*?) {size}="[^"]*"', r"\1", text, count=1)
    label = f'<svg class="plot" id="{escape(name)}" role="img" aria-label="{escape(title)}" '
    return text.replace("<svg ", label, 1)


def _font(found: re.Match[str]) -> str:
    return f"font-weight: {found[1] or 'normal'}; font-size: {found[2]}px"


def variables(theme: str) -> str:
    """The CSS declarations of a theme's variables."""
    return " ".join(f"--{name}: {value};" for name, value in COLOURS[theme].items())


def standalone(panels: Iterable[Panel]) -> dict[str, str]:
    """Panels as files of their own, by name; as pictures they follow the reader's theme."""
    font = "font-family: system-ui, sans-serif;"
    style = (
        f"<style>svg {{ {variables('light')} {font} background: var(--paper); }} "
        f"@media (prefers-color-scheme: dark) {{ svg {{ {variables('dark')} }} }}</style>"
    )
    return {
        each.name: re.sub(r"(<svg [^>]*>)", lambda found: found[1] + style, each.svg, count=1) + "\n"
        for each in panels
    }
