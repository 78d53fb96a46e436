"""The rules for arguments, once, for every operation: each function checks, normalises and returns.

All raise :class:`InvalidArgumentError` (or its subclasses) naming the argument, the rule and what was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar, cast

from .clock import MAX_US, MIN_US, to_us
from .errors import InvalidArgumentError
from .jsontext import check_document, has_surrogate, kind
from .models import Actor, ActorType, Include, TimeRange
from .requests import Span

__all__ = [
    "MEMORY_ID_MAX",
    "MEMORY_LENGTH",
    "REVISION_MAX",
    "ROWS_MAX",
    "actor",
    "document",
    "flag",
    "identifier",
    "identifiers",
    "includes",
    "instance_of",
    "integer",
    "items_of",
    "memory_id",
    "memory_ids",
    "memory_text",
    "moment",
    "one_of",
    "optional_flag",
    "optional_identifier",
    "optional_moment",
    "paging",
    "text",
    "threads_scope",
    "time_range",
    "title",
]

ID_LENGTH = 255
TITLE_LENGTH = 1000
MEMORY_LENGTH = 2000
MEMORY_ID_MAX = 2**53 - 1
THREADS_MAX = 100
INCLUDES_MAX = 100
WINDOW_MAX = 1000
ROWS_MAX = 2**63 - 1
REVISION_MAX = 2**53 - 1  # leaves room to count on, and every JSON reader keeps it exact

Item = TypeVar("Item")


def text(value: object, argument: str, *, least: int = 0, most: int | None = None) -> str:
    """A string of a length in characters, without NUL and lone surrogates."""
    if not isinstance(value, str):
        raise InvalidArgumentError(argument, "a str", kind(value))
    if len(value) < least or (most is not None and len(value) > most):
        bounds = f"{least} to {most} characters" if least else f"at most {most} characters"
        raise InvalidArgumentError(argument, f"of {bounds}", kind(value))
    if "\0" in value or has_surrogate(value):
        raise InvalidArgumentError(argument, "a str without NUL and lone surrogates", kind(value))
    return value if type(value) is str else str.__str__(value)


def identifier(value: object, argument: str) -> str:
    """An id, a role or a type: 1 to 255 characters."""
    if type(value) is str and value.isascii() and 0 < len(value) <= ID_LENGTH and "\0" not in value:
        return value
    return text(value, argument, least=1, most=ID_LENGTH)


def optional_identifier(value: object, argument: str) -> str | None:
    """An id, or None for not given."""
    return None if value is None else identifier(value, argument)


def items_of(value: object, argument: str) -> list[object]:
    """The items of a list, tuple or other iterable; a string, bytes or a mapping is not one."""
    if type(value) is tuple or type(value) is list:  # no look at abstract classes, which takes 1 us
        return list(cast("Sequence[object]", value))
    if not isinstance(value, (str, bytes, bytearray, memoryview, Mapping)):
        try:
            items = iter(cast("Iterable[object]", value))
        except TypeError:
            pass
        else:
            return list(items)
    raise InvalidArgumentError(argument, "a list", type(cast("object", value)).__name__)


def identifiers(value: object, argument: str) -> list[str]:
    """One id or many, each once, in the given order."""
    if isinstance(value, str):
        return [identifier(value, argument)]
    found = items_of(value, argument)
    return list(dict.fromkeys([identifier(item, f"{argument}[{i}]") for i, item in enumerate(found)]))


def threads_scope(value: object) -> tuple[str, ...] | None:
    """The ``threads`` argument: None, one id, or up to 100."""
    if value is None:
        return None
    found = identifiers(value, "threads")
    if len(found) > THREADS_MAX:
        raise InvalidArgumentError("threads", f"at most {THREADS_MAX} ids", f"{len(found)} ids")
    return tuple(found)


def title(value: object, argument: str = "title") -> str:
    """A title: up to 1,000 characters, may be empty."""
    return text(value, argument, most=TITLE_LENGTH)


def document(value: object, argument: str = "working_memory") -> str | None:
    """A working memory: any text up to 1 MiB, or None for none."""
    if value is None:
        return None
    found = text(value, argument)
    check_document(found, argument)
    return found


def flag(value: object, argument: str) -> bool:
    """A bool and nothing that merely behaves like one."""
    if not isinstance(value, bool):
        raise InvalidArgumentError(argument, "True or False", kind(value))
    return value


def optional_flag(value: object, argument: str) -> bool | None:
    """A bool, or None for not given."""
    return None if value is None else flag(value, argument)


def integer(value: object, argument: str, *, least: int, most: int) -> int:
    """An int in a range; a bool is not one."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidArgumentError(argument, f"an int from {least} to {most}", kind(value))
    return int(value)


