"""The plots of each benchmark."""

# matplotlib passes keyword arguments on without types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ..cases.peers import NOT_OFFERED
from ..cases.pushdown import FLOOR as BY_HAND
from ..cases.pushdown import PUSHED
from ..cases.pushdown import PYTHON as IN_PYTHON
from ..growth import growth
from ..options import in_words
from ..result import Result, floor_limit
from ..rounds import Measured
from .drawing import FLOOR, GRID, MUTED, OTHER, OURS, PYTHON, Panel, panel

__all__ = ["panels_of"]

_WAYS = {
    PUSHED: ("threadkeep", OURS, "o"),
    BY_HAND: ("by hand", FLOOR, "s"),
    IN_PYTHON: ("filter in Python", PYTHON, "^"),
}
_SHOWN_SHARES = (0.001, 0.1)
_FULL = 10
_BAR_IN = 0.3


def panels_of(result: Result) -> dict[str, list[Panel]]:
    """The panels of a result, by what a group of them is about."""
    if result.benchmark == "pushdown":
        return {
            "Latency against the size of the thread": list(_sizes(result)),
            "Latency against the share of messages that match": list(_selectivities(result)),
            "Times the latency of hand-written code": list(_ratios(result)),
        }
    if result.benchmark == "operations":
        return {"Times the latency of hand-written code": list(_ratios(result))}
    if result.benchmark == "peers":
        return {"Side by side with what one would use instead": list(_peers(result))}
    return {"Times the latency of hand-written code": list(_ratios(result))}


def _backends(result: Result) -> list[str]:
    return list(
        dict.fromkeys(str(case.labels["backend"]) for case in result.cases if "backend" in case.labels)
    )


# --- pushdown -------------------------------------------------------------------------------------


def _sizes(result: Result) -> Iterator[Panel]:
    """One panel a backend and a share: log-log, so that a straight line is a power of the size."""
    for backend in _backends(result):
        for share in _SHOWN_SHARES:
            cases = sorted(_with(result, backend, share=share), key=_messages)
            if len(cases) < 2:
                continue
            title = f"{backend}: filter matching {share * 100:g} %"
            found: list[Panel] = []
            with panel(f"size-{backend}-{share:g}".replace("#", "-"), title, found) as axes:
                _draw_sizes(axes, cases, share)
                axes.set_title(title)
            yield from found


def _draw_sizes(axes: Axes, cases: Sequence[Measured], share: float) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    sizes = [_messages(case) for case in cases]
    ways = _present(cases)
    for way in ways:
        points = [(size, case.figures[way].p50_us) for size, case in zip(sizes, cases, strict=True)]
        full = [point for point in points if point[0] * share >= _FULL]
        exponent = growth(full) if len(full) > 1 else math.nan
        note = "" if math.isnan(exponent) else f"  size$^{{{round(exponent, 2) + 0:.2f}}}$"  # no -0.00
        _line(axes, way, points, note, below=way == _lowest(ways, cases[-1]))
    _sized_x(axes, sizes)
    axes.set_xlabel("messages in the thread")
    _time_y(axes)


def _selectivities(result: Result) -> Iterator[Panel]:
    """One panel a backend, at the largest size."""
    for backend in _backends(result):
        cases = _with(result, backend)
        most = max(_messages(case) for case in cases)
        cases = sorted([case for case in cases if _messages(case) == most], key=_share)
        title = f"{backend}: {in_words(most)} messages"
        found: list[Panel] = []
        with panel(f"share-{backend}".replace("#", "-"), title, found) as axes:
            axes.set_xscale("log")
            axes.set_yscale("log")
            shares = [_share(case) for case in cases]
            ways = _present(cases)
            for way in ways:
                latencies = [case.figures[way].p50_us for case in cases]
                points = list(zip(shares, latencies, strict=True))
                _line(axes, way, points, "", below=way == _lowest(ways, cases[-1]))
            axes.xaxis.set_major_locator(FixedLocator(shares))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(_formatted(lambda share: f"{share * 100:g} %"))
            axes.set_xlim(shares[0] / 1.5, shares[-1] * 40)
            axes.set_xlabel("messages that match the filter")
            _time_y(axes)
            axes.set_title(title)
        yield from found


def _with(result: Result, backend: str, share: float | None = None) -> list[Measured]:
    return [
        case
        for case in result.cases
        if case.labels.get("backend") == backend
        and "share" in case.labels
        and share in (None, case.labels["share"])
    ]


def _messages(case: Measured) -> int:
    return int(case.labels["messages"])


def _share(case: Measured) -> float:
    return float(case.labels["share"])


def _present(cases: Sequence[Measured]) -> list[str]:
    """The ways that all of them have, the slowest first: then what matters is drawn on top."""
    return [way for way in reversed(_WAYS) if all(way in case.figures for case in cases)]


def _lowest(ways: Sequence[str], last: Measured) -> str:
    return min(ways, key=lambda way: last.figures[way].p50_us)


def _formatted(words: Callable[[float], str]) -> FuncFormatter:
    def formatted(value: float, _: int | None = None) -> str:
        return words(value)

    return FuncFormatter(formatted)


