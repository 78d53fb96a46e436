import json
from pathlib import Path

import pytest

from threadkeep_conformance.cases import CASES, suite_imported
from threadkeep_conformance.events import Outcome, Outcomes, decoded
from threadkeep_conformance.report import Adapter, Report, Run, Settings, badge, markdown, tallies, write

suite_imported()
ADAPTER = Adapter(
    name="toy",
    version="1.2",
    contract="1.0",
    driver="toydb 3",
    server="toyd 4",
    capabilities={"atomic_merge": "absent"},
)
ALL = sorted(CASES)


def report_of(changed: dict[str, Outcome] | None = None, settings: Settings | None = None) -> Report:
    """A report of a run in which every case passed but the given ones."""
    settings = settings or Settings()
    planned = ALL[:5] if settings.areas else ALL
    outcomes = [Outcomes(name, (changed or {}).get(name, "passed"), 0.5, "why") for name in planned]
    return Report.of(Run(ADAPTER, settings, planned, outcomes), wanted=ALL)


def test_a_whole_run_in_which_all_passed_is_conformant() -> None:
    report = report_of()

    assert report.conformant
    assert report.good
    assert report.executed == report.passed == len(ALL)


def test_what_is_refused_as_declared_is_conformant_and_counted_apart() -> None:
    report = report_of({ALL[0]: "refused"})

    assert report.conformant
    assert (report.executed, report.passed, report.refused) == (len(ALL), len(ALL) - 1, 1)


def test_optional_cases_that_were_not_offered_are_named_and_not_held_against() -> None:
    report = report_of({ALL[0]: "not offered"})

    assert report.conformant
    assert (report.executed, report.not_offered) == (len(ALL) - 1, 1)
    assert f"`{ALL[0]}`" in markdown(report)


@pytest.mark.parametrize("outcome", ["failed", "waived", "unproven"])
def test_one_failed_waived_or_unproven_case_is_not_conformant(outcome: Outcome) -> None:
    report = report_of({ALL[3]: outcome})

    assert not report.conformant
    assert not report.good
    assert "not conformant" in report.verdict


def test_a_case_that_did_not_run_is_not_conformant() -> None:
    outcomes = [Outcomes(name, "passed", 0, "") for name in ALL[1:]]
    report = Report.of(Run(ADAPTER, Settings(), ALL[1:], outcomes), wanted=ALL)

    assert not report.conformant
    assert report.missing == ALL[:1]


def test_a_selection_says_so_and_is_never_conformant() -> None:
    report = report_of(settings=Settings(areas=("times",)))

    assert report.good
    assert not report.conformant
    assert "selection (times)" in report.verdict


def test_a_waiver_file_forbids_conformance_even_if_nothing_was_waived() -> None:
    assert not report_of(settings=Settings(waivers=Path("waivers.toml"))).conformant


def test_the_files_say_the_same(tmp_path: Path) -> None:
    report = report_of({ALL[0]: "failed"})
    write(report, tmp_path / "new")

    found = json.loads((tmp_path / "new/report.json").read_bytes())
    assert {"executed", "passed", "refused", "waived", "failed", "conformant"} <= set(found)
    assert (found["failed"], found["conformant"], found["seed"]) == (1, False, 0)
    assert (found["adapter"]["driver"], found["adapter"]["server"]) == ("toydb 3", "toyd 4")
    assert CASES[ALL[0]].text in (tmp_path / "new/report.md").read_text()
    assert json.loads((tmp_path / "new/badge.json").read_bytes())["color"] == "red"


def test_a_conformant_run_gets_a_shields_badge() -> None:
    found = badge(report_of())

    assert (found["schemaVersion"], found["message"], found["color"]) == (1, "conformant", "brightgreen")


@pytest.mark.parametrize(
    "settings", [Settings(areas=("times",)), Settings(waivers=Path("waivers.toml"))], ids=str
)
def test_a_selection_or_a_waiver_gets_no_badge_and_removes_an_old_one(
    tmp_path: Path, settings: Settings
) -> None:
    write(report_of(), tmp_path)
    write(report_of(settings=settings), tmp_path)

    assert not (tmp_path / "badge.json").exists()
    assert (tmp_path / "report.json").exists()


def test_tallies_add_up_by_area() -> None:
    counts = dict(tallies(report_of({ALL[0]: "failed"}), by="area"))

    assert sum(count.total() for count in counts.values()) == len(ALL)
    assert counts[CASES[ALL[0]].area]["failed"] == 1


def test_lines_that_are_no_events_are_skipped() -> None:
    assert decoded("a driver's chatter") is None
    assert decoded('{"type": "outcome"}') is None
