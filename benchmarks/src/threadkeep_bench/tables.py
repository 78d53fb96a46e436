"""Results as tables for a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from .environment import Environment
from .machine import STEADY, spread_of
from .result import Result, Target
from .rounds import Measured

__all__ = ["console", "print_end", "print_machine", "print_noise", "print_result"]

_WIDTH = 140


def console() -> Console:
    """For stdout: as wide as the terminal, and wide in a pipe."""
    return Console(width=None if Console().is_terminal else _WIDTH, highlight=False)


def print_result(result: Result) -> None:
    """Print all of it."""
    print_machine(result.environment)
    console().print(_latencies(result.cases))
    if result.figures:
        console().print(_figures(result.figures))
    print_end(result)


def print_end(result: Result) -> None:
    """Print which limits were kept, and how far to trust it all."""
    if result.targets:
        console().print(_targets(result.targets))
    print_noise(result.cases)


def print_machine(found: Environment) -> None:
    """Print what it ran on."""
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    load = "" if found.load is None else f", load {found.load:.1f} at the start"
    console().print(f"{found.python} on {found.system} {found.machine}, {found.cpus} CPUs{load}\n{versions}")


def print_noise(cases: list[Measured]) -> None:
    """Print how steady the machine was, and which cases are not to be trusted."""
    spread = spread_of(cases)
    if spread is not None:
        steady = spread <= STEADY
        word = "steady" if steady else "NOISY: repeat the run on a quiet machine before you rely on it"
        console().print(
            f"The machine was {word} (spread {spread:.0%}).", style="" if steady else "bold yellow"
        )
    noisy = [case.name for case in cases if case.noisy]
    if noisy:
        console().print(f"Noisy, so read their ratios with care: {', '.join(noisy)}.", style="yellow")


def _latencies(cases: list[Measured]) -> Table:
    table = Table(title="Latency", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("case")
    for heading in ("contestant", "p50 us", "p95 us", "p99 us", "spread", "to the base", "quartiles"):
        table.add_column(heading, justify="left" if heading == "contestant" else "right")
    for case in cases:
        for name, own in case.figures.items():
            ratio = case.ratios.get(name)
            table.add_row(
                case.name if name == next(iter(case.figures)) else "",
                name,
                *(f"{value:,.0f}" for value in (own.p50_us, own.p95_us, own.p99_us)),
                f"{own.spread:.0%}",
                f"{ratio.median:.2f}" if ratio else "base",
                f"{ratio.low:.2f} to {ratio.high:.2f}" if ratio else "",
            )
    return table


def _figures(figures: dict[str, float]) -> Table:
    table = Table(title="Figures", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.0f}" if value >= 100 else f"{value:,.1f}")
    return table


def _targets(targets: list[Target]) -> Table:
    table = Table(title="Targets", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("target")
    for heading in ("value", "limit", ""):
        table.add_column(heading, justify="right")
    for target in targets:
        met = "[green]met[/]" if target.met else "[red]missed[/]"
        limit = f"{target.bound} {target.limit:g} {target.unit}"
        table.add_row(target.name, f"{target.value:.2f} {target.unit}", limit, met)
    return table
