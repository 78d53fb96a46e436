"""The script that changes the reference adapter, and the result that is published."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CONFORMANCE = Path(__file__).parents[1]

MODULE = """
async def page(rows, limit):
    if limit is None:
        return rows
    rows.sort()
    return rows[: limit + 1]
"""


@pytest.fixture(scope="module")
def mutation() -> ModuleType:
    path = CONFORMANCE / "scripts" / "mutation.py"
    spec = importlib.util.spec_from_file_location("mutation", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    return json.loads((CONFORMANCE / "mutation.json").read_bytes())


def test_every_mutant_differs_in_one_place(mutation: ModuleType) -> None:
    found = {mutant.change: mutant.text for mutant in mutation.mutants(MODULE)}

    assert set(found) == {
        "page: if limit is None: -> if not limit is None:",
        "page: limit is None -> limit is not None",
        "page: rows.sort() -> pass",
        "page: limit + 1 -> limit - 1",
        "page: 1 -> 2",
    }
    assert len(set(found.values())) == len(found)


def test_a_known_reason_names_a_mutant_that_exists(mutation: ModuleType) -> None:
    found = {mutant.change for mutant in mutation.mutants(mutation.source_of_module())}

    assert set(mutation.REASONS) - found == set()


def test_results_are_kept_and_taken_up_again_only_for_the_same_module_and_cases(
    mutation: ModuleType, tmp_path: Path
) -> None:
    file, basis = tmp_path / "found.json", {"module": "a", "cases": "b"}
    mutants = list(mutation.mutants(MODULE))
    results = mutation.Results(file, basis)
    results.fates = {mutant.name: "test_x" for mutant in mutants[:-1]}
    results.fates[mutants[-1].name] = mutation.ALIVE
    results.write()

    assert [mutation.Results(file, basis).of(mutant) for mutant in mutants] == list(results.fates.values())
    assert json.loads(file.read_bytes())["score"] == 80.0
    assert mutation.Results(file, {**basis, "cases": "c"}).fates == {}


def test_the_published_score_is_high_enough_and_every_survivor_has_a_reason(
    published: dict[str, Any], mutation: ModuleType
) -> None:
    assert published["score"] == mutation.score(list(published["fates"].values())) >= 95
    assert len(published["fates"]) >= 200
    assert [name for name, reason in published["reasons"].items() if not reason] == []
