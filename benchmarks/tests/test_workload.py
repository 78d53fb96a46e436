"""The messages that benchmarks store."""

import json
from collections import Counter
from itertools import islice

import pytest

import threadkeep
from threadkeep_bench import workload


def _messages(count: int) -> list[threadkeep.Message]:
    return list(workload.messages("thread-1", "resource-1", count))


def test_the_same_messages_come_on_every_call() -> None:
    assert _messages(200) == _messages(200)


def test_ids_differ_between_threads_and_within_one() -> None:
    other = workload.messages("thread-2", "resource-1", 500)
    ids = [message.id for message in [*_messages(500), *other]]

    assert len(set(ids)) == 1000


@pytest.mark.parametrize(("key", "share"), workload.SHARES.items())
def test_each_value_of_a_key_has_exactly_its_share(key: str, share: float) -> None:
    counts = Counter(workload.value_of(key, number) for number in range(20_000))

    assert set(counts.values()) == {round(share * 20_000)}


def test_a_priority_is_independent_of_a_customer() -> None:
    of_one = [n for n in range(100_000) if workload.value_of("customer", n) == "customer-0007"]
    counts = Counter(workload.value_of("priority", number) for number in of_one)

    assert set(counts.values()) == {10}


def test_messages_have_five_to_eight_keys_and_all_scalar_types_occur() -> None:
    found = [message.metadata for message in _messages(200)]

    assert {len(metadata) for metadata in found} <= {5, 6, 7, 8}
    assert {type(value) for metadata in found for value in metadata.values()} == {
        *(str, int, float, bool, type(None), list)
    }


def test_messages_are_in_the_total_order_with_ties() -> None:
    messages = _messages(200)
    places = [(message.created_at, message.seq) for message in messages]

    assert places == sorted(places)
    assert len({message.created_at for message in messages}) == 180


def test_messages_are_made_one_at_a_time() -> None:
    endless = workload.messages("thread-1", "resource-1", 10**15)

    assert [message.seq for message in islice(endless, 3)] == [0, 1, 2]


def test_bodies_are_about_250_bytes_with_a_long_tail() -> None:
    lengths = [len(json.dumps(message.content, ensure_ascii=False)) for message in _messages(2000)]

    assert 180 < sum(lengths) / len(lengths) < 320
    assert max(lengths) > 1500
