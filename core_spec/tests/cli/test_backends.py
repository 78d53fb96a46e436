from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Invoke, Process

_BROKEN = "raise RuntimeError('a plugin that fails')\n"
_HELLO = """
import click
from threadkeep import hookimpl

@hookimpl
def threadkeep_register_commands(cli):
    @cli.command()
    def hello():
        click.echo("hello from a plugin")
"""
_FAILING_HOOK = """
from threadkeep import hookimpl

@hookimpl
def threadkeep_register_commands(cli):
    raise LookupError("no commands today")
"""
_TAKES_EXPORT = """
from threadkeep import hookimpl

@hookimpl
def threadkeep_register_commands(cli):
    @cli.command()
    def export():
        pass
"""


def _install(folder: Path, **plugins: str) -> dict[str, str]:
    """Install plugins into a folder, as pip would, and return the environment that finds them."""
    for name, source in plugins.items():
        (folder / f"{name}.py").write_text(source)
        metadata = folder / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[threadkeep]\n{name} = {name}\n")
    return {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def test_backends_lists_schemes_driver_capabilities_and_limits(invoke: Invoke) -> None:
    result = invoke("backends")

    assert result.exit_code == 0
    for text in ("memory:", "none needed", "atomic_merge", "look at every record", "libsql:, sqlite:, file:"):
        assert text in result.stdout


def test_backends_as_json_describes_each_backend(invoke: Invoke) -> None:
    found = json.loads(invoke("backends", "--json").stdout)

    memory = next(backend for backend in found["backends"] if backend["name"] == "memory")
    assert memory["schemes"] == ["memory"]
    assert memory["contract"] == "1.0"
    assert memory["driver"] == {"present": True, "modules": [], "missing": [], "install": ""}
    assert memory["capabilities"]["metadata_pushdown"] == dict.fromkeys(
        ("filter", "order", "limit"), "emulated"
    )
    assert memory["capabilities"]["atomic_merge"] == "native"
    assert "durability" in memory["limits"]


def test_backends_imports_no_driver_and_nothing_slow() -> None:
    code = (
        "import sys, threadkeep.cli\n"
        "try: threadkeep.cli.cli(['backends'])\n"
        "except SystemExit: pass\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules}"
        " & {'sqlite3', 'libsql', 'psycopg', 'pymongo', 'chromadb', 'rich', 'pytest'}))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.splitlines()[-1] == "[]"


def test_a_plugin_that_does_not_import_is_reported_and_the_others_work(
    tmp_path: Path, process: Process
) -> None:
    env = _install(tmp_path, broken=_BROKEN, hello=_HELLO)

    listed, said = process("backends", env=env), process("hello", env=env)

    assert listed.returncode == 0
    assert "memory:" in listed.stdout
    assert "plugin 'broken': does not import: RuntimeError: a plugin that fails" in listed.stderr
    assert (said.returncode, said.stdout) == (0, "hello from a plugin\n")


def test_a_plugin_whose_commands_fail_is_reported_and_the_others_work(
    tmp_path: Path, process: Process
) -> None:
    env = _install(tmp_path, failing=_FAILING_HOOK, hello=_HELLO)

    listed = process("backends", "--json", env=env)

    assert {"plugin": "failing", "error": "its commands: LookupError: no commands today"} in json.loads(
        listed.stdout
    )["errors"]
    assert "plugin 'failing'" in listed.stderr
    assert process("hello", env=env).returncode == 0


def test_a_plugin_cannot_replace_a_command(tmp_path: Path, process: Process) -> None:
    env = _install(tmp_path, taker=_TAKES_EXPORT)

    assert "there is another command of the name 'export'" in process("backends", env=env).stderr
    assert "Export everything" in process("export", "--help", env=env).stdout


def test_an_unknown_command_names_broken_plugins(tmp_path: Path, process: Process) -> None:
    result = process("conform", env=_install(tmp_path, broken=_BROKEN))

    assert result.returncode == 2
    assert "No such command 'conform'" in result.stderr
    assert "plugin 'broken'" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [("--help",), ("messages", "--help")])
def test_help_goes_to_standard_output(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments)

    assert result.exit_code == 0
    assert "Usage: " in result.stdout
    assert not result.stderr


def test_help_names_every_command(invoke: Invoke) -> None:
    shown = invoke("--help").stdout

    names = "backends migrate import export threads messages explain memories working-memory tour"
    for name in names.split():
        assert f"\n  {name}" in shown
