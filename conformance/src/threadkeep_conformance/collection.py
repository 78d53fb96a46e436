"""What happens between collecting the suite and running it: completeness, waivers, selection."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from threadkeep import ThreadkeepError
from threadkeep.registry import registry

from . import suite
from .cases import CASES, ORIGINALS, declared, selected
from .databases import is_fresh
from .probe import Databases, load_probe
from .suite.base import AdapterSuite
from .waivers import Waiver, WaiverError, read_waivers

_WHY = "each case gets a database of its own, and this adapter's probe makes none"

_PLANNED = pytest.StashKey[list[pytest.Item]]()
_WAIVED = pytest.StashKey[bool]()
_NARROWING = ("keyword", "markexpr", "deselect", "lf", "stepwise")
"""Options that leave cases out and say so in pytest's summary."""

__all__ = ["check_nothing_dropped", "defects", "judge", "prepare", "url_ids"]


def url_ids(urls: Iterable[str]) -> list[str]:
    """Short names for URLs, without credentials: the adapters' names, numbered where one repeats.

    Raises:
        pytest.UsageError: A URL names no installed adapter, or cannot be made fresh for each case.
    """
    seen: Counter[str] = Counter()
    found: list[str] = []
    for url in urls:
        try:
            spec = registry().spec_for(url)
        except ThreadkeepError as exc:
            raise pytest.UsageError(str(exc)) from exc
        if not is_fresh(url) and not isinstance(load_probe(spec), Databases):
            raise pytest.UsageError(f"the {spec.name} URL needs {{namespace}} or {{tmp}}: {_WHY}")
        name = spec.name
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return found


def prepare(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note each case's id, add a failing item for a damaged suite, apply waivers, and select areas.

    Raises:
        pytest.UsageError: A waiver is incomplete or names no case, or an area has none.
    """
    whole: dict[tuple[ModuleType, str], list[pytest.Item]] = {}
    for item in items:
        marked = declared(getattr(item, "obj", None))
        if marked is not None:
            item.user_properties.append(("threadkeep_case", marked.id))
            whole.setdefault((_module_of(item), _url_of(item)), []).append(item)
    _waive(config, items)
    _select(config, items)
    config.stash[_PLANNED] = [item for item in items if _is_case(item)]
    narrowed = config.getoption("lf", default=False) or any("::" in argument for argument in config.args)
    found: dict[str, pytest.Item] = {}  # a module's own defects show for each URL
    for (module, _), cases in whole.items():
        ids = None if narrowed else [str(dict(item.user_properties)["threadkeep_case"]) for item in cases]
        for defect in defects(module, ids):
            found.setdefault(f"{module.__name__}: {defect}", cases[0])
    for defect, item in found.items():
        items.append(_Damaged.beside(item, session, defect))


def check_nothing_dropped(session: pytest.Session) -> None:
    """Add a failing item for each case that something other than the kit or pytest's own options removed."""
    planned = session.config.stash.get(_PLANNED, [])
    if any(session.config.getoption(option, default=None) for option in _NARROWING):
        return
    kept = set(session.items)
    for item in planned:
        if item not in kept:
            defect = f"{item.nodeid.rpartition('::')[2]} was collected and then dropped"
            session.items.append(_Damaged.beside(item, session, defect))


def judge(item: pytest.Item, report: pytest.TestReport) -> None:
    """Make a case's report a failure if it was skipped or expected to fail by anything but the kit."""
    if not _is_case(item):
        return
    noted = dict(item.user_properties).get("threadkeep_outcome")
    if hasattr(report, "wasxfail"):
        if item.stash.get(_WAIVED, False):
            return
        said = "was expected to fail without a waiver"
    elif report.skipped and not (report.when == "call" and noted in ("not offered", "unproven")):
        said = "was skipped, which no case may be"
    else:
        return
    vars(report).pop("wasxfail", None)
    report.outcome = "failed"
    report.longrepr = f"the case {said}; a suite must run whole and as it is"


def defects(module: ModuleType, collected: Iterable[str] | None = None) -> list[str]:
    """What a module has removed from the suite or overridden; a module that only adds to it has none.

    Args:
        module: An adapter's test file, which has the suite's classes.
        collected: The ids of the cases that pytest found there; None where only some were asked for.
    """
    classes = [
        found for found in vars(module).values() if inspect.isclass(found) and issubclass(found, AdapterSuite)
    ]
    found: list[str] = []
    ran = set(CASES if collected is None else collected)
    for name in suite.__all__:
        original: type[AdapterSuite] = getattr(suite, name)
        runs = [cls for cls in classes if issubclass(cls, original)]
        if not runs:
            found.append(f"the class {name} was removed")
            continue
        changed = {member: cls for cls in runs for member in _overridden(cls)}
        found += [f"{cls.__name__}.{member} was overridden" for member, cls in changed.items()]
        left_out = [one.name for one in CASES.values() if one.suite == name and one.id not in ran]
        found += [f"{name}.{member} was not collected" for member in left_out if member not in changed]
    return found


def _overridden(cls: type[AdapterSuite]) -> list[str]:
    """The members of the kit's classes that a class, or somebody who has changed those, puts others for."""
    found: set[str] = set()
    kit = {member for base in cls.__mro__ for member in ORIGINALS.get(base, ())}
    for base in cls.__mro__:
        now = vars(base)
        if base in ORIGINALS:
            before = ORIGINALS[base]
            found |= {member for member in {*before, *now} if now.get(member) is not before.get(member)}
        elif base is not object:
            found |= kit & set(now)
    return sorted(member for member in found if not member.startswith("__") and member != "pytestmark")


def _is_case(item: pytest.Item) -> bool:
    return declared(getattr(item, "obj", None)) is not None


def _module_of(item: pytest.Item) -> ModuleType:
    return item.module  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]  (a pytest.Function)


