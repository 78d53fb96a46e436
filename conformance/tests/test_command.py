"""``threadkeep conformance``."""

import json
import os
import subprocess
import sys
from pathlib import Path

from threadkeep_conformance.cases import CASES, list_hash, suite_imported

suite_imported()


def run_command(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command, run in a folder."""
    run = subprocess.run(
        [sys.executable, "-m", "threadkeep", "conformance", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return run.returncode, run.stdout, run.stderr


def test_the_list_has_every_case_with_its_rule(tmp_path: Path) -> None:
    code, output, _ = run_command(tmp_path, "--list", "--json")

    found = json.loads(output)
    assert code == 0
    assert found["cases_hash"] == list_hash()
    assert {case["id"]: case["text"] for case in found["cases"]} == {
        one.id: one.text for one in CASES.values()
    }


def test_the_list_can_be_narrowed_and_read(tmp_path: Path) -> None:
    code, output, _ = run_command(tmp_path, "--list", "--area", "messages.filter")

    assert code == 0
    assert "messages.filter.bool_is_not_int" in output
    assert CASES["messages.filter.bool_is_not_int"].text in output
    assert "threads.create" not in output


def test_a_selection_is_reported_whole_and_gets_no_badge(tmp_path: Path) -> None:
    code, output, errors = run_command(
        tmp_path, "memory:", "--area", "times", "--report", "out", "--seed", "7"
    )

    report = json.loads((tmp_path / "out/report.json").read_bytes())
    assert (code, errors) == (0, "")
    assert "which proves no conformance" in output
    assert (report["passed"], report["executed"], report["failed"], report["conformant"]) == (9, 9, 0, False)
    assert (report["selection"], report["seed"], report["cases_hash"]) == (["times"], 7, list_hash())
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"report.json", "report.md", "junit.xml"}
    assert 'tests="9"' in (tmp_path / "out/junit.xml").read_text()
    assert {file.name for file in tmp_path.iterdir()} == {"out"}


def test_the_users_pytest_configuration_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --nonsense\npython_classes = Never*\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('not mine to run')\n")

    code, output, errors = run_command(tmp_path, "memory:", "--area", "times", "--json")

    assert (code, errors) == (0, "")
    assert json.loads(output)["passed"] == 9


def test_a_run_leaves_nothing_behind(tmp_path: Path) -> None:
    code, _, errors = run_command(tmp_path, "libsql:///{tmp}/memory.db", "--area", "model")

    assert (code, errors) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_a_bad_call_is_2_and_says_what_is_wrong(tmp_path: Path) -> None:
    for arguments, said in (
        ((), "URL"),
        (("memory:", "--area", "nonsense"), "nonsense"),
        (("memory:", "--examples", "0"), "examples"),
        (("nosuchdb:x",), "nosuchdb"),
        (("memory:", "--waivers", "absent.toml"), "absent.toml"),
    ):
        code, _, errors = run_command(tmp_path, *arguments)
        assert (code, said in errors) == (2, True), (arguments, errors)


def test_a_wrong_waiver_is_a_bad_call(tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text('[[waiver]]\ncase = "no.case"\nreason = "r"\nlink = "https://x"\n')
    code, _, errors = run_command(tmp_path, "memory:", "--waivers", "w.toml", "--area", "times")

    assert code == 2
    assert "there is no case 'no.case' to waive" in errors
