"""Finding adapters through entry points, and opening stores.

Entry points of the group ``threadkeep`` are loaded one by one, so that one that does not import is named and
the others still work. Loading one imports no driver.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Protocol, cast

import msgspec
import pluggy

from . import arguments as check
from . import hookspecs
from .errors import MissingDriverError, PluginError, UnknownSchemeError
from .hookspecs import CONTRACT, AdapterSpec
from .reference import SPEC as REFERENCE
from .store import Store
from .urls import scheme_of

__all__ = ["Opening", "Registry", "open_store", "registry"]

_GROUP = "threadkeep"
_KNOWN_BACKENDS = {  # which of the backends made with this package answers to a scheme
    "libsql": "libsql",
    "sqlite": "libsql",
    "file": "libsql",
    "postgresql": "postgres",
    "postgres": "postgres",
    "mongodb": "mongo",
    "mongodb+srv": "mongo",
    "chroma": "chroma",
    "chroma+http": "chroma",
    "chroma+https": "chroma",
}


class _EntryPoint(Protocol):
    @property
    def name(self) -> str: ...
    def load(self) -> object: ...


class Registry:
    """The installed adapters.

    Args:
        found: The entry points to load; by default those of the group ``threadkeep``.

    Attributes:
        specs: The adapters, by name.
        errors: What was wrong with plugins, by plugin; raised only when what they offer is asked for.
        plugins: The plugin manager, for the command hook.
    """

    def __init__(self, found: Iterable[_EntryPoint] | None = None) -> None:
        self.plugins = pluggy.PluginManager("threadkeep")
        self.plugins.add_hookspecs(hookspecs)
        self.specs: dict[str, AdapterSpec] = {}
        self.errors: dict[str, PluginError] = {}
        self._owners: dict[str, tuple[str, AdapterSpec]] = {}  # by scheme: the plugin and its adapter
        self._disputes: dict[str, PluginError] = {}  # by scheme
        self._add("threadkeep", REFERENCE)
        for entry in sorted(entry_points(group=_GROUP) if found is None else found, key=lambda e: e.name):
            try:
                self._load(entry)
            except PluginError as exc:
                self.errors[entry.name] = exc

    def _load(self, entry: _EntryPoint) -> None:
        try:
            plugin = entry.load()
        except (Exception, SystemExit) as exc:  # whatever its import raises is that plugin's fault alone
            raise PluginError(entry.name, f"does not import: {type(exc).__name__}: {exc}") from exc
        _refuse_misspelt_hooks(entry.name, plugin)
        for spec in self._registered(entry.name, plugin):
            self._add(entry.name, spec)

    def _registered(self, name: str, plugin: object) -> list[object]:
        """What a plugin's own hook registers, so that each adapter is known by the plugin it came from."""
        found: list[object] = []
        try:
            self.plugins.register(plugin, name)
        except ValueError as exc:
            raise PluginError(name, f"is installed twice: {exc}") from exc
        try:
            others = [other for other in self.plugins.get_plugins() if other is not plugin]
            hook = self.plugins.subset_hook_caller("threadkeep_register_adapters", remove_plugins=others)
            hook(register=found.append)
        except Exception as exc:  # the same: it must not take the other plugins down
            self.plugins.unregister(plugin)
            raise PluginError(name, f"its hook fails: {type(exc).__name__}: {exc}") from exc
        return found

    def _add(self, plugin: str, spec: object) -> None:
        spec = _checked(plugin, spec)
        if spec.name in self.specs:
            raise PluginError(plugin, f"there is another adapter of the name {spec.name!r}")
        for scheme in spec.schemes:
            if scheme in self._owners:
                owner = self._owners[scheme][0]
                dispute = PluginError(plugin, f"claims the URL scheme {scheme!r}, as plugin {owner!r} does")
                self._disputes[scheme] = dispute
                raise dispute
        self.specs[spec.name] = spec
        self._owners.update(dict.fromkeys(spec.schemes, (plugin, spec)))

    def spec_for(self, url: str) -> AdapterSpec:
        """The adapter that answers to a URL's scheme, its driver present.

        Raises:
            UnknownSchemeError: None does; the message names what is installed and, where known, what to
                install.
            PluginError: Its plugin is broken, or two claim the scheme.
            MissingDriverError: One does, but its driver is not installed.
        """
        scheme = scheme_of(url)
        if scheme in self._disputes:
            raise self._disputes[scheme]
        if scheme not in self._owners:
            backend = _KNOWN_BACKENDS.get(scheme)
            if backend in self.errors:
                raise self.errors[backend]
            install = f"pip install threadkeep-{backend}" if backend else ""
            # Which schemes a broken plugin would have had is not known: each may be the cause.
            broken = tuple([str(error) for error in self.errors.values()])
            raise UnknownSchemeError(scheme, tuple(sorted(self._owners)), install, broken)
        spec = self._owners[scheme][1]
        for driver in missing_drivers(spec):
            raise MissingDriverError(spec.name, driver, spec.install)
        return spec


def _refuse_misspelt_hooks(plugin: str, module: object) -> None:
    """Refuse what pluggy would silently ignore, leaving the backend missing without a word."""
    known = {name for name in vars(hookspecs) if name.startswith("threadkeep_")}
    for name in dir(module):
        member = inspect.getattr_static(module, name, None)
        marked = hasattr(member, "threadkeep_impl")
        if name in known and not marked:
            raise PluginError(plugin, f"{name!r} is not marked with threadkeep.hookimpl")
        if name not in known and (marked or (name.startswith("threadkeep_") and inspect.isfunction(member))):
            raise PluginError(plugin, f"{name!r} is not a hook; hooks are: {', '.join(sorted(known))}")


def _checked(plugin: str, spec: object) -> AdapterSpec:
    """What a plugin registers, if the rest of the registry can rely on it."""
    if not isinstance(spec, AdapterSpec):
        raise PluginError(plugin, f"registers a {type(spec).__name__}, not an AdapterSpec")
    broken = next((rule for rule, holds in _spec_rules(msgspec.structs.asdict(spec)) if not holds), None)
    if broken is not None:
        raise PluginError(plugin, f"registers an adapter whose {broken}")
    if spec.contract.partition(".")[0] != CONTRACT.partition(".")[0]:
        raise PluginError(
            plugin, f"adapter {spec.name!r} is written to contract {spec.contract}, this is {CONTRACT}"
        )
    return spec


def _spec_rules(given: dict[str, object]) -> Iterator[tuple[str, bool]]:
    yield "name is not a str", isinstance(given["name"], str)
    yield "contract is not a str", isinstance(given["contract"], str)
    yield "connect is not a function", callable(given["connect"])
    yield "support is not a mapping", isinstance(given["support"], Mapping)
    yield "limits are not a mapping", isinstance(given["limits"], Mapping)
    for field in ("schemes", "drivers"):
        words = given[field]
        yield f"{field} are not a tuple", isinstance(words, tuple)
        yield f"{field} are not all str", all(isinstance(w, str) for w in cast("tuple[object, ...]", words))
    yield (
        "schemes are not in lower case",
        all(s == s.lower() for s in cast("tuple[str, ...]", given["schemes"])),
    )


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
        check.flag(self._migrate, "migrate")
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
