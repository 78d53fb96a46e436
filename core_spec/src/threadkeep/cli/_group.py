"""The root command: finds the subcommands, and turns every error into one line and an exit code."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from ..errors import (
    AlreadyExistsError,
    NotFoundError,
    OwnershipError,
    PluginError,
    SchemaVersionError,
    StorageError,
    ThreadkeepError,
    UnknownSchemeError,
)
from ..urls import redacted

__all__ = ["Root", "cli"]

_MODULES = {
    "backends": "backends",
    "migrate": "transfer",
    "import": "transfer",
    "export": "transfer",
    "threads": "queries",
    "messages": "queries",
    "explain": "queries",
    "memories": "memories",
    "working-memory": "working_memory",
    "tour": "tour",
}
_DATABASE, _CALL, _INTERRUPTED, _BROKEN_PIPE = 1, 2, 128 + 2, 128 + 13
_DATABASE_ERRORS = (StorageError, NotFoundError, OwnershipError, AlreadyExistsError, SchemaVersionError)
_DEBUG = "THREADKEEP_DEBUG"
_SECRETIVE = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*:\S*[@?]\S*")


class Root(click.Group):
    """Subcommands of this package, imported when asked for, and then those of plugins."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._plugin_errors: dict[str, PluginError] | None = None

    def plugin_errors(self) -> dict[str, PluginError]:
        """Add the plugins' commands, once, and say what is wrong with plugins, by plugin."""
        if self._plugin_errors is not None:
            return self._plugin_errors
        from ..registry import registry

        found = registry()
        self._plugin_errors = dict(found.errors)
        for name, plugin in found.plugins.list_name_plugin():
            if plugin is None:
                continue
            # Its own hook and a group of its own, so that a broken plugin keeps nobody else's commands away.
            own = click.Group()
            others = [other for other in found.plugins.get_plugins() if other is not plugin]
            try:
                found.plugins.subset_hook_caller("threadkeep_register_commands", remove_plugins=others)(
                    cli=own
                )
            except Exception as exc:  # noqa: BLE001  (a third party may raise anything)
                self._plugin_errors[name] = PluginError(name, f"its commands: {type(exc).__name__}: {exc}")
                continue
            self._take(name, own.commands, self._plugin_errors)
        return self._plugin_errors

    def _take(
        self, plugin: str, commands: Mapping[str, click.Command], errors: dict[str, PluginError]
    ) -> None:
        for name, command in commands.items():
            if name in _MODULES or name in self.commands:
                errors[plugin] = PluginError(plugin, f"there is another command of the name {name!r}")
            else:
                self.add_command(command, name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Ours in the order of a first day with threadkeep, then the plugins'."""
        self.plugin_errors()
        return [*_MODULES, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of this name."""
        if cmd_name in _MODULES:
            module = import_module(f".{_MODULES[cmd_name]}", __package__)
            return getattr(module, "import_" if cmd_name == "import" else cmd_name.replace("-", "_"))
        self.plugin_errors()
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but an unknown command tells of broken plugins, which may be where it went."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            broken = "; ".join(map(str, self.plugin_errors().values()))
            if broken:
                raise click.UsageError(f"{exc.message.rstrip('.')} ({broken}).", ctx) from exc
            raise

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        def run() -> object:
            return super(Root, self).main(
                args,
                prog_name,
                complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )

        if not standalone_mode:
            return run()
        for name in ("stdin", "stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by the caller: nothing comes from it, nothing is shown
                setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115, PTH123  (for the whole process)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character is no failure
                stream.reconfigure(errors="backslashreplace")
        with _interruptible():
            code = _guarded(run)
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; a broken pipe becomes its exit code here, before click makes a 1 of it."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as exc:
            if exc.errno != errno.EPIPE:
                raise
            # What is still buffered must not fail once more when the interpreter flushes it on its way out.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(_BROKEN_PIPE)
        return result


@contextmanager
def _interruptible() -> Generator[None]:
    """Let Ctrl-C interrupt a command wherever it is.

    asyncio's own handler waits for the event loop's turn, which does not come while a command waits for
    input. Where another handler is installed, asyncio leaves it alone.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _guarded(run: Callable[[], object]) -> int:
    """The exit code; what went wrong is said in one line."""
    try:
        result = run()
    except click.Abort as exc:
        if isinstance(exc.__context__, KeyboardInterrupt):
            return _INTERRUPTED
        line, code = "stopped: no answer to a question", _CALL
    except NoArgsIsHelpError as exc:
        click.echo(exc.format_message(), err=True)
        return _CALL
    except click.UsageError as exc:
        where = exc.ctx.command_path if exc.ctx else "threadkeep"
        said = _without_secrets(exc.format_message()).rstrip(".")
        line, code = f"{said}. See '{where} --help'.", _CALL
    except click.ClickException as exc:
        line, code = _without_secrets(exc.format_message()), exc.exit_code
    except ThreadkeepError as exc:
        line, code = _advised(exc), exit_code(exc)
    except OSError as exc:
        line, code = f"{exc.filename}: {exc.strerror}" if exc.filename else str(exc), _CALL
    except Exception as exc:
        if os.environ.get(_DEBUG):
            raise
        hint = f"this is a fault of threadkeep or of a plugin; {_DEBUG}=1 shows where"
        line, code = f"{type(exc).__name__}: {_without_secrets(str(exc))} ({hint})", _DATABASE
    else:
        return result if isinstance(result, int) else 0
    click.echo("threadkeep: " + " ".join(line.split()), err=True)
    return code


def exit_code(error: ThreadkeepError) -> int:
    """1 for the database's side, 2 for the call and the installation."""
    is_call = isinstance(error, UnknownSchemeError) or not isinstance(error, _DATABASE_ERRORS)
    return _CALL if is_call else _DATABASE


def _without_secrets(message: str) -> str:
    """A URL given in the wrong place is quoted in a message that is not ours; what is secret in it is not."""
    return _SECRETIVE.sub(lambda found: redacted(found[0]), message)


def _advised(error: ThreadkeepError) -> str:
    """The error after the places it was noted for: a line of a file."""
    places = "".join([f"{note}: " for note in getattr(error, "__notes__", ())])
    hint = ""
    if isinstance(error, SchemaVersionError) and error.found < error.supported:
        hint = "; 'threadkeep migrate URL' creates it or brings it up to date"
    elif isinstance(error, UnknownSchemeError) and not error.install:
        hint = "; 'threadkeep backends' lists what each can do"
    return f"{places}{error}{hint}"


@click.group(
    cls=Root,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="threadkeep")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Threads, messages and memories of agents, on the database you already run.

    A URL names the database: libsql:memory.db, postgresql://..., mongodb://...; `threadkeep backends` lists
    what is installed. Start with `threadkeep tour`.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(_CALL)
