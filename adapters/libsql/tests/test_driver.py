"""The driver: transactions, waiting, exact values, and one error for each thing that goes wrong."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from threadkeep_libsql import _driver as driver
from threadkeep_libsql._driver import Connection

Connect = Callable[..., Connection]

SLOW = "WITH RECURSIVE t (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < ?) SELECT count(*) FROM t"


class Stop(BaseException):
    """What no ``except Exception`` sees."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
def connect(path: Path) -> Iterator[Connect]:
    """Opens the file of this test any number of times."""
    opened: list[Connection] = []

    def open_one(*, busy_timeout_s: float = 30) -> Connection:
        opened.append(Connection(str(path), durability="relaxed", busy_timeout_s=busy_timeout_s))
        return opened[-1]

    yield open_one
    for connection in opened:
        connection.close()


@pytest.fixture
def db(connect: Connect) -> Connection:
    """A connection, and a table ``item (id, body)`` with one row."""
    connection = connect()
    connection.use_write_ahead_log()
    with connection.transaction():
        connection.run("CREATE TABLE item (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        connection.run("INSERT INTO item VALUES (1, 'first')")
    return connection


def ids(connection: Connection) -> list[int]:
    return [row[0] for row in connection.query("SELECT id FROM item ORDER BY id")]


@contextmanager
def ticking() -> Generator[list[float]]:
    """The times at which another thread got to run."""
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield ticks
    finally:
        stop.set()
        thread.join()


class TestTransactions:
    def test_a_transaction_that_ends_is_seen_by_other_connections(
        self, db: Connection, connect: Connect
    ) -> None:
        with db.transaction():
            db.run("INSERT INTO item VALUES (2, 'second')")

        assert ids(connect()) == [1, 2]

    @pytest.mark.parametrize(
        "error",
        [ValueError(), KeyboardInterrupt(), SystemExit(), GeneratorExit(), asyncio.CancelledError(), Stop()],
        ids=lambda error: type(error).__name__,
    )
    def test_anything_raised_inside_rolls_back_and_comes_out(
        self, db: Connection, connect: Connect, error: BaseException
    ) -> None:
        def write() -> None:
            with db.transaction():
                db.run("INSERT INTO item VALUES (2, 'second')")
                raise error

        with pytest.raises(type(error)) as caught:
            write()

        assert caught.value is error
        assert ids(db) == ids(connect()) == [1]
        with connect(busy_timeout_s=0).transaction():  # the lock is free
            pass

    def test_a_failing_statement_takes_the_whole_transaction_with_it(self, db: Connection) -> None:
        with pytest.raises(driver.Constraint), db.transaction():
            db.run_many("INSERT INTO item VALUES (?, ?)", [(2, "second"), (3, "third"), (1, "again")])

        assert ids(db) == [1]

    def test_nobody_sees_a_transaction_before_its_end(self, db: Connection, connect: Connect) -> None:
        reader = connect()
        with db.transaction():
            db.run("INSERT INTO item VALUES (2, 'second')")
            assert ids(reader) == [1]
        assert ids(reader) == [1, 2]

    def test_a_snapshot_sees_one_state_while_others_write(self, db: Connection, connect: Connect) -> None:
        reader = connect()
        with reader.snapshot():
            before = ids(reader)
            with db.transaction():
                db.run("INSERT INTO item VALUES (2, 'second')")
            assert ids(reader) == before == [1]
        assert ids(reader) == [1, 2]

    def test_a_snapshot_ends_whatever_is_raised_inside(self, db: Connection) -> None:
        with pytest.raises(Stop), db.snapshot():
            raise Stop

        with db.transaction():
            db.run("INSERT INTO item VALUES (2, 'second')")
        assert ids(db) == [1, 2]

    def test_a_write_tells_how_many_rows_it_changed(self, db: Connection) -> None:
        with db.transaction():
            db.run_many("INSERT INTO item VALUES (?, ?)", [(2, "b"), (3, "b"), (4, "c")])

            assert db.run("UPDATE item SET body = 'd' WHERE body = ?", ("b",)) == 2
            assert db.run("DELETE FROM item WHERE id = 99") == 0


class TestWaiting:
    def test_a_lock_that_stays_is_busy_after_the_timeout(self, db: Connection, connect: Connect) -> None:
        waiting = connect(busy_timeout_s=0.2)
        with db.transaction():
            start = time.monotonic()
            with pytest.raises(driver.Busy), waiting.transaction():
                pytest.fail("entered without the lock")

            assert 0.2 <= time.monotonic() - start < 5

    def test_a_waiter_gets_the_lock_when_it_is_free(self, db: Connection, connect: Connect) -> None:
        waiting = connect()
        started = threading.Event()

        def write() -> None:
            started.set()
            with waiting.transaction():
                waiting.run("INSERT INTO item VALUES (2, 'waited')")

        with ThreadPoolExecutor(1) as pool:
            with db.transaction():
                written = pool.submit(write)
                started.wait()
                assert ids(db) == [1]
            written.result()
        assert ids(db) == [1, 2]

    def test_waiting_for_a_lock_lets_other_threads_run(self, db: Connection, connect: Connect) -> None:
        waiting = connect(busy_timeout_s=0.2)
        with db.transaction(), ticking() as ticks:
            start = time.monotonic()
            with pytest.raises(driver.Busy), waiting.transaction():
                pytest.fail("entered without the lock")
            end = time.monotonic()

        assert len([tick for tick in ticks if start < tick < end]) >= 5

    def test_a_long_query_lets_other_threads_run(self, db: Connection) -> None:
        with ticking() as ticks:
            start = time.monotonic()
            db.query(SLOW, (1_000_000,))
            end = time.monotonic()

        assert len([tick for tick in ticks if start < tick < end]) >= 5

    def test_a_read_inside_a_snapshot_waits_while_another_process_recovers_the_log(
        self, db: Connection, connect: Connect, path: Path
    ) -> None:
        impatient, patient = connect(busy_timeout_s=0), connect()
        with (
            subprocess.Popen(
                [sys.executable, "-c", RECOVERING, f"{path}-shm"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            ) as process,
            ThreadPoolExecutor(1) as pool,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"recovering\n"
            with pytest.raises(driver.Busy), impatient.snapshot():
                ids(impatient)

            def read() -> list[int]:
                with patient.snapshot():
                    return ids(patient)

            found = pool.submit(read)
            process.stdin.close()
            assert found.result() == [1]


RECOVERING = f"""
import fcntl, os, struct, sys
shared = os.open(sys.argv[1], os.O_RDWR)
for byte in (120, 122):  # the writer's lock and the recovery's
    fcntl.fcntl(shared, fcntl.F_SETLK, struct.pack("hhqqi4x", {fcntl.F_WRLCK}, {os.SEEK_SET}, byte, 1, 0))
os.pwrite(shared, b"damaged!", 0)  # as by a writer that died while it wrote the log's summary
print("recovering", flush=True)
sys.stdin.read()
"""


class TestValues:
    @pytest.mark.parametrize("number", [0, -1, 2**31, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)])
    def test_integers_are_exact_over_all_of_int64(self, db: Connection, number: int) -> None:
        assert db.query("SELECT ?, typeof(?)", (number, number)) == [(number, "integer")]

    @pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
    def test_a_larger_integer_is_refused(self, db: Connection, number: int) -> None:
        with pytest.raises(driver.DriverError), db.transaction():
            db.run("INSERT INTO item VALUES (2, ?)", (number,))

        assert ids(db) == [1]

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " padded ",
            "é",
            "e\u0301",
            "日本語",
            "\N{GRINNING FACE}" * 3,
            "\ufeff\ufffe\uffff",
            "'\";--\n\r\t",
        ],
        ids=ascii,
    )
    def test_text_comes_back_code_point_by_code_point(self, db: Connection, text: str) -> None:
        with db.transaction():
            db.run("INSERT INTO item VALUES (2, ?)", (text,))

        assert db.query("SELECT body FROM item WHERE body = ?", (text,)) == [(text,)]

    def test_text_is_ordered_by_code_point(self, db: Connection) -> None:
        texts = ["a", "B", "é", "z", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "a ", "A", "~"]
        with db.transaction():
            db.run_many("INSERT INTO item VALUES (?, ?)", list(enumerate(texts, 2)))

        assert [body for (body,) in db.query("SELECT body FROM item WHERE id > 1 ORDER BY body")] == sorted(
            texts
        )

    def test_null_is_none(self, db: Connection) -> None:
        assert db.query("SELECT ?, NULL", (None,)) == [(None, None)]


