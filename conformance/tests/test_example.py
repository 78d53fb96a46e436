"""The example adapter of docs/write-an-adapter.md, and the page itself."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from threadkeep_conformance.cases import CASES, suite_imported
from threadkeep_conformance.waivers import Waiver

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "write-an-adapter.md"
EXAMPLE = DOCS / "examples" / "threadkeep-jsonfile"
PROGRAMS = {"threadkeep": ("-m", "threadkeep"), "pytest": ("-m", "pytest", "-p", "no:cacheprovider")}
NOT_RUN_HERE = [  # what installs, and what does all that the report's command does once more
    "python -m venv .venv && . .venv/bin/activate",
    "pip install -e core_spec -e conformance -e 'docs/examples/threadkeep-jsonfile[test]'",
    "pytest -q tests",
]

BACKENDS = "threadkeep backends"
KIT = "threadkeep conformance 'jsonfile:///{tmp}/{namespace}'"
ONE_AREA, WHOLE = f"{KIT} --area threads", f"{KIT} --report report"
OWN_TESTS = "pytest -q tests --threadkeep-area times"


class Block(NamedTuple):
    """A fenced block of the page, and the line before it."""

    language: str
    caption: str
    text: str


def blocks() -> list[Block]:
    found = re.findall(r"([^\n]*)\n\n```(\w+)\n(.*?)```\n", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [Block(language, caption, text) for caption, language, text in found]


def spaced(code: str) -> str:
    """Code with one blank line wherever there are more: methods on a page are formatted as functions."""
    return re.sub(r"\n{3,}", "\n\n", code)


def commands() -> Iterator[str]:
    for block in blocks():
        if block.language == "console":
            yield from block.text.splitlines()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the example is installed as ``pip install -e`` would, without an installer."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    site = tmp_path_factory.mktemp("site")
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("".join(lines))
    dropped = {"PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join([str(EXAMPLE / "src"), str(site)]),
        "PYTHONDONTWRITEBYTECODE": "1",  # as the next one: leaves nothing in the checkout
        "HYPOTHESIS_STORAGE_DIRECTORY": str(site / "hypothesis"),
    }


def run(line: str, env: dict[str, str], folder: Path) -> tuple[int, str]:
    """Exit code and output of a command of the page."""
    program, *arguments = shlex.split(line)
    done = subprocess.run(
        [sys.executable, *PROGRAMS[program], *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    return done.returncode, done.stdout + done.stderr


def test_every_block_of_code_is_in_the_file_that_is_named_above_it() -> None:
    languages = {block.language for block in blocks()}
    assert languages == {"python", "toml", "console", "text"}
    assert len(blocks()) == PAGE.read_text(encoding="utf-8").count("\n```") / 2
    for block in blocks():
        if block.language in ("python", "toml"):
            named = re.fullmatch(r"\[`(.+)`\]\(examples/threadkeep-jsonfile/(.+)\)", block.caption)
            assert named is not None, block.caption
            assert named[1] == named[2]
            file, code = map(spaced, ((EXAMPLE / named[1]).read_text(encoding="utf-8"), block.text))
            assert code in file or textwrap.indent(code, "    ") in file, code


def test_every_file_that_is_linked_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", PAGE.read_text(encoding="utf-8"))

    assert [link for link in links if not (DOCS / link).exists()] == []
    assert (DOCS.parent / "core_spec").is_dir()


def test_the_waiver_on_the_page_is_one() -> None:
    [text] = [block.text for block in blocks() if block.language == "text"]
    found: dict[str, list[Waiver]] = {}
    exec(text, {"Waiver": Waiver}, found)  # noqa: S102  (our own page)

    suite_imported()
    assert [waiver.case in CASES for waiver in found["THREADKEEP_WAIVERS"]] == [True]


def test_every_command_is_run_here_or_by_hand() -> None:
    assert sorted([BACKENDS, ONE_AREA, WHOLE, OWN_TESTS, *NOT_RUN_HERE]) == sorted(commands())


def test_it_is_found(installed: dict[str, str], tmp_path: Path) -> None:
    code, output = run(BACKENDS, installed, tmp_path)

    assert code == 0, output
    assert re.search(r"^jsonfile$", output, re.MULTILINE), output


def test_its_own_tests_pass(installed: dict[str, str]) -> None:
    code, output = run(OWN_TESTS, installed, EXAMPLE)

    assert code == 0, output


def test_one_area_of_the_kit_passes(installed: dict[str, str], tmp_path: Path) -> None:
    code, output = run(ONE_AREA, installed, tmp_path)

    assert code == 0, output


def test_it_passes_the_whole_kit(installed: dict[str, str], tmp_path: Path) -> None:
    code, output = run(WHOLE, installed, tmp_path)

    assert code == 0, output
    report = json.loads((tmp_path / "report" / "report.json").read_bytes())
    assert report["conformant"], output
    assert report["adapter"]["name"] == "jsonfile"
    assert (tmp_path / "report" / "badge.json").exists()
