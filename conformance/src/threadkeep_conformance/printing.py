"""What ``threadkeep conformance`` shows on the terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .cases import CASES, Case, list_hash
from .events import Outcome
from .report import OUTCOMES, Report, tallies

__all__ = ["print_cases", "print_report", "progressing"]

_STYLES: dict[Outcome, str] = {
    "passed": "green",
    "refused": "cyan",
    "waived": "yellow",
    "failed": "bold red",
    "unproven": "red",
    "not offered": "dim",
}
_SHOWN_LINES = 12


@contextmanager
def progressing() -> Generator[Callable[[int, int], None]]:
    """A bar on standard error, if that is a terminal; gives what to call with done and total."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    columns = TextColumn("conformance"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("conformance", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_cases(cases: Sequence[Case], *, as_json: bool) -> None:
    """The cases: id, rules and the rule in words."""
    if as_json:
        rows = [
            {
                "id": one.id,
                "area": one.area,
                "rules": one.rules,
                "requires": sorted(one.requires),
                "text": one.text,
            }
            for one in cases
        ]
        click.echo(msgspec.json.format(msgspec.json.encode({"cases_hash": list_hash(), "cases": rows})))
        return
    for one in cases:
        needs = f" [needs {', '.join(sorted(one.requires))}]" if one.requires else ""
        click.echo(f"{one.id}  ({', '.join(one.rules)}){needs}\n    {one.text}")
    click.echo(f"{len(cases)} cases, list {list_hash()}")


def print_report(report: Report, *, as_json: bool) -> None:
    """The verdict after tables by area and capability, and what went wrong before both."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
        return
    console = Console(highlight=False)
    for one in report.cases:
        if one.outcome in ("failed", "unproven", "waived"):
            console.print(f"{one.outcome}: {one.case}", style=_STYLES[one.outcome], markup=False)
            if one.case in CASES:
                console.print(f"  rule: {CASES[one.case].text}", markup=False)
            for line in one.detail.splitlines()[-_SHOWN_LINES:]:
                console.print(f"  {line}", style="dim", markup=False)
    console.print(_table("area", tallies(report, by="area"), {}))
    console.print(_table("capability", _capabilities(report), report.adapter.capabilities))
    if report.not_offered:
        names = ", ".join(one.case for one in report.cases if one.outcome == "not offered")
        console.print(f"optional, and not offered by the adapter's probe: {names}", style="dim", markup=False)
    adapter = report.adapter
    parts = (
        f"{adapter.name} {adapter.version or ''}".strip(),
        adapter.driver,
        adapter.server,
        f"kit {report.kit}",
    )
    console.print(", ".join(part for part in parts if part), f"in {report.seconds:.1f} s", markup=False)
    console.print(report.verdict, style="bold green" if report.good else "bold red", markup=False)


def _capabilities(report: Report) -> list[tuple[str, Counter[Outcome]]]:
    """Every capability, those that no case of a selection shows too."""
    found = dict(tallies(report, by="capability"))
    return [(name, found.get(name, Counter())) for name in report.adapter.capabilities]


def _table(first: str, rows: list[tuple[str, Counter[Outcome]]], support: dict[str, str]) -> Table:
    used: list[Outcome] = [one for one in OUTCOMES if any(count[one] for _, count in rows)]
    table = Table(first, box=None, pad_edge=False)
    if support:
        table.add_column("support")
    for outcome in used:
        table.add_column(outcome, justify="right", style=_STYLES[outcome])
    for name, count in rows:
        numbers = [str(count[outcome] or "") for outcome in used]
        table.add_row(name, *([support[name]] if support else []), *numbers)
    return table
