"""Adds ``threadkeep bench``. A benchmark is imported when it runs: every listing of commands comes here."""

from __future__ import annotations

from pathlib import Path

import click

from threadkeep import hookimpl

from .options import counts

__all__ = ["bench", "threadkeep_register_commands"]

_out = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for result.json; made if missing.",
)


@click.group()
def bench() -> None:
    """Measure backends: what each pushes down, and how close it is to its driver."""


@bench.command()
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option(
    "--messages", callback=counts, default="10k,100k", show_default=True, help="Sizes of the thread."
)
@click.option("--rounds", type=click.IntRange(min=3), default=25, show_default=True)
@click.option("--quick", is_flag=True, help="2k and 10k messages, few rounds: under 15 seconds.")
@_out
def pushdown(
    urls: tuple[str, ...], messages: list[int], rounds: int, *, quick: bool, out: Path | None
) -> None:
    """Filter in the database, in Python, and by hand, on the same data.

    Stores messages under a resource of its own in each database, and deletes them at the end.
    """
    from .commands import run_pushdown

    if quick:
        messages, rounds = [2_000, 10_000], 8
    run_pushdown(urls, messages, rounds, out)


@bench.command()
@click.argument("before", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("after", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def compare(before: Path, after: Path) -> None:
    """Say what got slower or faster between two result.json, beyond their noise."""
    from .commands import run_compare

    run_compare(before, after)


@hookimpl
def threadkeep_register_commands(cli: click.Group) -> None:
    """Offer the benchmarks."""
    cli.add_command(bench)
