"""The result of a run: what it comes to, and the files that say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import msgspec

from threadkeep.hookspecs import CONTRACT

from .cases import CASES, list_hash
from .events import Outcome, Outcomes

__all__ = ["OUTCOMES", "Adapter", "Report", "Run", "Settings", "badge", "markdown", "tallies", "write"]

OUTCOMES: tuple[Outcome, ...] = ("passed", "refused", "waived", "failed", "unproven", "not offered")
_COUNTED: tuple[Outcome, ...] = ("passed", "refused", "waived", "failed")


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """What was tested.

    Attributes:
        name: As in its spec.
        version: Of its distribution, if it is from one.
        contract: The version of the contract it was written to.
        driver: Name and version, where the probe tells.
        server: Name and version, where the probe tells.
        capabilities: ``native``, ``emulated`` or ``absent``, by capability.
    """

    name: str
    version: str | None
    contract: str
    driver: str | None
    server: str | None
    capabilities: dict[str, str]


class Settings(NamedTuple):
    """How the suite was run.

    Attributes:
        areas: The selection; empty for everything.
        examples: Random runs per property; None for the default.
        seed: Of all random data.
        waivers: A TOML file, or None.
    """

    areas: tuple[str, ...] = ()
    examples: int | None = None
    seed: int = 0
    waivers: Path | None = None


class Run(NamedTuple):
    """What came out of pytest: what was planned, and how each case went."""

    adapter: Adapter
    settings: Settings
    planned: list[str]
    outcomes: list[Outcomes]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The whole result; ``report.json`` is this.

    Attributes:
        conformant: Every required case passed or was refused as declared; nothing was selected or waived.
        executed: Cases that came to one of the four outcomes below.
        passed: The rule holds.
        refused: Declared absent, and proven refused.
        waived: Failed, as a waiver says.
        failed: Failed.
        unproven: A capability is declared, and nothing shows that it holds.
        not_offered: Optional cases that need what the adapter's probe does not offer.
        missing: Cases of the kit that were planned or required and did not run at all.
        selection: The selected areas; empty for everything.
        waivers: Whether a file of waivers was given.
        kit: The kit's version.
        contract: The contract's version.
        adapter: What was tested.
        seed: Of all random data.
        examples: Random runs per property; None for the default.
        cases_hash: Of the list of cases.
        seconds: The cases' time, added up.
        cases: Each outcome.
    """

    conformant: bool
    executed: int
    passed: int
    refused: int
    waived: int
    failed: int
    unproven: int
    not_offered: int
    missing: list[str]
    selection: list[str]
    waivers: bool
    kit: str
    contract: str
    adapter: Adapter
    seed: int
    examples: int | None
    cases_hash: str
    seconds: float
    cases: list[Outcomes]

    @classmethod
    def of(cls, run: Run, *, wanted: Sequence[str]) -> Report:
        """The report of a run, held against the cases that a whole run has."""
        count = Counter(one.outcome for one in run.outcomes)
        seen = {one.case for one in run.outcomes}
        required = run.planned if run.settings.areas else wanted
        missing = sorted(set(required) - seen)
        clean = not (count["failed"] or count["waived"] or count["unproven"] or missing)
        return cls(
            conformant=clean and not run.settings.areas and run.settings.waivers is None,
            executed=sum(count[outcome] for outcome in _COUNTED),
            passed=count["passed"],
            refused=count["refused"],
            waived=count["waived"],
            failed=count["failed"],
            unproven=count["unproven"],
            not_offered=count["not offered"],
            missing=missing,
            selection=list(run.settings.areas),
            waivers=run.settings.waivers is not None,
            kit=version("threadkeep-conformance"),
            contract=CONTRACT,
            adapter=run.adapter,
            seed=run.settings.seed,
            examples=run.settings.examples,
            cases_hash=list_hash(),
            seconds=round(sum(one.seconds for one in run.outcomes), 3),
            cases=sorted(run.outcomes, key=lambda one: one.case),
        )

    @property
    def good(self) -> bool:
        """Conformant, or a selection all of which came out well."""
        if not self.selection:
            return self.conformant
        return not (self.failed or self.waived or self.unproven or self.missing)

    @property
    def verdict(self) -> str:
        """One line that says what the run came to, and what it does not say."""
        counts = f"{self.passed} passed, {self.refused} refused as declared"
        if self.waived:
            counts += f", {self.waived} waived"
        for number, what in (
            (self.failed, "failed"),
            (self.unproven, "unproven"),
            (len(self.missing), "not run"),
        ):
            counts += f", {number} {what}" if number else ""
        if self.selection:
            return f"{counts}: a selection ({', '.join(self.selection)}), which proves no conformance"
        if self.conformant:
            return f"conformant with contract {self.contract}: {counts}"
        return f"not conformant with contract {self.contract}: {counts}"


