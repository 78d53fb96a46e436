"""Random calls of a store: what the model draws from, and how a call is written down as Python.

Ids, keys and values come from small pools, so that calls meet each other: they hit the same message, tie,
collide and cross owners. The pools hold what has broken stores: hostile strings, extreme numbers, times at
both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import UNSET

from threadkeep import (
    Actor,
    ArchiveMemory,
    Capability,
    Include,
    MessageUpdate,
    NewMemory,
    NewMessage,
    Resource,
    Thread,
    TimeRange,
    exists,
    gt,
    gte,
    lt,
    lte,
    missing,
    not_equal,
    one_of,
)
from threadkeep.filters import Operation

from .suite.samples import HOSTILE, NOON, NUMBERS

__all__ = ["CALLS", "COPY", "MESSAGES", "OWNERS", "START", "THREADS", "Call", "needs", "simpler", "source"]

START = datetime(2024, 3, 1, tzinfo=UTC)
"""Where the clock of a run begins."""

COPY = "copy "
"""How the names of messages made by clone_thread begin; a number follows."""


class Call(NamedTuple):
    """One call.

    Attributes:
        store: Which of the stores, from 0.
        method: The method's name.
        args: Positional arguments.
        kwargs: Keyword arguments.
    """

    store: int
    method: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012  (a NamedTuple's default; never changed)


def needs(call: Call) -> set[Capability]:
    """The capabilities without which a call is refused."""
    found: set[Capability] = set()
    if call.method == "merge_working_memory":
        found.add(Capability.ATOMIC_MERGE)
    if call.method.startswith("explain"):
        found.add(Capability.EXPLAIN)
    if call.kwargs.get("atomic"):
        found.add(Capability.ATOMIC_BATCH)
    where: dict[str, Any] = call.kwargs.get("where") or {}
    if any(isinstance(value, (Operation, tuple)) for value in where.values()):
        found.add(Capability.FILTER_OPERATORS)
    return found


_Any = SearchStrategy[Any]


def _bounded(make: Callable[[str | float], Operation], bound: str | float) -> Operation:
    return make(bound)


def _all_in(thread_id: str, batch: list[NewMessage]) -> list[NewMessage]:
    return [msgspec.structs.replace(message, thread_id=thread_id) for message in batch]


# --- values ---------------------------------------------------------------------------------------

THREADS = ("t1", "t2", "t3", "t4", "T1", HOSTILE[0])
OWNERS = ("user-1", "user-2", HOSTILE[2])
MESSAGES = ("m1", "m2", "m3", "m4", "m5", "m6", "M1", HOSTILE[16])

# What exists at first comes oftenest.
_threads: _Any = st.sampled_from(("t1", "t1", "t1", "t2", "t2", "t3", *THREADS))
_owners: _Any = st.sampled_from(("user-1", *OWNERS))
_names: _Any = st.sampled_from((*MESSAGES, *[f"{COPY}{number}" for number in range(4)]))
_flags: _Any = st.booleans()
_titles: _Any = st.sampled_from(("", "title", "Title", *HOSTILE[:3]))
_strings: _Any = st.sampled_from(("", "x", "X", "10", "9", "x" * 64, "x" * 65, "x" * 66, *HOSTILE))
_numbers: _Any = st.sampled_from(NUMBERS) | st.integers(-3, 3) | st.floats(-3, 3, width=16)
_scalars: _Any = st.none() | _flags | st.sampled_from((0, 1, 1.0, "1")) | _numbers | _strings
_keys: _Any = st.sampled_from(("a", "b", "kind", "_x"))
_metadata: _Any = st.dictionaries(
    _keys | st.sampled_from(("", "a.b", "$ne", "a=b", "__proto__", "clone")),
    _scalars | st.sampled_from(([], {}, [1, {"a": None}], {"a": {"b": [True]}})),
    max_size=4,
)
_content: _Any = st.recursive(
    _scalars | st.sampled_from(("a\0b", "\ud800", 2**80, -(2**64))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_strings, inner, max_size=3),
    max_leaves=6,
)
_moments: _Any = st.sampled_from(
    (
        NOON,
        NOON + timedelta(microseconds=1),
        NOON - timedelta(microseconds=1),
        START,
        START + timedelta(days=1),  # in the future: a touch goes beyond it
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    )
)
_conditions: _Any = (
    st.sampled_from((exists(), missing()))
    | st.builds(not_equal, _scalars)
    | st.lists(_scalars, max_size=3).map(lambda values: one_of(*values))
    | st.builds(
        _bounded,
        st.sampled_from((gt, gte, lt, lte)),
        _numbers | _strings,
    )
)
_where: _Any = st.none() | st.dictionaries(
    _keys,
    _scalars | _conditions | st.lists(_scalars | _conditions, min_size=1, max_size=2).map(tuple),
    max_size=2,
)
_ranges: _Any = st.none() | st.builds(TimeRange, st.none() | _moments, st.none() | _moments, _flags, _flags)
_scopes: _Any = st.sampled_from((*[None] * 3, *["user-1"] * 3, "user-2"))
_orders: _Any = st.sampled_from(("asc", "desc"))
_sizes: _Any = st.sampled_from((1, 2, 3, 40, 0, None, -1))
_documents: _Any = st.none() | st.sampled_from(
    ("", "# notes", '{"a": {"b": 1}}', '{"a": 1.0, "b": [1, 2]}', "[1]", '{"a":', "1e400")
)
_patches: _Any = st.recursive(
    _scalars | st.lists(_scalars, max_size=2),
    lambda inner: st.dictionaries(_keys, inner, max_size=3),
    max_leaves=6,
).filter(lambda value: isinstance(value, dict))
_actors: _Any = st.builds(
    Actor, st.sampled_from(("user", "end_user")), st.sampled_from(("user-1", "User-1"))
) | st.just(Actor("shared"))
_memory_ids: _Any = st.sampled_from((1, 2, 3, 2**53 - 1))
_facts: _Any = st.sampled_from(
    ("likes tea", "Likes Tea", "100%_done", "stra\u00dfe", "\u0130stanbul", "\u03a3\u03c3\u03c2")
)
_paged = {"page": st.sampled_from((0, 0, 0, 1, 2)), "per_page": _sizes, "with_total": _flags}


def _call(method: str, *args: SearchStrategy[Any], **kwargs: SearchStrategy[Any]) -> SearchStrategy[Call]:
    """Calls with all of *args* and some of *kwargs*; one named with a final ``_`` is always given."""
    required = {name[:-1]: value for name, value in kwargs.items() if name.endswith("_")}
    optional = {name: value for name, value in kwargs.items() if not name.endswith("_")}
    given = st.fixed_dictionaries(required, optional=optional).map(_given)
    return st.builds(Call, st.integers(0, 1), st.just(method), st.tuples(*args), given)


def _given(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if value is not UNSET}


def _memory(actor: Actor, **fields: Any) -> ArchiveMemory:
    return ArchiveMemory(actor_type=actor.type, actor_id=actor.id, **fields)


_new_messages: _Any = st.builds(
    NewMessage,
    _threads,
    st.sampled_from(("user", "assistant", HOSTILE[3])),
    _content,
    id=_names,
    resource_id=st.sampled_from((*[None] * 6, "user-1", "user-2")),
    type=st.sampled_from(("text", HOSTILE[4])),
    metadata=_metadata,
    created_at=st.none() | _moments,
)
_batches: _Any = st.lists(_new_messages, min_size=1, max_size=4)
_batches_of_one_thread: _Any = st.builds(
    _all_in,
    _threads,
    _batches,
)
_updates: _Any = st.builds(
    MessageUpdate,
    _names,
    role=st.just(UNSET) | st.just("tool"),
    content=st.just(UNSET) | _content,
    metadata=st.just(UNSET) | _metadata,
    replace_metadata=_flags,
    thread_id=st.just(UNSET) | _threads,
)
_includes: _Any = st.builds(
    Include, _names, thread_id=st.none() | _threads, before=st.integers(0, 2), after=st.integers(0, 2)
)
_message_query = {
    "resource_id": _scopes,
    "where": _where,
    "created": _ranges,
    "order": _orders,
}
_thread_query = {
    "resource_id": _scopes,
    "where": _where,
    "order_by": st.sampled_from(("created_at", "updated_at")),
    "order": _orders,
}
_scope_of_messages: _Any = st.none() | _threads | st.lists(_threads, max_size=3)

# --- calls ----------------------------------------------------------------------------------------

CALLS: dict[str, SearchStrategy[Call]] = {
    "make_threads": _call(
        "create_thread", _owners, thread_id_=_threads, title=_titles, metadata=_metadata, created_at=_moments
    )
    | _call(
        "ensure_thread", _owners, thread_id_=_threads, title=_titles, metadata=_metadata, created_at=_moments
    )
    | _call(
        "save_thread",
        st.builds(
            Thread,
            id=_threads,
            resource_id=_owners,
            title=_titles,
            metadata=_metadata,
            working_memory=_documents,
            message_count=st.just(7),
            created_at=_moments,
            updated_at=_moments,
        ),
    ),
    "update_thread": _call(
        "update_thread",
        _threads,
        title=_titles,
        metadata=_metadata,
        replace_metadata=_flags,
        working_memory=_documents,
        if_title=st.sampled_from((*[UNSET] * 4, "", "title")),
        resource_id=_scopes,
    ),
    "change_threads": _call("transfer_thread", _threads, _owners, resource_id=_scopes)
    | _call("clear_thread", _threads, resource_id=_scopes)
    | _call("delete_thread", _threads, resource_id=_scopes),
    "clone": _call(
        "clone_thread",
        _threads,
        thread_id_=st.sampled_from(("t3", "t4", "T1", *THREADS)),
        to_resource_id=_scopes,
        title=_titles,
        metadata=_metadata,
        message_limit=st.integers(0, 3),
        created=_ranges,
        message_ids=st.lists(_names, max_size=3),
        return_messages=_flags,
        resource_id=_scopes,
    ),
    "read_threads": _call("get_thread", _threads, resource_id=_scopes)
    | _call("list_threads", **_thread_query, **_paged)
    | _call("iter_threads", **_thread_query, per_page=st.integers(1, 3))
    | _call("explain_threads", **_thread_query, **_paged)
    | _call("get_source_thread", _threads, resource_id=_scopes)
    | _call("list_clones", _threads, resource_id=_scopes)
    | _call("get_clone_history", _threads, resource_id=_scopes),
    "save_messages": _call(
        "save_messages",
        _batches_of_one_thread | _batches_of_one_thread | _batches | st.just([]),
        atomic=st.sampled_from((None, True)),
        resource_id=st.sampled_from((*[None] * 3, "user-1")),
    ),
    "change_messages": _call(
        "update_messages", st.lists(_updates, min_size=1, max_size=3), resource_id=_scopes
    )
    | _call("delete_messages", _names | st.lists(_names, min_size=1, max_size=3), resource_id=_scopes),
    "read_messages": _call("get_messages", _names | st.lists(_names, max_size=4), resource_id=_scopes)
    | _call("explain_messages", _scope_of_messages, **_message_query, **_paged)
    | _call("iter_messages", _scope_of_messages, **_message_query, per_page=st.integers(1, 3)),
    "list_messages": _call(
        "list_messages",
        _scope_of_messages,
        **_message_query,
        **_paged,
        include=st.lists(_includes, max_size=2),
    ),
    "resources": _call(
        "save_resource",
        st.builds(
            Resource,
            id=_owners,
            working_memory=_documents,
            metadata=_metadata,
            revision=st.sampled_from((0, 1, 7)),
            created_at=_moments,
            updated_at=_moments,
        ),
    )
    | _call(
        "update_resource",
        _owners,
        working_memory=_documents,
        metadata=_metadata,
        replace_metadata=_flags,
        if_revision=st.sampled_from((*[UNSET] * 4, 0, 1, 2)),
    )
    | _call("delete_resource", _owners)
    | _call("get_resource", _owners)
    | _call("list_resources", **_paged)
    | _call("iter_resources", per_page=st.integers(1, 2)),
    "merge": _call("merge_working_memory", _owners, _patches),
    "memories": _call(
        "add_memories",
        _actors,
        st.lists(st.builds(NewMemory, _facts, _memory_ids, _flags, st.none() | _moments), max_size=3),
    )
    | _call(
        "save_memories",
        st.lists(
            st.builds(
                _memory,
                _actors,
                id=_memory_ids,
                content=_facts,
                pinned=_flags,
                created_at=_moments,
            ),
            max_size=2,
        ),
    )
    | _call("pin_memory", _memory_ids, pinned=_flags)
    | _call("delete_memories", _actors, st.none() | _memory_ids | st.lists(_memory_ids, max_size=2)),
    "read_memories": _call(
        "recall_memories", _actors, st.none() | _facts | st.sampled_from(("%", "_", "TEA", "ss"))
    )
    | _call("list_memories", st.none() | _actors, **_paged)
    | _call("iter_memories", st.none() | _actors, per_page=st.integers(1, 2))
    | _call("migrate"),
}
"""Random calls by area; together they use every operation of a store."""


# --- simpler --------------------------------------------------------------------------------------


def simpler(value: Any) -> Iterator[Any]:
    """Values of the same kind with a little less in them: one argument, item or field."""
    if isinstance(value, Call):
        fixed = {
            name: item for name, item in value.kwargs.items() if name == "thread_id"
        }  # without, it is random
        loose = {name: item for name, item in value.kwargs.items() if name not in fixed}
        yield from (value._replace(kwargs={**less, **fixed}) for less in simpler(loose))
        yield from (value._replace(args=args) for args in _simpler_items(value.args))
    elif isinstance(value, dict):
        kept: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]  (JSON)
        yield from ({key: item for key, item in kept.items() if key != gone} for gone in kept)
        yield from ({**kept, key: less} for key, item in kept.items() for less in simpler(item))
    elif isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]  (JSON)
        yield from (items[:index] + items[index + 1 :] for index in range(len(items)))
        yield from (list(less) for less in _simpler_items(tuple(items)))
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            given = getattr(value, name)
            for less in (*_DEFAULTS.get(name, ()), *simpler(given)):
                if less != given:
                    yield msgspec.structs.replace(value, **{name: less})


_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "content": ("text",),
    "metadata": ({},),
    "role": ("user",),
    "type": ("text",),
    "title": ("",),
    "resource_id": (None,),
    "working_memory": (None,),
    "replace_metadata": (False,),
    "pinned": (False,),
}


def _simpler_items(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for index, item in enumerate(items):
        yield from ((*items[:index], less, *items[index + 1 :]) for less in simpler(item))


# --- as Python ------------------------------------------------------------------------------------


def source(value: object, names: dict[str, str] | None = None) -> str:  # noqa: PLR0911  (one for each kind)
    """A value as an expression of Python, with ``from threadkeep import *`` and ``from datetime import *``.

    Args:
        value: What a call can be given.
        names: Expressions to write instead of some strings.
    """
    names = names or {}
    if isinstance(value, str):
        return names.get(value) or ascii(value)
    if isinstance(value, datetime):
        fields = [
            value.year,
            value.month,
            value.day,
            value.hour,
            value.minute,
            value.second,
            value.microsecond,
        ]
        while len(fields) > 3 and not fields[-1]:
            fields.pop()
        return f"datetime({', '.join(map(str, fields))}, tzinfo=UTC)"
    if isinstance(value, Operation):
        return f"{value.operator.value}({', '.join(source(item, names) for item in value.values)})"
    if isinstance(value, msgspec.Struct):
        given: list[tuple[str, object]] = [(name, getattr(value, name)) for name in value.__struct_fields__]
        shown = [f"{name}={source(item, names)}" for name, item in given if item is not UNSET]
        return f"{type(value).__name__}({', '.join(shown)})"
    if isinstance(value, dict):
        pairs: Any = value.items()  # pyright: ignore[reportUnknownVariableType]  (JSON)
        return "{" + ", ".join(f"{source(key, names)}: {source(item, names)}" for key, item in pairs) + "}"
    if isinstance(value, (list, tuple)):
        items: Any = value  # pyright: ignore[reportUnknownVariableType]  (JSON)
        inside = ", ".join(source(item, names) for item in items)
        return f"[{inside}]" if isinstance(value, list) else f"({inside},)" if items else "()"
    return repr(value)