def _url_of(item: pytest.Item) -> str:
    """What tells a case's runs on several URLs apart."""
    call: Any = getattr(item, "callspec", None)
    return "" if call is None else repr(call.params.get("threadkeep_url"))


class _Damaged(pytest.Item):
    """Fails, saying what is missing from the suite."""

    def __init__(self, *, defect: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # pyright: ignore[reportUnknownMemberType]  (pytest)
        self._defect = defect

    @classmethod
    def beside(cls, item: pytest.Item, session: pytest.Session, defect: str) -> _Damaged:
        """One of these in an item's module; pytest does not let them be constructed."""
        parent = item.getparent(pytest.Module) or session
        name = f"suite_is_complete[{defect}]"
        return cls.from_parent(parent, name=name, defect=defect)  # pyright: ignore[reportUnknownMemberType]  (pytest)

    def runtest(self) -> None:
        """Fail."""
        pytest.fail(f"{self._defect}; a suite must run whole and as it is", pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the suite was damaged."""
        return self.path, 0, f"{self.name}: {self._defect}"


def _waive(config: pytest.Config, items: list[pytest.Item]) -> None:
    path: str | None = config.getoption("threadkeep_waivers")
    try:
        given = [] if path is None else read_waivers(Path(path))
    except WaiverError as exc:
        raise pytest.UsageError(str(exc)) from exc
    for item in items:
        marked = declared(getattr(item, "obj", None))
        if marked is None:
            continue
        for waiver in [*given, *_module_waivers(item)]:
            if waiver.case not in CASES:
                raise pytest.UsageError(f"there is no case {waiver.case!r} to waive")
            if waiver.case == marked.id:
                reason = f"{waiver.reason} ({waiver.link})"
                # Before other marks: the first one decides.
                item.add_marker(pytest.mark.xfail(strict=True, reason=reason), append=False)
                item.stash[_WAIVED] = True


def _module_waivers(item: pytest.Item) -> list[Waiver]:
    return getattr(getattr(item, "module", None), "THREADKEEP_WAIVERS", [])


def _select(config: pytest.Config, items: list[pytest.Item]) -> None:
    areas = cast("list[str]", config.getoption("threadkeep_area"))
    if not areas:
        return
    empty = [area for area in areas if not selected((area,))]
    if empty:
        known = ", ".join(sorted({one.area for one in CASES.values()}))
        raise pytest.UsageError(f"no case in the area {empty[0]!r}; areas: {known}")
    wanted = {one.id for one in selected(tuple(areas))}
    marked = {item: declared(getattr(item, "obj", None)) for item in items}
    dropped = [item for item, found in marked.items() if found is not None and found.id not in wanted]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in set(dropped)]
