"""Running the suite in a process of its own, from any folder, whatever pytest configuration there is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from .cases import selected
from .databases import Database
from .events import Outcomes, Planned, decoded
from .probe import Versions
from .report import Adapter, Report, Run, Settings

__all__ = ["QUICK", "KitError", "look", "run"]

QUICK = ("changes", "filters", "merges", "messages", "operators", "threads")
"""The areas of a short run: a few seconds on an embedded database."""

Progress = Callable[[int, int], None]


class KitError(Exception):
    """The suite could not be run; the message is what pytest said."""


async def look(url: str) -> Adapter:
    """Open a fresh database and note what is tested.

    Raises:
        ValueError: The URL cannot be made fresh.
        ThreadkeepError: It cannot be opened.
    """
    async with Database(url) as database:
        store = await database.open()
        found: Mapping[str, str] = {}
        if isinstance(database.probe, Versions):
            found = await database.probe.versions(store)
        spec = database.spec
        return Adapter(
            name=spec.name,
            version=_version_of(spec.connect.__module__),
            contract=spec.contract,
            driver=found.get("driver"),
            server=found.get("server"),
            capabilities={str(name): str(support) for name, support in store.capabilities.items()},
        )


def _version_of(module: str) -> str | None:
    """The version of the distribution that a module is from."""
    from importlib.metadata import PackageNotFoundError, packages_distributions, version

    names = packages_distributions().get(module.partition(".")[0], [module.partition(".")[0]])
    try:
        return version(names[0])
    except PackageNotFoundError:
        return None


def run(
    url: str,
    adapter: Adapter,
    settings: Settings,
    *,
    junit: Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run the suite, or the selected areas of it, on fresh databases made out of a URL.

    Args:
        url: With ``{namespace}`` or ``{tmp}``, or of an adapter whose probe makes fresh ones.
        adapter: What :func:`look` found there.
        settings: Selection, waivers, depth and seed.
        junit: Where to write a JUnit file.
        progress: Told how many cases are done, and of how many.

    Raises:
        KitError: pytest could not run it: its own fault or a wrong waiver.
    """
    planned: list[str] = []
    outcomes: list[Outcomes] = []
    with tempfile.TemporaryDirectory(prefix="threadkeep-kit-") as folder:
        command = _command(url, settings, Path(folder), junit)
        # A file of its own for errors: a pipe that nobody reads fills up and stops the run.
        with Path(folder, "errors").open("w+b") as errors:
            child = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=_environment(folder),
                text=True,
                encoding="utf-8",
            )
            try:
                for event in map(decoded, child.stdout or ()):
                    if isinstance(event, Planned):
                        planned = event.cases
                    elif event is not None:
                        outcomes.append(event)
                    if progress is not None and planned:
                        progress(len(outcomes), len(planned))
                code = child.wait()
            finally:
                child.kill()
                child.wait()
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
    if code not in (0, 1):
        raise KitError(_without_url(said, url) or f"pytest ended with {code}")
    return Report.of(Run(adapter, settings, planned, outcomes), wanted=[one.id for one in selected(())])


def _without_url(text: str, url: str) -> str:
    return text.replace(url, "URL").removeprefix("ERROR: ")


def _command(url: str, settings: Settings, folder: Path, junit: Path | None) -> list[str]:
    given = [f"--threadkeep-area={area}" for area in settings.areas]
    if settings.examples is not None:
        given.append(f"--threadkeep-examples={settings.examples}")
    if settings.waivers is not None:
        given.append(f"--threadkeep-waivers={settings.waivers}")
    if junit is not None:
        given += [f"--junitxml={junit}", "-o", "junit_family=xunit2"]
    return [
        *(sys.executable, "-m", "pytest"),
        *("-c", os.devnull, f"--rootdir={folder}", "--noconftest"),  # nothing of where we are called from
        *("-p", "no:cacheprovider", "-p", "no:terminal", "-p", "pytest_asyncio.plugin"),
        *("-p", "threadkeep_conformance.pytest_plugin", "--threadkeep-events"),
        *("-o", "asyncio_mode=strict", "-o", "asyncio_default_fixture_loop_scope=function"),
        *(f"--threadkeep-url={url}", f"--threadkeep-seed={settings.seed}", *given),
        *("--pyargs", "threadkeep_conformance.test_suite"),
    ]


def _environment(folder: str) -> dict[str, str]:
    """The environment without what would change the run (options, other plugins, colours) or leave files."""
    dropped = {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    ours = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONUTF8": "1", "NO_COLOR": "1"}
    return {**kept, **ours, "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(folder, "hypothesis"))}
