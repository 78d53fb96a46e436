"""Why embedded files are opened with ``sqlite3`` and not with the ``libsql`` package: both, measured.

``uv run --with libsql python -m threadkeep_bench.engines`` asks each engine the same questions, each in a
process of its own, and prints the answers side by side with a verdict, so that the decision can be looked at
again with a later release.
"""

from __future__ import annotations

import importlib
import importlib.util
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import click
import msgspec
from rich import box
from rich.table import Table

from .environment import Environment, environment
from .tables import console, print_machine

__all__ = ["FACTS", "Answer", "Comparison", "Fact", "answers", "main"]

Connect = Callable[..., Any]
"""Opens ``(path, timeout_s)`` in autocommit: either engine's connection."""

STANDARD, OTHER = "sqlite3", "libsql"

_WIDE = 2**53 + 1
_QUERY_S = 1.0
_LOCK_S = 0.3
_ROUNDS = 2_000
_COUNT = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT count(*) FROM n"
_JOIN_TABLES = (
    "CREATE TABLE thread (key INTEGER PRIMARY KEY, id TEXT UNIQUE, owner TEXT)",
    "CREATE TABLE message (key INTEGER PRIMARY KEY, id TEXT UNIQUE, thread INTEGER, role TEXT, content TEXT)",
    """CREATE TABLE position (scope INTEGER, token TEXT, at INTEGER, seq INTEGER, id TEXT, key INTEGER,
    PRIMARY KEY (scope, token, at, seq, id)) WITHOUT ROWID""",
)
_JOIN = """
SELECT message.id, thread.id, thread.owner, message.role, message.content, position.at, position.seq
FROM position
CROSS JOIN message ON message.key = position.key
CROSS JOIN thread ON thread.key = message.thread
WHERE position.scope = ? AND position.token = ? AND (position.at, position.seq, position.id) > (?, ?, ?)
AND thread.owner = ?
ORDER BY position.at, position.seq, position.id
LIMIT ?
"""
_TAKE_LOCK = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"


class Answer(msgspec.Struct, frozen=True):
    """What an engine did.

    Attributes:
        shown: In words.
        good: Whether an adapter can build on it; for figures that only compare, whether there was one.
        figure: A number, where it is one.
    """

    shown: str
    good: bool
    figure: float | None = None


class Fact(msgspec.Struct, frozen=True):
    """A question.

    Attributes:
        name: The question, for the table.
        ask: Answers it for an engine, in an empty folder.
        times: The engine's figure may be at most so many times the standard library's; None: no limit.
    """

    name: str
    ask: Callable[[Connect, Path], Answer]
    times: float | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A fact, with both answers.

    Attributes:
        fact: Its name.
        sqlite3: The standard library's answer.
        libsql: The ``libsql`` package's.
        decides: Whether it still speaks for the standard library.
    """

    fact: str
    sqlite3: Answer
    libsql: Answer
    decides: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything, as ``--json`` prints it."""

    environment: Environment
    versions: dict[str, str]
    facts: list[Comparison]


def _connect_standard(path: Path, timeout_s: float = 0) -> object:
    return sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)


def _connect_other(path: Path, timeout_s: float = 0) -> object:
    libsql: Any = importlib.import_module(OTHER)
    return libsql.connect(str(path), timeout=timeout_s, isolation_level=None)


CONNECT: dict[str, Connect] = {STANDARD: _connect_standard, OTHER: _connect_other}


def _longest_pause_s(call: Callable[[], object]) -> tuple[float, float]:
    """How long a call took, and the longest pause meanwhile of a thread that sleeps 1 ms at a time."""
    pauses: list[float] = []
    done, started = threading.Event(), threading.Event()

    def watch() -> None:
        while not done.is_set():
            start = perf_counter()
            sleep(0.001)
            pauses.append(perf_counter() - start)
            started.set()

    thread = threading.Thread(target=watch)
    thread.start()
    started.wait()
    start = perf_counter()
    call()
    taken_s = perf_counter() - start
    done.set()
    thread.join()
    return taken_s, max(pauses)


