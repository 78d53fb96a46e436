"""The page around the plots: what ran where, how far to trust it, which limits were kept, and all figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template

from ..machine import STEADY, spread_of
from ..result import Result
from ..rounds import Measured
from .drawing import Panel, variables
from .plots import panels_of

__all__ = ["page_of"]

_ABOUT = {
    "pushdown": """
        The newest ten messages of one thread that match: filtered by the database, through threadkeep;
        by hand-written statements on the same tables; and in Python after reading the thread. Medians. The
        exponent says how a curve grows: 0 is flat, 1 is in proportion to the size.""",
    "operations": """
        Every operation next to hand-written code on the same driver, tables, indexes and durability. A point
        is the median of the rounds' ratios, its bar their quartiles; a cross is beyond the limit.""",
    "peers": """
        The same work by what one would use instead, on the same data, each measured in its own process,
        commits equally durable. Medians, and how many times threadkeep's; n/a is not offered.""",
}


def page_of(results: Sequence[Result]) -> str:
    """The whole page of one or several results."""
    text = files("threadkeep_bench").joinpath("report/page.html").read_text("utf-8")
    body = "\n".join(part for result in results for part in _section(result))
    title = "threadkeep benchmarks"
    page = Template(text).substitute(title=title, light=variables("light"), dark=variables("dark"), body=body)
    return "\n".join(line.rstrip() for line in page.splitlines()) + "\n"


def _section(result: Result) -> Iterator[str]:
    about = " ".join(_ABOUT.get(result.benchmark, "").split())
    yield f"<section>\n<h2>{escape(result.benchmark.capitalize())}</h2>\n<p>{escape(about)}</p>"
    yield from _machine(result)
    for group, panels in panels_of(result).items():
        if panels:
            yield f"<h3>{escape(group)}</h3>\n<div class='plots'>\n{_figures(panels)}\n</div>"
    if result.targets:
        met = sum(target.met for target in result.targets)
        yield _details(f"Limits: {met} of {len(result.targets)} met", _targets(result))
    yield _details("All latencies", _latencies(result.cases))
    counts = [case for case in result.cases if case.counts]
    if counts:
        yield _details("What the database and its driver did", _counts(counts))
    yield _details("Settings and versions", _settings(result))
    yield "</section>"


def _machine(result: Result) -> Iterator[str]:
    found = result.environment
    load = "" if found.load is None else f", load {found.load:.1f} at the start"
    machine = f"{found.python} on {found.system}, {found.machine}, {found.cpus} CPUs{load}"
    spread = spread_of(result.cases)
    steady = "" if spread is None else f"; the machine's own spread was {spread:.0%}"
    yield f"<p class='muted'>{escape(machine + steady)}</p>"
    noisy = [case.name for case in result.cases if case.noisy]
    if spread is not None and spread > STEADY:
        text = "This machine was noisy. Repeat the run on a quiet one before you rely on it."
        yield f"<p class='noisy'>{text}</p>"
    if noisy:
        names = ", ".join(noisy[:6]) + (f" and {len(noisy) - 6} more" if len(noisy) > 6 else "")
        yield f"<p class='noisy'>Ratios that differed between rounds: {escape(names)}.</p>"


def _figures(panels: Iterable[Panel]) -> str:
    return "\n".join(f"<figure>{panel.svg}</figure>" for panel in panels)


def _details(summary: str, table: str) -> str:
    return f"<details><summary>{escape(summary)}</summary><div class='table'>{table}</div></details>"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _targets(result: Result) -> str:
    return _table(
        ("target", "value", "limit", ""),
        [
            (
                escape(target.name),
                f"{target.value:.2f} {escape(target.unit)}",
                escape(f"{target.bound} {target.limit:g} {target.unit}"),
                "<span class='met'>met</span>" if target.met else "<span class='missed'>missed</span>",
            )
            for target in result.targets
        ],
    )


def _latencies(cases: Sequence[Measured]) -> str:
    rows: list[Sequence[str]] = []
    for case in cases:
        for name, own in case.figures.items():
            ratio = case.ratios.get(name)
            rows.append(
                (
                    escape(case.name),
                    escape(name),
                    *(f"{value:,.0f}" for value in (own.p50_us, own.p95_us, own.p99_us)),
                    f"{own.spread:.0%}",
                    f"{ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})" if ratio else "",
                    f"{own.calls:,}",
                )
            )
        rows += [
            (escape(case.name), escape(name), f"<span class='muted'>{escape(reason)}</span>", *[""] * 5)
            for name, reason in case.absent.items()
        ]
    headings = ("case", "who", "p50 us", "p95 us", "p99 us", "spread", "to the base (quartiles)", "calls")
    return _table(headings, rows)


def _counts(cases: Sequence[Measured]) -> str:
    names = list(dict.fromkeys(name for case in cases for name in case.counts))
    rows = [
        (
            escape(case.name),
            *(f"{case.counts[name]:,.0f}" if name in case.counts else "" for name in names),
        )
        for case in cases
    ]
    return _table(("case", *[name.replace("_", " ") for name in names]), rows)


def _settings(result: Result) -> str:
    rows = [(escape(name), escape(str(value))) for name, value in result.settings.items()]
    rows += [(escape(name), escape(version)) for name, version in result.environment.versions.items()]
    rows += [(escape(name), f"{value:.3g}") for name, value in result.figures.items()]
    return _table(("", ""), rows)
