"""Exit codes and messages: 1 is the database's side, 2 the call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from threadkeep.cli import cli

if TYPE_CHECKING:
    from .conftest import Database, Invoke, Process


_SELF = (sys.executable, "-m", "threadkeep")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("threads", "oracle:x"), "no adapter for the URL scheme 'oracle'"),
        (("threads", "no-url"), "a URL with a scheme"),
        (("messages", "memory:"), "--thread ID or --resource ID"),
        (("messages", "memory:", "--thread", "t", "--where", "priority"), "is not KEY=VALUE"),
        (("messages", "memory:", "--thread", "t", "--where", "a.b=1"), "the key 'a.b'"),
        (("messages", "memory:", "--thread", "t", "--include", "m:1"), "is not ID:before:after"),
        (("messages", "memory:", "--thread", "t", "--since", "yesterday"), "is not an ISO date or time"),
        (("messages", "memory:", "--thread", "t", "--per-page", "-1"), "neither a number from 0 nor 'all'"),
        (("messages", "memory:", "--thread", "t", "--page", "1", "--per-page", "all"), "page must be 0"),
        (("messages", "memory:", "--thread", "t", "--cursor", "x"), "cursor must be"),
        (("messages", "memory:", "--thread", "t", "--bogus"), "No such option"),
        (("explain", "memory:", "--threads", "--thread", "t"), "--thread is for messages"),
        (("explain", "memory:", "--thread", "t", "--order-by", "updated_at"), "--order-by is for --threads"),
        (("memories", "memory:", "list", "--actor", "robot:1"), "is not user:ID, end_user:ID or shared"),
        (("memories", "memory:", "delete", "--actor", "shared"), "or --all"),
        (("working-memory", "memory:", "get"), "--resource ID or --thread ID"),
        (("working-memory", "memory:", "merge", "--resource", "r", "{"), "PATCH is not JSON"),
        (("working-memory", "memory:", "merge", "--resource", "r", "[]"), "patch must be a dict"),
        (("working-memory", "memory:", "merge", "--resource", "r", '{"a": 1, "a": 2}'), "'a' repeats"),
        (("working-memory", "memory:", "merge", "--resource", "r", '{"a": {"b": 1, "b": 2}}'), "'b' repeats"),
        (("import", "memory:", "no-such-file.jsonl"), "no-such-file.jsonl: No such file or directory"),
        (("frobnicate",), "No such command"),
    ],
)
def test_a_wrong_call_is_exit_code_2_and_one_line(
    invoke: Invoke, arguments: tuple[str, ...], says: str
) -> None:
    result = invoke(*arguments)

    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.startswith("threadkeep: ")
    assert len(result.stderr.splitlines()) == 1
    assert not result.stdout


def test_without_a_command_the_help_is_shown_on_standard_error(invoke: Invoke) -> None:
    result = invoke()

    assert result.exit_code == 2
    assert "Usage: " in result.stderr


def test_a_group_without_a_command_shows_its_help_on_standard_error(invoke: Invoke) -> None:
    groups = [name for name, command in _commands() if isinstance(command, click.Group)]
    assert {"memories", "working-memory"} <= set(groups)

    for group in groups:
        result = invoke(group)
        assert (result.exit_code, result.stdout) == (2, "")
        lines = result.stderr.splitlines()
        assert lines[0].endswith("COMMAND [ARGS]...")
        assert "Commands:" in lines


def _commands() -> list[tuple[str, click.Command | None]]:
    ctx = click.Context(cli)
    return [(name, cli.get_command(ctx, name)) for name in cli.list_commands(ctx)]


@pytest.mark.skipif(sys.platform == "win32", reason="closing a stream is a shell's redirection there")
@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        ("import libsql:a.db - <&-", 0, "imported 0 threads, 0 messages, 0 resources, 0 memories\n"),
        ("backends >&-", 0, ""),
        ("export libsql:missing.db - >&-", 1, ""),
        ("threads oracle:x 2>&-", 2, ""),
        ("threads oracle:x <&- >&- 2>&-", 2, ""),
    ],
)
def test_a_closed_stream_is_an_empty_one(tmp_path: Path, call: str, code: int, says: str) -> None:
    result = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m threadkeep {call}', sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stdout) == (code, says)
    assert "fault of threadkeep" not in result.stderr
    assert len(result.stderr.splitlines()) <= 1


def test_what_does_not_exist_is_exit_code_1(invoke: Invoke) -> None:
    result = invoke("working-memory", "memory:", "get", "--thread", "nowhere")

    assert (result.exit_code, result.stderr) == (1, "threadkeep: thread 'nowhere' does not exist\n")


def test_another_owners_thread_is_exit_code_1(database: Database, invoke: Invoke) -> None:
    database.save("t", "hi", resource="owner")

    result = invoke("working-memory", database.url, "set", "x", "--thread", "t", "--resource", "thief")

    assert result.exit_code == 1
    assert "belongs to another resource" in result.stderr


def test_a_lost_race_is_exit_code_1(database: Database, invoke: Invoke) -> None:
    result = invoke("working-memory", database.url, "set", "x", "--resource", "r", "--if-revision", "7")

    assert result.exit_code == 1
    assert "revision" in result.stderr


def test_reading_makes_no_file_of_a_misspelt_name(tmp_path: Path, process: Process) -> None:
    result = process("threads", "libsql:misspelt.db")

    assert result.returncode == 1
    assert "'threadkeep migrate URL'" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_exit_code_1(tmp_path: Path, process: Process) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to look at\n" * 100)

    result = process("threads", "libsql:notes.txt")

    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("threads", "oracle://scott:tiger@host/db?password=tiger"),
        ("threads", "memory:", "oracle://scott:tiger@host/db?password=tiger"),
        ("messages", "libsql:x.db?password=tiger", "--thread", "t"),
    ],
)
def test_no_message_shows_credentials(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments)

    assert result.exit_code == 2
    assert "tiger" not in result.output


def test_the_module_is_the_same_command(process: Process) -> None:
    assert process("--version").stdout.startswith("threadkeep, version ")


def test_a_broken_pipe_is_silent(tmp_path: Path, process: Process) -> None:
    lines = ['{"messages": [' + ", ".join(['{"role": "user", "content": "hello"}'] * 2000) + "]}"]
    process("import", "libsql:a.db", "-", "--format", "chat", stdin="\n".join(lines))

    with subprocess.Popen(
        [*_SELF, "messages", "libsql:a.db", "--resource", "imported", "--per-page", "all"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        errors = running.stderr.read()

    assert errors == b""
    assert running.returncode == 128 + signal.SIGPIPE


def test_ctrl_c_ends_with_130_and_leaves_no_half_file(tmp_path: Path, process: Process) -> None:
    process("migrate", "libsql:a.db")
    with subprocess.Popen(
        [*_SELF, "import", "libsql:a.db", "-"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        # More than a pipe holds: when this returns, the command is reading.
        blank = b" " * 999 + b"\n"
        running.stdin.write(b'{"messages": []}\n' + blank * 1000)
        running.stdin.flush()
        running.send_signal(signal.SIGINT)
        errors = running.stderr.read()
        running.stdin.close()

    assert running.returncode == 130
    assert b"Traceback" not in errors
    assert {path.name for path in tmp_path.iterdir()} <= {"a.db", "a.db-wal", "a.db-shm"}


def test_a_terminal_that_lacks_a_character_is_no_failure(process: Process) -> None:
    process("memories", "libsql:a.db", "add", "--actor", "shared", "naïve 🎉")

    result = process(
        "memories", "libsql:a.db", "list", env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )

    assert result.returncode == 0
    assert "na\\xefve \\U0001f389" in result.stdout
