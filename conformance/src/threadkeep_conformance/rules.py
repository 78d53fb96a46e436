"""The rules of the contract: what the cases point at, and what the table in the docs is made of.

A key is the section and a name within it. Every rule must have at least one case.
"""

from __future__ import annotations

__all__ = ["RULES", "SECTIONS"]

SECTIONS: dict[str, str] = {
    "2": "Plugins",
    "3": "Two layers and the operations of a store",
    "4": "Data",
    "4.1": "Strings",
    "4.2": "Times",
    "4.3": "Content",
    "4.4": "Metadata",
    "4.5": "Order",
    "4.6": "Upsert",
    "4.7": "Partial updates",
    "4.8": "Delete",
    "4.9": "Clone",
    "4.10": "Merge",
    "5.1": "Pagination",
    "5.2": "Scope, dates and includes",
    "5.3": "Tenancy",
    "5.4": "Metadata filters",
    "5.5": "Cost",
    "6": "Capabilities",
    "7": "Errors",
    "8": "Archive memories",
}
"""The sections of the contract that the kit holds, in order."""

RULES: dict[str, str] = {
    # --- 2 Plugins ---
    "2.spec": "A plugin registers an AdapterSpec with name, URL schemes, connect function, contract version, "
    "description and, optionally, a probe; another major contract version is an error.",
    "2.lazy": "Registering imports no driver.",
    # --- 3 Two layers ---
    "3.validate": "The store validates every argument once, before any I/O; bad input gets the same error "
    "everywhere.",
    "3.open": "open(url) can be awaited or used as an async context manager.",
    "3.sync": "threadkeep.sync.open(url) gives a store with the same methods, usable from any thread.",
    "3.loop": "A store used from another event loop or in a forked child raises WrongLoopError and never "
    "hangs.",
    "3.closed": "close() is idempotent; after it every call raises StoreClosedError.",
    "3.schema": "open creates or migrates the schema, safely when many start at once.",
    "3.outdated": "open(url, migrate=False) refuses an outdated schema with an error that names both "
    "versions.",
    "3.newer": "A schema newer than the code is refused and never touched.",
    "3.create": "create_thread makes a thread; a taken id is AlreadyExistsError.",
    "3.ensure": "ensure_thread creates or returns atomically; another resource's thread is OwnershipError.",
    "3.save_thread": "save_thread is an upsert that replaces and never changes the owner.",
    "3.get_thread": "get_thread returns the thread or None.",
    "3.list_threads": "list_threads pages threads by creation or change, newest first by default.",
    "3.update_thread": "update_thread changes title, metadata and working memory, guarded by if_title.",
    "3.clear": "clear_thread deletes all messages of a thread and returns how many.",
    "3.transfer": "transfer_thread gives a thread and its messages to another resource.",
    "3.iter": "iter_threads and iter_messages are async generators over cursors.",
    "3.get_messages": "get_messages skips unknown ids and returns each message once, in the total order.",
    "3.update_messages": "update_messages changes role, type, content, metadata and thread, within the "
    "resource.",
    "3.delete_messages": "delete_messages deletes by id and returns how many there were.",
    "3.last": 'The last ten messages are order="desc", per_page=10.',
    "3.resources": "get_resource, list_resources and save_resource hold a resource's own record.",
    "3.update_resource": "update_resource creates when absent; an absent resource has revision 0.",
    "3.delete_resource": "delete_resource deletes everything it owns and returns counts.",
    "3.memories": "Archive memories are added as strings or NewMemory, for actors user, end_user and shared "
    "(no id).",
    "3.imports": "save_thread, save_resource and save_memories keep the times and the revision they are "
    "given.",
    "3.explain": "explain_messages and explain_threads take the arguments of the lists.",
    "3.omitted": "An omitted keyword leaves the stored value alone.",
    "3.empty_list": "An empty list selects nothing; only None means not given.",
    "3.new_message": "A NewMessage gets its UUIDv7 at construction, so saving it again is safe.",
    "3.stored_message": "Stored messages can be saved too and keep their seq and created_at.",
    # --- 4 Data ---
    "4.exact": "What was saved is what is read, exactly.",
    "4.plain": "Dicts and lists inside are plain, fresh on each read, and copied on write; models are "
    "immutable.",
    "4.shared": "What one store wrote, every store on the same database reads.",
    "4.1.length": "Ids, roles and types have 1 to 255 characters, titles up to 1,000 and may be empty.",
    "4.1.forbidden": "Strings outside content have no NUL and no lone surrogate.",
    "4.1.compare": "Strings compare code point by code point: no collation, folding, trimming or "
    "normalisation.",
    "4.2.utc": "Times are stored and returned in UTC with microseconds.",
    "4.2.naive": "A naive datetime is an error.",
    "4.2.years": "Times reach from year 1 to 9999.",
    "4.2.omitted": "An omitted created_at is the batch's first seq as a time; a clock that steps back "
    "reorders nothing.",
    "4.3.any": "content is any JSON value: unknown keys, big integers, NUL and lone surrogates survive.",
    "4.3.depth": "content is up to 256 levels deep.",
    "4.3.nan": "NaN and infinities in content are an error.",
    "4.4.limits": "metadata is a JSON object of at most 64 levels and 64 KiB encoded.",
    "4.4.numbers": "metadata has integers within int64 and finite floats; -0.0 and 1e16 come back as they "
    "were.",
    "4.4.merged": "The limits hold for the stored result of a merge too, inside the write.",
    "4.4.nested": "Nested values are kept.",
    "4.5.seq": "seq is assigned on first save, strictly rising, and never goes back when the clock does.",
    "4.5.total": "Messages are ordered by (created_at, seq, id), threads by (created_at, id) or "
    "(updated_at, id).",
    "4.5.batch": "A batch saved together keeps its order, ties included.",
    "4.5.touch": "updated_at of a touched thread becomes max(now, old + 1 microsecond), once per call.",
    "4.5.locks": "Threads are locked in id order: calls that touch the same threads do not block each other "
    "for good.",
    "4.6.keeps": "Saving a message id again replaces it but keeps created_at and seq.",
    "4.6.elsewhere": "Under another thread of the same resource it is ConflictError.",
    "4.6.twice": "Two equal ids in one batch: last content, first position.",
    "4.6.thread": "The thread must exist.",
    "4.6.owner": "A message belongs to its thread's resource; another value or another resource's id is "
    "OwnershipError.",
    "4.6.nothing": "Nothing is written when a save is refused.",
    "4.7.shallow": "Partial updates merge metadata shallowly (a null is stored as null) unless "
    "replace_metadata.",
    "4.7.unknown": "Unknown message ids are ignored and not returned.",
    "4.7.guards": "if_title and if_revision guard a write: ConflictError when the stored value is another.",
    "4.7.revision": "revision rises with every working-memory write.",
    "4.8.whole": "A thread goes with its messages.",
    "4.8.absent": "Deleting what is absent is no error.",
    "4.8.size": "Deleting is never refused for size.",
    "4.9.copy": "A clone has new ids, keeps created_at and order; a copy's seq is a base plus its rank.",
    "4.9.bodies": "Message bodies cross the wire only with return_messages.",
    "4.9.limit": "message_limit keeps the newest N after the filters.",
    "4.9.title": "The title falls back to Clone of <title>.",
    "4.9.metadata": "metadata.clone holds sourceThreadId, clonedAt and lastMessageId and always wins; source "
    "metadata is not copied.",
    "4.9.memory": "The thread's working memory is copied.",
    "4.9.whole": "A clone is invisible until complete.",
    "4.9.errors": "Missing source, taken id and another resource's source are distinct errors.",
    "4.9.helpers": "get_clone_metadata, is_clone, get_source_thread, list_clones, get_clone_history.",
    "4.10.deep": "A merge recurses into objects; null deletes, in new branches too; arrays and scalars "
    "replace; other keys stay.",
    "4.10.first": "A first merge creates the resource; stored text that is not a JSON object is replaced.",
    "4.10.limits": "Patch and document obey the rules of metadata except the size (1 MiB).",
    "4.10.duplicates": "Working memory that is a JSON object has no duplicate keys.",
    "4.10.exact": "The result is that of the core's one merge function, numbers exact in value and kind.",
    "4.10.writers": "24 concurrent writers all succeed; shallow metadata merges likewise.",
    # --- 5 Queries ---
    "5.1.page": "page counts from 0; per_page=None returns all and page must then be 0.",
    "5.1.zero": "per_page=0 matches nothing: total None, has_more False.",
    "5.1.invalid": "Negative, fractional, bool and overflowing values are errors.",
    "5.1.end": "Past the end: empty, has_more False, the real total if asked, else None.",
    "5.1.more": "has_more is exact without a total; next_cursor is None exactly when has_more is False.",
    "5.1.total": "The total is exact, with filters, dates, several threads and includes.",
    "5.1.walk": "A cursor walk returns a row with an unchanged sort key exactly once, any other at most "
    "once per key.",
    "5.1.bound": "A cursor is bound to scope, filter, dates and order.",
    "5.1.damaged": "A cursor used with another query, damaged, or together with page is InvalidCursorError.",
    "5.1.scope": "Scope is applied again on every call with a cursor.",
    "5.2.scope": "At least one of threads (one id or up to 100) and resource_id; with both, both hold.",
    "5.2.dates": "TimeRange bounds created_at, each end inclusive unless excluded.",
    "5.2.include": "Includes add messages by id with neighbours from their own thread, in the total order.",
    "5.2.thread": "With thread_id the included message must be in that thread.",
    "5.2.windows": "Windows ignore where and created, skip unknown ids and never repeat a message.",
    "5.2.owner": "Windows stay within resource_id, else within the resources that own threads.",
    "5.2.untouched": "Includes leave total, has_more and cursors untouched.",
    "5.2.matched": "Items are in the query's order; matched_ids tells matches from neighbours.",
    "5.2.only": "Only includes: per_page=0.",
    "5.3.takes": "Every operation that takes a thread or message id also takes resource_id, the scope.",
    "5.3.reads": "Reads of another resource's things: as if absent.",
    "5.3.writes": "Writes to another resource's things: OwnershipError, nothing written.",
    "5.4.typed": "Equality is typed: True is not 1, '1' is not 1, 1 and 1.0 are one number; numbers compare "
    "exactly.",
    "5.4.null": "None matches an explicit null only; a list or object matches no scalar; a missing key "
    "never matches.",
    "5.4.keys": "Keys are ASCII identifiers up to 128 long, never __proto__, prototype or constructor.",
    "5.4.values": "Values are str, int64, finite float, bool, None; anything else is InvalidFilterError "
    "before any I/O.",
    "5.4.injection": "No key or value ever becomes part of a query's text.",
    "5.4.and": "All keys and all conditions of a tuple must hold.",
    "5.4.ranges": "gt, gte, lt, lte compare number with number and string with string by code point.",
    "5.4.one_of": "one_of is equality with any of its values.",
    "5.4.not_equal": "not_equal needs the key; null, lists and objects satisfy it.",
    "5.4.exists": "exists and missing look at the key alone.",
    "5.4.long": "Long strings compare whole; a string bound over 64 code points is InvalidFilterError.",
    "5.4.first": "Filters apply before total and pagination, to messages and threads alike.",
    "5.5.pushdown": "Declared pushdown is real: the rows that cross the driver do not grow with the thread.",
    "5.5.statements": "The number of statements a call sends does not grow with the thread.",
    "5.5.explain": "explain shows the parts pushed down, the index used and the rows examined.",
    # --- 6 Capabilities ---
    "6.fixed": "store.capabilities is fixed after open and leaves nothing that depends.",
    "6.spec": "What a spec declares is what an open store has.",
    "6.refused": "What is absent is refused before any I/O; nothing is answered silently.",
    "6.atomic": "With atomic_batch, a write is all or nothing, for every reader.",
    "6.conditional": "With conditional_writes, what a write depends on is decided inside it: no lost update.",
    "6.limit": "What is too large for the backend is LimitExceededError before anything is written.",
    "6.cancelled": "A cancelled call leaks nothing and leaves no half write.",
    # --- 7 Errors ---
    "7.tree": "One tree, split by what the caller does next, with the built-in classes it names.",
    "7.names": "InvalidArgumentError names argument, rule and what was given.",
    "7.pickle": "Every error pickles.",
    "7.secrets": "Messages never contain credentials.",
    "7.corrupt": "Stored bytes that do not decode are CorruptDataError; only JSON is ever decoded.",
    "7.outcome": "A lost, busy, full or read-only database is UnavailableError; outcome tells what became "
    "of a write.",
    "7.recovery": "After the database is back the store works again, and every acknowledged write is there.",
    "7.repeat": "Saves, deletes, merges of absolute values and creates with explicit ids are safe to repeat.",
    # --- 8 Archive memories ---
    "8.length": "Archive memories have at most 2,000 characters.",
    "8.recall": "Recall gives unpinned memories visible to the actor (its own and the shared), newest "
    "first, then by id.",
    "8.substring": "q is a literal, case-insensitive substring: % and _ are ordinary, casefold of both "
    "sides.",
    "8.limit": "limit is 1 to 50.",
}
"""Each rule in words."""
