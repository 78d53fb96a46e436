"""report.html, as a person sees it: in a real browser, on a desk and on a phone, light and dark."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, sync_playwright

from threadkeep_bench.plugin import bench
from threadkeep_bench.report import drawing, page
from threadkeep_bench.result import write

from . import samples

_DATA = ("ours", "floor", "python", "other")
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_MARKS = {
    # Three curves with their points.
    **{f"size-{backend}-{share}": 3 + 9 for backend in ("libsql", "postgres") for share in (0.001, 0.1)},
    **{f"share-{backend}": 3 + 15 for backend in ("libsql", "postgres")},
    # The allowed range; a point with its quartiles for each case.
    **{f"floor-pushdown-{backend}": 1 + 2 * 15 for backend in ("libsql", "postgres")},
    "floor-operations-libsql": 1 + 2 * 3,
    # A bar for each that took part.
    "peers-last_20-libsql": 3,
    "peers-windows-libsql": 1,
}
"""What each plot of the samples has in a colour that stands for something."""


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """Chromium: the one that a variable names, one of the system's, or playwright's own."""
    with sync_playwright() as playwright:
        given = os.environ.get("THREADKEEP_TEST_BROWSER")
        found = given or next(filter(None, map(shutil.which, _PROGRAMS)), None)
        if found is None and not Path(playwright.chromium.executable_path).exists():
            reason = "no Chromium: apt-get install chromium-headless-shell, or playwright install chromium"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=found, args=sandbox)
        yield started
        started.close()


class _Seen(NamedTuple):
    """What there is to see of a page.

    Attributes:
        messages: Of the console, errors of the page included.
        addresses: That were asked for.
        overflow_px: By how much the page is wider than the window.
        background: Its colour.
        plots: Of each plot: width and height, how many marks have an extent and a colour of the data, the
            colours of its text, the height of its lowest letters, and how far letters are beyond the window.
    """

    messages: list[str]
    addresses: list[str]
    overflow_px: int
    background: str
    plots: list[dict[str, Any]]


_LOOK = """
(colours) => [...document.querySelectorAll('svg.plot')].map((svg) => {
  const box = (element) => element.getBoundingClientRect()
  const coloured = (style) => colours.includes(style.fill) || colours.includes(style.stroke)
  const isMark = (e) => box(e).width + box(e).height > 2 && coloured(getComputedStyle(e))
  const marks = [...svg.querySelectorAll('path, use')].filter(isMark)
  const texts = [...svg.querySelectorAll('text')]
  return {
    id: svg.id,
    width: box(svg).width,
    height: box(svg).height,
    marks: marks.length,
    colours: [...new Set(texts.map((text) => getComputedStyle(text).fill))],
    letters: Math.min(...texts.map((text) => box(text).height)),
    beyond: Math.max(...texts.map((text) => box(text).right)) - innerWidth,
  }
})
"""


def _look(browser: Browser, file: Path, width: int, theme: Any) -> _Seen:
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    messages: list[str] = []
    addresses: list[str] = []
    view.on("console", lambda message: messages.append(message.text))
    view.on("pageerror", lambda error: messages.append(str(error)))
    view.on("request", lambda request: addresses.append(request.url))
    view.goto(file.as_uri())
    seen = _Seen(
        messages,
        addresses,
        view.evaluate("document.documentElement.scrollWidth - innerWidth"),
        view.evaluate("getComputedStyle(document.body).backgroundColor"),
        view.evaluate(_LOOK, [_rgb(drawing.COLOURS[theme][name]) for name in _DATA]),
    )
    view.close()
    return seen


def _rgb(colour: str) -> str:
    return "rgb({}, {}, {})".format(*(int(colour[at : at + 2], 16) for at in (1, 3, 5)))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    paths = [folder / f"{result.benchmark}.json" for result in samples.results()]
    for result, path in zip(samples.results(), paths, strict=True):
        write(result, path)
    arguments = ["report", *map(str, paths), "--out", str(folder / "report.html")]
    CliRunner().invoke(bench, arguments, catch_exceptions=False)
    return folder / "report.html"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_plot_is_drawn_in_the_readers_theme_and_width(
    browser: Browser, report: Path, width: int, theme: str
) -> None:
    seen = _look(browser, report, width, theme)

    colours = {name: _rgb(value) for name, value in drawing.COLOURS[theme].items()}
    assert seen.messages == []
    assert seen.addresses == [report.as_uri()]  # it works without a network
    assert seen.overflow_px <= 0
    assert seen.background == colours["paper"]
    assert {plot["id"]: plot["marks"] for plot in seen.plots} == _MARKS
    for plot in seen.plots:
        assert min(width - 60, 400) <= plot["width"] <= 560
        assert plot["height"] > 60
        assert set(plot["colours"]) <= {*colours.values()} - {colours["paper"]}
        assert plot["letters"] >= 6  # an exponent; all else is larger
        assert plot["beyond"] <= 0


def test_it_is_one_file_that_names_no_other(report: Path) -> None:
    text = report.read_text("utf-8")

    assert re.findall(r"""(?:src|href)\s*=\s*["']?(?!#)[^"'#>\s]+|@import|url\((?!#)""", text) == []
    assert len(text) < 1_000_000


def test_growth_is_written_on_the_curves_and_what_a_peer_lacks_beside_its_bar(report: Path) -> None:
    text = re.sub(r"<[^>]+>", "", report.read_text("utf-8"))

    assert "size" in text
    assert "1.00" in text  # filtering in Python takes in proportion to the size
    assert "n/a" in text
    assert "wrong" in text
    assert "150x" in text


def test_what_comes_from_a_result_is_escaped(report: Path) -> None:
    text = report.read_text("utf-8")

    assert "note &lt;b&gt;" in text
    assert "a &amp; b" in text


@pytest.mark.parametrize(("spread", "noisy"), [(0.05, False), (0.3, True)])
def test_a_noisy_machine_is_named_as_such(spread: float, *, noisy: bool) -> None:
    text = page.page_of([samples.operations(spread)])

    assert ("This machine was noisy" in text) is noisy
    assert "clone_10000/libsql" in text  # whose rounds differed


def test_pictures_are_whole_files_that_follow_the_theme(tmp_path: Path) -> None:
    write(samples.pushdown(), tmp_path / "result.json")
    arguments = ["report", str(tmp_path / "result.json"), "--out", str(tmp_path / "r.html")]

    CliRunner().invoke(bench, [*arguments, "--pictures", str(tmp_path / "plots")], catch_exceptions=False)

    names = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert names == sorted(
        f"{name}.svg"
        for backend in ("libsql", "postgres")
        for name in (
            *(f"size-{backend}-0.001", f"size-{backend}-0.1"),
            *(f"share-{backend}", f"floor-pushdown-{backend}"),
        )
    )
    for name in names:
        text = (tmp_path / "plots" / name).read_text("utf-8")
        assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314  (ours)
        assert "prefers-color-scheme: dark" in text


def test_the_same_result_gives_the_same_page() -> None:
    results = samples.results()

    assert page.page_of(results) == page.page_of(results)


def test_a_result_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}", "utf-8")

    result = CliRunner().invoke(bench, ["report", str(tmp_path / "a.json")])

    assert result.exit_code == 2
    assert "a.json" in result.stderr
