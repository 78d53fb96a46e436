"""What the commands of ``threadkeep bench`` do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich import box
from rich.table import Table
from uuid_utils import uuid7

from . import workload
from .cases import pushdown
from .environment import environment
from .options import in_words
from .result import Change, Result, changes, read, write
from .tables import console, print_machine, print_noise

__all__ = ["run_compare", "run_pushdown"]

_CALLS = 10


def run_pushdown(urls: Sequence[str], sizes: Sequence[int], rounds: int, out: Path | None) -> None:
    """Measure the filtered page, print it, and write ``result.json`` into *out*."""
    found = environment()
    run_id = uuid7().hex[-12:]
    cases, figures = pushdown.run(urls, sizes, rounds=rounds, calls=_CALLS, run_id=run_id)
    result = Result(
        benchmark="pushdown",
        environment=found,
        settings={"messages": ",".join(map(in_words, sizes)), "rounds": rounds, "calls_per_round": _CALLS},
        cases=cases,
        figures=figures,
        targets=[],
    )
    print_machine(result.environment)
    console().print(_table(result, sizes))
    print_noise(result.cases)
    _write(result, out)


def _table(result: Result, sizes: Sequence[int]) -> Table:
    table = Table(
        title="The newest 20 of one thread that match a filter", title_justify="left", box=box.SIMPLE_HEAD
    )
    for name in ("backend", "messages", "filter matches"):
        table.add_column(name)
    for name in ("pushed down p50", "p95", "p99 us", "by hand p50", "ratio", "in Python p50", "times faster"):
        table.add_column(name, justify="right")
    cases = {case.name: case for case in result.cases}
    for backend in dict.fromkeys(name.rpartition("/")[2] for name in cases):
        for share in workload.SHARES.values():
            for count in sizes:
                case = cases[pushdown.case_name(share, count, backend)]
                own, python = case.figures["pushed down"], case.figures["in Python"]
                floor, ratio = case.figures.get("floor"), case.ratios.get("pushed down")
                table.add_row(
                    *(backend, in_words(count), f"{share:.2%}"),
                    *(f"{value:,.0f}" for value in (own.p50_us, own.p95_us, own.p99_us)),
                    f"{floor.p50_us:,.0f}" if floor else "n/a",
                    f"{ratio.median:.2f}" if ratio else "n/a",
                    f"{python.p50_us:,.0f}",
                    f"{python.p50_us / own.p50_us:,.0f}",
                )
            exponent = result.figures.get(f"filtered_page/{share:.2%}/{backend}/pushed down growth_exponent")
            if exponent is not None:
                table.add_row("", "growth", f"size^{exponent:.2f}", end_section=True)
    return table


def _write(result: Result, out: Path | None) -> None:
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write(result, out / "result.json")
        click.echo(f"written: {out / 'result.json'}")


def run_compare(before: Path, after: Path) -> None:
    """Print what changed beyond the noise of both results."""
    try:
        first, second = read(before), read(after)
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    found = changes(first, second)
    for kind in ("slower", "faster"):
        own = [change for change in found if change.kind == kind]
        if own:
            console().print(_changes(kind, own))
    same = sum(change.kind == "same" for change in found)
    click.echo(f"{same} of {len(found)} latencies are within the noise")
    if first.environment.versions != second.environment.versions or (
        first.environment.machine,
        first.environment.cpus,
        first.environment.python,
    ) != (second.environment.machine, second.environment.cpus, second.environment.python):
        click.echo("The two ran on different machines or versions.")


def _changes(kind: str, found: list[Change]) -> Table:
    table = Table(title=kind, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("case")
    table.add_column("contestant")
    for name in ("before us", "after us", "change", "noise"):
        table.add_column(name, justify="right")
    for change in found:
        table.add_row(
            *(change.case, change.contestant, f"{change.before_us:,.0f}", f"{change.after_us:,.0f}"),
            f"{change.after_us / change.before_us - 1:+.0%}",
            f"{change.noise:.0%}",
        )
    return table
