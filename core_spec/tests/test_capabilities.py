"""What a backend declares, and what a program reads of it."""

from __future__ import annotations

from typing import Any

import pytest

from threadkeep import Capabilities, Capability, InvalidArgumentError, Pushdown, Support

DECLARED = Capabilities(
    {
        Capability.METADATA_PUSHDOWN: Pushdown(Support.NATIVE, Support.EMULATED, Support.NATIVE),
        Capability.ATOMIC_BATCH: Support.NATIVE,
        Capability.ATOMIC_MERGE: Support.DEPENDS,
        Capability.TEXT_SEARCH: Support.EMULATED,
    }
)


def test_every_capability_is_in_it_and_what_is_not_declared_is_absent() -> None:
    assert set(DECLARED) == set(Capability)
    assert len(DECLARED) == len(Capability)
    assert DECLARED[Capability.EXPLAIN] is Support.ABSENT


def test_native_and_emulated_can_be_used_the_others_not() -> None:
    assert [
        DECLARED.has(capability)
        for capability in (
            Capability.ATOMIC_BATCH,
            Capability.TEXT_SEARCH,
            Capability.EXPLAIN,
            Capability.ATOMIC_MERGE,
        )
    ] == [True, True, False, False]


def test_a_pushdown_is_as_good_as_its_worst_part() -> None:
    assert DECLARED[Capability.METADATA_PUSHDOWN] is Support.EMULATED
    assert DECLARED.pushdown.filter is Support.NATIVE
    assert Pushdown(Support.NATIVE, Support.NATIVE, Support.NATIVE).overall is Support.NATIVE
    assert Pushdown(Support.EMULATED, Support.ABSENT, Support.DEPENDS).overall is Support.ABSENT


def test_a_pushdown_that_is_not_declared_is_absent_in_every_part() -> None:
    assert Capabilities({}).pushdown == Pushdown(Support.ABSENT, Support.ABSENT, Support.ABSENT)


def test_the_name_of_a_capability_is_as_good_as_the_capability() -> None:
    name: Any = "atomic_batch"

    assert DECLARED.has(name)
    assert name in DECLARED


@pytest.mark.parametrize("name", ["atomic", "", None, True, 1, b"explain", ["explain"], {}], ids=repr)
def test_a_capability_that_does_not_exist_is_an_error_and_not_absent(name: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        DECLARED.has(name)


def test_it_behaves_as_a_mapping() -> None:
    missing: Any = "atomic"

    assert missing not in DECLARED
    assert DECLARED.get(missing) is None


def test_what_depends_is_replaced_by_what_a_server_has() -> None:
    found = DECLARED.resolved({Capability.ATOMIC_MERGE: Support.NATIVE})

    assert found[Capability.ATOMIC_MERGE] is Support.NATIVE
    assert found[Capability.TEXT_SEARCH] is Support.EMULATED
    assert DECLARED[Capability.ATOMIC_MERGE] is Support.DEPENDS
