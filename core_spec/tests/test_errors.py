"""The tree of errors: what is a kind of what, what each says, and that each survives another process."""

from __future__ import annotations

import copy
import pickle

import pytest

import threadkeep
from threadkeep import errors

EXAMPLES = [
    errors.ThreadkeepError("something"),
    errors.InvalidArgumentError("metadata.price", "a finite number", "float nan"),
    errors.InvalidFilterError("where.k", "an integer within int64", "int"),
    errors.InvalidCursorError("cursor", "given without page", "both"),
    errors.NotFoundError("thread", "t-1"),
    errors.UnknownSchemeError("mysql", ("libsql", "memory"), "pip install x", ("plugin 'p': no",)),
    errors.OwnershipError("message", "m-1"),
    errors.AlreadyExistsError("thread", "t-1"),
    errors.UnsupportedCapabilityError("explain", "chroma", "explain_messages"),
    errors.PluginError("postgres", "does not import: ImportError: no"),
    errors.MissingDriverError("postgres", "psycopg", "pip install threadkeep-postgres"),
    errors.SchemaVersionError(1, 2, "open it with migrate=True"),
    errors.StoreClosedError(),
    errors.WrongLoopError("this store belongs to another event loop"),
    errors.StorageError("something"),
    errors.ConflictError("another title"),
    errors.LimitExceededError("100 messages a batch", "101 messages"),
    errors.PartialWriteError("lost the connection", ("a", "b")),
    errors.UnavailableError("lost the connection", "unknown"),
    errors.CorruptDataError("content of message 'm'", "not JSON"),
]


def test_every_error_has_an_example_here_and_a_public_name() -> None:
    names = {type(example).__name__ for example in EXAMPLES}

    assert names == set(errors.__all__)
    assert names <= set(threadkeep.__all__)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_pickles_with_all_it_says(error: errors.ThreadkeepError, protocol: int) -> None:
    error.add_note("line 7")
    again = pickle.loads(pickle.dumps(error, protocol))

    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert again.args == error.args


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_can_be_copied(error: errors.ThreadkeepError) -> None:
    assert str(copy.copy(error)) == str(copy.deepcopy(error)) == str(error)


@pytest.mark.parametrize(
    ("kind", "parents"),
    [
        (errors.InvalidArgumentError, (ValueError,)),
        (errors.InvalidFilterError, (errors.InvalidArgumentError,)),
        (errors.InvalidCursorError, (errors.InvalidArgumentError,)),
        (errors.NotFoundError, (LookupError,)),
        (errors.UnknownSchemeError, (errors.NotFoundError,)),
        (errors.UnsupportedCapabilityError, (NotImplementedError,)),
        (errors.ConflictError, (errors.StorageError,)),
        (errors.LimitExceededError, (errors.StorageError,)),
        (errors.PartialWriteError, (errors.StorageError,)),
        (errors.UnavailableError, (errors.StorageError,)),
        (errors.CorruptDataError, (errors.StorageError,)),
    ],
)
def test_errors_are_caught_by_what_they_are_a_kind_of(
    kind: type[Exception], parents: tuple[type, ...]
) -> None:
    assert issubclass(kind, parents)


@pytest.mark.parametrize(
    "kind",
    [
        errors.OwnershipError,
        errors.AlreadyExistsError,
        errors.PluginError,
        errors.MissingDriverError,
        errors.SchemaVersionError,
        errors.StoreClosedError,
        errors.WrongLoopError,
    ],
)
def test_what_is_no_fault_of_the_database_is_no_storage_error(kind: type[Exception]) -> None:
    assert not issubclass(kind, (errors.StorageError, ValueError, LookupError))


def test_an_argument_error_names_the_argument_the_rule_and_what_was_given() -> None:
    error = errors.InvalidArgumentError("per_page", "an int from 0 to 9", "bool True")

    assert str(error) == "per_page must be an int from 0 to 9; given: bool True"


def test_an_unknown_scheme_names_what_is_installed_and_what_to_install() -> None:
    assert str(errors.UnknownSchemeError("x", ("libsql", "memory"), "pip install y")) == (
        "no adapter for the URL scheme 'x'; installed: libsql, memory; install it with: pip install y"
    )
    assert str(errors.UnknownSchemeError("x", ())) == "no adapter for the URL scheme 'x'; installed: none"


def test_an_unavailable_database_applied_nothing_unless_it_says_otherwise() -> None:
    assert errors.UnavailableError("busy").outcome == "not_applied"
