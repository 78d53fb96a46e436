import re

import pytest

from threadkeep import Capability
from threadkeep_conformance import suite
from threadkeep_conformance.cases import CASES, case, list_hash, selected
from threadkeep_conformance.rules import RULES, SECTIONS
from threadkeep_conformance.suite.base import AdapterSuite


def test_every_rule_of_the_contract_has_a_case() -> None:
    held = {rule for one in CASES.values() for rule in one.rules}

    assert sorted(set(RULES) - held) == []


def test_every_capability_has_cases_that_show_it() -> None:
    assert {capability for one in CASES.values() for capability in one.shows} == set(Capability)


def test_every_rule_is_in_a_section_of_the_contract() -> None:
    assert {rule.rpartition(".")[0] for rule in RULES} == set(SECTIONS)


def test_ids_are_dotted_words() -> None:
    odd = [name for name in CASES if not re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+", name)]

    assert odd == []


def test_every_case_says_its_rule_in_a_sentence() -> None:
    assert [one.id for one in CASES.values() if not one.text.endswith(".")] == []


def test_the_suite_exports_every_class_that_has_cases() -> None:
    exported = {getattr(suite, name) for name in suite.__all__}

    assert {one.suite for one in CASES.values()} == {cls.__name__ for cls in exported}
    assert all(issubclass(cls, AdapterSuite) for cls in exported)


def test_areas_are_files_or_beginnings_of_ids() -> None:
    assert {one.area for one in selected(("filters",))} == {"filters"}
    assert {one.id.rpartition(".")[0] for one in selected(("messages.filter",))} == {"messages.filter"}
    assert selected(("messages.filt",)) == []
    assert len(selected(())) == len(CASES)


def test_the_hash_changes_with_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list_hash()
    monkeypatch.delitem(CASES, "merge.null_deletes_key")

    assert list_hash() != before


def test_a_case_must_name_rules_that_exist() -> None:
    with pytest.raises(ValueError, match="no such rules"):
        case("some.case", "4.99.nonsense")
    with pytest.raises(ValueError, match="no rule"):
        case("some.case")
