"""Which of several conditions leads, without a server."""

from __future__ import annotations

from threadkeep.filters import conditions, gte, lt, missing, one_of
from threadkeep_postgres._queries import PROBE_LIMIT, Queries, leads_of, load, sparsest

EVERY = frozenset("*")


def test_every_statement_can_be_completed_from_its_own_file() -> None:
    assert Queries("s").statement("thread_by_id", {"id": "t"}).parameters == ("t",)
    assert all(text for text in load().values())


def test_a_parameter_named_twice_is_sent_once() -> None:
    found = Queries("s").statement("ensure_resource", {"resource": "r"})

    assert found.parameters == ("r",)
    assert found.sql.count(b"$1") > 1


def test_points_lead_before_ranges_and_ranges_before_a_walk() -> None:
    where = conditions({"a": gte(1), "b": one_of(1, 2), "c": missing()})

    [(lead, rest)] = leads_of(where, EVERY)
    assert lead.points == where[1].tokens
    assert rest == (where[0], where[2])
    [(lead, rest)] = leads_of(where, frozenset({"a"}))
    assert (lead.low, lead.is_walk) == (where[0].low, False)
    [(lead, rest)] = leads_of(where, frozenset())
    assert (lead.is_walk, rest) == (True, where)


def test_both_ends_of_a_range_lead_together() -> None:
    where = conditions({"a": (gte(1), lt(5))})

    [(lead, rest)] = leads_of(where, EVERY)
    assert (lead.low, lead.high, rest) == (where[0].low, where[1].high, ())


def test_the_condition_with_fewer_entries_leads() -> None:
    candidates = leads_of(conditions({"a": 1, "b": 1, "c": 1}), EVERY)

    probes = [(0, PROBE_LIMIT, 1, 1), (1, 7, 9, 9), (2, 8, 9, 9)]
    assert sparsest(candidates, probes, descending=False) is candidates[1]
    assert sparsest(candidates, probes[:1], descending=False) is candidates[1]  # it has none


def test_of_many_entries_the_wider_spread_leads() -> None:
    candidates = leads_of(conditions({"a": 1, "b": 1}), EVERY)

    near, far = (0, PROBE_LIMIT, 10, 5), (1, PROBE_LIMIT, 10, 6)
    assert sparsest(candidates, [near, far], descending=False) is candidates[1]
    assert sparsest(candidates, [near, far], descending=True) is candidates[0]
    dense = (1, PROBE_LIMIT, 1, 1)  # another branch of the same
    assert sparsest(candidates, [near, far, dense], descending=False) is candidates[0]
