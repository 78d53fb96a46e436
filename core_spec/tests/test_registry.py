"""Plugins are found one by one: a broken one is named and takes nobody else down."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import threadkeep
from threadkeep import (
    AdapterSpec,
    InvalidArgumentError,
    MissingDriverError,
    NotFoundError,
    PluginError,
    UnknownSchemeError,
    hookimpl,
    hookspecs,
)
from threadkeep.reference import SPEC as MEMORY
from threadkeep.registry import Registry, missing_drivers


class Entry:
    """An entry point that loads what it is given, or raises it."""

    def __init__(self, name: str, loads: object) -> None:
        self.name, self._loads = name, loads

    def load(self) -> object:
        if isinstance(self._loads, BaseException):
            raise self._loads
        return self._loads


def spec(name: str, /, **changes: Any) -> AdapterSpec:
    return msgspec.structs.replace(MEMORY, **{"name": name, "schemes": (name,), **changes})


def plugin(*specs: object) -> ModuleType:
    """A plugin that registers what it is given."""

    @hookimpl
    def threadkeep_register_adapters(register: Callable[[Any], None]) -> None:
        for item in specs:
            register(item)

    module = ModuleType("plugin")
    vars(module)["threadkeep_register_adapters"] = threadkeep_register_adapters
    return module


GOOD = Entry("zz-good", plugin(spec("good")))


def faulty(entry: Entry) -> PluginError:
    """The one error of a registry that also holds a good plugin, which must work all the same."""
    registry = Registry([entry, GOOD])
    assert registry.spec_for("good:").name == "good"
    assert registry.spec_for("memory:") is MEMORY
    assert list(registry.errors) == [entry.name]
    assert registry.errors[entry.name].plugin == entry.name
    return registry.errors[entry.name]


def test_an_installed_adapter_answers_to_its_schemes() -> None:
    registry = Registry([Entry("a", plugin(spec("a", schemes=("a", "a+http")), spec("b")))])

    assert [registry.spec_for(url).name for url in ("a:", "A+HTTP://host", "b:")] == ["a", "a", "b"]
    assert list(registry.specs) == ["memory", "a", "b"]
    assert registry.errors == {}


@pytest.mark.parametrize(
    "raised", [ImportError("no module"), SyntaxError("x"), ValueError("x"), SystemExit(1)], ids=repr
)
def test_a_plugin_that_does_not_import_is_named(raised: BaseException) -> None:
    error = faulty(Entry("broken", raised))

    assert "does not import" in str(error)
    assert error.__cause__ is raised


def test_a_hook_that_fails_is_named() -> None:
    @hookimpl
    def threadkeep_register_adapters(register: object) -> None:
        raise RuntimeError("oops")

    module = ModuleType("plugin")
    vars(module)["threadkeep_register_adapters"] = threadkeep_register_adapters

    assert "RuntimeError: oops" in str(faulty(Entry("broken", module)))


@pytest.mark.parametrize("name", ["threadkeep_register_adapter", "register_adapters"])
def test_a_misspelt_hook_is_named(name: str) -> None:
    @hookimpl
    def misspelt(register: object) -> None: ...

    module = ModuleType("plugin")
    vars(module)[name] = misspelt

    error = faulty(Entry("broken", module))

    assert f"{name!r} is not a hook" in str(error)
    assert "threadkeep_register_adapters" in str(error)


def test_a_hook_that_is_not_marked_is_named() -> None:
    def threadkeep_register_adapters(register: object) -> None: ...

    module = ModuleType("plugin")
    vars(module)["threadkeep_register_adapters"] = threadkeep_register_adapters

    assert "not marked" in str(faulty(Entry("broken", module)))


def test_a_plugin_may_import_modules_whose_names_start_as_the_hooks_do() -> None:
    module = plugin(spec("a"))
    vars(module)["threadkeep_a"] = ModuleType("threadkeep_a")

    assert Registry([Entry("a", module)]).errors == {}


@pytest.mark.parametrize("contract", ["2.0", "0.9", "10.0"])
def test_another_major_version_of_the_contract_is_named(contract: str) -> None:
    error = faulty(Entry("broken", plugin(spec("a", contract=contract))))

    assert contract in str(error)
    assert hookspecs.CONTRACT in str(error)


def test_another_minor_version_of_the_contract_works() -> None:
    assert Registry([Entry("a", plugin(spec("a", contract="1.7")))]).errors == {}


def test_two_plugins_for_one_scheme_are_both_named_when_it_is_opened() -> None:
    registry = Registry(
        [Entry("one", plugin(spec("a", schemes=("x", "a")))), Entry("two", plugin(spec("b", schemes=("x",))))]
    )

    with pytest.raises(PluginError) as caught:
        registry.spec_for("x:")

    assert all(part in str(caught.value) for part in ("'one'", "'two'", "'x'"))
    assert registry.spec_for("a:").name == "a"


def test_a_plugin_cannot_take_the_scheme_of_the_reference_adapter() -> None:
    registry = Registry([Entry("thief", plugin(spec("a", schemes=("memory",))))])

    with pytest.raises(PluginError, match="'thief'"):
        registry.spec_for("memory:")


def test_two_adapters_of_one_name_are_an_error() -> None:
    assert "another adapter of the name" in str(
        faulty(Entry("broken", plugin(spec("memory", schemes=("m2",)))))
    )


def test_the_same_module_under_two_names_is_an_error_of_the_second_only() -> None:
    module = plugin(spec("a"))
    registry = Registry([Entry("one", module), Entry("two", module)])

    assert registry.spec_for("a:").name == "a"
    assert list(registry.errors) == ["two"]
    assert registry.plugins.get_plugin("one") is module


BAD_SPECS: dict[str, object] = {
    "None": None,
    "a class": AdapterSpec,
    "a dict": {"name": "a"},
    "schemes as a str": spec("a", schemes="a"),
    "schemes as None": spec("a", schemes=None),
    "a scheme as a number": spec("a", schemes=(1,)),
    "upper case": spec("a", schemes=("A",)),
    "contract as a number": spec("a", contract=1),
    "name as None": spec("a", name=None),
    "connect as None": spec("a", connect=None),
    "support as None": spec("a", support=None),
    "drivers as a str": spec("a", drivers="psycopg"),
}


@pytest.mark.parametrize("registered", BAD_SPECS.values(), ids=BAD_SPECS)
def test_a_description_the_registry_cannot_use_is_named(registered: object) -> None:
    assert "registers a" in str(faulty(Entry("broken", plugin(registered))))


@pytest.mark.parametrize(
    ("scheme", "package"),
    [
        ("libsql", "threadkeep-libsql"),
        ("sqlite", "threadkeep-libsql"),
        ("file", "threadkeep-libsql"),
        ("postgresql", "threadkeep-postgres"),
        ("postgres", "threadkeep-postgres"),
        ("mongodb", "threadkeep-mongo"),
        ("mongodb+srv", "threadkeep-mongo"),
        ("chroma", "threadkeep-chroma"),
    ],
)
def test_a_known_backend_that_is_not_installed_comes_with_its_pip_line(scheme: str, package: str) -> None:
    with pytest.raises(UnknownSchemeError, match=f"pip install {package}") as caught:
        Registry([GOOD]).spec_for(f"{scheme}://user:secret@host/db")

    assert caught.value.installed == ("good", "memory")
    assert "secret" not in str(caught.value)


def test_an_unknown_scheme_names_the_installed_ones() -> None:
    with pytest.raises(NotFoundError, match="'mysql'; installed: good, memory"):
        Registry([GOOD]).spec_for("mysql://host")


def test_the_broken_plugin_of_a_known_backend_is_the_error() -> None:
    registry = Registry([Entry("postgres", ImportError("oops"))])

    with pytest.raises(PluginError, match="oops"):
        registry.spec_for("postgresql://host")
    with pytest.raises(UnknownSchemeError):
        registry.spec_for("mongodb://host")


def test_a_broken_plugin_is_named_where_a_scheme_is_unknown() -> None:
    registry = Registry([Entry("mysql", ImportError("oops"))])

    with pytest.raises(UnknownSchemeError) as caught:
        registry.spec_for("mysql://host")

    assert str(registry.errors["mysql"]) in str(caught.value)


def test_a_missing_driver_is_named_with_its_pip_line_when_it_is_opened() -> None:
    needy = spec("a", drivers=("json", "no_such_driver"), install="pip install threadkeep-a")
    registry = Registry([Entry("a", plugin(needy))])

    assert registry.specs["a"] == needy
    assert missing_drivers(needy) == ["no_such_driver"]
    with pytest.raises(
        MissingDriverError, match="'no_such_driver'; install it with: pip install threadkeep-a"
    ):
        registry.spec_for("a:")


def test_a_driver_inside_a_package_that_is_missing_is_missing() -> None:
    assert missing_drivers(spec("a", drivers=("no_such_package.driver", "json.decoder"))) == [
        "no_such_package.driver"
    ]


@pytest.mark.parametrize("url", [None, 1, b"memory:", "", "memory", "://", object()])
@pytest.mark.asyncio
async def test_what_is_no_url_is_refused(url: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        await threadkeep.open(url)


@pytest.mark.parametrize("migrate", [None, 0, 1, "no", object()])
@pytest.mark.asyncio
async def test_migrate_is_a_bool(migrate: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="migrate"):
        await threadkeep.open("memory:", migrate=migrate)


PLUGIN = """
import threadkeep
from threadkeep.reference import SPEC
import msgspec

@threadkeep.hookimpl
def threadkeep_register_adapters(register):
    register(msgspec.structs.replace(SPEC, name="shelf", schemes=("shelf",)))
"""
PROGRAM = """
import threadkeep
with threadkeep.sync.open("shelf:") as store:
    print(store.create_thread("r", thread_id="t").id)
from threadkeep.registry import registry
print(registry().errors["broken"])
"""


def install(folder: Path, name: str, module: str, source: str) -> None:
    """What an installer would put there."""
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8"
    )
    (metadata / "entry_points.txt").write_text(f"[threadkeep]\n{name} = {module}\n", encoding="utf-8")


def test_an_installed_package_is_found_by_its_entry_point_beside_a_broken_one(tmp_path: Path) -> None:
    install(tmp_path, "shelf", "threadkeep_shelf", PLUGIN)
    install(tmp_path, "broken", "threadkeep_broken", "raise RuntimeError('half installed')")

    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "t",
        "plugin 'broken': does not import: RuntimeError: half installed",
    ]
