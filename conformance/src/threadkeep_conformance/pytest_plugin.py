"""The kit's pytest plugin: options, URLs, waivers, outcomes. It adds no fixture and imports nothing slow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_SUITE = Path(__file__).with_name("test_suite.py")

pytest.register_assert_rewrite("threadkeep_conformance.suite", "threadkeep_conformance.witness")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the kit's options."""
    group = parser.getgroup("threadkeep", "threadkeep conformance kit")
    group.addoption(
        "--threadkeep-url",
        action="append",
        default=[],
        metavar="URL",
        help="database to test; {namespace} becomes a fresh name, {tmp} a fresh folder; may repeat",
    )
    group.addoption(
        "--threadkeep-examples",
        type=int,
        default=None,
        metavar="N",
        help="random runs per property (default: few)",
    )
    group.addoption(
        "--threadkeep-seed", type=int, default=0, metavar="N", help="seed of all random data (default: 0)"
    )
    group.addoption(
        "--threadkeep-area", action="append", default=[], metavar="AREA", help="run only these cases"
    )
    group.addoption("--threadkeep-waivers", default=None, metavar="FILE", help="TOML file of waived cases")
    group.addoption(
        "--threadkeep-events", action="store_true", help="print one JSON line per outcome, for the report"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the URLs before anything is collected, and start the writer of events where it is asked for."""
    urls = cast("list[str]", config.getoption("threadkeep_url"))
    if urls:
        from .collection import url_ids

        url_ids(urls)
    if config.getoption("threadkeep_events"):
        from .events import EventWriter

        config.pluginmanager.register(EventWriter(), "threadkeep-events")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
    """Say what is missing, once, rather than that every case of the installed suite lacks a fixture."""
    if module_path == _SUITE and not parent.config.getoption("threadkeep_url"):
        raise pytest.UsageError("which database? give --threadkeep-url=URL")


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a suite's cases for every ``--threadkeep-url``, which wins over a module's fixture of that name."""
    urls = cast("list[str]", metafunc.config.getoption("threadkeep_url"))
    suite = cast("type | None", metafunc.cls)
    if urls and "threadkeep_url" in metafunc.fixturenames and _is_suite(suite):
        from .collection import url_ids

        mark = pytest.mark.parametrize("threadkeep_url", urls, ids=url_ids(urls))
        metafunc.definition.add_marker(mark)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Notice removed and overridden cases, apply waivers, select areas."""
    if any(_is_suite(getattr(item, "cls", None)) for item in items):
        from .collection import prepare

        prepare(session, config, items)


@pytest.hookimpl(wrapper=True)
def pytest_report_teststatus(report: Any) -> Generator[None, Any, Any]:
    """Count what is refused and what is waived apart from what passed."""
    status = yield
    properties: dict[str, object] = dict(getattr(report, "user_properties", ()))
    if "threadkeep_case" not in properties:
        return status
    if report.when == "call" and report.passed and properties.get("threadkeep_outcome") == "refused":
        return "refused", "R", ("REFUSED", {"yellow": True})
    if report.skipped and hasattr(report, "wasxfail"):
        return "waived", "w", ("WAIVED", {"yellow": True})
    if report.skipped and properties.get("threadkeep_outcome") == "not offered":
        return "not offered", "n", ("NOT OFFERED", {"yellow": True})
    if report.skipped and properties.get("threadkeep_outcome") == "unproven":
        return "unproven", "u", ("UNPROVEN", {"yellow": True})
    return status


def _is_suite(cls: type | None) -> bool:
    """Whether a class is a suite, without importing the suite into sessions that do not use it."""
    return cls is not None and any(
        base.__module__ == "threadkeep_conformance.suite.base" for base in cls.__mro__
    )