class TestScripts:
    def test_a_script_is_cut_where_statements_end_and_nowhere_else(self, db: Connection) -> None:
        with db.transaction():
            db.script("""
                -- a comment; with a semicolon
                CREATE TABLE log (line TEXT);
                /* and; another */ INSERT INTO log VALUES ('a;b');
                CREATE TRIGGER noted AFTER INSERT ON item BEGIN
                    INSERT INTO log VALUES ('one; ' || NEW.id);
                    INSERT INTO log VALUES ('two');
                END;
                INSERT INTO item VALUES (2, 'second') -- no semicolon at the end
            """)

        assert db.query("SELECT line FROM log") == [("a;b",), ("one; 2",), ("two",)]

    def test_an_error_in_the_middle_stops_it(self, db: Connection) -> None:
        with pytest.raises(driver.DriverError, match="no such table"), db.transaction():
            db.script("INSERT INTO item VALUES (2, 'x'); INSERT INTO nowhere VALUES (1); DELETE FROM item;")

        assert ids(db) == [1]


def enter_transaction(db: Connection) -> None:
    with db.transaction():
        pass


def enter_snapshot(db: Connection) -> None:
    with db.snapshot():
        pass


def query(db: Connection) -> object:
    return db.query("SELECT 1")


def run(db: Connection) -> object:
    return db.run("DELETE FROM item")


def run_many(db: Connection) -> None:
    db.run_many("DELETE FROM item WHERE id = ?", [(1,)])