def _error_of(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except BaseException as exc:  # noqa: BLE001  (each engine has its own errors, and a panic is none of Exception's)
        return exc
    return None


def _pause_in_a_query(connect: Connect, folder: Path) -> Answer:
    with closing(connect(folder / "a.db")) as database:
        start = perf_counter()
        database.execute(_COUNT, (100_000,)).fetchall()
        rows = round(100_000 * _QUERY_S / (perf_counter() - start))
        taken_s, pause_s = _longest_pause_s(lambda: database.execute(_COUNT, (rows,)).fetchall())
    shown = f"{pause_s * 1000:,.0f} ms of {taken_s * 1000:,.0f}"
    return Answer(shown, pause_s < taken_s / 4, pause_s * 1000)


def _pause_in_a_wait(connect: Connect, folder: Path) -> Answer:
    path = folder / "a.db"
    with closing(connect(path)) as holder, closing(connect(path, timeout_s=_LOCK_S)) as waiting:
        holder.execute("BEGIN IMMEDIATE")
        taken_s, pause_s = _longest_pause_s(lambda: _error_of(lambda: waiting.execute("BEGIN IMMEDIATE")))
        holder.execute("ROLLBACK")
    shown = f"{pause_s * 1000:,.0f} ms of {taken_s * 1000:,.0f}"
    return Answer(shown, pause_s < taken_s / 4, pause_s * 1000)


def _wide_integer(connect: Connect, folder: Path) -> Answer:
    with closing(connect(folder / "a.db")) as database:
        [(found,)] = database.execute("SELECT ?", (_WIDE,)).fetchall()
    return Answer(repr(found), type(found) is int and found == _WIDE)


def _repeated_join(connect: Connect, folder: Path) -> Answer:
    with closing(connect(folder / "a.db")) as database:
        for statement in _JOIN_TABLES:
            database.execute(statement)
        taken: list[float] = []
        for n in range(_ROUNDS):
            start = perf_counter()
            database.execute(_JOIN, (1, f"kind=a{n % 9}", 5, n, "id", "owner", 20)).fetchall()
            taken.append(perf_counter() - start)
    median_us = statistics.median(taken) * 1e6
    return Answer(f"{median_us:.1f} us", good=True, figure=median_us)


def _error_in_a_script(connect: Connect, folder: Path) -> Answer:
    with closing(connect(folder / "a.db")) as database:
        error = _error_of(
            lambda: database.executescript("CREATE TABLE a (x); INSERT INTO missing VALUES (1);")
        )
    return Answer("lost" if error is None else "raised", error is not None)


def _text_with_nul(connect: Connect, folder: Path) -> Answer:
    with closing(connect(folder / "a.db")) as database:
        [(found,)] = database.execute("SELECT ?", ("a\0b",)).fetchall()
    return Answer(ascii(found), found == "a\0b")


def _use_after_close(connect: Connect, folder: Path) -> Answer:
    database = connect(folder / "a.db")
    database.close()
    error = _error_of(lambda: database.execute("SELECT 1"))
    return Answer(type(error).__name__, isinstance(error, Exception))


def _lock_after_close(connect: Connect, folder: Path) -> Answer:
    first = connect(folder / "a.db")
    first.execute("BEGIN IMMEDIATE")
    cursor = first.execute("SELECT 1 UNION SELECT 2")
    cursor.fetchone()
    first.close()
    with closing(connect(folder / "a.db")) as second:
        error = _error_of(lambda: second.execute("BEGIN IMMEDIATE"))
    del cursor  # it had to live until now
    return Answer("free" if error is None else "still held", error is None)


def _lock_beside_sqlite3(connect: Connect, folder: Path) -> Answer:
    path = folder / "a.db"
    with closing(connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL").fetchall()
        database.execute("CREATE TABLE a (x)")
        database.execute("BEGIN IMMEDIATE")
        with closing(sqlite3.connect(path)) as beside:
            beside.execute("SELECT * FROM a").fetchall()
        lost = subprocess.run([sys.executable, "-c", _TAKE_LOCK, path], capture_output=True, check=False)
        database.execute("ROLLBACK")
    return Answer("lost" if lost.returncode == 0 else "kept", lost.returncode != 0)


FACTS: tuple[Fact, ...] = (
    Fact("a query of 1 s stops every other thread for", _pause_in_a_query),
    Fact("a wait of 0.3 s for a file's lock stops them for", _pause_in_a_wait),
    Fact("2**53 + 1, bound as a parameter, is", _wide_integer),
    Fact("a join of 400 characters without a row, repeated, takes", _repeated_join, times=3),
    Fact("an error in the middle of a script is", _error_in_a_script),
    Fact("the text 'a\\0b' is read as", _text_with_nul),
    Fact("use after close raises", _use_after_close),
    Fact("the lock of a closed connection with a live cursor is", _lock_after_close),
    Fact("its write lock, once sqlite3 has read the file in the same process, is", _lock_beside_sqlite3),
)


def answers(engine: str) -> list[Answer]:
    """Ask an engine everything, in this process, in the order of ``FACTS``."""
    found: list[Answer] = []
    for fact in FACTS:
        with tempfile.TemporaryDirectory() as folder:
            found.append(fact.ask(CONNECT[engine], Path(folder)))
    return found


def _answers_of_a_process(engine: str) -> list[Answer]:
    # Its stderr is full of the traces of panics that are answers.
    command = [sys.executable, "-m", __spec__.name, "--engine", engine]
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return msgspec.json.decode(found.stdout, type=list[Answer])


def _version(engine: str) -> str:
    with tempfile.TemporaryDirectory() as folder, closing(CONNECT[engine](Path(folder) / "a.db")) as database:
        return database.execute("SELECT sqlite_version()").fetchall()[0][0]


def _compare(fact: Fact, standard: Answer, other: Answer) -> Comparison:
    slower = (
        fact.times is not None
        and other.figure is not None
        and standard.figure is not None
        and other.figure > fact.times * standard.figure
    )
    return Comparison(
        fact=fact.name, sqlite3=standard, libsql=other, decides=standard.good and (slower or not other.good)
    )


def _print(report: Report) -> None:
    table = Table(title="Embedded engines", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("fact")
    for engine, version in report.versions.items():
        table.add_column(f"{engine} (SQLite {version})")
    table.add_column("verdict")
    for found in report.facts:
        verdict = "[red]for sqlite3[/red]" if found.decides else "[green]no difference that matters[/green]"
        table.add_row(found.fact, found.sqlite3.shown, found.libsql.shown, verdict)
    print_machine(report.environment)
    console().print(table)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the answers as JSON.")
@click.option("--engine", type=click.Choice(list(CONNECT)), hidden=True, help="Answer as JSON for this one.")
def main(*, as_json: bool, engine: str | None) -> None:
    """Compare the libsql package with the standard library's sqlite3."""
    if engine is not None:
        click.echo(msgspec.json.encode(answers(engine)))
        return
    if importlib.util.find_spec(OTHER) is None:
        how = "uv run --with libsql python -m threadkeep_bench.engines"
        click.echo(f"the libsql package is not installed; run: {how}", err=True)
        sys.exit(2)
    standard, other = _answers_of_a_process(STANDARD), _answers_of_a_process(OTHER)
    report = Report(
        environment=environment(),
        versions={name: _version(name) for name in (STANDARD, OTHER)},
        facts=[_compare(*each) for each in zip(FACTS, standard, other, strict=True)],
    )
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        _print(report)


if __name__ == "__main__":
    main()
