"""A fresh, empty database for every case, out of one URL.

A URL may have placeholders: ``{namespace}`` becomes a short fresh name, ``{tmp}`` an empty folder that is
removed after the case (``libsql:///{tmp}/memory.db``, ``postgresql://localhost/test?schema={namespace}``).
Without one, the adapter's probe makes the URL fresh (:class:`threadkeep_conformance.probe.Databases`).
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from pathlib import Path
from typing import Self

import threadkeep
from threadkeep import Capabilities, Store
from threadkeep.registry import registry

from .probe import Databases, load_probe
from .witness import CallLog, refusing, store_on

__all__ = ["Database", "is_fresh"]


def is_fresh(url: str) -> bool:
    """Whether the kit can make fresh databases out of a URL without the adapter's help."""
    return "{namespace}" in url or "{tmp}" in url or url == "memory:"


class Database:
    """One fresh database and the stores that a case opens on it.

    Attributes:
        url: The fresh URL.
        probe: The adapter's probe.
        refusing: Whether stores check that what is refused is refused before any I/O.
    """

    def __init__(self, template: str) -> None:
        """Choose a fresh name; nothing is opened.

        Raises:
            ValueError: The URL has no placeholder and the adapter no way to make it fresh.
        """
        self.spec = registry().spec_for(template)
        self.probe = load_probe(self.spec)
        self.refusing = False
        self._name = f"c{secrets.token_hex(6)}"
        self._folder: Path | None = None
        self._stores: list[Store] = []
        self.url = self._fresh(template)

    def _fresh(self, template: str) -> str:
        if template == "memory:":  # private to its store; cases that open two need a shared one
            return f"memory:{self._name}"
        if "{tmp}" in template:
            self._folder = Path(tempfile.mkdtemp(prefix="threadkeep-"))
            path = self._folder.as_posix()
            template = template.replace("/{tmp}", "/" + path.lstrip("/")).replace("{tmp}", path)
        elif not is_fresh(template):
            if not isinstance(self.probe, Databases):
                raise ValueError(
                    f"the URL needs {{namespace}} or {{tmp}}: {self.spec.name} makes no fresh databases"
                )
            return self.probe.fresh_url(template, self._name)
        return template.replace("{namespace}", self._name)

    async def open(self, *, migrate: bool = True) -> Store:
        """Open a store here; it is closed after the case, if the case does not."""
        if self.refusing:
            store, log = await self.open_logged()
            return refusing(store, log)
        return self._keep(await threadkeep.open(self.url, migrate=migrate))

    async def open_logged(self) -> tuple[Store, CallLog]:
        """Open a store here whose calls of its adapter are noted."""
        log = CallLog(await self.spec.connect(self.url, migrate=True))
        return self._keep(store_on(log)), log

    def _keep(self, store: Store) -> Store:
        self._stores.append(store)
        return store

    async def capabilities(self) -> Capabilities:
        """What holds here; opens a store if none is open."""
        return (self._stores[0] if self._stores else await self.open()).capabilities

    async def __aenter__(self) -> Self:
        """The database itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the stores and remove the database."""
        for store in self._stores:
            await store.close()
        if isinstance(self.probe, Databases):
            await self.probe.discard(self.url)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