def tallies(report: Report, *, by: str) -> list[tuple[str, Counter[Outcome]]]:
    """How often each outcome came, by ``area`` or ``capability``; what is no case stands under ``kit``."""
    found: dict[str, Counter[Outcome]] = {}
    for one in report.cases:
        known = CASES.get(one.case)
        if known is None:
            keys: Iterable[str] = ["kit"] if by == "area" else []
        else:
            keys = [known.area] if by == "area" else [str(capability) for capability in known.shows]
        for key in keys:
            found.setdefault(key, Counter())[one.outcome] += 1
    return sorted(found.items())


def markdown(report: Report) -> str:
    """The report for people who read it later."""
    adapter = report.adapter
    about = [
        ("adapter", f"{adapter.name} {adapter.version or ''}".strip()),
        ("driver", adapter.driver or "not told"),
        ("server", adapter.server or "not told"),
        ("contract", f"{report.contract} (the adapter is written to {adapter.contract})"),
        ("kit", f"{report.kit}, cases {report.cases_hash}, seed {report.seed}"),
    ]
    lines = [f"# Conformance of {adapter.name}", "", f"**{report.verdict}**", ""]
    lines += ["| | |", "| --- | --- |", *[f"| {name} | {text} |" for name, text in about], ""]
    lines += _table("area", tallies(report, by="area"))
    shown = dict(tallies(report, by="capability"))
    supported = [(f"{name}: {how}", shown.get(name, Counter())) for name, how in adapter.capabilities.items()]
    lines += _table("capability", supported)
    for outcome, title in (
        ("failed", "Failed"),
        ("unproven", "Unproven"),
        ("waived", "Waived"),
        ("not offered", "Optional cases that were not run"),
    ):
        chosen = [one for one in report.cases if one.outcome == outcome]
        if chosen:
            lines += [f"## {title}", ""]
            lines += [f"- `{one.case}`: {_in_words(one)}" for one in chosen] + [""]
    return "\n".join(lines)


def _in_words(one: Outcomes) -> str:
    """The rule that does not hold, or why it was not looked at."""
    if one.outcome == "failed" and one.case in CASES:
        return CASES[one.case].text
    return " ".join(one.detail.split())[:500]


def _table(first: str, rows: list[tuple[str, Counter[Outcome]]]) -> list[str]:
    lines = [f"| {first} | {' | '.join(OUTCOMES)} |", f"| --- |{' ---: |' * len(OUTCOMES)}"]
    for name, count in rows:
        lines.append(f"| {name} | {' | '.join(str(count[outcome] or '') for outcome in OUTCOMES)} |")
    return [*lines, ""]


def badge(report: Report) -> dict[str, object]:
    """A shields endpoint; only whole runs without waivers get one."""
    return {
        "schemaVersion": 1,
        "label": f"threadkeep contract {report.contract}",
        "message": "conformant" if report.conformant else "not conformant",
        "color": "brightgreen" if report.conformant else "red",
    }


def write(report: Report, folder: Path) -> None:
    """Write ``report.json``, ``report.md`` and, for a whole run without waivers, ``badge.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    (folder / "report.json").write_bytes(text + b"\n")
    (folder / "report.md").write_text(markdown(report), encoding="utf-8")
    place = folder / "badge.json"
    if report.selection or report.waived or report.waivers:
        place.unlink(missing_ok=True)  # one of an earlier run would speak for this one
    else:
        place.write_bytes(msgspec.json.encode(badge(report)) + b"\n")
