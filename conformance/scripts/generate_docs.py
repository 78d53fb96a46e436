"""Write docs/conformance.md, the contract's rules and their cases, or check that it is current."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from threadkeep_conformance.cases import CASES, list_hash, suite_imported
from threadkeep_conformance.rules import RULES, SECTIONS

CONFORMANCE = Path(__file__).parents[1]
TARGET = CONFORMANCE.parent / "docs" / "conformance.md"
MUTATION = CONFORMANCE / "mutation.json"

HEAD = """\
# The rules of the contract and their cases

Every rule that the conformance kit holds, with its cases. `threadkeep conformance --list` prints what each
case says; `threadkeep conformance URL --area CASE` runs one. This page is made by
`conformance/scripts/generate_docs.py` from the kit itself.
"""


def page() -> str:
    """The whole page, as Markdown."""
    suite_imported()
    parts = [HEAD, f"{len(RULES)} rules, {len(CASES)} cases, list `{list_hash()}`.\n", _mutation()]
    for section, title in SECTIONS.items():
        rules = {rule: text for rule, text in RULES.items() if rule.rpartition(".")[0] == section}
        if not rules:
            continue
        rows = [f"| `{rule}` | {_cell(text)} | {_cases_of(rule)} |" for rule, text in rules.items()]
        parts.append(
            "\n".join(
                [f"## {section} {title}\n", "| rule | in words | cases |", "| --- | --- | --- |", *rows, ""]
            )
        )
    return "\n".join(parts)


def _mutation() -> str:
    """What the last published run of mutation.py found."""
    found: dict[str, Any] = json.loads(MUTATION.read_bytes())
    count, survivors, cases = len(found["fates"]), found["reasons"], found["basis"]["cases"]
    command = f"python conformance/scripts/mutation.py --json conformance/{MUTATION.name}"
    head = f"""\
How sharp the cases are: `{command}`
changes the reference adapter in one place at a time. On {found["date"]} the cases of list `{cases}`
noticed {count - len(survivors)} of {count} changes: **{found["score"]} %**. They do not notice:
"""
    return "\n".join([head, *[f"- `{_change(name)}`: {why}" for name, why in survivors.items()], ""])


def _change(name: str) -> str:
    return name.partition(" ")[2]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("_", "\\_").replace("*", "\\*").replace("<", "&lt;")


def _cases_of(rule: str) -> str:
    return "<br>".join(
        f"`{one.id}`" for one in sorted(CASES.values(), key=lambda one: one.id) if rule in one.rules
    )


def main() -> int:
    """Write the page; with ``--check`` only say whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if the page is not current"
    )
    wanted = page()
    if not parser.parse_args().check:
        TARGET.write_text(wanted, encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{TARGET.name} is not current: run {Path(__file__).name}", file=sys.stderr)  # noqa: T201  (its output)
    return 1


if __name__ == "__main__":
    sys.exit(main())
