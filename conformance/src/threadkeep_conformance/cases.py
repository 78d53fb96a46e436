"""What a case is: a test with a stable id, the rules of the contract it holds, and the capabilities it needs.

``@case`` marks a test of a suite class. The class registers its cases when it is defined, so the list of
cases is known without running anything: it is printed, hashed, mapped to the contract, and compared with what
was run.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from threadkeep import Capability

from .rules import RULES

if TYPE_CHECKING:
    from .suite.base import AdapterSuite

__all__ = [
    "CASES",
    "Case",
    "Declared",
    "case",
    "declared",
    "list_hash",
    "register",
    "selected",
    "suite_imported",
]

Suite = TypeVar("Suite", bound="AdapterSuite")
Fixtures = ParamSpec("Fixtures")

_ATTRIBUTE = "__threadkeep_case__"
_SHOWN_BY = {  # capabilities that no case requires: absent or not, the same answers are right
    "5.5.pushdown": Capability.METADATA_PUSHDOWN,
    "6.conditional": Capability.CONDITIONAL_WRITES,
    "8.substring": Capability.TEXT_SEARCH,
}
_KIT = "threadkeep_conformance.suite."


@dataclass(frozen=True, slots=True)
class Declared:
    """What ``@case`` says of one test.

    Attributes:
        id: Stable and dotted, such as ``messages.filter.bool_is_not_int``.
        rules: Keys of :data:`threadkeep_conformance.rules.RULES`.
        requires: Capabilities it needs besides those of its class.
    """

    id: str
    rules: tuple[str, ...]
    requires: frozenset[Capability]


@dataclass(frozen=True, slots=True)
class Case:
    """One case of the kit.

    Attributes:
        id: Stable and dotted.
        rules: The rules of the contract it holds.
        requires: Where one is absent, the case proves that it is refused.
        area: The suite file it is in.
        suite: The class it is in.
        name: The method.
        text: The rule in words: the docstring's first paragraph.
        function: The method itself, to notice one that was overridden.
    """

    id: str
    rules: tuple[str, ...]
    requires: frozenset[Capability]
    area: str
    suite: str
    name: str
    text: str
    function: Callable[..., Any]

    @property
    def shows(self) -> frozenset[Capability]:
        """The capabilities that it says something about: those it requires, and those its rules are about."""
        return self.requires | {_SHOWN_BY[rule] for rule in self.rules if rule in _SHOWN_BY}


CASES: dict[str, Case] = {}
"""Every case of the kit, by id; complete once ``threadkeep_conformance.suite`` is imported."""


def case(
    identifier: str, *rules: str, requires: frozenset[Capability] = frozenset()
) -> Callable[
    [Callable[Concatenate[Suite, Fixtures], Awaitable[None]]],
    Callable[Concatenate[Suite, Fixtures], Awaitable[None]],
]:
    """Make a test of a suite class a case.

    Args:
        identifier: Its stable id.
        rules: The rules of the contract it holds, as in :mod:`threadkeep_conformance.rules`.
        requires: Capabilities it needs besides those of its class.

    Raises:
        ValueError: There is no such rule, or none is named.
    """
    unknown = [rule for rule in rules if rule not in RULES]
    if unknown or not rules:
        raise ValueError(
            f"case {identifier}: no such rules: {unknown}" if unknown else f"case {identifier}: no rule"
        )

    def decorate(
        function: Callable[Concatenate[Suite, Fixtures], Awaitable[None]],
    ) -> Callable[Concatenate[Suite, Fixtures], Awaitable[None]]:
        @functools.wraps(function)
        async def run(self: Suite, /, *args: Fixtures.args, **kwargs: Fixtures.kwargs) -> None:
            await self.run_case(function, args, kwargs, type(self).requires | requires)

        setattr(run, _ATTRIBUTE, Declared(identifier, rules, requires))
        return run

    return decorate


def declared(function: object) -> Declared | None:
    """What ``@case`` said of a function; None for any other."""
    return getattr(function, _ATTRIBUTE, None)


def register(suite: type[AdapterSuite]) -> None:
    """Add the cases of one of the kit's classes; an adapter's own classes are not the kit's.

    Raises:
        ValueError: Two cases have one id, or a case has no docstring.
    """
    if not suite.__module__.startswith(_KIT):
        return
    for name, function in vars(suite).items():
        marked = declared(function)
        if marked is None:
            continue
        text = " ".join((function.__doc__ or "").strip().partition("\n\n")[0].split())
        if marked.id in CASES or not text:
            raise ValueError(
                f"case {marked.id} of {suite.__name__}.{name} is a duplicate or has no docstring"
            )
        area = suite.__module__.removeprefix(_KIT)
        requires = suite.requires | marked.requires
        CASES[marked.id] = Case(marked.id, marked.rules, requires, area, suite.__name__, name, text, function)


def suite_imported() -> None:
    """Import the suite, whose classes register its cases."""
    import_module("threadkeep_conformance.suite")


def selected(areas: tuple[str, ...]) -> list[Case]:
    """The cases of some areas, or all of them for none.

    Args:
        areas: Each the name of a suite file, or else the beginning of ids (``messages.filter``).
    """
    found = sorted(CASES.values(), key=lambda one: (one.area, one.id))
    files = {one.area for one in found}

    def is_in(one: Case, area: str) -> bool:
        return one.area == area if area in files else f"{one.id}.".startswith(f"{area}.")

    return [one for one in found if not areas or any(is_in(one, area) for area in areas)]


def list_hash() -> str:
    """A hash of the whole list of cases: two runs with the same one ran the same cases."""
    lines = [f"{one.id} {','.join(one.rules)} {','.join(sorted(one.requires))}" for one in CASES.values()]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]
