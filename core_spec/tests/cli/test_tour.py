from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from threadkeep.cli.tour import STEPS

if TYPE_CHECKING:
    from .conftest import Invoke, Process

_BUNDLED = files("threadkeep.cli").joinpath("conversations.jsonl").read_text("utf-8")


def test_the_bundled_conversations_have_every_kind_of_metadata_value() -> None:
    lines = [json.loads(line) for line in _BUNDLED.splitlines()]
    kinds = Counter(line["kind"] for line in lines)
    messages = [line for line in lines if line["kind"] == "message"]

    assert kinds["resource"] == 3
    assert kinds["message"] > 250
    assert len({message["metadata"]["lang"] for message in messages}) >= 7
    types: set[type] = {type(value) for line in lines for value in line.get("metadata", {}).values()}
    assert {str, int, float, bool, type(None), list} <= types


def test_every_step_is_shown_and_says_how_to_repeat_it(tmp_path: Path, process: Process) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()

    result = process("tour", env={**os.environ, "TMPDIR": str(temporary)})

    assert (result.returncode, result.stderr) == (0, "")
    for number, step in enumerate(STEPS, 1):
        assert f"{number}. {step.title}" in result.stdout
    assert result.stdout.count("by hand: ") >= len(STEPS)
    [file] = temporary.glob("threadkeep-tour-*/tour.db")
    assert f"The file is {file}" in result.stdout


@pytest.fixture
def without_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the conformance run, which takes the most time."""
    steps = [step for step in STEPS if "conformance" not in step.title]
    monkeypatch.setattr("threadkeep.cli.tour.STEPS", steps)


@pytest.mark.usefixtures("without_kit")
def test_what_the_tour_prints_by_hand_can_be_run(tmp_path: Path, invoke: Invoke) -> None:
    shown = invoke("tour", f"libsql://{tmp_path}/demo.db").stdout

    [script] = re.findall(r"to repeat a step by hand are those of (.*)\.\n", shown)
    version = subprocess.run([*shlex.split(script), "--version"], check=True, capture_output=True, text=True)
    assert version.stdout.startswith("threadkeep, version")
    commands = re.findall(r"by hand: threadkeep (.*)", shown)
    filtered = next(
        command for command in commands if command.startswith("messages") and "billing" in command
    )
    again = invoke(*shlex.split(filtered))
    assert again.exit_code == 0
    assert again.stdout.splitlines()[-1].startswith("4 of 5")
    assert again.stdout.strip() in shown


@pytest.mark.usefixtures("without_kit")
def test_the_tour_can_be_taken_twice_on_one_database(
    tmp_path: Path, invoke: Invoke, invoke_json: Callable[..., Any]
) -> None:
    url = f"libsql://{tmp_path}/demo.db"

    assert [invoke("tour", url).exit_code for _ in range(2)] == [0, 0]

    threads = invoke_json("threads", url, "--total")
    assert threads["total"] == sum('"kind":"thread"' in line for line in _BUNDLED.splitlines())


@pytest.mark.usefixtures("without_kit")
def test_a_database_of_one_process_takes_the_tour_without_the_merge(invoke: Invoke) -> None:
    result = invoke("tour", "memory:")

    assert result.exit_code == 0, result.stderr
    assert "left out: this database cannot be merged into by several processes" in result.stdout
    assert "by hand" not in result.stdout  # another process would find another memory
    assert "To remove it" not in result.stdout


def test_a_tour_of_an_unknown_database_is_exit_code_2(invoke: Invoke) -> None:
    assert invoke("tour", "oracle:x").exit_code == 2
