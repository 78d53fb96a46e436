"""Reading a ``postgresql://`` URL: what is libpq's, and what is ours. No value of it reaches a message."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from threadkeep.errors import InvalidArgumentError
from threadkeep.tokens import is_filter_key
from threadkeep.urls import StoreUrl

__all__ = ["Settings"]

_OURS = frozenset(
    {"schema", "durability", "metadata_index", "pool_min", "pool_max", "pool_timeout_s", "pgbouncer"}
)
_LIBPQ = frozenset(
    {
        "application_name",
        "channel_binding",
        "connect_timeout",
        "dbname",
        "gssencmode",
        "host",
        "hostaddr",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "krbsrvname",
        "load_balance_hosts",
        "options",
        "passfile",
        "password",
        "port",
        "require_auth",
        "service",
        "ssl_max_protocol_version",
        "ssl_min_protocol_version",
        "sslcert",
        "sslcertmode",
        "sslcrl",
        "sslcrldir",
        "sslkey",
        "sslmode",
        "sslnegotiation",
        "sslpassword",
        "sslrootcert",
        "target_session_attrs",
        "tcp_user_timeout",
        "user",
    }
)
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)

_SESSION = {
    # Every statement has one good plan, the same for all values: planning it once saves 0.1 to 0.3 ms a call.
    "plan_cache_mode": "force_generic_plan",
    # A plan made while the tables were empty must still be right when they are not.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_sort": "off",
    # Costs of what is switched off look like work worth compiling or sharing; it never is.
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "default_transaction_isolation": "read\\ committed",
}
_CONNECT_TIMEOUT_S = "10"


class Settings(NamedTuple):
    """A URL, read.

    Attributes:
        libpq: Connection parameters by name. Never to be shown: the password is one.
        schema: The schema that holds the tables, a plain identifier.
        metadata_index: The metadata keys to index, ``*`` for all; None leaves the choice as it is.
        pool_min: Connections kept open.
        pool_max: Connections open at most.
        pool_timeout_s: How long a call waits for one.
        pgbouncer: Whether a pooler in transaction mode is between: no session state, nothing prepared.
    """

    libpq: dict[str, str]
    schema: str
    metadata_index: frozenset[str] | None
    pool_min: int
    pool_max: int
    pool_timeout_s: float
    pgbouncer: bool

    def __repr__(self) -> str:
        return f"Settings(schema={self.schema!r}, pool_max={self.pool_max})"

    @property
    def conninfo(self) -> str:
        """The connection parameters as libpq reads them. Never to be shown."""
        return " ".join([f"{name}='{_escaped(value)}'" for name, value in self.libpq.items()])

    @classmethod
    def parse(cls, url: str) -> Settings:
        """Read a URL.

        Raises:
            InvalidArgumentError: A part or a parameter is wrong. The message shows no value that is libpq's.
        """
        parsed = StoreUrl.parse(url, known=_OURS | _LIBPQ)
        schema = parsed.options.get("schema", "threadkeep")
        if not _SCHEMA.fullmatch(schema):
            rule = "a plain identifier: ASCII letters, digits and _, at most 63, the first no digit"
            raise InvalidArgumentError("url option schema", rule, repr(schema))
        pgbouncer = parsed.choice("pgbouncer", ("false", "true")) == "true"
        relaxed = parsed.choice("durability", ("full", "relaxed")) == "relaxed"
        if pgbouncer and relaxed:
            rule = "full with pgbouncer=true (there, use ALTER ROLE ... SET synchronous_commit = off)"
            raise InvalidArgumentError("url option durability", rule, "'relaxed'")
        most = int(parsed.number("pool_max", 10, least=1, most=10_000))
        return cls(
            libpq=_libpq(parsed, session=not pgbouncer, relaxed=relaxed),
            schema=schema,
            metadata_index=_wanted_keys(parsed.options.get("metadata_index")),
            pool_min=int(parsed.number("pool_min", min(1, most), least=0, most=most)),
            pool_max=most,
            pool_timeout_s=parsed.number("pool_timeout_s", 30, least=0, most=3600),
            pgbouncer=pgbouncer,
        )


def _libpq(url: StoreUrl, *, session: bool, relaxed: bool) -> dict[str, str]:
    found = _authority(url.authority)
    if url.path.strip("/"):
        found["dbname"] = url.path.removeprefix("/")
    for name, value in url.options.items():
        if name in _LIBPQ:
            if name in found:
                raise InvalidArgumentError("url", f"given {name} once", "it twice")
            found[name] = value
    found.setdefault("connect_timeout", _CONNECT_TIMEOUT_S)
    found.setdefault("application_name", "threadkeep")
    found["client_encoding"] = "UTF8"
    if session:
        settings = {**_SESSION, "synchronous_commit": "off"} if relaxed else _SESSION
        ours = " ".join(f"-c {name}={value}" for name, value in settings.items())
        found["options"] = f"{ours} {found.get('options', '')}".strip()  # the user's come last and win
    return found


def _authority(authority: str) -> dict[str, str]:
    """User, password, hosts and ports of the part before the path; several hosts are separated by commas."""
    credentials, at, places = authority.rpartition("@")
    found: dict[str, str] = {}
    if at:
        user, colon, password = credentials.partition(":")
        if user:
            found["user"] = _unquoted(user)
        if colon:
            found["password"] = _unquoted(password)
    if not places:
        return found
    hosts: list[str] = []
    ports: list[str] = []
    for place in places.split(","):
        match = re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]*))?", place)
        if match is None:
            raise InvalidArgumentError("url", "a URL with hosts such as name:5432,[::1]:5433", "others")
        hosts.append(_unquoted(match[1].strip("[]")))
        ports.append(match[2] or "")
    if any(hosts):
        found["host"] = ",".join(hosts)
    if any(ports):
        found["port"] = ",".join(ports)
    return found


def _unquoted(text: str) -> str:
    try:
        plain = unquote(text, errors="strict")
    except UnicodeDecodeError:  # not kept as a cause: it may quote a password
        raise InvalidArgumentError("url", "quoted as UTF-8", "something else") from None
    if "\0" in plain:
        raise InvalidArgumentError("url", "without %00", "a URL with it")
    return plain


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


def _wanted_keys(option: str | None) -> frozenset[str] | None:
    if option is None:
        return None
    if option in ("all", "none"):
        return frozenset("*" if option == "all" else "")
    keys = option.split(",")
    for key in keys:
        if not is_filter_key(key):
            rule = "all, none or filter keys with commas"
            raise InvalidArgumentError("url option metadata_index", rule, repr(key))
    return frozenset(keys)
