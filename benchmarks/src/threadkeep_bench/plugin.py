"""Adds ``threadkeep bench``. A benchmark is imported when it runs: every listing of commands comes here."""

from __future__ import annotations

from pathlib import Path

import click

from threadkeep import hookimpl

from .options import counts

__all__ = ["bench", "threadkeep_register_commands"]

_urls = click.argument("urls", metavar="[URL]...", nargs=-1)
_out = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for result.json and report.html; made if missing.",
)
_rounds = click.option("--rounds", type=click.IntRange(min=3), default=25, show_default=True)


@click.group()
def bench() -> None:
    """Measure backends: what each pushes down, and how close it is to its driver.

    A URL may be the name of a backend: libsql (the default) is a temporary file, postgres a server that is
    started for the run. On a given database, all that was stored is deleted at the end.
    """


@bench.command()
@_urls
@click.option(
    "--messages", callback=counts, default="10k,100k", show_default=True, help="Sizes of the thread."
)
@_rounds
@click.option("--quick", is_flag=True, help="2k and 10k messages, few rounds: under 15 seconds.")
@click.option("--brief", is_flag=True, help="5k messages, few rounds, a small table: a few seconds.")
@_out
def pushdown(
    urls: tuple[str, ...], messages: list[int], rounds: int, *, quick: bool, brief: bool, out: Path | None
) -> None:
    """Filter in the database, in Python, and by hand, on the same data."""
    from .commands import run_pushdown

    if quick or brief:
        messages, rounds = ([5_000], 5) if brief else ([2_000, 10_000], 8)
    run_pushdown(urls or ("libsql",), messages, rounds, out, brief=brief)


@bench.command()
@_urls
@click.option("--messages", callback=counts, default="20k", show_default=True, help="Length of the thread.")
@_rounds
@click.option("--quick", is_flag=True, help="11k messages, few rounds: under 15 seconds.")
@_out
def operations(
    urls: tuple[str, ...], messages: list[int], rounds: int, *, quick: bool, out: Path | None
) -> None:
    """Every operation next to hand-written code on the same database."""
    from .commands import run_operations

    if quick:
        messages, rounds = [11_000], 5
    if len(messages) != 1 or messages[0] < 11_000:
        raise click.BadParameter(
            "one length of at least 11k, so that there is a page 500", param_hint="--messages"
        )
    bulk = 2_000 if quick else 10_000
    run_operations(urls or ("libsql",), messages[0], bulk=bulk, rounds=rounds, out=out)


@bench.command()
@click.option(
    "--backend", type=click.Choice(["libsql", "postgres", "mongo"]), default="libsql", show_default=True
)
@click.option("--url", help="A PostgreSQL server to create databases on; without it one is started.")
@click.option("--only", multiple=True, help="Who takes part besides threadkeep, by name; else everybody.")
@click.option("--messages", callback=counts, default="5k", show_default=True, help="Length of the thread.")
@_rounds
@click.option("--quick", is_flag=True, help="1k messages, few rounds.")
@_out
def peers(
    backend: str,
    url: str | None,
    only: tuple[str, ...],
    messages: list[int],
    rounds: int,
    *,
    quick: bool,
    out: Path | None,
) -> None:
    """The same work by threadkeep and by what a user would pick instead.

    Installs OpenAI Agents, LangGraph, Google ADK, LangChain and Mastra beside the checkout at first: 640 MB.
    """
    from .commands import run_peers

    if quick:
        messages, rounds = [1_000], 5
    if len(messages) != 1:
        raise click.BadParameter("one length", param_hint="--messages")
    run_peers(backend, only, messages[0], url=url, rounds=rounds, out=out)


@bench.command()
@click.argument(
    "results", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default="report.html", show_default=True
)
@click.option(
    "--pictures", type=click.Path(file_okay=False, path_type=Path), help="Also write each plot into a folder."
)
def report(results: tuple[Path, ...], out: Path, pictures: Path | None) -> None:
    """Write one page with the plots of several result.json."""
    from .commands import run_report

    run_report(results, out, pictures)


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