Use = Callable[[Connection], object]
USES: Sequence[Use] = (
    query,
    run,
    run_many,
    enter_transaction,
    enter_snapshot,
    Connection.use_write_ahead_log,
)


class TestErrors:
    def test_a_broken_rule_is_a_constraint(self, db: Connection) -> None:
        with pytest.raises(driver.Constraint), db.transaction():
            db.run("INSERT INTO item VALUES (1, 'again')")
        with pytest.raises(driver.Constraint), db.transaction():
            db.run("INSERT INTO item VALUES (2, ?)", (None,))

    def test_a_file_of_another_kind_is_no_database(self, connect: Connect, path: Path) -> None:
        path.write_text("This is a letter to a friend.\n" * 100, "utf-8")

        with pytest.raises(driver.NotADatabase):
            connect()

        assert path.read_text("utf-8").startswith("This is a letter")

    def test_a_damaged_file_is_corrupt(self, db: Connection, connect: Connect, path: Path) -> None:
        with db.transaction():
            db.run_many("INSERT INTO item VALUES (?, ?)", [(n, "x" * 500) for n in range(2, 200)])
        db.query("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        with path.open("r+b") as file:
            file.seek(2 * 4096)
            file.write(b"\xff" * 4096 * 5)

        with pytest.raises(driver.Corrupt):
            connect().query("SELECT sum(length(body)) FROM item")

    def test_stored_text_that_is_not_utf8_is_corrupt(self, db: Connection) -> None:
        with pytest.raises(driver.Corrupt, match="not UTF-8"):
            db.query("SELECT CAST(x'ff41' AS TEXT)")

    def test_a_folder_that_is_not_there_cannot_be_opened(self, tmp_path: Path) -> None:
        with pytest.raises(driver.CannotOpen):
            Connection(str(tmp_path / "no" / "a.db"), durability="full", busy_timeout_s=0)

    def test_a_folder_cannot_be_opened(self, tmp_path: Path) -> None:
        with pytest.raises(driver.CannotOpen):
            Connection(str(tmp_path), durability="full", busy_timeout_s=0)

    def test_a_connection_that_may_not_write_is_read_only(self, db: Connection) -> None:
        db.query("PRAGMA query_only = TRUE")

        with pytest.raises(driver.ReadOnly), db.transaction():
            db.run("DELETE FROM item")

        assert ids(db) == [1]

    def test_a_full_disk_leaves_nothing_half_written_and_the_connection_usable(self, db: Connection) -> None:
        db.query("PRAGMA max_page_count = 20")

        with pytest.raises(driver.Full), db.transaction():
            db.run_many("INSERT INTO item VALUES (?, ?)", [(n, "x" * 1000) for n in range(2, 200)])

        with db.transaction():
            db.run("INSERT INTO item VALUES (2, 'second')")
        assert ids(db) == [1, 2]

    def test_a_disk_that_refuses_a_write_leaves_nothing_half_written(
        self, db: Connection, path: Path
    ) -> None:
        found = subprocess.run(
            [sys.executable, "-c", REFUSED, str(path)], capture_output=True, text=True, check=True
        )

        assert found.stdout == "IoFailed [1] [1, 2]\n"

    def test_a_value_beyond_the_engines_limit_is_too_big(self, db: Connection) -> None:
        with pytest.raises(driver.TooBig):
            db.query("SELECT zeroblob(?)", (2_000_000_000,))

    @pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
    def test_nothing_works_after_close(self, db: Connection, use: Use) -> None:
        db.close()

        with pytest.raises(driver.Closed):
            use(db)

    def test_close_may_be_repeated_and_rolls_back_what_is_open(
        self, db: Connection, connect: Connect
    ) -> None:
        def write() -> None:
            with db.transaction():
                db.run("INSERT INTO item VALUES (2, 'second')")
                db.close()

        with pytest.raises(driver.Closed):
            write()
        db.close()

        assert ids(connect()) == [1]

    def test_a_wrong_statement_is_a_driver_error(self, db: Connection) -> None:
        with pytest.raises(driver.DriverError, match="syntax error"):
            db.query("SELEKT 1")

    @pytest.mark.parametrize("parameters", [(), (1, 2)])
    def test_a_wrong_number_of_parameters_is_a_driver_error(
        self, db: Connection, parameters: tuple[int, ...]
    ) -> None:
        with pytest.raises(driver.DriverError):
            db.query("SELECT ?", parameters)


REFUSED = """
import resource, sys
from threadkeep_libsql._driver import Connection, DriverError

db = Connection(sys.argv[1], durability="full", busy_timeout_s=0)
before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
try:
    with db.transaction():
        db.run_many("INSERT INTO item VALUES (?, ?)", [(n, "x" * 1000) for n in range(2, 500)])
except DriverError as exc:
    print(type(exc).__name__, end=" ")
resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))
ids = lambda: [row[0] for row in db.query("SELECT id FROM item ORDER BY id")]
print(ids(), end=" ")
with db.transaction():
    db.run("INSERT INTO item VALUES (2, 'second')")
print(ids())
"""
