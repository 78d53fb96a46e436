"""Adapters whose declarations are wrong."""

# They are made of the reference adapter's parts:
# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from threadkeep import Capabilities, Capability, Support
from threadkeep.reference import SPEC, ReferenceAdapter, _holds
from threadkeep.requests import MessageQuery, MessageSlice
from threadkeep_libsql.adapter import LibsqlAdapter


class FiltersInPython(LibsqlAdapter):
    """Claims that its database filters, and filters what it fetched."""

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(
            replace(query, where=(), bounds=query.dates, offset=0, limit=None)
        )
        rows = [
            row for row in found.messages if all(_holds(one, json.loads(row.metadata)) for one in query.where)
        ]
        total = len(rows) if query.count else None
        return MessageSlice(rows[query.offset :][: query.limit], total, found.windows)


class CutsInPython(LibsqlAdapter):
    """Claims that its database limits, and fetches all that match."""

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(replace(query, limit=None))
        return found._replace(messages=found.messages[: query.limit])


class AsksForEachMessage(LibsqlAdapter):
    """Fetches a page's ids and then each message by itself."""

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(replace(query, limit=None))
        rows = [row for one in found.messages for row in await self.get_messages([one.id], None)]
        return found._replace(messages=rows[: query.limit])


class _Declares(ReferenceAdapter):
    changes: ClassVar[Mapping[Capability, Support]]

    def __init__(self, tables: Any) -> None:
        super().__init__(tables)
        self.capabilities = Capabilities({**SPEC.support, **self.changes})


class HidesWhatItDeclares(_Declares):
    """Its spec declares filter operators, the open store has none."""

    changes: ClassVar[Mapping[Capability, Support]] = {Capability.FILTER_OPERATORS: Support.ABSENT}


class LeavesItOpen(_Declares):
    """An open store has a capability that still depends on the server."""

    changes: ClassVar[Mapping[Capability, Support]] = {Capability.TEXT_SEARCH: Support.DEPENDS}


class HasAnotherName(ReferenceAdapter):
    """The open adapter is not called what its spec calls it."""

    name = "another"
