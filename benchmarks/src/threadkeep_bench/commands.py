"""What the commands of ``threadkeep bench`` do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich import box
from rich.table import Table
from uuid_utils import uuid7

from . import report
from .cases import operations, peers, pushdown
from .environment import environment
from .options import in_words
from .result import Change, Result, changes, read, write
from .rounds import Measured
from .tables import console, print_end, print_machine, print_result
from .workers import contestants, home, prepare

__all__ = ["run_compare", "run_operations", "run_peers", "run_pushdown", "run_report"]

_CALLS = 10


def run_pushdown(
    urls: Sequence[str], sizes: Sequence[int], rounds: int, out: Path | None, *, brief: bool = False
) -> None:
    """Measure the filtered page, print it, and write what was found into *out*; *brief* prints little."""
    found = environment()
    cases, figures, targets = pushdown.run(urls, sizes, rounds=rounds, calls=_CALLS, run_id=_run_id())
    result = Result(
        benchmark="pushdown",
        environment=found,
        settings={"messages": ",".join(map(in_words, sizes)), "rounds": rounds, "calls_per_round": _CALLS},
        cases=cases,
        figures=figures,
        targets=targets,
    )
    if brief:
        console().print(_brief_table(result))
    else:
        print_machine(result.environment)
        console().print(_table(result))
        print_end(result)
    _write(result, out)


def _brief_table(result: Result) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("messages that match", "in the database", "by hand", "in Python", "times faster"):
        table.add_column(name, justify="right")
    for case in result.cases:
        if "share" in case.labels:
            floor = case.figures.get(pushdown.FLOOR)
            table.add_row(
                f"{float(case.labels['share']):.2%} of {case.labels['messages']:,}",
                f"{case.figures[pushdown.PUSHED].p50_us:,.0f} us",
                f"{floor.p50_us:,.0f} us" if floor else "n/a",
                f"{case.figures[pushdown.PYTHON].p50_us:,.0f} us",
                f"{case.counts['times_faster_than_python']:,.0f}",
            )
    return table


def run_operations(urls: Sequence[str], count: int, *, bulk: int, rounds: int, out: Path | None) -> None:
    """Measure every operation, print it, and write what was found into *out*."""
    found = environment()
    heavy = max(3, rounds // 5)
    cases, targets = operations.run(urls, count, bulk, rounds=rounds, heavy_rounds=heavy, run_id=_run_id())
    result = Result(
        benchmark="operations",
        environment=found,
        settings={
            "messages": in_words(count),
            "cloned and imported": bulk,
            "rounds": rounds,
            "rounds of clone and import": heavy,
        },
        cases=cases,
        figures={},
        targets=targets,
    )
    print_result(result)
    _write(result, out)


def run_peers(
    backend: str, only: Sequence[str], count: int, *, url: str | None, rounds: int, out: Path | None
) -> None:
    """Measure the peers, print it, and write what was found into *out*."""
    found = environment()
    everybody = contestants(backend)
    if not everybody:
        raise click.UsageError(f"peers are not measured on {backend} yet")
    unknown = [name for name in only if name not in {each.name for each in everybody}]
    if unknown:
        names = ", ".join(each.name for each in everybody if each.peer)
        raise click.UsageError(f"nobody is called {unknown[0]!r} on {backend}; there are: {names}")
    taking_part = [each for each in everybody if not only or each.name in only or each.name == peers.BASE]
    folder = home()
    if any(each.peer for each in taking_part):
        click.echo("installing the peers, if they are not yet", err=True)
        asyncio.run(prepare(folder))
    heavy = max(3, rounds // 5)
    cases, versions, settings, targets = peers.run(
        backend, taking_part, folder, count, url=url, rounds=rounds, heavy_rounds=heavy
    )
    result = Result(
        benchmark="peers",
        environment=msgspec.structs.replace(found, versions={**found.versions, **versions}),
        settings={
            "backend": backend,
            "messages": in_words(count),
            "rounds": rounds,
            "rounds of clone": heavy,
            **settings,
        },
        cases=cases,
        figures={},
        targets=targets,
    )
    print_machine(result.environment)
    console().print(_peers_table(result))
    print_end(result)
    _write(result, out)


def _peers_table(result: Result) -> Table:
    names = list(dict.fromkeys(name for case in result.cases for name in (*case.figures, *case.absent)))
    names.remove("spin")
    title = "Median microseconds, and times threadkeep's"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("operation")
    for name in names:
        table.add_column(name, justify="right")
    for case in result.cases:
        if "operation" in case.labels:
            table.add_row(str(case.labels["operation"]), *[_cell(case, name) for name in names])
    for case in result.cases:
        for name, reason in case.absent.items():
            if reason != peers.NOT_OFFERED:
                table.caption = f"{table.caption or ''}{case.name}: {name} {reason}\n"
    return table


def _cell(case: Measured, name: str) -> str:
    if name in case.absent:
        return "n/a" if case.absent[name] == peers.NOT_OFFERED else "[red]wrong[/]"
    ratio = case.ratios.get(name)
    return f"{case.figures[name].p50_us:,.0f}" + (f" {ratio.median:.1f}x" if ratio else "")


def _run_id() -> str:
    return uuid7().hex[-12:]


def _table(result: Result) -> Table:
    title = f"The newest {pushdown.PAGE} of one thread that match a filter"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("backend", "filter matches", "messages"):
        table.add_column(name)
    columns = (
        "pushed down p50",
        "p95",
        "p99 us",
        "rows read",
        "by hand p50",
        "ratio",
        "in Python p50",
        "faster",
    )
    for name in columns:
        table.add_column(name, justify="right")
    cases = [case for case in result.cases if "share" in case.labels]
    cases.sort(key=lambda case: (case.labels["backend"], case.labels["share"], case.labels["messages"]))
    for number, case in enumerate(cases):
        own, python = case.figures[pushdown.PUSHED], case.figures[pushdown.PYTHON]
        floor, ratio = case.figures.get("floor"), case.ratios.get(pushdown.PUSHED)
        backend, share = str(case.labels["backend"]), f"{float(case.labels['share']):.2%}"
        table.add_row(
            *(backend, share, in_words(int(case.labels["messages"]))),
            *(f"{value:,.0f}" for value in (own.p50_us, own.p95_us, own.p99_us)),
            f"{case.counts['rows_transferred']:,.0f}" if "rows_transferred" in case.counts else "",
            f"{floor.p50_us:,.0f}" if floor else "n/a",
            f"{ratio.median:.2f}" if ratio else "n/a",
            f"{python.p50_us:,.0f}",
            f"{case.counts['times_faster_than_python']:,.0f} x",
        )
        is_last = number + 1 == len(cases) or cases[number + 1].labels["share"] != case.labels["share"]
        exponent = result.figures.get(f"filtered_page/{share}/{backend}/{pushdown.PUSHED} growth_exponent")
        if is_last and exponent is not None:
            table.add_row("", "growth", f"size^{exponent:.2f}", end_section=True)
    return table


def _write(result: Result, out: Path | None) -> None:
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write(result, out / "result.json")
        click.echo(f"written: {out / 'result.json'}")
        if not report.is_available():
            click.echo(report.MISSING)
            return
        from .report.writing import write_report

        write_report([result], out / "report.html")
        click.echo(f"written: {out / 'report.html'}")


def run_report(paths: Sequence[Path], out: Path, pictures: Path | None) -> None:
    """Write one page of several results, and their plots as files of their own."""
    if not report.is_available():
        raise click.ClickException(report.MISSING)
    from .report.writing import write_pictures, write_report

    try:
        results = [read(path) for path in paths]
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    write_report(results, out)
    click.echo(f"written: {out}")
    if pictures is not None:
        click.echo(f"written: {len(write_pictures(results, pictures))} plots into {pictures}")


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
