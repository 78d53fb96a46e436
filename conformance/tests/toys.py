"""Adapters with a planted fault, made of the reference adapter, and single cases run on them."""

# ruff: noqa: SLF001  (it stands in for pytest, and builds adapters on the reference adapter's tables)

from __future__ import annotations

import inspect
import random
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from threadkeep import AdapterSpec, StorageAdapter, hookimpl
from threadkeep import registry as registry_module
from threadkeep.hookspecs import Register
from threadkeep.reference import SPEC, ReferenceAdapter
from threadkeep.registry import Registry
from threadkeep_conformance import suite
from threadkeep_conformance.cases import CASES
from threadkeep_conformance.databases import Database
from threadkeep_conformance.races import Racers

URL = "toy:{namespace}"


class EntryPoint:
    """An installed plugin that offers one adapter."""

    name = "toy"

    def __init__(self, spec: AdapterSpec) -> None:
        self._spec = spec

    def load(self) -> object:
        @hookimpl
        def threadkeep_register_adapters(register: Register) -> None:
            register(self._spec)

        plugin = ModuleType("toy")
        setattr(plugin, threadkeep_register_adapters.__name__, threadkeep_register_adapters)
        return plugin


@contextmanager
def installed(adapter: type[ReferenceAdapter], **spec: Any) -> Generator[str]:
    """Make an adapter the only installed one besides the reference one; gives a URL for fresh databases."""

    async def connect(url: str, *, migrate: bool) -> StorageAdapter:
        reference: Any = await SPEC.connect("memory:" + url.removeprefix("toy:"), migrate=migrate)
        return adapter(reference._tables)

    fields: dict[str, Any] = {"support": SPEC.support, **spec}
    with plugged(AdapterSpec(name="toy", schemes=("toy",), connect=connect, contract="1.0", **fields)):
        yield URL


@contextmanager
def plugged(spec: AdapterSpec) -> Generator[None]:
    """Make an adapter the only installed one besides the reference one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry_module, "_registry", Registry([EntryPoint(spec)]))
        yield


class Outcome(SimpleNamespace):
    """Stands for a pytest item: where cases note what is to be reported."""

    user_properties: list[tuple[str, object]]


async def run_case(identifier: str, url: str) -> list[tuple[str, object]]:
    """Run one case; returns what it noted for the report."""
    case = CASES[identifier]
    instance: Any = getattr(suite, case.suite)()
    noted = Outcome(user_properties=[])
    racers = Racers()
    try:
        async with Database(url) as database:
            instance._database, instance._node = database, noted
            wanted = inspect.signature(case.function).parameters
            fixtures: dict[str, Any] = {"database": database, "racers": racers, "rng": random.Random(0)}
            if "store" in wanted:
                fixtures["store"] = await database.open()
            with suppress(pytest.skip.Exception):  # what it says is among what was noted
                await case.function(instance, **{name: fixtures[name] for name in wanted if name in fixtures})
    finally:
        racers.close()
    return noted.user_properties


class OneProcess:
    """The probe of a toy: it is in memory."""

    one_process = True


ONE_PROCESS = f"{__name__}:OneProcess"