def _line(axes: Axes, way: str, points: Sequence[tuple[float, float]], note: str, *, below: bool) -> None:
    """A curve with its name at its end; that of the lowest stands below, since two may be close."""
    label, colour, marker = _WAYS[way]
    x, y = zip(*points, strict=True)
    axes.plot(x, y, color=colour, marker=marker, clip_on=False)
    axes.annotate(
        label + note,
        (x[-1], y[-1]),
        xytext=(7, -5 if below else 5),
        textcoords="offset points",
        va="top" if below else "bottom",
        color=colour,
        fontweight="bold",
        annotation_clip=False,
    )


def _sized_x(axes: Axes, sizes: Sequence[int]) -> None:
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(_formatted(lambda size: in_words(round(size))))
    span = sizes[-1] / sizes[0]
    axes.set_xlim(sizes[0] / span**0.06, sizes[-1] * span**0.62)  # room for the names of the curves


def _time_y(axes: Axes) -> None:
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(_formatted(time_in_words))
    low, high = axes.get_ylim()
    axes.set_ylim(low / 1.6, high * 1.6)


def time_in_words(us: float) -> str:
    """A latency in the unit that reads best."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= size:
            return f"{us / size:.3g} {unit}"
    return f"{us:.3g} µs"


# --- ratios ---------------------------------------------------------------------------------------


def _ratios(result: Result) -> Iterator[Panel]:
    """One panel a backend: a point a case with the quartiles of its rounds, and the limit."""
    for backend in _backends(result):
        cases = [
            case for case in result.cases if case.labels.get("backend") == backend and len(case.ratios) == 1
        ]
        if not cases:
            continue
        title = f"{backend}: times the floor's latency"
        found: list[Panel] = []
        height = 1 + len(cases) * 0.22
        name = f"floor-{result.benchmark}-{backend}".replace("#", "-")
        with panel(name, title, found, height_in=height) as axes:
            _draw_ratios(axes, cases, floor_limit(backend))
            axes.set_title(title)
        yield from found


def _draw_ratios(axes: Axes, cases: Sequence[Measured], limit: float) -> None:
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.axvline(1, color=MUTED, linewidth=1)
    axes.axvspan(0, limit, color=FLOOR, alpha=0.1, linewidth=0)
    least, most = 0.8, limit
    for row, case in enumerate(reversed(cases)):
        [ratio] = case.ratios.values()
        met = ratio.median <= limit
        axes.plot([ratio.low, ratio.high], [row, row], color=OTHER, linewidth=3, solid_capstyle="round")
        colour, marker = (OURS, "o") if met else (PYTHON, "X")
        axes.plot([ratio.median], [row], color=colour, marker=marker, markersize=6)
        least, most = min(least, ratio.low), max(most, min(ratio.high, 2 * ratio.median))
    axes.set_yticks(range(len(cases)), [_short(case) for case in reversed(cases)])
    axes.set_ylim(-0.7, len(cases) - 0.3)
    axes.set_xlim(max(0, least * 0.9), most * 1.1)
    axes.set_xlabel(f"1 is the floor; the limit is {limit:g}")


def _short(case: Measured) -> str:
    if "share" in case.labels:
        return f"{_share(case) * 100:g} % of {in_words(_messages(case))}"
    return case.name.rpartition("/")[0].replace("_", " ")


# --- peers ----------------------------------------------------------------------------------------


def _peers(result: Result) -> Iterator[Panel]:
    """One panel an operation: a bar for each, from zero, ours in colour."""
    cases = [case for case in result.cases if "operation" in case.labels]
    names = list(dict.fromkeys(name for case in cases for name in (*case.figures, *case.absent)))
    for case in cases:
        operation = str(case.labels["operation"]).replace("_", " ")
        title = f"{operation} ({case.labels['backend']})"
        found: list[Panel] = []
        height = 0.65 + _BAR_IN * len(names)
        with panel(f"peers-{case.name}".replace("/", "-"), title, found, height_in=height) as axes:
            _draw_bars(axes, case, names)
            axes.set_title(title)
        yield from found


def _draw_bars(axes: Axes, case: Measured, names: Sequence[str]) -> None:
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_color(GRID)
    axes.set_xticks([])
    most = max(figures.p50_us for figures in case.figures.values())
    for row, name in enumerate(reversed(names)):
        own = case.figures.get(name)
        if own is None:
            offered = case.absent[name] != NOT_OFFERED
            _note(axes, 0, row, "wrong" if offered else "n/a", color=PYTHON if offered else MUTED)
            continue
        ours = name.startswith("threadkeep")
        axes.barh(row, own.p50_us, height=0.62, color=OURS if ours else OTHER)
        ratio = case.ratios.get(name)
        text = time_in_words(own.p50_us) + (f" · {times_in_words(ratio.median)}" if ratio else "")
        _note(axes, own.p50_us, row, text, fontweight="bold" if ours else "normal")
    axes.set_yticks(range(len(names)), list(reversed(names)))
    axes.set_xlim(0, most * 1.45)  # room for the figures
    axes.set_ylim(-0.6, len(names) - 0.4)


def _note(axes: Axes, x: float, row: int, text: str, **more: Any) -> None:
    axes.annotate(text, (x, row), xytext=(4, 0), textcoords="offset points", va="center", **more)


def times_in_words(ratio: float) -> str:
    """A ratio with two digits that matter."""
    return f"{ratio:,.0f}x" if ratio >= 9.95 else f"{ratio:.1f}x" if ratio >= 0.95 else f"{ratio:.2f}x"
