"""Operations on resources and their working memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec import UNSET, UnsetType

from .. import arguments as check
from ..capabilities import Capability
from ..clock import clock
from ..conversion import resource_of
from ..cursors import decode_cursor, fingerprint
from ..errors import InvalidCursorError
from ..jsontext import encode_document, encode_metadata
from ..models import DeletedResource, Metadata, Page, Resource
from ..records import ResourceRecord
from ..requests import ResourceQuery, ResourceSlice, UpdateResource
from .base import Operations, limit_of, page_of, pages

__all__ = ["ResourceOperations"]

_CURSOR = fingerprint("resources")


class ResourceOperations(Operations):
    """Read, change and delete resources; merge their working memory."""

    async def get_resource(self, resource_id: str) -> Resource | None:
        """The resource's own record, or None where none was ever written (it may still own threads)."""
        identifier = check.identifier(resource_id, "resource_id")
        record = await self._open_adapter().get_resource(identifier)
        return None if record is None else resource_of(record)

    async def list_resources(
        self,
        *,
        page: int = 0,
        per_page: int | None = 100,
        cursor: str | None = None,
        with_total: bool = False,
    ) -> Page[Resource]:
        """A page of the resources that have a record, ordered by id; see :meth:`list_threads`."""
        number, size = check.paging(page, per_page)
        count = check.flag(with_total, "with_total") and size != 0
        after = "" if cursor is None else decode_cursor(cursor, _CURSOR, (str,))[0]
        if cursor is not None and number:
            raise InvalidCursorError("cursor", "given without page", "both")
        query = ResourceQuery(after=after, limit=limit_of(size), offset=number * (size or 0), count=count)
        adapter = self._open_adapter()
        found = await adapter.list_resources(query) if size != 0 else ResourceSlice([])
        return page_of(
            found.resources,
            resource_of,
            lambda row: (row.id,),
            page=number,
            per_page=size,
            total=found.total,
            query=lambda: _CURSOR,
        )

    async def iter_resources(self, *, per_page: int = 100) -> AsyncGenerator[Resource, None]:
        """Every resource that has a record, ordered by id."""
        async for resource in pages(
            lambda cursor: self.list_resources(per_page=per_page, cursor=cursor), per_page
        ):
            yield resource

    async def save_resource(self, resource: Resource) -> Resource:
        """Store a resource exactly as it is, replacing one with its id; for imports. Safe to repeat.

        Times and revision are kept.

        Raises:
            InvalidArgumentError: A field breaks a rule. Nothing was written.
        """
        resource = check.instance_of(resource, Resource, "resource")
        record = ResourceRecord(
            id=check.identifier(resource.id, "resource.id"),
            working_memory=check.document(resource.working_memory, "resource.working_memory"),
            metadata=encode_metadata(resource.metadata, "resource.metadata")[0],
            revision=check.integer(resource.revision, "resource.revision", least=0, most=check.REVISION_MAX),
            created_at=check.moment(resource.created_at, "resource.created_at"),
            updated_at=check.moment(resource.updated_at, "resource.updated_at"),
        )
        return resource_of(await self._open_adapter().put_resource(record))

    async def update_resource(
        self,
        resource_id: str,
        *,
        working_memory: str | UnsetType | None = UNSET,
        metadata: Metadata | UnsetType = UNSET,
        replace_metadata: bool = False,
        if_revision: int | None = None,
    ) -> Resource:
        """Change some fields of a resource, creating it where it is absent; what is omitted stays.

        Args:
            resource_id: The resource.
            working_memory: The new document: any text up to 1 MiB; None removes it. It raises ``revision``.
            metadata: Merged shallowly into the stored metadata; a null is stored as null.
            replace_metadata: Replace the metadata instead.
            if_revision: Write only if this is the stored revision; an absent resource has 0.

        Raises:
            ConflictError: Another revision. Nothing was written.
            InvalidArgumentError: An argument breaks a rule, or the merged metadata a limit. Nothing was
                written.
        """
        request = UpdateResource(
            id=check.identifier(resource_id, "resource_id"),
            now=clock.take(),
            working_memory=UNSET if working_memory is UNSET else check.document(working_memory),
            metadata=UNSET if metadata is UNSET else encode_metadata(metadata)[1],
            replace_metadata=check.flag(replace_metadata, "replace_metadata"),
            if_revision=None
            if if_revision is None
            else check.integer(if_revision, "if_revision", least=0, most=check.REVISION_MAX),
        )
        return resource_of(await self._open_adapter().update_resource(request))

    async def merge_working_memory(self, resource_id: str, patch: Metadata) -> Resource:
        """Deep-merge a JSON object into a resource's working memory, as one atomic operation.

        Objects recurse, null deletes the key, arrays and scalars replace, other keys stay. A first merge
        creates the resource; a working memory that is not a JSON object is replaced. Any number of concurrent
        writers, in any number of processes, all succeed and lose nothing. Safe to repeat.

        Args:
            resource_id: The resource.
            patch: A JSON object of at most 64 levels and 1 MiB.

        Returns:
            The resource after the merge.

        Raises:
            UnsupportedCapabilityError: The backend has no ``atomic_merge``. Nothing was written, here and
                below.
            InvalidArgumentError: The patch breaks a rule, or the result would be over 1 MiB.
        """
        identifier = check.identifier(resource_id, "resource_id")
        request = UpdateResource(id=identifier, now=clock.take(), merge=encode_document(patch, "patch"))
        adapter = self._open_adapter()
        self._require(Capability.ATOMIC_MERGE, "merge_working_memory")
        return resource_of(await adapter.update_resource(request))

    async def delete_resource(self, resource_id: str) -> DeletedResource:
        """Delete all that a resource owns: threads, their messages, its own record. Safe to repeat."""
        return await self._open_adapter().delete_resource(check.identifier(resource_id, "resource_id"))
