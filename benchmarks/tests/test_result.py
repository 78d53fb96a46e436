"""result.json: written, read, compared."""

import json
import re
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from click.testing import CliRunner

from threadkeep_bench.environment import Environment, environment
from threadkeep_bench.plugin import bench
from threadkeep_bench.result import Result, Target, changes, read, write
from threadkeep_bench.rounds import Figures, Measured, Ratio

from . import samples


def _result(*, spread: float = 0.02, **p50_us: float) -> Result:
    figures = {
        name: Figures(calls=100, p50_us=value, p95_us=value * 2, p99_us=value * 3, spread=spread)
        for name, value in p50_us.items()
    }
    ratios = {"own": Ratio(median=1.2, low=1.1, high=1.3)}
    return Result(
        benchmark="pushdown",
        environment=environment(),
        settings={"messages": "10k", "rounds": 25},
        cases=[Measured(name="filtered_page/0.10%/10k/libsql", figures=figures, ratios=ratios, noisy=False)],
        figures={"growth": 0.01},
        targets=[Target(name="ratio", value=1.2, unit="x", limit=1.3, bound="at most")],
    )


def test_what_was_written_is_read(tmp_path: Path) -> None:
    result = _result(own=120, floor=100)

    write(result, tmp_path / "result.json")

    assert read(tmp_path / "result.json") == result


@pytest.mark.parametrize("text", ["[]", "{", '{"schema": 1}'])
def test_what_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "result.json").write_text(text, "utf-8")

    with pytest.raises(ValueError, match=r"result\.json"):
        read(tmp_path / "result.json")


def test_another_schema_is_refused(tmp_path: Path) -> None:
    write(_result(own=1), tmp_path / "result.json")
    text = (tmp_path / "result.json").read_text("utf-8")
    (tmp_path / "result.json").write_text(text.replace('"schema": 1', '"schema": 2'), "utf-8")

    with pytest.raises(ValueError, match="schema 2, this is 1"):
        read(tmp_path / "result.json")


@pytest.mark.parametrize(
    ("value", "bound", "met"), [(1.3, "at most", True), (1.31, "at most", False), (1.29, "at least", False)]
)
def test_a_target_is_met_on_the_right_side_of_its_limit(
    value: float, bound: Literal["at most", "at least"], met: bool
) -> None:
    target = Target(name="x", value=value, unit="x", limit=1.3, bound=bound)

    assert target.met is met


def test_changes_are_judged_by_the_noise_and_ordered_by_growth() -> None:
    before, after = _result(own=100, floor=100, python=100), _result(own=109, floor=150, python=80)

    found = [(change.contestant, change.kind) for change in changes(before, after)]

    assert found == [("floor", "slower"), ("own", "same"), ("python", "faster")]


def test_a_wide_spread_widens_the_noise() -> None:
    [change] = changes(_result(own=100), _result(own=140, spread=0.5))

    assert (change.noise, change.kind) == (0.5, "same")


def test_only_what_both_results_have_is_compared() -> None:
    assert [change.contestant for change in changes(_result(own=1, floor=1), _result(own=1))] == ["own"]


def test_the_command_says_what_got_slower(tmp_path: Path) -> None:
    write(_result(own=100, floor=100), tmp_path / "a.json")
    write(_result(own=200, floor=101), tmp_path / "b.json")

    result = CliRunner().invoke(bench, ["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")])

    assert result.exit_code == 0
    assert "slower" in result.stdout
    assert "+100%" in result.stdout
    assert "1 of 2 latencies are within the noise" in result.stdout


def test_the_command_refuses_what_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}", "utf-8")

    result = CliRunner().invoke(bench, ["compare", str(tmp_path / "a.json"), str(tmp_path / "a.json")])

    assert result.exit_code == 2
    assert "a.json" in result.stderr


def _fields(kind: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


@pytest.mark.parametrize("kind", [Result, Environment, Measured, Figures, Ratio, Target])
def test_the_readme_describes_every_field(kind: type[msgspec.Struct]) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    rows = re.findall(rf"^\| {kind.__name__} \| ([^|]+) \|", text, flags=re.MULTILINE)

    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == _fields(kind)


@pytest.mark.parametrize("result", samples.results(), ids=lambda result: result.benchmark)
def test_what_is_written_has_the_described_fields_and_nothing_else(result: Result, tmp_path: Path) -> None:
    write(result, tmp_path / "result.json")
    written = json.loads((tmp_path / "result.json").read_text("utf-8"))

    assert set(written) == _fields(Result)
    assert set(written["environment"]) == _fields(Environment)
    assert all(set(target) == _fields(Target) for target in written["targets"])
    for case in written["cases"]:
        assert set(case) == _fields(Measured)
        assert all(set(own) == _fields(Figures) for own in case["figures"].values())
        assert all(set(own) == _fields(Ratio) for own in case["ratios"].values())


def test_the_published_results_can_be_read() -> None:
    published = list((Path(__file__).parents[1] / "results").glob("*.json"))

    assert published
    assert all(read(path).cases for path in published)
