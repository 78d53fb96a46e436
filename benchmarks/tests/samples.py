"""Results as the benchmarks write them, made up, for what reads results."""

from threadkeep_bench.cases.peers import NOT_OFFERED
from threadkeep_bench.environment import environment
from threadkeep_bench.machine import NAME
from threadkeep_bench.result import Result, Target
from threadkeep_bench.rounds import Figures, Measured, Ratio

__all__ = ["operations", "peers", "pushdown", "results"]


def _figures(p50_us: float, spread: float = 0.03) -> Figures:
    return Figures(calls=250, p50_us=p50_us, p95_us=p50_us * 2, p99_us=p50_us * 3, spread=spread)


def _ratio(median: float) -> Ratio:
    return Ratio(median=median, low=median * 0.95, high=median * 1.05)


def _spin(spread: float) -> Measured:
    return Measured(name=NAME, figures={"spin": _figures(900, spread)}, ratios={}, noisy=False)


def _result(benchmark: str, cases: list[Measured], spread: float) -> Result:
    target = Target(name=f"{cases[0].name} to the floor", value=1.2, unit="x", limit=1.3, bound="at most")
    return Result(
        benchmark=benchmark,
        environment=environment(),
        settings={"rounds": 25, "note <b>": "a & b"},
        cases=[*cases, _spin(spread)],
        figures={},
        targets=[target],
    )


def pushdown(spread: float = 0.03) -> Result:
    """Two backends, three sizes, five shares."""
    cases = [
        Measured(
            name=f"filtered_page/{share:.2%}/{size}/{backend}",
            figures={
                "pushed down": _figures(240 * scale),
                "floor": _figures(200 * scale),
                "in Python": _figures(size * 10),
            },
            ratios={"pushed down": _ratio(1.2)},
            noisy=False,
            labels={"backend": backend, "share": share, "messages": size},
            counts={"rows_transferred": 11, "times_faster_than_python": size / 24},
        )
        for backend, scale in (("libsql", 1), ("postgres", 3))
        for size in (10_000, 100_000, 1_000_000)
        for share in (0.0001, 0.001, 0.01, 0.1, 0.5)
    ]
    return _result("pushdown", cases, spread)


def operations(spread: float = 0.03) -> Result:
    """Three operations, one beyond its limit."""
    cases = [
        Measured(
            name=f"{operation}/libsql",
            figures={"threadkeep": _figures(200 * ratio), "floor": _figures(200)},
            ratios={"threadkeep": _ratio(ratio)},
            noisy=operation == "clone_10000",
            labels={"backend": "libsql", "operation": operation, "messages": 20_000},
        )
        for operation, ratio in (("append_1", 1.1), ("last_20", 1.25), ("clone_10000", 1.7))
    ]
    return _result("operations", cases, spread)


def peers() -> Result:
    """Two operations; one peer does not offer one of them, another returns other rows."""
    figures = {"threadkeep": _figures(400), "LangGraph": _figures(900), "Mastra": _figures(60_000)}
    ratios = {"LangGraph": _ratio(2.2), "Mastra": _ratio(150)}
    labels = {"backend": "libsql", "messages": 5_000}
    cases = [
        Measured(
            name="last_20/libsql",
            figures=figures,
            ratios=ratios,
            noisy=False,
            labels={**labels, "operation": "last_20"},
        ),
        Measured(
            name="windows/libsql",
            figures={"threadkeep": _figures(400)},
            ratios={},
            noisy=False,
            labels={**labels, "operation": "windows"},
            absent={
                "LangGraph": NOT_OFFERED,
                "Mastra": "returns the rows in another order",
            },
        ),
    ]
    return _result("peers", cases, 0.03)


def results() -> list[Result]:
    """One of each."""
    return [pushdown(), operations(), peers()]
