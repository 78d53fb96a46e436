"""Outcomes as JSON lines on standard output, one for each case: what ``threadkeep conformance`` reads."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal, cast

import msgspec
import pytest

from .cases import declared

__all__ = ["Outcome", "Outcomes", "Planned", "decoded", "outcome_of"]

Outcome = Literal["passed", "refused", "waived", "failed", "unproven", "not offered"]


class Planned(msgspec.Struct, frozen=True, tag="planned"):
    """What is about to be run.

    Attributes:
        cases: The cases' ids.
    """

    cases: list[str]


class Outcomes(msgspec.Struct, frozen=True, tag="outcome"):
    """How one case went.

    Attributes:
        case: Its id; for a failure that is no case's, such as a damaged suite, a test's name.
        outcome: Passed, refused, waived, failed; ``unproven``: a declared capability cannot be shown to hold;
            ``not offered``: the case needs what the adapter's probe need not offer.
        seconds: How long it took.
        detail: The failure, or the reason of what is waived or not run.
    """

    case: str
    outcome: Outcome
    seconds: float
    detail: str


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Planned | Outcomes)


def decoded(line: str) -> Planned | Outcomes | None:
    """An event, or None for a line that is something else: what a driver printed, say."""
    try:
        return _decoder.decode(line)
    except msgspec.MsgspecError:
        return None


def outcome_of(reports: Iterable[Any]) -> tuple[Outcome, str]:
    """What the reports of a test's phases come to, and why."""
    outcome: Outcome = "passed"
    detail = ""
    for report in reports:
        noted = dict(report.user_properties).get("threadkeep_outcome")
        if report.failed:
            return "failed", report.longreprtext
        if report.skipped and hasattr(report, "wasxfail"):
            outcome, detail = "waived", report.wasxfail
        elif report.skipped:
            # A skip that says nothing of itself proves nothing either.
            outcome = "not offered" if noted == "not offered" else "unproven"
            _, _, detail = cast("tuple[str, int, str]", report.longrepr)  # where and why
        elif outcome == "passed" and noted == "refused":
            outcome = "refused"
    return outcome, detail


class EventWriter:
    """Prints what is planned, and each outcome when its test is over. Works where output is captured, too."""

    def __init__(self) -> None:
        self._reports: defaultdict[str, list[pytest.TestReport]] = defaultdict(list)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Print what is about to be run."""
        marked = [declared(getattr(item, "obj", None)) for item in session.items]
        self._write(Planned([found.id for found in marked if found is not None]))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Print what could not be collected: nothing else would show it."""
        if report.failed:
            self._write(Outcomes(report.nodeid, "failed", 0, report.longreprtext))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a test's outcome after its last phase."""
        phases = self._reports[report.nodeid]
        phases.append(report)
        if report.when == "teardown":
            outcome, detail = outcome_of(self._reports.pop(report.nodeid))
            name = dict(report.user_properties).get("threadkeep_case", report.nodeid.rpartition("::")[2])
            self._write(Outcomes(str(name), outcome, sum(phase.duration for phase in phases), detail))

    def _write(self, event: Planned | Outcomes) -> None:
        # Capturing is suspended between the phases of tests, so this is the standard output.
        sys.stdout.write(_encoder.encode(event).decode() + "\n")
        sys.stdout.flush()