def one_of(value: object, argument: str, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidArgumentError(argument, "one of " + ", ".join(map(repr, choices)), kind(value))
    return str(value)


def moment(value: object, argument: str) -> int:
    """An aware datetime within years 1 to 9999 of UTC, as microseconds since 1970."""
    if not isinstance(value, datetime):
        raise InvalidArgumentError(argument, "an aware datetime", kind(value))
    if value.tzinfo is None:
        raise InvalidArgumentError(argument, "an aware datetime", "a naive datetime")
    try:
        us = to_us(value)
    except TypeError as exc:  # its zone has no offset for it, which makes it naive
        raise InvalidArgumentError(argument, "an aware datetime", "a naive datetime") from exc
    except Exception as exc:  # a time zone is foreign code
        raise InvalidArgumentError(
            argument, "a datetime whose zone has an offset for it", "datetime"
        ) from exc
    if not MIN_US <= us <= MAX_US:
        raise InvalidArgumentError(argument, "within the years 1 to 9999 of UTC", "datetime")
    return us


def optional_moment(value: object, argument: str) -> int | None:
    """A moment, or None for not given."""
    return None if value is None else moment(value, argument)


def time_range(value: object, argument: str = "created") -> Span:
    """A :class:`TimeRange` (or None) as a half-open span of microseconds."""
    if value is None:
        return Span()
    if not isinstance(value, TimeRange):
        raise InvalidArgumentError(argument, "a TimeRange", kind(value))
    start, end = (
        optional_moment(value.start, f"{argument}.start"),
        optional_moment(value.end, f"{argument}.end"),
    )
    if flag(value.start_exclusive, f"{argument}.start_exclusive") and start is not None:
        start += 1
    if not flag(value.end_exclusive, f"{argument}.end_exclusive") and end is not None:
        end += 1
    return Span(start, end)


def paging(page: object, per_page: object) -> tuple[int, int | None]:
    """The ``page`` and ``per_page`` of a list."""
    size = None if per_page is None else integer(per_page, "per_page", least=0, most=ROWS_MAX - 1)
    number = integer(page, "page", least=0, most=ROWS_MAX)
    if size is None and number:
        raise InvalidArgumentError("page", "0 where per_page is None", kind(page))
    if size and (number + 1) * size > ROWS_MAX:
        raise InvalidArgumentError("page", "small enough that (page + 1) * per_page fits int64", kind(page))
    return number, size


def includes(value: object) -> tuple[Include, ...]:
    """Up to 100 includes of at most 1,000 neighbours on either side."""
    if value == ():
        return ()
    found = items_of(value, "include")
    if len(found) > INCLUDES_MAX:
        raise InvalidArgumentError("include", f"at most {INCLUDES_MAX} entries", f"{len(found)} entries")
    return tuple([_include(item, f"include[{index}]") for index, item in enumerate(found)])


def _include(value: object, at: str) -> Include:
    item = instance_of(value, Include, at)
    return Include(
        id=identifier(item.id, f"{at}.id"),
        thread_id=optional_identifier(item.thread_id, f"{at}.thread_id"),
        before=integer(item.before, f"{at}.before", least=0, most=WINDOW_MAX),
        after=integer(item.after, f"{at}.after", least=0, most=WINDOW_MAX),
    )


def actor(value: object, argument: str = "actor") -> Actor:
    """An :class:`Actor`: ``user`` and ``end_user`` with an id, ``shared`` without."""
    given = instance_of(value, Actor, argument)
    of_type = cast("ActorType", one_of(given.type, f"{argument}.type", ("user", "end_user", "shared")))
    if of_type != "shared":
        return Actor(of_type, identifier(given.id, f"{argument}.id"))
    if given.id is not None:
        raise InvalidArgumentError(f"{argument}.id", "None for a shared actor", kind(given.id))
    return Actor(of_type)


def memory_id(value: object, argument: str) -> int:
    """An archive memory's id."""
    return integer(value, argument, least=1, most=MEMORY_ID_MAX)


def memory_ids(value: object, argument: str = "ids") -> list[int]:
    """One memory id or many, each once."""
    if isinstance(value, int):
        return [memory_id(value, argument)]
    found = items_of(value, argument)
    return list(dict.fromkeys([memory_id(item, f"{argument}[{i}]") for i, item in enumerate(found)]))


def memory_text(value: object, argument: str) -> str:
    """An archive memory's content: 1 to 2,000 characters."""
    return text(value, argument, least=1, most=MEMORY_LENGTH)


def instance_of(value: object, wanted: type[Item], argument: str) -> Item:
    """A value of one of our own types."""
    if not isinstance(value, wanted):
        raise InvalidArgumentError(argument, f"a {wanted.__name__}", kind(value))
    return value
