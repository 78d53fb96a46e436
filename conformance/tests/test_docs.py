import subprocess
import sys
from pathlib import Path

from threadkeep_conformance.rules import RULES, SECTIONS

CONFORMANCE = Path(__file__).parents[1]
SCRIPT = CONFORMANCE / "scripts" / "generate_docs.py"
PAGE = CONFORMANCE.parent / "docs" / "conformance.md"


def test_the_table_of_rules_and_cases_is_current() -> None:
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False, timeout=60
    )

    assert (run.returncode, run.stdout + run.stderr) == (0, "")


def test_every_rule_and_section_is_in_the_table_once() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()

    assert [line.split("`")[1] for line in lines if line.startswith("| `")] == list(RULES)
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == [
        f"{section} {title}" for section, title in SECTIONS.items()
    ]
