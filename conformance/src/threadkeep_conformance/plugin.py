"""Adds ``threadkeep conformance``. The kit is imported when it runs: every listing of commands comes here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from threadkeep import hookimpl

if TYPE_CHECKING:
    from .report import Report, Settings

__all__ = ["conformance", "threadkeep_register_commands"]

_EPILOG = """Exit codes: 0 conformant, or all that was selected passed; 1 not; 2 the call.

In URL, {tmp} becomes a fresh folder and {namespace} a fresh name, for each case; a URL with neither is made
fresh by the adapter, beside the database it names."""


@click.command(epilog=_EPILOG)
@click.argument("url", required=False)
@click.option(
    "--report",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for report.json, report.md, junit.xml and badge.json; made if missing.",
)
@click.option("--examples", type=click.IntRange(min=1), help="Random runs per property; more look deeper.")
@click.option(
    "--area", "areas", multiple=True, metavar="AREA", help="Only these cases; may repeat. See --list."
)
@click.option("--quick", is_flag=True, help="A selection that takes a few seconds on an embedded database.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all random data.")
@click.option(
    "--waivers",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML file of known failures, each with reason and link.",
)
@click.option("--list", "only_list", is_flag=True, help="Print the cases and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def conformance(
    *,
    url: str | None,
    folder: Path | None,
    examples: int | None,
    areas: tuple[str, ...],
    waivers: Path | None,
    seed: int,
    quick: bool,
    only_list: bool,
    as_json: bool,
) -> int:
    """Hold the adapter of URL against the contract, on fresh databases."""
    from .cases import selected, suite_imported
    from .printing import print_cases
    from .report import Settings
    from .running import QUICK

    suite_imported()
    areas = (*areas, *QUICK) if quick else areas
    for area in areas:
        if not selected((area,)):
            raise click.BadParameter(f"there is no case in {area!r}; --list shows all", param_hint="--area")
    if only_list:
        print_cases(selected(areas), as_json=as_json)
        return 0
    if url is None:
        raise click.UsageError("missing argument URL")
    report = _run(url, Settings(areas, examples, seed, waivers), folder, as_json=as_json)
    return 0 if report.good else 1


def _run(url: str, settings: Settings, folder: Path | None, *, as_json: bool) -> Report:
    import asyncio

    from .printing import print_report, progressing
    from .report import write
    from .running import KitError, look, run

    try:
        adapter = asyncio.run(look(url))
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        with progressing() as progress:
            junit = None if folder is None else (folder / "junit.xml").absolute()
            report = run(url, adapter, settings, junit=junit, progress=progress)
    except KitError as exc:
        raise click.UsageError(str(exc)) from exc
    except ValueError as exc:
        raise click.BadParameter(str(exc), param_hint="URL") from exc
    if folder is not None:
        write(report, folder)
    print_report(report, as_json=as_json)
    return report


@hookimpl
def threadkeep_register_commands(cli: click.Group) -> None:
    """Offer the command."""
    cli.add_command(conformance)
