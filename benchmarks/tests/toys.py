"""Contestants that do wrong, for the test of ``threadkeep bench peers``; they run beside the real ones."""

# The module beside them is in the folder of the peers, where no checker looks for it.
# pyright: basic
# pyright: reportMissingImports=false

from typing import Any

from threadkeep_store import Threadkeep


class Liar(Threadkeep):
    """Offers no page by cursor, returns other rows or another order, and fails."""

    page_by_cursor = property()  # hides it

    async def last_20(self, _: int) -> Any:
        return await self.store.list_messages(self.data["thread"], per_page=20)

    async def list_threads(self, _: int) -> Any:
        page = await super().list_threads(_)
        page.items.insert(0, page.items.pop())
        return page

    async def filtered_page(self, _: int) -> Any:
        raise LookupError("no such filter")
