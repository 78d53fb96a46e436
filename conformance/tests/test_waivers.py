from pathlib import Path

import pytest

from threadkeep_conformance.waivers import Waiver, WaiverError, read_waivers


def test_a_waiver_has_case_reason_and_link(tmp_path: Path) -> None:
    file = tmp_path / "waivers.toml"
    file.write_text('[[waiver]]\ncase = "a.b"\nreason = "later"\nlink = "https://example.org/7"\n')

    assert read_waivers(file) == [Waiver("a.b", "later", "https://example.org/7")]


def test_a_file_without_waivers_waives_nothing(tmp_path: Path) -> None:
    (tmp_path / "waivers.toml").write_text("")

    assert read_waivers(tmp_path / "waivers.toml") == []


@pytest.mark.parametrize(
    "text",
    [
        '[[waiver]]\ncase = "a.b"\nlink = "https://x"',
        '[[waiver]]\ncase = "a.b"\nreason = " "\nlink = "https://x"',
        '[[waiver]]\ncase = "a.b"\nreason = "r"\nlink = "later"',
        '[[waiver]]\ncase = "a.b"\nreason = "r"\nlink = 7',
        '[[waiver]]\ncase = "a.b"\nreason = "r"\nlink = "https://x"\nadapter = "all"',
        '[[waivers]]\ncase = "a.b"\nreason = "r"\nlink = "https://x"',
        'waiver = "a.b"',
        'waiver = ["a.b"]',
        "not toml",
    ],
)
def test_an_incomplete_waiver_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "waivers.toml").write_text(text)

    with pytest.raises(WaiverError):
        read_waivers(tmp_path / "waivers.toml")


def test_an_absent_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WaiverError):
        read_waivers(tmp_path / "waivers.toml")
