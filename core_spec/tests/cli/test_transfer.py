"""Export and import: complete, idempotent, refused by the batch."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import threadkeep
from threadkeep.models import Message, Resource, Thread

if TYPE_CHECKING:
    from .conftest import Database, Invoke, Process

InvokeJson = Callable[..., Any]

_AT = datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC)
_AWKWARD = {
    "surrogate": "\ud800",
    "nul": "\0",
    "big": 2**200,
    "float": [1e16, -0.0, 5e-324],
    "text": "é🎉\u2028",
}


def _fill(database: Database) -> None:
    store = database.store

    async def fill() -> None:
        for number in range(3):
            name = f"t/{number}"
            thread = Thread(
                id=name,
                resource_id=f"r{number % 2}",
                title="日本\n" * number,
                metadata={"n": number, "f": 1e16, "none": None, "deep": {"a": [1, {"b": False}]}},
                working_memory=None if number else "# notes",
                created_at=_AT + timedelta(days=number),
                updated_at=_AT + timedelta(days=9 - number, microseconds=1),
            )
            await store.save_thread(thread)
            await store.save_messages(
                [
                    Message(
                        id=f"{name}/{i}",
                        thread_id=name,
                        resource_id=thread.resource_id,
                        role="tool",
                        type="awkward",
                        content=_AWKWARD if i == 1 else i,
                        metadata={"i": i},
                        created_at=_AT,
                        seq=5000 - i,
                    )
                    for i in range(1200 if number == 1 else 3)
                ]
            )
            await store.save_thread(thread)
        await store.save_resource(
            Resource(id="r0", working_memory='{"a":1}', revision=41, created_at=_AT, updated_at=_AT)
        )
        await store.add_memories(
            threadkeep.Actor("shared"), ["one", threadkeep.NewMemory("two", pinned=True)]
        )
        await store.add_memories(threadkeep.Actor("user", "u"), ["three"])

    database.do(fill())


def _line(kind: str, **fields: Any) -> str:
    return json.dumps({"kind": kind, **fields})


def _thread_line(name: str, **fields: Any) -> str:
    times = {"created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-02T00:00:00Z"}
    return _line("thread", id=name, resource_id="r", **times, **fields)


def _message_line(name: str, thread: str = "t", **fields: Any) -> str:
    given = {"role": "user", "content": "x", "created_at": "2025-01-01T00:00:00Z", "seq": 1, **fields}
    return _line("message", id=name, thread_id=thread, resource_id="r", **given)


# --- round trip -----------------------------------------------------------------------------------


def test_an_export_imported_elsewhere_is_equal(tmp_path: Path, database: Database, invoke: Invoke) -> None:
    _fill(database)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"

    assert invoke("export", database.url, str(first)).exit_code == 0
    assert invoke("import", f"libsql://{tmp_path}/copy.db", str(first)).exit_code == 0
    assert invoke("export", f"libsql://{tmp_path}/copy.db", str(second)).exit_code == 0

    assert second.read_bytes() == first.read_bytes()
    exported = [json.loads(line) for line in first.read_bytes().splitlines()]
    assert [e["content"] for e in exported if e.get("id") == "t/0/1"] == [_AWKWARD]
    assert [e["revision"] for e in exported if e["kind"] == "resource"] == [41]
    assert [e["updated_at"] for e in exported if e.get("id") == "t/0"] == ["2024-03-10T00:00:00Z"]


def test_importing_again_changes_nothing(tmp_path: Path, database: Database, invoke: Invoke) -> None:
    _fill(database)
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    invoke("export", database.url, str(before))

    assert invoke("import", database.url, str(before)).exit_code == 0
    invoke("export", database.url, str(after))

    assert after.read_bytes() == before.read_bytes()


def test_an_interrupted_import_is_completed_by_running_it_again(
    tmp_path: Path, database: Database, invoke: Invoke
) -> None:
    _fill(database)
    whole, half, copy = (tmp_path / name for name in ("whole.jsonl", "half.jsonl", "copy.jsonl"))
    invoke("export", database.url, str(whole))
    lines = whole.read_bytes().splitlines(keepends=True)
    half.write_bytes(b"".join(lines[: len(lines) // 2]))
    url = f"libsql://{tmp_path}/copy.db"

    invoke("import", url, str(half))
    invoke("import", url, str(whole))
    invoke("export", url, str(copy))

    assert copy.read_bytes() == whole.read_bytes()


def test_lines_may_come_in_any_order_after_their_thread(
    tmp_path: Path, database: Database, invoke: Invoke
) -> None:
    lines = [_thread_line("t"), _thread_line("u")]
    lines += [_message_line(f"m{i}", "tu"[i % 2], seq=i) for i in range(2500)]
    lines += [_line("memory", id=7, content="c", actor_type="shared", created_at="2025-01-01T00:00:00Z")]

    assert invoke("import", database.url, "-", stdin="\n".join(lines)).exit_code == 0

    for name in "tu":
        thread = database.do(database.store.get_thread(name))
        assert thread is not None
        assert thread.message_count == 1250
        assert thread.updated_at == datetime(2025, 1, 2, tzinfo=UTC)


def test_a_pipe_carries_everything(tmp_path: Path, process: Process) -> None:
    lines = "\n".join([_thread_line("t"), _message_line("m", content="\ud800 é")])

    assert process("import", "libsql:a.db", "-", stdin=lines).returncode == 0
    exported = process("export", "libsql:a.db", "-")
    process("import", "libsql:b.db", "-", stdin=exported.stdout)

    assert process("export", "libsql:b.db", "-").stdout == exported.stdout
    assert exported.stderr == "exported 1 threads, 1 messages, 0 resources, 0 memories\n"


def test_the_counts_are_printed_as_json(tmp_path: Path, database: Database, invoke_json: InvokeJson) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text("\n".join([_thread_line("t"), _message_line("m"), "", _message_line("n")]))

    counts = {"threads": 1, "messages": 2, "resources": 0, "memories": 0}
    assert invoke_json("import", database.url, str(file)) == counts
    assert invoke_json("export", database.url, str(tmp_path / "out.jsonl")) == counts


def test_an_empty_file_imports_nothing(database: Database, invoke: Invoke) -> None:
    assert invoke("import", database.url, "-", stdin="").stdout.startswith("imported 0 threads")


# --- bad lines ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "Expected `object`"),
        ('{"id": "x"}', "missing required field `kind`"),
        ('{"kind": "planet"}', "Invalid value 'planet'"),
        (_message_line("m", colour="red"), "unknown field `colour`"),
        (_message_line("m", seq="1"), "Expected `int`, got `str` - at `$.seq`"),
        (_message_line("m", seq=-1), "seq must be"),
        (_message_line("m", role=""), "role must be of 1 to 255 characters"),
        (_message_line("m", created_at="2025-01-01T00:00:00"), "created_at must be an aware datetime"),
        (_message_line("m", metadata={"n": 2**64}), "metadata.n must be an integer within int64"),
        (_message_line("m", metadata={"n": "\ud800"}), "without NUL and lone surrogates"),
        ('{"kind": "message", "content": NaN}', "NaN is no JSON number"),
        (_thread_line("x" * 256), "thread.id must be of 1 to 255 characters"),
        (
            _line(
                "resource",
                id="r",
                revision=-1,
                created_at="2025-01-01T00:00:00Z",
                updated_at="2025-01-01T00:00:00Z",
            ),
            "revision must be",
        ),
        (
            _line("memory", id=0, content="x", actor_type="shared", created_at="2025-01-01T00:00:00Z"),
            "id must be",
        ),
    ],
)
def test_a_bad_line_is_named_and_nothing_of_its_batch_is_kept(
    database: Database, invoke: Invoke, line: str, reason: str
) -> None:
    good = [_thread_line("t"), _message_line("a")]

    result = invoke(
        "import",
        database.url,
        "-",
        "--format",
        "threadkeep",
        stdin="\n".join([*good, line, _message_line("b")]),
    )

    assert result.exit_code == 2
    assert result.stderr.startswith("threadkeep: line 3: ")
    assert reason in result.stderr
    assert database.do(database.store.get_thread("t")) is None
    assert database.do(database.store.get_messages(["a", "b"])) == []


def test_a_bad_line_far_down_leaves_the_batches_before_it(database: Database, invoke: Invoke) -> None:
    lines = [_thread_line("t"), *[_message_line(f"m{i}", seq=i) for i in range(7000)]]
    lines[6456] = _message_line("bad", role="")

    result = invoke("import", database.url, "-", stdin="\n".join(lines))

    assert result.stderr.startswith("threadkeep: line 6457: role must be")
    kept = database.do(database.store.list_messages("t", per_page=None)).items
    assert [message.id for message in kept] == [f"m{i}" for i in range(5999)]


def test_of_two_bad_lines_the_earlier_is_named_though_its_batch_was_still_being_written(
    database: Database, invoke: Invoke
) -> None:
    lines = [_thread_line("t"), *[_message_line(f"m{i}", seq=i) for i in range(7000)]]
    lines[1500] = _message_line("lost", "nowhere")
    lines[6500] = "not JSON"

    result = invoke("import", database.url, "-", stdin="\n".join(lines))

    assert "line 1501" in result.stderr
    assert "nowhere" in result.stderr


@pytest.mark.parametrize(
    "line", ['"\\ud800"', '{"kind":"\\ud800"}', '{"kind":"thread","id":"a","\\ud800":1}']
)
def test_a_lone_surrogate_where_only_text_may_be_is_a_bad_line(
    database: Database, invoke: Invoke, line: str
) -> None:
    result = invoke("import", database.url, "-", stdin=f"{_thread_line('t')}\n{line}\n")

    assert result.exit_code == 2
    assert result.stderr.startswith("threadkeep: line 2: ")


def _exported(invoke: Invoke, url: str) -> str:
    return invoke("export", url, "-").stdout


@pytest.mark.parametrize(
    ("lines", "place", "reason"),
    [
        (
            [_thread_line("mine"), _message_line("new", "nowhere")],
            "line 2",
            "thread 'nowhere' does not exist",
        ),
        ([_message_line("new", "theirs")], "line 1", "belongs to another resource"),
        (
            [_thread_line("mine"), _thread_line("theirs")],
            "line 2",
            "thread 'theirs' belongs to another resource",
        ),
        ([_thread_line("mine"), _message_line("theirs/0", "mine")], "line 2", "belongs to another resource"),
        ([_thread_line("mine"), _message_line("ours/0", "mine")], "line 2", "'ours/0'"),
    ],
)
def test_a_line_that_does_not_go_with_what_is_stored_is_named_and_nothing_is_kept(
    database: Database, invoke: Invoke, lines: list[str], place: str, reason: str
) -> None:
    database.save("theirs", "x", resource="they")
    database.save("ours", "x")
    before = _exported(invoke, database.url)

    result = invoke("import", database.url, "-", stdin="\n".join(lines))

    assert result.exit_code == 1
    assert result.stderr.startswith(f"threadkeep: {place}: ")
    assert reason in result.stderr
    assert _exported(invoke, database.url) == before


# --- files ----------------------------------------------------------------------------------------


def test_an_export_that_fails_leaves_the_old_file_and_no_part(tmp_path: Path, process: Process) -> None:
    (tmp_path / "out.jsonl").write_text('{"kind":"old"}')

    assert process("export", "libsql:missing.db", "out.jsonl").returncode == 1

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"out.jsonl": '{"kind":"old"}'}


def test_an_export_into_a_missing_folder_is_exit_code_2(
    database: Database, tmp_path: Path, invoke: Invoke
) -> None:
    result = invoke("export", database.url, str(tmp_path / "nowhere" / "out.jsonl"))

    assert result.exit_code == 2
    assert "out.jsonl: No such file or directory" in result.stderr
    assert ".part" not in result.stderr


def test_an_export_follows_a_link_and_writes_into_a_device(
    database: Database, tmp_path: Path, invoke: Invoke
) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    target.write_text('{"kind":"old"}')
    link.symlink_to(target)

    assert invoke("export", database.url, str(link)).exit_code == 0
    assert invoke("export", database.url, os.devnull).exit_code == 0

    assert link.is_symlink()
    assert target.read_text() == ""
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_there_is_no_progress_bar_without_a_terminal(tmp_path: Path, process: Process) -> None:
    result = process("import", "libsql:a.db", "-", stdin=_thread_line("t"))

    assert result.stderr == ""


def test_a_terminal_gets_a_progress_bar_on_standard_error(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal, which Windows lacks")
    (tmp_path / "in.jsonl").write_text(_thread_line("t"))
    ours, theirs = pty.openpty()
    result = subprocess.run(
        [sys.executable, "-m", "threadkeep", "import", "libsql:a.db", "in.jsonl"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
        check=True,
    )
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)

    assert "importing" in shown
    assert result.stdout == b"imported 1 threads, 0 messages, 0 resources, 0 memories\n"


def test_peak_memory_does_not_grow_with_the_number_of_messages(tmp_path: Path) -> None:
    def peak_kib(count: int) -> tuple[int, int]:
        file = tmp_path / f"{count}.jsonl"
        body = "y" * 500
        with file.open("w") as lines:
            lines.write(_thread_line("t") + "\n")
            lines.writelines(_message_line(f"m{i}", seq=i, content=body) + "\n" for i in range(count))
        measured = (
            "import resource, sys\n"
            "from threadkeep.cli import cli\n"
            "try: cli(sys.argv[1:])\n"
            "except SystemExit as exc: assert not exc.code\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        )
        peaks: list[int] = []
        for command, name in (("import", file), ("export", tmp_path / "out.jsonl")):
            url = f"libsql://{tmp_path}/{count}.db"
            run = [sys.executable, "-c", measured, command, url, str(name)]
            peaks.append(int(subprocess.run(run, check=True, capture_output=True).stdout.split()[-1]))
        return peaks[0], peaks[1]

    small, large = peak_kib(5_000), peak_kib(40_000)

    # 35,000 more messages are 18 MB of text and far more as objects; a database's page cache may take 16 MB.
    assert large[0] - small[0] < 24 * 1024
    assert large[1] - small[1] < 24 * 1024


def test_an_export_never_replaces_the_database_or_another_file(tmp_path: Path, process: Process) -> None:
    database, other = tmp_path / "own.db", tmp_path / "notes.txt"
    other.write_text("mine")
    assert process("migrate", "libsql:own.db").returncode == 0

    for file in (other, database):
        before = file.read_bytes()
        result = process("export", "libsql:own.db", file.name)
        assert (result.returncode, "is no export" in result.stderr) == (2, True)
        assert file.read_bytes() == before


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_an_export_never_takes_a_name_that_a_database_keeps_for_itself(
    tmp_path: Path, process: Process, suffix: str
) -> None:
    assert process("migrate", "libsql:own.db").returncode == 0
    (tmp_path / "link").symlink_to(tmp_path / f"own.db{suffix}")

    for name in (f"own.db{suffix}", "link"):
        result = process("export", "libsql:own.db", name)
        assert (result.returncode, "keeps for itself" in result.stderr) == (2, True)

    assert not (tmp_path / f"own.db{suffix}").exists()


@pytest.mark.parametrize("dated", [True, False])
def test_a_chat_import_that_was_interrupted_and_run_again_ends_as_an_uninterrupted_one(
    dated: bool, tmp_path: Path, invoke: Invoke
) -> None:
    def line(number: int, content: object) -> str:
        time = {"created_at": f"2024-01-0{number}T00:00:00Z"} if dated else {}
        turns = [{"role": "user", "content": f"{n}", **time} for n in range(1200)]
        return json.dumps(
            {"id": f"c{number}", "messages": [*turns, {"role": "user", "content": content, **time}]}
        )

    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text("\n".join([line(1, "end"), line(2, "end"), line(3, "end")]))
    bad.write_text("\n".join([line(1, "end"), line(2, "end"), line(3, 7)]))
    again, straight = f"libsql://{tmp_path}/again.db", f"libsql://{tmp_path}/straight.db"

    assert invoke("import", again, str(bad)).exit_code == 2
    assert invoke("import", again, str(good)).exit_code == 0
    assert invoke("import", straight, str(good)).exit_code == 0

    def threads(url: str) -> list[dict[str, Any]]:
        lines = _exported(invoke, url).splitlines()
        return [found for found in map(json.loads, lines) if found["kind"] == "thread"]

    if dated:
        assert threads(again) == threads(straight)
    for found in threads(again):  # of undated ones the time of the import is all there is: the first one's
        assert found["updated_at"] == max(
            message["created_at"]
            for message in map(json.loads, _exported(invoke, again).splitlines())
            if message["kind"] == "message" and message["thread_id"] == found["id"]
        )
