"""URLs: what is libpq's, what is ours, and that nothing of them shows."""

import pickle
import traceback

import pytest
from psycopg.conninfo import conninfo_to_dict

import threadkeep
from threadkeep import InvalidArgumentError, UnavailableError
from threadkeep_postgres._settings import Settings

SECRET = "s3cret p@ss'word\\"  # noqa: S105  (nobody's)
QUOTED = "s3cret%20p%40ss%27word%5C"


def test_the_parts_of_a_url_are_libpqs_parameters() -> None:
    found = Settings.parse(
        f"postgresql://me:{QUOTED}@db.example:6543/app?sslmode=require&application_name=x"
    ).libpq

    assert (found["user"], found["password"], found["dbname"]) == ("me", SECRET, "app")
    assert (found["host"], found["port"]) == ("db.example", "6543")
    assert (found["sslmode"], found["application_name"]) == ("require", "x")


def test_libpq_reads_back_what_the_url_said() -> None:
    settings = Settings.parse(f"postgres://me:{QUOTED}@db.example/app")

    assert conninfo_to_dict(settings.conninfo)["password"] == SECRET


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("postgresql://a,b:2/d", "a,b", ",2"),
        ("postgresql://a:1,b:2/d?target_session_attrs=read-write", "a,b", "1,2"),
        ("postgresql://[::1]:5433/d", "::1", "5433"),
        ("postgresql:///d?host=/run/postgresql", "/run/postgresql", None),
        ("postgresql://%2Frun%2Fpostgresql/d", "/run/postgresql", None),
        ("postgresql:///d", None, None),
    ],
)
def test_host_lists_and_sockets_are_read(url: str, host: str | None, port: str | None) -> None:
    found = Settings.parse(url).libpq

    assert (found.get("host"), found.get("port")) == (host, port)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h/d?unknown=1",
        "postgresql://h/d?schema=a.b",
        'postgresql://h/d?schema="x"',
        "postgresql://h/d?pool_max=0",
        "postgresql://h/d?pool_max=2&pool_min=3",
        "postgresql://h/d?pool_timeout_s=-1",
        "postgresql://h/d?durability=none",
        "postgresql://h/d?metadata_index=a-b",
        "postgresql://h/d?pgbouncer=yes",
        "postgresql://h/d?pgbouncer=true&durability=relaxed",
        "postgresql://h:port/d",
        "postgresql://h/d?host=other",
        "postgresql://%ff@h/d",
    ],
)
def test_a_wrong_url_is_an_error_before_anything_is_sent(url: str) -> None:
    with pytest.raises(InvalidArgumentError):
        Settings.parse(url)


def test_the_users_options_come_last_and_win() -> None:
    assert Settings.parse("postgresql://h/d?options=-c%20jit%3Don").libpq["options"].endswith("-c jit=on")


def test_behind_a_pooler_no_session_settings_are_sent() -> None:
    assert "options" not in Settings.parse("postgresql://h/d?pgbouncer=true").libpq


@pytest.mark.asyncio
@pytest.mark.parametrize("more", ["", "?sslmode=zebra", "?require_auth=zebra", "?options=-c%20zebra%3D1"])
async def test_no_error_shows_a_password_or_a_parameter(more: str) -> None:
    with pytest.raises(UnavailableError) as refused:
        await threadkeep.open(f"postgresql://me:{QUOTED}@127.0.0.1:1/app{more}")

    shown = "".join(traceback.format_exception(refused.value)) + repr(refused.value)
    assert "s3cret" not in shown
    assert "zebra" not in str(refused.value)
    assert pickle.loads(pickle.dumps(refused.value)).outcome == "not_applied"


def test_the_settings_do_not_show_themselves() -> None:
    assert "s3cret" not in repr(Settings.parse(f"postgresql://me:{QUOTED}@h/app"))
