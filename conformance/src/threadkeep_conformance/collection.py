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
from .cases import CASES, declared, selected
from .databases import is_fresh
from .probe import Databases, load_probe
from .suite.base import AdapterSuite
from .waivers import Waiver, WaiverError, read_waivers

_WHY = "each case gets a database of its own, and this adapter's probe makes none"

__all__ = ["defects", "prepare", "url_ids"]


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
    modules: dict[ModuleType, pytest.Item] = {}
    for item in items:
        marked = declared(getattr(item, "obj", None))
        if marked is not None:
            item.user_properties.append(("threadkeep_case", marked.id))
            modules.setdefault(item.module, item)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]  (a pytest.Function)
    _waive(config, items)
    _select(config, items)
    for module, item in modules.items():
        for index, defect in enumerate(defects(module)):
            name = f"suite_is_complete-{index}"
            parent = item.getparent(pytest.Module) or session
            items.append(_Damaged.made(parent, name, defect))


def defects(module: ModuleType) -> list[str]:
    """What a module has removed from the suite or overridden; a module that only adds to it has none."""
    classes = [
        found for found in vars(module).values() if inspect.isclass(found) and issubclass(found, AdapterSuite)
    ]
    found: list[str] = []
    for name in suite.__all__:
        original: type[AdapterSuite] = getattr(suite, name)
        runs = [cls for cls in classes if issubclass(cls, original)]
        if not runs:
            found.append(f"the class {name} was removed")
        found += [
            f"{cls.__name__}.{member} was overridden" for cls in runs for member in _overridden(cls, original)
        ]
    return found


def _overridden(cls: type[AdapterSuite], original: type[AdapterSuite]) -> list[str]:
    if cls is original:
        return [
            one.name
            for one in CASES.values()
            if one.suite == cls.__name__ and vars(cls).get(one.name) is not one.function
        ]
    kit = {name for name in (*vars(original), *vars(AdapterSuite)) if not name.startswith("__")}
    own = [
        base
        for base in cls.__mro__
        if not base.__module__.startswith("threadkeep_conformance.") and base is not object
    ]
    return sorted({member for base in own for member in vars(base) if member in kit})


class _Damaged(pytest.Item):
    """Fails, saying what is missing from the suite."""

    def __init__(self, *, defect: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # pyright: ignore[reportUnknownMemberType]  (pytest)
        self._defect = defect

    @classmethod
    def made(cls, parent: pytest.Collector, name: str, defect: str) -> _Damaged:
        """One of these; pytest does not let them be constructed."""
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
                item.add_marker(pytest.mark.xfail(strict=True, reason=f"{waiver.reason} ({waiver.link})"))


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
