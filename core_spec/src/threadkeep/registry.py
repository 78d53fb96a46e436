"""Finding adapters through entry points, and opening stores.

Entry points of the group ``threadkeep`` are loaded one by one, so that one that does not import is named and
the others still work. Loading one imports no driver.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterable
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Protocol

import pluggy

from . import hookspecs
from .errors import MissingDriverError, PluginError, UnknownSchemeError
from .hookspecs import CONTRACT, AdapterSpec
from .reference import SPEC as REFERENCE
from .store import Store
from .urls import scheme_of

__all__ = ["Opening", "Registry", "open_store", "registry"]

_GROUP = "threadkeep"
_INSTALL = {
    "libsql": "pip install threadkeep-libsql",
    "sqlite": "pip install threadkeep-libsql",
    "file": "pip install threadkeep-libsql",
    "postgresql": "pip install threadkeep-postgres",
    "postgres": "pip install threadkeep-postgres",
    "mongodb": "pip install threadkeep-mongo",
    "mongodb+srv": "pip install threadkeep-mongo",
    "chroma": "pip install threadkeep-chroma",
    "chroma+http": "pip install threadkeep-chroma",
    "chroma+https": "pip install threadkeep-chroma",
}


class _EntryPoint(Protocol):
    @property
    def name(self) -> str: ...
    def load(self) -> Any: ...


class Registry:
    """The installed adapters.

    Args:
        found: The entry points to load; by default those of the group ``threadkeep``.

    Attributes:
        specs: The adapters, by name.
        errors: What was wrong with plugins, by plugin; raised only when what they offer is asked for.
        plugins: The plugin manager, for the command hook.
    """

    def __init__(self, found: Iterable[_EntryPoint | EntryPoint] | None = None) -> None:
        self.plugins = pluggy.PluginManager("threadkeep")
        self.plugins.add_hookspecs(hookspecs)
        self.specs: dict[str, AdapterSpec] = {}
        self.errors: dict[str, PluginError] = {}
        self._schemes: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._add("threadkeep", REFERENCE)
        for entry in sorted(entry_points(group=_GROUP) if found is None else found, key=lambda e: e.name):
            try:
                self._load(entry)
            except PluginError as exc:
                self.errors[entry.name] = exc

    def _load(self, entry: _EntryPoint | EntryPoint) -> None:
        try:
            plugin = entry.load()
        except Exception as exc:  # whatever a third party's import raises is that plugin's fault alone
            raise PluginError(entry.name, f"does not import: {type(exc).__name__}: {exc}") from exc
        self._refuse_misspelt_hooks(entry.name, plugin)
        found: list[AdapterSpec] = []
        try:
            self.plugins.register(plugin, entry.name)
            # Its own hook only, so that each spec is known by the plugin it came from.
            others = [other for other in self.plugins.get_plugins() if other is not plugin]
            hook = self.plugins.subset_hook_caller("threadkeep_register_adapters", remove_plugins=others)
            hook(register=found.append)
        except Exception as exc:  # the same: it must not take the other plugins down
            if self.plugins.is_registered(plugin):
                self.plugins.unregister(plugin)
            raise PluginError(entry.name, f"{type(exc).__name__}: {exc}") from exc
        for spec in found:
            self._add(entry.name, spec)

    def _refuse_misspelt_hooks(self, name: str, plugin: object) -> None:
        known = {name for name in vars(hookspecs) if name.startswith("threadkeep_")}
        for attribute in dir(plugin):
            member = inspect.getattr_static(plugin, attribute, None)
            marked = hasattr(member, "threadkeep_impl")
            if attribute not in known and (marked or attribute.startswith("threadkeep_")):
                raise PluginError(name, f"{attribute!r} is not a hook; hooks are: {', '.join(sorted(known))}")

    def _add(self, plugin: str, spec: object) -> None:
        if not isinstance(spec, AdapterSpec):
            raise PluginError(plugin, f"registers a {type(spec).__name__}, not an AdapterSpec")
        if spec.contract.partition(".")[0] != CONTRACT.partition(".")[0]:
            raise PluginError(
                plugin, f"adapter {spec.name!r} is written to contract {spec.contract}, this is {CONTRACT}"
            )
        taken = next((scheme for scheme in spec.schemes if scheme in self._schemes), None)
        if taken is not None:
            raise PluginError(
                plugin, f"claims the URL scheme {taken!r}, as plugin {self._owners[taken]!r} does"
            )
        if spec.name in self.specs:
            raise PluginError(plugin, f"there is another adapter of the name {spec.name!r}")
        self.specs[spec.name] = spec
        for scheme in spec.schemes:
            self._schemes[scheme] = spec.name
            self._owners[scheme] = plugin

    def spec_for(self, url: str) -> AdapterSpec:
        """The adapter that answers to a URL's scheme, its driver present.

        Raises:
            UnknownSchemeError: None does; the message names what is installed and, where known, what to
                install.
            PluginError: None does, and a plugin that might have is broken, or two claim the scheme.
            MissingDriverError: One does, but its driver is not installed.
        """
        scheme = scheme_of(url)
        for error in self.errors.values():
            if f"URL scheme {scheme!r}" in error.reason:
                raise error
        name = self._schemes.get(scheme)
        if name is None:
            if self.errors and scheme in _INSTALL:
                broken = next((e for n, e in self.errors.items() if n in _INSTALL[scheme]), None)
                if broken is not None:
                    raise broken
            raise UnknownSchemeError(scheme, tuple(sorted(self._schemes)), _INSTALL.get(scheme, ""))
        spec = self.specs[name]
        for driver in missing_drivers(spec):
            raise MissingDriverError(spec.name, driver, spec.install)
        return spec


def missing_drivers(spec: AdapterSpec) -> list[str]:
    """The modules an adapter needs that are not installed; looks for them, imports none."""
    return [driver for driver in spec.drivers if not _is_installed(driver)]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


_registry: Registry | None = None


def registry() -> Registry:
    """The process's registry, made at first use."""
    global _registry  # noqa: PLW0603  (one per process, made when first needed)
    if _registry is None:
        _registry = Registry()
    return _registry


class Opening:
    """What :func:`threadkeep.open` returns: await it and close the store yourself, or use ``async with``."""

    def __init__(self, url: str, *, migrate: bool) -> None:
        self._url, self._migrate = url, migrate
        self._store: Store | None = None

    async def _open(self) -> Store:
        spec = registry().spec_for(self._url)
        adapter = await spec.connect(self._url, migrate=self._migrate)
        return Store(adapter)

    def __await__(self) -> Generator[Any, Any, Store]:
        """Open the store."""
        return self._open().__await__()

    async def __aenter__(self) -> Store:
        """Open the store."""
        self._store = await self._open()
        return self._store

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the store."""
        if self._store is not None:
            await self._store.close()


def open_store(url: str, *, migrate: bool = True) -> Opening:
    """Open the store at a URL: ``async with threadkeep.open(url) as store``, or ``await`` it and close it.

    Args:
        url: Names the backend by its scheme: ``libsql:memory.db``, ``postgresql://...``, ``memory:``.
        migrate: Create the schema or bring it up to date. False: refuse an outdated one.

    Raises:
        InvalidArgumentError: Not a URL, or an option the backend does not know.
        UnknownSchemeError: No installed adapter answers to it.
        MissingDriverError: The adapter's driver is not installed.
        PluginError: The adapter's plugin is broken.
        SchemaVersionError: The schema is newer than the code, or outdated and *migrate* is False.
        UnavailableError: The database cannot be reached.
    """
    return Opening(url, migrate=migrate)
